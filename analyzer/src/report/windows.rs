//! Windows and their stages over the complete runs.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::{HashMap, HashSet};

use crate::breakdown::client;
use crate::breakdown::store::{StageView, WindowView};
use crate::breakdown::windows::UNATTRIBUTED;
use crate::halves::each;
use crate::model::lens::Lens;
use crate::stats::attribution;
use crate::stats::quantile::{Definition, median};
use crate::trace::dataset::SpanIndex;
use crate::trace::span::Value;
use crate::units::Nanos;

use super::build::Row;
use super::{SchedReport, WindowReport, millionth, summary};

/// A window of one run and the row it stands in.
type Cell<'r, 'a> = (WindowView<'a>, &'r Row<'a>);

/// Every window of the complete runs, in the model's order, the client's last.
///
/// Where `rows` are a cohort, `pooled` are the windows of all: what stands together
/// there does so in each cohort, so that rows of one name are of the same stages.
pub(super) fn window_reports(
    lens: &Lens<'_>,
    rows: &[&Row<'_>],
    definition: Definition,
    pooled: &[WindowReport],
) -> Vec<WindowReport> {
    let mut names: Vec<(&str, &str)> = Vec::new();
    for rule in &lens.model.windows {
        if !names.iter().any(|(name, _)| *name == rule.name) {
            names.push((&rule.name, &rule.title));
        }
    }
    names.push((client::WINDOW, client::TITLE));
    let report = |(name, title): (&str, &str)| {
        let mine: Vec<Cell<'_, '_>> = rows
            .iter()
            .flat_map(|row| row.all(name).map(|window| (window, *row)))
            .collect();
        let pooled = pooled.iter().find(|window| window.name == name);
        let apart = pooled.and_then(apart);
        (!mine.is_empty())
            .then(|| window_report(lens, (name, title), &mine, definition, apart.as_ref()))
    };
    let reports = each(&names, rows.len(), |name| report(*name));
    reports.into_iter().flatten().collect()
}

fn window_report(
    lens: &Lens<'_>,
    (name, title): (&str, &str),
    mine: &[Cell<'_, '_>],
    definition: Definition,
    apart: Option<&HashSet<&str>>,
) -> WindowReport {
    let latency: Vec<Option<f64>> = mine
        .iter()
        .map(|(window, row)| row.latency(window.request))
        .collect();
    let totals: Vec<f64> = mine
        .iter()
        .map(|(window, _)| window.interval.length().0 as f64)
        .collect();
    let near = attribution::windows(&totals);
    let summarise = |name: &str, times: &[f64], present: usize| {
        let samples = summary::StageSamples {
            times,
            totals: &totals,
            latency: &latency,
            latency_name: &lens.model.client.latency,
            windows: &near,
        };
        summary::stage(name, present, &samples, definition)
    };
    let (columns, others) = columns(mine, apart);
    let mut times = vec![0.0; mine.len()];
    let stages = columns.into_iter().map(|column| {
        column.fill(&mut times);
        let mut report = summarise(column.name, &times, column.present.len());
        report.sched = sched(lens, &column, mine);
        report
    });
    let rest: Vec<f64> = mine
        .iter()
        .map(|(window, _)| window.unattributed.0 as f64)
        .collect();
    let factors: Vec<f64> = mine
        .iter()
        .filter_map(|(window, _)| window.overlap_factor())
        .collect();
    let overlaps: Vec<f64> = mine
        .iter()
        .map(|(window, _)| window.overlap.0 as f64)
        .collect();
    let slow = near.p95.iter().rev();
    // Of several windows of one run each may be among the slow ones.
    let mut seen: HashSet<&str> = HashSet::new();
    let slow_runs = slow
        .map(|index| mine[*index].1.run.id.as_str())
        .filter(|run| seen.insert(run));
    let slow_runs = slow_runs.map(str::to_owned).collect();
    WindowReport {
        name: name.to_owned(),
        title: title.to_owned(),
        quantum: mine
            .iter()
            .map(|(window, _)| window.quantum)
            .max()
            .unwrap_or(Nanos(1)),
        n: mine.len(),
        runs: mine
            .iter()
            .filter(|(window, _)| window.request == 1)
            .count(),
        overlap_factor: median(&factors).map(millionth),
        overlap: median(&overlaps).map(Nanos::rounded),
        slow_runs,
        total: summary::totals(&totals, definition),
        stages: stages.collect(),
        others,
        unattributed: summarise(UNATTRIBUTED, &rest, mine.len()),
    }
}

/// Stages of a window that are summarised each by itself; what hundreds of kinds
/// take is nobody's table, and each costs a figure for every window.
const STAGES_MAX: usize = 256;
/// Name of the stage in which the others stand together.
const OTHERS: &str = "other stages";

/// One stage over all windows of a name.
struct Column<'s> {
    name: &'s str,
    /// Sum and number of its places in the windows that have it.
    places: (f64, f64),
    /// Its time in the windows that have it, by their place.
    times: Vec<(u32, f64)>,
    /// Where it was there.
    present: Vec<Presence>,
    /// Kinds of the spans whose scheduler figures stand for it.
    sources: Vec<Option<&'s str>>,
}

/// A stage that is there, in one window.
struct Presence {
    /// Place of the window; memory bounds them far below 2^32.
    window: u32,
    /// Place among the sources of the column.
    source: u32,
    /// Its first span, where it has one.
    span: Option<SpanIndex>,
}

impl<'s> Column<'s> {
    fn new(name: &'s str) -> Self {
        Self {
            name,
            places: (0.0, 0.0),
            times: Vec::new(),
            present: Vec::new(),
            sources: Vec::new(),
        }
    }

    /// Sum of its time over all windows.
    fn whole(&self) -> f64 {
        self.times.iter().map(|(_, time)| time).sum()
    }

    /// Its time in each window; 0 where it is not.
    fn fill(&self, times: &mut [f64]) {
        times.fill(0.0);
        for (window, time) in &self.times {
            times[*window as usize] = *time;
        }
    }

    /// Notes the stage of one window.
    fn note(&mut self, at: usize, place: usize, stage: &StageView<'s>) {
        self.places.0 += place as f64;
        self.places.1 += 1.0;
        let window = u32::try_from(at).unwrap_or(u32::MAX);
        match self.times.last_mut() {
            Some((last, time)) if *last == window => *time += stage.time.0 as f64,
            _ => self.times.push((window, stage.time.0 as f64)),
        }
        if !stage.present
            || self
                .present
                .last()
                .is_some_and(|last| last.window == window)
        {
            return;
        }
        let mut sources = self.sources.iter();
        let known = sources.position(|source| *source == stage.sched_from);
        let source = known.unwrap_or_else(|| {
            self.sources.push(stage.sched_from);
            self.sources.len() - 1
        });
        self.present.push(Presence {
            window,
            source: u32::try_from(source).unwrap_or(u32::MAX),
            span: stage.spans.first().copied(),
        });
    }
}

/// The stages that stand each by itself in a window where others stand together.
pub(super) fn apart(window: &WindowReport) -> Option<HashSet<&str>> {
    let (_, apart) = window.stages.split_last().filter(|_| window.others > 0)?;
    Some(apart.iter().map(|stage| stage.name.as_str()).collect())
}

/// All stages, by their mean place in the windows that have them, and how many
/// more stand together in the last. `apart` are those that do not, where that was
/// decided before.
fn columns<'s>(mine: &[Cell<'_, 's>], apart: Option<&HashSet<&str>>) -> (Vec<Column<'s>>, usize) {
    let mut found: Vec<Column<'s>> = Vec::new();
    let mut of_name: HashMap<&str, usize> = HashMap::new();
    for (at, (window, _)) in mine.iter().enumerate() {
        for (place, stage) in window.stages.iter().enumerate() {
            let column = *of_name.entry(stage.name).or_insert_with(|| {
                found.push(Column::new(stage.name));
                found.len() - 1
            });
            found[column].note(at, place, &stage);
        }
    }
    let others = fold(&mut found, apart);
    let folded = others.as_ref().map_or(0, |(count, _)| *count);
    found.sort_by(|a, b| {
        let mean = |column: &Column<'_>| column.places.0 / column.places.1;
        mean(a).total_cmp(&mean(b)).then_with(|| a.name.cmp(b.name))
    });
    found.extend(others.map(|(_, column)| column));
    (found, folded)
}

/// Puts the stages that take the least together where there are more than
/// [`STAGES_MAX`], or all that do not stand `apart`, so that all still add up to
/// the window.
fn fold<'s>(
    found: &mut Vec<Column<'s>>,
    apart: Option<&HashSet<&str>>,
) -> Option<(usize, Column<'s>)> {
    if found.len() <= STAGES_MAX && apart.is_none() {
        return None;
    }
    // The client's gaps are what its window is looked at for; a real stage of the
    // name that the others get is one of them.
    let rank = |column: &Column<'_>| match column.name {
        client::BEFORE | client::AFTER => f64::INFINITY,
        OTHERS => -1.0,
        _ => column.whole(),
    };
    let mut ranked: Vec<(f64, Column<'s>)> = std::mem::take(found)
        .into_iter()
        .map(|column| (rank(&column), column))
        .collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.name.cmp(b.1.name)));
    let mut rest = Vec::new();
    for (place, (_, column)) in ranked.into_iter().enumerate() {
        let stays = match apart {
            Some(apart) => apart.contains(column.name),
            None => place < STAGES_MAX - 1,
        };
        if stays {
            found.push(column);
        } else {
            rest.push(column);
        }
    }
    if rest.is_empty() {
        return None;
    }
    let mut times: BTreeMap<u32, f64> = BTreeMap::new();
    let mut present: BTreeSet<u32> = BTreeSet::new();
    for column in &rest {
        for (window, time) in &column.times {
            *times.entry(*window).or_default() += time;
        }
        present.extend(column.present.iter().map(|presence| presence.window));
    }
    let presence = |window| Presence {
        window,
        source: 0,
        span: None,
    };
    let column = Column {
        times: times.into_iter().collect(),
        present: present.into_iter().map(presence).collect(),
        sources: vec![None],
        ..Column::new(OTHERS)
    };
    Some((rest.len(), column))
}

/// Medians of the scheduler figures of a stage's spans, or of the span that
/// stands for it; `None` unless every run that has the stage has them.
fn sched(lens: &Lens<'_>, column: &Column<'_>, mine: &[Cell<'_, '_>]) -> Option<SchedReport> {
    let rule = lens.model.sched.as_ref()?;
    let names = &lens.data.names;
    let (cpu_key, runq_key) = (names.find(&rule.cpu)?, names.find(&rule.runq)?);
    let (mut cpu, mut runq, mut blocked) = (Vec::new(), Vec::new(), Vec::new());
    let mut from = None;
    for presence in &column.present {
        let (window, row) = &mine[presence.window as usize];
        let span = match column.sources[presence.source as usize] {
            Some(kind) => {
                from = Some(kind);
                row.view(window.request).first(lens, kind)?
            }
            None => presence.span?,
        };
        let span = lens.data.span(span);
        let read = |key| span.attribute(key).and_then(Value::number);
        let (on, waiting) = (read(cpu_key)?, read(runq_key)?);
        cpu.push(on);
        runq.push(waiting);
        // The two clocks differ by a tick at most; below it nothing was blocked.
        blocked.push((span.interval.length().0 as f64 - on - waiting).max(0.0));
    }
    let middle = |values: &[f64]| median(values).map(Nanos::rounded);
    Some(SchedReport {
        from: from.map(str::to_owned),
        cpu: middle(&cpu)?,
        runq: middle(&runq)?,
        blocked: middle(&blocked)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stage that takes so many nanoseconds in window 0 and is there.
    fn column(name: &str, time: f64) -> Column<'_> {
        Column {
            times: vec![(0, time)],
            present: vec![Presence {
                window: 0,
                source: 0,
                span: None,
            }],
            ..Column::new(name)
        }
    }

    #[test]
    fn what_was_decided_for_all_cohorts_holds_for_each() {
        let mut found = vec![column("a", 5.0), column("b", 9.0), column("c", 3.0)];
        let apart = HashSet::from(["a", "z"]);
        let (count, others) = fold(&mut found, Some(&apart)).unwrap();
        assert_eq!(found.iter().map(|one| one.name).collect::<Vec<_>>(), ["a"]);
        assert_eq!(
            (count, others.times, others.present.len()),
            (2, vec![(0, 12.0)], 1)
        );
        // A cohort that has none of the others has no such row.
        let mut found = vec![column("a", 5.0)];
        assert!(fold(&mut found, Some(&apart)).is_none());
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn the_clients_gaps_stand_alone_and_a_stage_named_as_the_others_does_not() {
        let names: Vec<String> = (0..300).map(|n| format!("stage {n}")).collect();
        let mut found: Vec<Column<'_>> = names.iter().map(|name| column(name, 10.0)).collect();
        found.extend([
            column(OTHERS, 1e9),
            column(client::BEFORE, 0.0),
            column(client::AFTER, 0.0),
        ]);
        let (count, others) = fold(&mut found, None).unwrap();
        assert_eq!((found.len(), count), (255, 48));
        let gaps = found.iter().filter(|one| one.name.starts_with("client."));
        assert_eq!(gaps.count(), 2);
        // 253 stages stand alone; the 47 others and the one of their name do not.
        assert_eq!(others.times, [(0, 1e9 + 470.0)]);
    }
}
