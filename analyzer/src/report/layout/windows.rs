//! Sections of windows: their stages, what covers them, where their time went.

use std::fmt::Write as _;

use crate::breakdown::client;
use crate::units::Nanos;

use super::super::findings::parts_of;
use super::super::numbers::{
    NONE, coefficient, counted, escape, or_none, percent, signed_time, time,
};
use super::super::stages::FEW_RUNS;
use super::super::{DrillReport, GroupReport, StageReport, WindowReport};
use super::{Grid, Section, head, titled};

pub(super) fn window(window: &WindowReport) -> Section {
    let show = |value: Option<Nanos>| or_none(value, |value| time(value, window.quantum));
    // What one run, or a few, would only seem to say is left out.
    let spread = |value: Option<Nanos>| show(value.filter(|_| window.runs > 1));
    let enough = window.runs >= FEW_RUNS;
    let row = |stage: &StageReport| {
        let mut name = escape(&stage.name);
        if stage.n_present < stage.n && stage.name != window.unattributed.name {
            let _ = write!(name, " ({}/{})", stage.n_present, stage.n);
        }
        vec![
            name,
            show(stage.p50),
            spread(stage.p95),
            spread(stage.max),
            or_none(stage.share_p50, percent),
            show(stage.p50_attribution.filter(|_| enough)),
            or_none(stage.variance_share.filter(|_| enough), percent),
            or_none(stage.p95_excess.filter(|_| enough), |value| {
                signed_time(value, window.quantum)
            }),
        ]
    };
    let mut rows: Vec<_> = window.stages.iter().map(row).collect();
    if !window.stages.is_empty() {
        rows.push(row(&window.unattributed));
    }
    rows.push(total(window));
    let grid = Grid {
        head: head(&[
            "stage",
            "P50",
            "P95",
            "max",
            "share",
            "P50 runs",
            "variance",
            "slow runs",
        ]),
        rows,
    };
    Section {
        title: if window.runs == window.n {
            format!("{} (n = {})", window.title, window.n)
        } else {
            format!(
                "{} (n = {} in {})",
                window.title,
                window.n,
                counted(window.runs, "run")
            )
        },
        lines: Vec::new(),
        grid: Some(grid),
        notes: together(window).into_iter().collect(),
    }
}

/// The row of the whole window: what its parts add up to where they do.
fn total(window: &WindowReport) -> Vec<String> {
    let show = |value: Option<Nanos>| or_none(value, |value| time(value, window.quantum));
    let spread = |value: Option<Nanos>| show(value.filter(|_| window.runs > 1));
    let enough = window.runs >= FEW_RUNS;
    let sum = |value: &dyn Fn(&StageReport) -> Option<Nanos>| {
        let stages = window.stages.iter().chain([&window.unattributed]);
        let parts: Option<Vec<i64>> = stages
            .map(|stage| value(stage).map(|time| time.0))
            .collect();
        parts.map(|parts| Nanos(parts.iter().sum()))
    };
    let varies = enough && window.unattributed.variance_share.is_some();
    let excess = sum(&|stage| stage.p95_excess).filter(|_| enough);
    vec![
        "total".to_owned(),
        show(window.total.p50),
        spread(window.total.p95),
        spread(window.total.max),
        percent(1.0),
        show(sum(&|stage| stage.p50_attribution).filter(|_| enough)),
        or_none(varies.then_some(1.0), percent),
        or_none(excess, |value| signed_time(value, window.quantum)),
    ]
}

/// What stands in the last stage of a window that has too many.
fn together(window: &WindowReport) -> Option<String> {
    let last = window.stages.last().filter(|_| window.others > 0)?;
    Some(format!(
        "{}: the {} that take least, together",
        last.name,
        counted(window.others, "stage")
    ))
}

/// Where the time of each stage went; the client's window repeats the request's.
pub(super) fn scheduler(cohort: Option<&str>, windows: &[WindowReport]) -> Option<Section> {
    let mut rows = Vec::new();
    for window in windows
        .iter()
        .filter(|window| window.name != client::WINDOW)
    {
        let show = |value| time(value, window.quantum);
        for stage in &window.stages {
            let Some(sched) = &stage.sched else { continue };
            let name = format!("{} / {}", escape(&window.name), escape(&stage.name));
            rows.push(match (&sched.from, parts_of(sched)) {
                // Another process's times are not parts of this stage: only their
                // proportions say what is waited for.
                (Some(from), Some(parts)) => {
                    let [cpu, runq, blocked] = parts.map(percent);
                    vec![name, escape(from), cpu, runq, blocked]
                }
                _ => vec![
                    name,
                    "itself".to_owned(),
                    show(sched.cpu),
                    show(sched.runq),
                    show(sched.blocked),
                ],
            });
        }
    }
    (!rows.is_empty()).then(|| Section {
        title: titled(
            "On a processor, waiting for one, blocked (P50 of the thread that ran it)",
            cohort,
        ),
        lines: Vec::new(),
        grid: Some(Grid {
            head: head(&["window / stage", "of", "running", "waiting", "blocked"]),
            rows,
        }),
        notes: Vec::new(),
    })
}

pub(super) fn drill(drill: &DrillReport) -> Section {
    let show = |value: Option<Nanos>| or_none(value, |value| time(value, drill.quantum));
    let mut rows: Vec<_> = drill
        .phases
        .iter()
        .map(|phase| {
            let place = or_none(phase.placed, |[low, high]| {
                format!(
                    "{} … {}",
                    time(low, drill.quantum),
                    time(high, drill.quantum)
                )
            });
            vec![
                escape(&phase.name),
                show(phase.p50),
                or_none(phase.share, percent),
                place,
            ]
        })
        .collect();
    rows.push(vec![
        "uncovered".to_owned(),
        show(drill.uncovered.p50),
        or_none(drill.uncovered.share, percent),
        NONE.to_owned(),
    ]);
    let placed = drill.phases.iter().any(|phase| phase.placed.is_some());
    let note = "placed: the source has no start times; phases are laid out from the end, and the interval says how far off that can be";
    Section {
        title: format!(
            "What covers {} (from {}, n = {})",
            escape(&drill.stage),
            escape(&drill.explained_by),
            drill.n
        ),
        lines: Vec::new(),
        grid: Some(Grid {
            head: head(&["phase", "P50", "share", "placed"]),
            rows,
        }),
        notes: if placed {
            vec![note.to_owned()]
        } else {
            Vec::new()
        },
    }
}

pub(super) fn groups(groups: &[GroupReport]) -> Option<Section> {
    let row = |group: &GroupReport| {
        let quantum = group.quantum;
        vec![
            group.title.clone(),
            group.of.clone(),
            or_none(group.p50, |value| time(value, quantum)),
            or_none(group.share_p50, percent),
        ]
    };
    let rows: Vec<_> = groups.iter().map(row).collect();
    let grid = (!rows.is_empty()).then(|| Grid {
        head: head(&["group", "of", "P50", "share"]),
        rows,
    })?;
    Some(Section {
        title: "Groups".to_owned(),
        lines: Vec::new(),
        grid: Some(grid),
        notes: Vec::new(),
    })
}

/// `None` for too few runs to show more than noise.
pub(super) fn correlations(cohort: Option<&str>, window: &WindowReport) -> Option<Section> {
    if window.runs < FEW_RUNS {
        return None;
    }
    let rows: Vec<_> = window
        .stages
        .iter()
        .chain([&window.unattributed])
        .map(|stage| {
            let found = &stage.correlation;
            let interval = or_none(found.pearson_ci, |[low, high]| {
                format!("{} … {}", coefficient(low), coefficient(high))
            });
            let slope = or_none(found.slope, coefficient);
            let reason = found.reason.clone().unwrap_or_default();
            vec![
                escape(&stage.name),
                or_none(found.pearson, coefficient),
                interval,
                or_none(found.spearman, coefficient),
                slope,
                reason,
            ]
        })
        .collect();
    Some(Section {
        title: titled(
            &format!(
                "Correlation with {} (n = {})",
                window.unattributed.correlation.with, window.n
            ),
            cohort,
        ),
        lines: Vec::new(),
        grid: Some(Grid {
            head: head(&["stage", "Pearson", "95 % interval", "Spearman", "slope", ""]),
            rows,
        }),
        notes: Vec::new(),
    })
}
