//! Sections of predictions: what the totals would be, and how much each stage
//! adds to the end.

use crate::units::Nanos;

use super::super::dependency::{METRIC, WINDOW};
use super::super::numbers::{NONE, escape, or_none, percent, signed_time, time};
use super::super::{ChangeReport, DependencyReport, Prediction, StageDependency};
use super::{Grid, Section, head, titled};

/// A stage that waits for less of its time than this is said to work.
const WAITS_FROM: f64 = 0.05;
/// Stages that are shown; those beyond add nothing to the end.
const STAGES_MAX: usize = 24;

pub(super) fn sections(report: &DependencyReport) -> Vec<Section> {
    let what_if = (!report.changes.is_empty()).then(|| predicted(report));
    let drags = (!report.stages.is_empty()).then(|| drags(report));
    what_if.into_iter().chain(drags).collect()
}

fn cohort_of(report: &DependencyReport) -> Option<&str> {
    Some(report.cohort.as_str()).filter(|cohort| !cohort.is_empty())
}

fn predicted(report: &DependencyReport) -> Section {
    let words: Vec<String> = report
        .changes
        .iter()
        .map(|change| format!("{} {}", escape(&change.stage), escape(&change.change)))
        .collect();
    let shown = report.predictions.iter().filter(|one| is_shown(one));
    let rows: Vec<_> = shown.map(row).collect();
    let mut notes: Vec<String> = report
        .changes
        .iter()
        .filter_map(|change| note(change, report.n))
        .collect();
    let needs = report.predictions.iter().find_map(|one| one.needs_n);
    notes.extend(needs.map(|needs| format!("an interval needs {needs} runs")));
    notes.push("change: median over runs of predicted − measured, with the interval of that median; a repeat: where two new sets of as many runs would find the change at 95 %".to_owned());
    notes.push("predicted from what follows and waits for what; that stages share processors, locks or caches is not in the traces".to_owned());
    let title = format!("If {} (n = {})", words.join(" and "), report.n);
    Section {
        title: titled(&title, cohort_of(report)),
        lines: Vec::new(),
        grid: (!rows.is_empty()).then(|| Grid {
            head: head(&[
                "total",
                "n",
                "P50",
                "predicted",
                "change",
                "95 % interval",
                "a repeat",
            ]),
            rows,
        }),
        notes,
    }
}

/// Metrics that end with the session are shown in any case, metrics and windows
/// that change as well.
fn is_shown(one: &Prediction) -> bool {
    let changes = one.change_ci.map_or_else(
        || one.change_p50 != Some(Nanos(0)),
        |ends| ends != [Nanos(0); 2],
    );
    match one.kind {
        METRIC => one.ends_with_session || changes,
        WINDOW => changes,
        _ => false,
    }
}

fn row(one: &Prediction) -> Vec<String> {
    let plain = |value: Option<Nanos>| or_none(value, |value| time(value, one.quantum));
    let signed = |value: Nanos| signed_time(value, one.quantum);
    let between = |ends: Option<[Nanos; 2]>| {
        or_none(ends, |[low, high]| {
            format!("{} … {}", signed(low), signed(high))
        })
    };
    let name = match one.kind {
        METRIC => escape(&one.name),
        kind => format!("{kind} {}", escape(&one.name)),
    };
    vec![
        name,
        one.n.to_string(),
        plain(one.p50),
        plain(one.predicted_p50),
        or_none(one.change_p50, signed),
        between(one.change_ci),
        between(one.repeat_ci),
    ]
}

/// What must be known of a change to read what comes of it.
fn note(change: &ChangeReport, n: usize) -> Option<String> {
    let mut parts = Vec::new();
    if change.n_present < n {
        parts.push(format!("is in {} of {n} runs", change.n_present));
    }
    let share = change.time_p50.zip(change.work_p50);
    let waits = share.map(|(time, work)| 1.0 - work.0 as f64 / time.0.max(1) as f64);
    if let Some(waits) = waits.filter(|waits| *waits >= WAITS_FROM) {
        parts.push(format!(
            "waits {} of its time, and only the rest is its work",
            percent(waits)
        ));
    }
    if change.placed {
        parts.push("has a length and no times in its source: that it runs between its neighbours, and beside nothing else, is assumed".to_owned());
    }
    (!parts.is_empty()).then(|| format!("`{}` {}", escape(&change.stage), parts.join("; it ")))
}

fn drags(report: &DependencyReport) -> Section {
    let says = |stage: &&StageDependency| stage.work_p50 > Some(Nanos(0));
    let stages = report.stages.iter().filter(says).take(STAGES_MAX);
    let row = |stage: &StageDependency| {
        let show = |value: Option<Nanos>| or_none(value, |value| time(value, stage.quantum));
        let mut name = format!("{}:{}", escape(&stage.window), escape(&stage.name));
        if stage.window == stage.name {
            name = escape(&stage.name);
        }
        if stage.n_present < report.n {
            name = format!("{name} ({}/{})", stage.n_present, report.n);
        }
        let slack = match stage.slack_p50 {
            None if stage.n_never_limits > 0 => "∞".to_owned(),
            slack => show(slack),
        };
        vec![
            name,
            show(stage.time_p50),
            show(stage.work_p50),
            show(stage.drag_p50),
            slack,
            if stage.placed {
                "placed".to_owned()
            } else {
                NONE.to_owned()
            },
        ]
    };
    let rows: Vec<_> = stages.map(row).collect();
    let title = format!(
        "What each stage adds to the session's end (n = {})",
        report.n
    );
    Section {
        title: titled(&title, cohort_of(report)),
        lines: Vec::new(),
        grid: (!rows.is_empty()).then(|| Grid {
            head: head(&["stage", "P50", "work", "drag", "slack", ""]),
            rows,
        }),
        notes: vec![
            "medians; work: time without waiting; drag: what would be gained if the work took no time; slack: how much any of the work could grow without moving the end; ∞: the session never waits for it".to_owned(),
        ],
    }
}
