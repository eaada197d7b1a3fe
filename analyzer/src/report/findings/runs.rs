//! What is to be known about the runs before their figures are believed.

use serde_json::json;

use crate::stats::order_interval::{OrderInterval, order_interval};
use crate::units::Nanos;

use super::super::numbers::{amount, counted, time};
use super::super::stages::{FEW_RUNS, SLOW_RUNS_MIN};
use super::super::{Finding, Report};
use super::{finding, or_unnamed};

pub(super) fn chains(report: &Report) -> Option<Finding> {
    let runs = &report.runs;
    let first = runs.incomplete.first()?;
    let text = format!(
        "{} of {} {} incomplete and in no breakdown; {} lacks {}",
        runs.incomplete.len(),
        counted(runs.traced, "traced run"),
        if runs.incomplete.len() == 1 {
            "is"
        } else {
            "are"
        },
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
    let text = format!(
        "{failed} of {} failed; {run}: {reason}",
        counted(total, "run")
    );
    let values = vec![
        ("failed", json!(failed)),
        ("total", json!(total)),
        ("run", json!(run)),
    ];
    Some(finding("failed_runs", text, values))
}

/// What there are too few runs for, in the smallest cohort where there are several.
pub(super) fn few_runs(report: &Report) -> Option<Finding> {
    let smallest = report.cohorts.iter().min_by_key(|cohort| cohort.n);
    let metrics = smallest.map_or(&report.metrics, |cohort| &cohort.metrics);
    let windows = smallest.map_or(&report.windows, |cohort| &cohort.windows);
    let latency = windows
        .first()
        .map(|window| window.unattributed.correlation.with.as_str());
    let mut short = metrics.iter().filter(|metric| metric.p95_needs_n.is_some());
    let metric = short
        .clone()
        .find(|metric| Some(metric.name.as_str()) == latency)
        .or_else(|| short.next());
    // Breakdowns are of complete runs; a metric may have others as well.
    let traced = windows.first().map(|window| window.runs);
    // Where no client measured, the traced runs are what there is.
    let n = metric.map(|metric| metric.n).or(traced)?;
    let OrderInterval::NeedsN(needs) = order_interval(n, 0.95) else {
        return None;
    };
    let complete = traced.unwrap_or(n);
    let mut wanting = Vec::new();
    if complete < FEW_RUNS {
        wanting.push(format!(
            "variance shares, slopes and correlations (needs {FEW_RUNS})"
        ));
    }
    if complete < SLOW_RUNS_MIN {
        wanting.push(format!("what slow runs do (needs {SLOW_RUNS_MIN})"));
    }
    let parts = (complete != n && !wanting.is_empty()).then(|| {
        let wanting = std::mem::take(&mut wanting).join(", ");
        format!(
            "{} {} too few for {wanting}; ",
            counted(complete, "complete run"),
            if complete == 1 { "is" } else { "are" }
        )
    });
    let p95 = metric.filter(|_| n > 1).and_then(|metric| {
        let value = amount(metric.p95?, metric.quantum);
        Some(format!(" of {value} in `{}`", metric.name))
    });
    let p95 = p95.unwrap_or_default();
    wanting.push(format!("a 95 % interval of the P95{p95} (needs {needs})"));
    let of = smallest.map_or_else(String::new, |cohort| {
        format!("{}: ", or_unnamed(&cohort.name))
    });
    let parts = parts.unwrap_or_default();
    let text = format!(
        "{of}{parts}n = {n} is too few runs for {}",
        wanting.join(", ")
    );
    let values = vec![
        ("n", json!(n)),
        ("needs", json!(needs)),
        ("complete", json!(complete)),
    ];
    Some(finding("few_runs", text, values))
}

/// A clock that is too coarse to go unnoticed.
pub(super) fn clock(quantum: Nanos) -> Option<Finding> {
    (quantum >= Nanos(1_000_000)).then(|| {
        let text = format!(
            "the clock of these traces steps by {}; finer digits are not shown",
            time(quantum, quantum)
        );
        finding("clock_quantum", text, vec![("quantum_ms", json!(quantum))])
    })
}

pub(super) fn pooled(report: &Report) -> Option<Finding> {
    let names: Vec<_> = report
        .cohorts
        .iter()
        .map(|cohort| or_unnamed(&cohort.name))
        .collect();
    (names.len() > 1).then(|| {
        let text = format!(
            "these are {} cohorts ({}), each with figures of its own; in JSON, the keys outside of `cohorts` pool them",
            names.len(),
            names.join(", ")
        );
        finding("cohorts_pooled", text, vec![("cohorts", json!(names))])
    })
}
