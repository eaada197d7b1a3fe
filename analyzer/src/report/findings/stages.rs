//! Which stage takes the time, carries the variance, and makes the slow runs slow.

use serde_json::json;

use crate::units::Nanos;

use super::super::numbers::{percent, time};
use super::super::stages::{FEW_RUNS, SLOW_RUNS_MIN};
use super::super::{DrillReport, Finding, GroupReport, StageReport, WindowReport, millionth};
use super::{Scope, finding};

/// A phase that covers less of a stage than this does not explain it.
const EXPLAINS_MIN: f64 = 0.01;
/// Runs that a sentence names.
const NAMED_MAX: usize = 4;

pub(super) fn parts(window: &WindowReport) -> impl Iterator<Item = &StageReport> {
    window.stages.iter().chain([&window.unattributed])
}

/// The part with the largest value; of equals the first.
pub(super) fn largest(
    window: &WindowReport,
    value: impl Fn(&StageReport) -> Option<f64>,
) -> Option<(&StageReport, f64)> {
    let valued = parts(window).filter_map(|stage| Some((stage, value(stage)?)));
    valued.reduce(|best, next| if next.1 > best.1 { next } else { best })
}

pub(super) fn dominant_stage(window: &WindowReport) -> Option<Finding> {
    // A window of which nothing is known but its length has no dominant stage.
    window.stages.iter().find(|stage| stage.n_present > 0)?;
    let (stage, share) = largest(window, |stage| stage.share_p50)?;
    let mut text = format!(
        "`{}` is {} of the {} at P50",
        stage.name,
        percent(share),
        window.title.to_lowercase()
    );
    let variance = stage.variance_share.filter(|_| window.runs >= FEW_RUNS);
    if let Some(variance) = variance {
        text.push_str(" and ");
        text.push_str(&percent(variance));
        text.push_str(" of its variance");
    }
    let values = vec![
        ("window", json!(window.name)),
        ("stage", json!(stage.name)),
        ("share_p50", json!(share)),
        ("variance_share", json!(variance)),
        (
            "slowest",
            json!(slow_share(window).map(|(stage, _)| &stage.name)),
        ),
        (
            "slowest_share",
            json!(slow_share(window).map(|(_, share)| millionth(share))),
        ),
    ];
    Some(finding("dominant_stage", text, values))
}

/// The stage that carries most of the variance, where it is not the one that
/// takes most of the time: what is slow and what varies are two questions.
pub(super) fn variance_elsewhere(window: &WindowReport) -> Option<Finding> {
    let (dominant, _) = largest(window, |stage| stage.share_p50)?;
    let (stage, variance) = largest(window, |stage| stage.variance_share)?;
    (window.runs >= FEW_RUNS && stage.name != dominant.name).then(|| {
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

/// Part of the slowest runs' time that each part of the window takes, the
/// largest first; `None` below [`SLOW_RUNS_MIN`] runs.
fn slow_share(window: &WindowReport) -> Option<(&StageReport, f64)> {
    let near_p95 = |stage: &StageReport| {
        let sum = stage.p50_attribution?.0.checked_add(stage.p95_excess?.0)?;
        Some(sum as f64)
    };
    let all: f64 = parts(window).filter_map(near_p95).sum();
    let (stage, most) = largest(window, near_p95)?;
    (window.runs >= SLOW_RUNS_MIN && all > 0.0).then(|| (stage, most / all))
}

/// The stage that takes most of the slowest runs, where another takes most of
/// the middle ones.
pub(super) fn slow_elsewhere(window: &WindowReport) -> Option<Finding> {
    let (dominant, _) = largest(window, |stage| stage.share_p50)?;
    let (stage, share) = slow_share(window)?;
    (stage.name != dominant.name).then(|| {
        let text = format!(
            "`{}` is {} of the {} in the slowest runs",
            stage.name,
            percent(share),
            window.title.to_lowercase()
        );
        let values = vec![
            ("window", json!(window.name)),
            ("stage", json!(stage.name)),
            ("share_p95", json!(millionth(share))),
        ];
        finding("dominant_p95", text, values)
    })
}

pub(super) fn group_share(scope: &Scope<'_, '_>, group: &GroupReport) -> Option<Finding> {
    let share = group.share_p50?;
    let mut windows = scope.windows.iter();
    let window = windows.find(|window| window.name == group.of)?;
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

/// The largest phase of what explains the dominant stage, or the first stage
/// that is explained where nothing explains that one.
pub(super) fn explaining_phase(window: &WindowReport, drills: &[DrillReport]) -> Option<Finding> {
    let dominant = largest(window, |stage| stage.share_p50);
    let explains = |drill: &&DrillReport| dominant.is_some_and(|(one, _)| one.name == drill.stage);
    let drill = drills.iter().find(explains).or_else(|| drills.first())?;
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
        "`{}` covers {about}{} of `{}`, the most of all that explains it",
        phase.name,
        percent(share),
        drill.stage,
    );
    let values = vec![
        ("stage", json!(drill.stage)),
        ("phase", json!(phase.name)),
        ("share", json!(share)),
        ("placed", json!(phase.placed.is_some())),
    ];
    Some(finding("explaining_phase", text, values))
}

/// Names of runs, a few of them when they are many.
fn named(runs: &[String]) -> String {
    let shown: Vec<&str> = runs.iter().take(NAMED_MAX).map(String::as_str).collect();
    match runs.len().checked_sub(NAMED_MAX) {
        None | Some(0) => shown.join(", "),
        Some(more) => format!("{} and {more} more", shown.join(", ")),
    }
}

pub(super) fn slow_runs(window: &WindowReport) -> Option<Finding> {
    if window.runs < SLOW_RUNS_MIN {
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
        "the slowest runs ({}) spend {} more than the middle ones; `{}` alone spends {} more",
        named(&window.slow_runs),
        time(all, window.quantum),
        stage.name,
        time(most, window.quantum),
    );
    let values = vec![
        ("window", json!(window.name)),
        ("stage", json!(stage.name)),
        ("runs", json!(window.slow_runs)),
        ("excess_ms", json!(most)),
        ("of_ms", json!(all)),
    ];
    Some(finding("slow_runs", text, values))
}
