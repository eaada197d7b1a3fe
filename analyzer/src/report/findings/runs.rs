//! What is to be known about the runs before their figures are believed.

use serde_json::json;

use crate::units::Nanos;

use super::super::numbers::{amount, time};
use super::super::{Finding, Report};
use super::finding;

pub(super) fn chains(report: &Report) -> Option<Finding> {
    let runs = &report.runs;
    let first = runs.incomplete.first()?;
    let text = format!(
        "{} of {} traced runs are incomplete and in no breakdown; {} lacks {}",
        runs.incomplete.len(),
        runs.traced,
        first.run,
        first.missing.join(", ")
    );
    let values = vec![
        ("incomplete", json!(runs.incomplete.len())),
        ("traced", json!(runs.traced)),
        ("run", json!(first.run)),
    ];
    Some(finding("incomplete_chains", text, values))
}

pub(super) fn failures(report: &Report) -> Option<Finding> {
    let (run, reason) = report.runs.first_failure.as_ref()?;
    let (failed, total) = (report.runs.failed, report.runs.total);
    let text = format!("{failed} of {total} runs failed; {run}: {reason}");
    let values = vec![
        ("failed", json!(failed)),
        ("total", json!(total)),
        ("run", json!(run)),
    ];
    Some(finding("failed_runs", text, values))
}

pub(super) fn few_runs(report: &Report) -> Option<Finding> {
    let latency = report
        .windows
        .first()
        .map(|window| window.unattributed.correlation.with.as_str());
    let mut short = report
        .metrics
        .iter()
        .filter(|metric| metric.p95_needs_n.is_some());
    let metric = short
        .clone()
        .find(|metric| Some(metric.name.as_str()) == latency)
        .or_else(|| short.next())?;
    let needs = metric.p95_needs_n?;
    let p95 = metric.p95.map_or_else(String::new, |value| {
        format!(" ({} in `{}`)", amount(value, Nanos(1)), metric.name)
    });
    let text = format!(
        "n = {} gives no 95 % interval for P95{p95}; {needs} runs would",
        metric.n
    );
    Some(finding(
        "few_runs",
        text,
        vec![("n", json!(metric.n)), ("needs", json!(needs))],
    ))
}

pub(super) fn clock(report: &Report) -> Option<Finding> {
    let window = report.windows.first()?;
    (window.quantum >= Nanos(1_000_000)).then(|| {
        let text = format!(
            "the clock of these traces steps by {}; finer digits are not shown",
            time(window.quantum, window.quantum)
        );
        finding(
            "clock_quantum",
            text,
            vec![("quantum_ms", json!(window.quantum))],
        )
    })
}

pub(super) fn pooled(report: &Report) -> Option<Finding> {
    let names: Vec<_> = report
        .cohorts
        .iter()
        .map(|cohort| cohort.name.as_str())
        .collect();
    (names.len() > 1).then(|| {
        let text = format!(
            "these are {} cohorts ({}); breakdowns and correlations pool all of their traced runs",
            names.len(),
            names.join(", ")
        );
        finding("cohorts_pooled", text, vec![("cohorts", json!(names))])
    })
}
