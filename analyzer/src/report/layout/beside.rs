//! Breakdowns of several cohorts beside each other: the median of each part in
//! every cohort, and how far it is shifted against the first where runs were
//! paired.

use crate::units::Nanos;

use super::super::comparisons::WINDOW;
use super::super::numbers::{NONE, cohort_name, escape, or_none, signed_amount, time};
use super::super::{
    Amount, CohortReport, Comparison, DrillReport, GroupReport, Report, ShiftReport, StageReport,
    WindowReport,
};
use super::{Grid, Section};

/// Why no shift stands beside the medians.
const UNPAIRED: &str = "these runs name no pairs, so it is not said how far the cohorts differ and how sure that is; `measure` runs its arms in pairs";

/// A row: its name and the median of each cohort.
struct Row {
    name: String,
    medians: Vec<Option<Nanos>>,
}

/// The window that `pooled` pools, cohort by cohort.
pub(super) fn window(report: &Report, pooled: &WindowReport) -> Section {
    let of = |cohort: &'_ CohortReport| {
        let mut windows = cohort.windows.iter();
        windows.position(|window| window.name == pooled.name)
    };
    let found: Vec<Option<&WindowReport>> = report
        .cohorts
        .iter()
        .map(|cohort| of(cohort).map(|at| &cohort.windows[at]))
        .collect();
    let row = |name: &str, median: &dyn Fn(&WindowReport) -> Option<Nanos>| Row {
        name: name.to_owned(),
        medians: found.iter().map(|window| median((*window)?)).collect(),
    };
    let in_window = |window: &WindowReport, name: &str| -> Option<Nanos> {
        let parts = window.stages.iter().chain([&window.unattributed]);
        let found: Option<&StageReport> = parts.into_iter().find(|part| part.name == name);
        // A stage that no run of the cohort has is absent, not short.
        found.filter(|part| part.n_present > 0)?.p50
    };
    let mut names: Vec<&str> = pooled
        .stages
        .iter()
        .map(|stage| stage.name.as_str())
        .collect();
    if !names.is_empty() {
        names.push(&pooled.unattributed.name);
    }
    let mut rows: Vec<Row> = names
        .iter()
        .map(|name| row(name, &|window| in_window(window, name)))
        .collect();
    rows.retain(|row| row.medians.iter().any(Option::is_some));
    rows.push(row("total", &|window| window.total.p50));
    let shifts = shifts(report, &pooled.name);
    let n = found.iter().map(|window| window.map_or(0, |one| one.n));
    let title = format!("{}, P50 by cohort ({})", pooled.title, sizes(n));
    let pairs: Vec<usize> = shifts.iter().flatten().map(|one| one.n_pairs).collect();
    let note = pairs.first().map(|first| {
        let all = pairs.iter().all(|n| n == first);
        let n = if all { first.to_string() } else { join(&pairs) };
        format!("differences are Hodges–Lehmann shifts of the runs in pairs (n = {n}) with their 95 % intervals; those of stages need not add up to that of the total")
    });
    let unpaired = report.comparisons.is_empty().then(|| UNPAIRED.to_owned());
    let note = note.or(unpaired);
    Section {
        title,
        lines: Vec::new(),
        grid: Some(grid(report, "stage", &rows, &shifts, pooled.quantum)),
        notes: note.into_iter().collect(),
    }
}

/// What explains a stage, cohort by cohort.
pub(super) fn drill(report: &Report, pooled: &DrillReport) -> Section {
    let is_it = |drill: &&DrillReport| {
        drill.stage == pooled.stage && drill.explained_by == pooled.explained_by
    };
    let found: Vec<Option<&DrillReport>> = report
        .cohorts
        .iter()
        .map(|cohort| cohort.drill_through.iter().find(is_it))
        .collect();
    let phase = |name: &str| Row {
        name: name.to_owned(),
        medians: found
            .iter()
            .map(|drill| {
                let mut phases = drill.as_ref()?.phases.iter();
                phases.find(|phase| phase.name == name)?.p50
            })
            .collect(),
    };
    let mut rows: Vec<Row> = pooled.phases.iter().map(|one| phase(&one.name)).collect();
    rows.push(Row {
        name: "uncovered".to_owned(),
        medians: found
            .iter()
            .map(|drill| drill.as_ref()?.uncovered.p50)
            .collect(),
    });
    let n = found.iter().map(|drill| drill.map_or(0, |one| one.n));
    Section {
        title: format!(
            "What covers {} (from {}), P50 by cohort ({})",
            escape(&pooled.stage),
            escape(&pooled.explained_by),
            sizes(n)
        ),
        lines: Vec::new(),
        grid: Some(grid(report, "phase", &rows, &[], pooled.quantum)),
        notes: Vec::new(),
    }
}

/// Named sums of stages, cohort by cohort.
pub(super) fn groups(report: &Report) -> Option<Section> {
    let row = |pooled: &GroupReport| Row {
        name: format!("{} of {}", pooled.title, pooled.of),
        medians: report
            .cohorts
            .iter()
            .map(|cohort| {
                let mut groups = cohort.groups.iter();
                groups.find(|group| group.name == pooled.name)?.p50
            })
            .collect(),
    };
    let rows: Vec<Row> = report.groups.iter().map(row).collect();
    let quanta = report.groups.iter().map(|group| group.quantum);
    let quantum = quanta.max()?;
    Some(Section {
        title: "Groups, P50 by cohort".to_owned(),
        lines: Vec::new(),
        grid: Some(grid(report, "group", &rows, &[], quantum)),
        notes: Vec::new(),
    })
}

/// The comparison of each further cohort with the first, in the window `name`.
fn shifts<'r>(report: &'r Report, name: &str) -> Vec<Option<&'r Comparison>> {
    let mut cohorts = report.cohorts.iter();
    let Some(control) = cohorts.next() else {
        return Vec::new();
    };
    cohorts
        .map(|candidate| {
            let mut all = report.comparisons.iter();
            all.find(|one| {
                one.kind == WINDOW
                    && one.metric == name
                    && one.control == control.name
                    && one.candidate == candidate.name
            })
        })
        .collect()
}

/// Columns: the first cohort, then each other one with its shift against the first.
fn grid(
    report: &Report,
    first: &str,
    rows: &[Row],
    shifts: &[Option<&Comparison>],
    quantum: Nanos,
) -> Grid {
    let names: Vec<String> = report
        .cohorts
        .iter()
        .map(|one| cohort_name(&one.name))
        .collect();
    let mut head = vec![first.to_owned()];
    for (place, name) in names.iter().enumerate() {
        head.push(name.clone());
        if place > 0 && !shifts.is_empty() {
            head.push(format!("{name} − {}", names[0]));
            head.push("95 % interval".to_owned());
        }
    }
    let show = |value: Option<Nanos>| or_none(value, |value| time(value, quantum));
    let row = |row: &Row| {
        let mut cells = vec![escape(&row.name)];
        for (place, median) in row.medians.iter().enumerate() {
            cells.push(show(*median));
            if place > 0 && !shifts.is_empty() {
                let compared = shifts.get(place - 1).copied().flatten();
                let shift = compared.and_then(|one| shift_of(one, &row.name));
                cells.extend(shift_cells(shift, quantum));
            }
        }
        cells
    };
    Grid {
        head,
        rows: rows.iter().map(row).collect(),
    }
}

/// The shift of one part of a window, or of the whole.
fn shift_of<'r>(compared: &'r Comparison, name: &str) -> Option<&'r ShiftReport<Amount>> {
    let mut stages = compared.stages.iter();
    let stage = stages.find(|stage| stage.name == name);
    stage
        .map(|stage| &stage.shift)
        .or_else(|| (name == "total").then_some(&compared.shift))
}

fn shift_cells(shift: Option<&ShiftReport<Amount>>, quantum: Nanos) -> [String; 2] {
    let print = |value: Amount| signed_amount(value, quantum);
    let Some(shift) = shift else {
        return [NONE.to_owned(), NONE.to_owned()];
    };
    let interval = or_none(shift.low.zip(shift.high), |(low, high)| {
        format!("{} … {}", print(low), print(high))
    });
    [or_none(shift.estimate, print), interval]
}

/// `n = 24, 23`, in the order of the cohorts.
fn sizes(n: impl Iterator<Item = usize>) -> String {
    format!("n = {}", join(&n.collect::<Vec<_>>()))
}

fn join(numbers: &[usize]) -> String {
    let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    texts.join(", ")
}
