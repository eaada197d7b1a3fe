//! Windows and their stages over the complete runs.

use crate::breakdown::client;
use crate::breakdown::windows::{RunWindow, StageTime, UNATTRIBUTED};
use crate::model::lens::Lens;
use crate::stats::attribution;
use crate::stats::quantile::{Definition, median};
use crate::trace::span::Value;
use crate::units::Nanos;

use super::build::Row;
use super::{SchedReport, WindowReport, millionth, summary};

/// A window of one run and the row it stands in.
type Cell<'r, 'a> = (&'r RunWindow<'a>, &'r Row<'a>);

/// Every window of the complete runs, in the model's order, the client's last.
pub(super) fn window_reports(
    lens: &Lens<'_>,
    rows: &[&Row<'_>],
    definition: Definition,
) -> Vec<WindowReport> {
    let mut names: Vec<(&str, &str)> = Vec::new();
    for rule in &lens.model.windows {
        if !names.iter().any(|(name, _)| *name == rule.name) {
            names.push((&rule.name, &rule.title));
        }
    }
    names.push((client::WINDOW, "Request as the client saw it"));
    let report = |(name, title): (&str, &str)| {
        let mine: Vec<Cell<'_, '_>> = rows
            .iter()
            .flat_map(|row| row.all(name).map(|window| (window, *row)))
            .collect();
        (!mine.is_empty()).then(|| window_report(lens, name, title, &mine, definition))
    };
    names.into_iter().filter_map(report).collect()
}

fn window_report(
    lens: &Lens<'_>,
    name: &str,
    title: &str,
    mine: &[Cell<'_, '_>],
    definition: Definition,
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
    let stages = stage_names(mine).into_iter().map(|stage| {
        let found: Vec<Option<&StageTime<'_>>> = mine
            .iter()
            .map(|(window, _)| window.stages.iter().find(|found| found.name == stage))
            .collect();
        let times: Vec<f64> = found
            .iter()
            .map(|stage| stage.map_or(0.0, |stage| stage.time.0 as f64))
            .collect();
        let present = found.iter().flatten().filter(|stage| stage.present).count();
        let mut report = summarise(&stage, &times, present);
        report.sched = sched(lens, &found, mine);
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
        slow_runs: slow.map(|index| mine[*index].1.run.id.clone()).collect(),
        total: summary::totals(&totals, definition),
        stages: stages.collect(),
        unattributed: summarise(UNATTRIBUTED, &rest, mine.len()),
    }
}

/// Names of all stages, by their mean place in the runs that have them.
fn stage_names(mine: &[Cell<'_, '_>]) -> Vec<String> {
    let mut places: Vec<(&str, f64, f64)> = Vec::new();
    for (window, _) in mine {
        for (place, stage) in window.stages.iter().enumerate() {
            match places.iter_mut().find(|(name, _, _)| *name == stage.name) {
                Some((_, sum, count)) => {
                    *sum += place as f64;
                    *count += 1.0;
                }
                None => places.push((stage.name, place as f64, 1.0)),
            }
        }
    }
    places.sort_by(|a, b| {
        (a.1 / a.2)
            .total_cmp(&(b.1 / b.2))
            .then_with(|| a.0.cmp(b.0))
    });
    places
        .into_iter()
        .map(|(name, _, _)| name.to_owned())
        .collect()
}

/// Medians of the scheduler figures of a stage's spans, or of the span that
/// stands for it; `None` unless every run that has the stage has them.
fn sched(
    lens: &Lens<'_>,
    found: &[Option<&StageTime<'_>>],
    mine: &[Cell<'_, '_>],
) -> Option<SchedReport> {
    let rule = lens.model.sched.as_ref()?;
    let (mut cpu, mut runq, mut blocked) = (Vec::new(), Vec::new(), Vec::new());
    let mut from = None;
    for (stage, (window, row)) in found.iter().zip(mine) {
        let Some(stage) = stage.filter(|stage| stage.present) else {
            continue;
        };
        let span = match &stage.sched_from {
            Some(kind) => {
                from = Some((*kind).to_owned());
                row.view(window.request).first(lens, kind)?
            }
            None => *stage.spans.first()?,
        };
        let read = |key: &str| lens.attribute(span, key).and_then(Value::number);
        let (on, waiting) = (read(&rule.cpu)?, read(&rule.runq)?);
        cpu.push(on);
        runq.push(waiting);
        // The two clocks differ by a tick at most; below it nothing was blocked.
        blocked.push((lens.data.span(span).interval.length().0 as f64 - on - waiting).max(0.0));
    }
    let middle = |values: &[f64]| median(values).map(Nanos::rounded);
    Some(SchedReport {
        from,
        cpu: middle(&cpu)?,
        runq: middle(&runq)?,
        blocked: middle(&blocked)?,
    })
}
