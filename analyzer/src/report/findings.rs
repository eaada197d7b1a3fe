//! What the figures say, in words. Each finding has a code and its numbers.
//!
//! A finding interprets and never computes statistics of its own; thresholds
//! are constants with a reason.

use serde_json::{Value, json};

use crate::breakdown::client;
use crate::breakdown::windows::RunWindow;
use crate::units::Nanos;

use super::build::Row;
use super::numbers::{amount, percent, time};
use super::{Finding, Ordered, Report, StageReport, WindowReport};

/// A gap that is a larger part of the client's time than this is worth a word.
const CLIENT_GAP: f64 = 0.05;
/// A phase that covers less of a stage than this does not explain it.
const EXPLAINS_MIN: f64 = 0.01;
/// Below this n the slowest tenth is one run, and one run is an anecdote.
const SLOW_RUNS_MIN: usize = 10;

/// All findings, the most useful first.
pub(super) fn findings(report: &Report, complete: &[&Row<'_>]) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(report.windows.first().and_then(dominant_stage));
    found.extend(
        report
            .groups
            .iter()
            .filter_map(|group| group_share(report, group)),
    );
    found.extend(report.windows.first().and_then(variance_elsewhere));
    found.extend(startup_phase(report));
    found.extend(report.windows.first().and_then(slow_runs));
    found.extend(client_gap(complete));
    found.extend(outlives_client(complete));
    found.extend(chains(report));
    found.extend(failures(report));
    found.extend(pooled(report));
    found.extend(few_runs(report));
    found.extend(clock(report));
    found
}

fn finding(code: &'static str, text: String, values: Vec<(&str, Value)>) -> Finding {
    let values = values
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect();
    Finding {
        code,
        text,
        values: Ordered(values),
    }
}

fn parts(window: &WindowReport) -> impl Iterator<Item = &StageReport> {
    window.stages.iter().chain([&window.unattributed])
}

/// The part with the largest value; of equals the first.
fn largest(
    window: &WindowReport,
    value: impl Fn(&StageReport) -> Option<f64>,
) -> Option<(&StageReport, f64)> {
    let valued = parts(window).filter_map(|stage| Some((stage, value(stage)?)));
    valued.reduce(|best, next| if next.1 > best.1 { next } else { best })
}

fn dominant_stage(window: &WindowReport) -> Option<Finding> {
    let (stage, share) = largest(window, |stage| stage.share_p50)?;
    let mut text = format!(
        "`{}` is {} of the {} at P50",
        stage.name,
        percent(share),
        window.title.to_lowercase()
    );
    if let Some(variance) = stage.variance_share {
        text.push_str(" and ");
        text.push_str(&percent(variance));
        text.push_str(" of its variance");
    }
    let values = vec![
        ("window", json!(window.name)),
        ("stage", json!(stage.name)),
        ("share_p50", json!(share)),
        ("variance_share", json!(stage.variance_share)),
    ];
    Some(finding("dominant_stage", text, values))
}

/// The stage that carries most of the variance, where it is not the one that
/// takes most of the time: what is slow and what varies are two questions.
fn variance_elsewhere(window: &WindowReport) -> Option<Finding> {
    let (dominant, _) = largest(window, |stage| stage.share_p50)?;
    let (stage, variance) = largest(window, |stage| stage.variance_share)?;
    (stage.name != dominant.name).then(|| {
        let title = window.title.to_lowercase();
        let part = percent(variance);
        let text = format!(
            "`{}` carries {part} of the variance of the {title}",
            stage.name
        );
        let values = vec![
            ("window", json!(window.name)),
            ("stage", json!(stage.name)),
            ("variance_share", json!(variance)),
        ];
        finding("dominant_variance", text, values)
    })
}

fn group_share(report: &Report, group: &super::GroupReport) -> Option<Finding> {
    let share = group.share_p50?;
    let window = report
        .windows
        .iter()
        .find(|window| window.name == group.of)?;
    let members: Vec<_> = group
        .stages
        .iter()
        .map(|stage| format!("`{stage}`"))
        .collect();
    let text = format!(
        "{} of the {} is {} ({})",
        percent(share),
        window.title.to_lowercase(),
        group.title,
        members.join(" + ")
    );
    let values = vec![
        ("group", json!(group.name)),
        ("of", json!(group.of)),
        ("share_p50", json!(share)),
    ];
    Some(finding("group_share", text, values))
}

/// The largest phase of the windows that explain a stage.
fn startup_phase(report: &Report) -> Option<Finding> {
    let drill = report.drill_through.first()?;
    let phase = drill
        .phases
        .iter()
        .filter_map(|phase| Some((phase, phase.share?)));
    let (phase, share) = phase.reduce(|best, next| if next.1 > best.1 { next } else { best })?;
    if share < EXPLAINS_MIN {
        return None;
    }
    let about = if phase.placed.is_some() { "about " } else { "" };
    let text = format!(
        "`{}` covers {about}{} of `{}`, the most of all phases of `{}`",
        phase.name,
        percent(share),
        drill.stage,
        drill.explained_by
    );
    let values = vec![
        ("stage", json!(drill.stage)),
        ("phase", json!(phase.name)),
        ("share", json!(share)),
        ("placed", json!(phase.placed.is_some())),
    ];
    Some(finding("explaining_phase", text, values))
}

fn slow_runs(window: &WindowReport) -> Option<Finding> {
    if window.n < SLOW_RUNS_MIN {
        return None;
    }
    let excess = |stage: &StageReport| stage.p95_excess.map(|nanos| nanos.0 as f64);
    let (stage, most) = largest(window, excess)?;
    let all: f64 = parts(window).filter_map(excess).sum();
    if most <= 0.0 || all <= 0.0 {
        return None;
    }
    let (most, all) = (Nanos::rounded(most), Nanos::rounded(all));
    let text = format!(
        "the slowest runs spend {} more than the middle ones; `{}` alone spends {} more",
        time(all, window.quantum),
        stage.name,
        time(most, window.quantum),
    );
    let values = vec![
        ("window", json!(window.name)),
        ("stage", json!(stage.name)),
        ("excess_ms", json!(most)),
        ("of_ms", json!(all)),
    ];
    Some(finding("slow_runs", text, values))
}

/// Runs in which the client waited noticeably before or after the request span.
fn client_gap(complete: &[&Row<'_>]) -> Option<Finding> {
    let mut with_gap = Vec::new();
    let mut of = 0;
    for row in complete {
        let Some(window) = client_of(row) else {
            continue;
        };
        of += 1;
        let total = window.interval.length().0 as f64;
        for stage in window
            .stages
            .iter()
            .filter(|stage| stage.name == client::BEFORE || stage.name == client::AFTER)
        {
            if total > 0.0 && stage.time.0 as f64 / total > CLIENT_GAP {
                with_gap.push((stage.time, row.run.id.as_str(), stage.name.as_str(), window));
            }
        }
    }
    let (gap, run, name, window) = with_gap
        .iter()
        .copied()
        .max_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(a.1)))?;
    let side = if name == client::BEFORE {
        "before"
    } else {
        "after"
    };
    let text = format!(
        "in {} of {of} runs more than {} of the client's time is outside of the request span; most in {run}: {} {side} it, of {}",
        with_gap.len(),
        percent(CLIENT_GAP),
        time(gap, window.quantum),
        time(window.interval.length(), window.quantum),
    );
    let values = vec![
        ("runs", json!(with_gap.len())),
        ("of", json!(of)),
        ("run", json!(run)),
        ("gap", json!(name)),
        ("gap_ms", json!(gap)),
        ("client_ms", json!(window.interval.length())),
    ];
    Some(finding("client_gap", text, values))
}

fn client_of<'a>(row: &'a Row<'_>) -> Option<&'a RunWindow> {
    row.windows
        .iter()
        .find(|window| window.name == client::WINDOW)
}

/// Request spans that reach out of the client's window by more than the clock explains.
fn outlives_client(complete: &[&Row<'_>]) -> Option<Finding> {
    let windows: Vec<_> = complete.iter().filter_map(|row| client_of(row)).collect();
    let outside: Vec<_> = windows
        .iter()
        .filter(|window| window.outside > window.quantum)
        .collect();
    let worst = outside.iter().max_by_key(|window| window.outside)?;
    let text = format!(
        "in {} of {} runs the request span reaches out of the client's window, by up to {}; their clocks differ, or the span ends after the answer was sent",
        outside.len(),
        windows.len(),
        time(worst.outside, worst.quantum),
    );
    let values = vec![
        ("runs", json!(outside.len())),
        ("of", json!(windows.len())),
        ("most_ms", json!(worst.outside)),
    ];
    Some(finding("request_outlives_client", text, values))
}

fn chains(report: &Report) -> Option<Finding> {
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

fn failures(report: &Report) -> Option<Finding> {
    let failed: Vec<_> = report
        .runs
        .items
        .iter()
        .filter_map(|item| Some((item, item.failure.as_ref()?)))
        .collect();
    let (first, reason) = failed.first()?;
    let text = format!(
        "{} of {} runs failed; {}: {reason}",
        failed.len(),
        report.runs.total,
        first.run
    );
    let values = vec![
        ("failed", json!(failed.len())),
        ("total", json!(report.runs.total)),
        ("run", json!(first.run)),
    ];
    Some(finding("failed_runs", text, values))
}

fn few_runs(report: &Report) -> Option<Finding> {
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

fn clock(report: &Report) -> Option<Finding> {
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

fn pooled(report: &Report) -> Option<Finding> {
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
