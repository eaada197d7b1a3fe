//! A comparison in words: what it found, and what limits it. Every sentence
//! carries its numbers; no number is computed here.

use std::collections::BTreeSet;

use crate::report::Amount;
use crate::report::numbers::{counted, escape, or_none, signed_amount, time};
use crate::stats::quantile_change::needs;
use crate::stats::signed_rank::Tail;
use crate::units::Nanos;

use super::effect::{Figured, SHIFT_NEEDS, in_unit};
use super::stages::{LEVEL, Presence, StageChange, WindowChange};
use super::{Comparison, MetricChange, Remark, is_time};

/// Stages with less of their window's shift than this do not carry it.
const CARRIES: f64 = 0.05;
/// Names that a sentence spells out.
const NAMED_MAX: usize = 6;

fn remark(code: &'static str, text: String) -> Remark {
    Remark { code, text }
}

/// What limits the comparison.
#[must_use]
pub(super) fn caveats(comparison: &Comparison) -> Vec<Remark> {
    let pairing = &comparison.pairing;
    let mut said = Vec::new();
    if pairing.n < SHIFT_NEEDS {
        let n = counted(pairing.n, "pair");
        said.push(remark(
            "few_pairs",
            format!("{n}: an interval needs {SHIFT_NEEDS}, so nothing is decided"),
        ));
    }
    if comparison.one_order() && pairing.n > 1 {
        let first = if pairing.candidate_first == 0 {
            "control"
        } else {
            "candidate"
        };
        said.push(remark(
            "one_order",
            format!("in all {} the {first} ran first: what its slot is worth cannot be told from the change", counted(pairing.n, "pair")),
        ));
    }
    if !pairing.unpaired.is_empty() {
        let runs = pairing.unpaired.iter().take(NAMED_MAX);
        let runs: Vec<String> = runs
            .map(|one| format!("{} ({})", escape(&one.run), escape(&one.reason)))
            .collect();
        let n = counted(pairing.unpaired.len(), "run");
        said.push(remark(
            "unpaired",
            format!(
                "{n} without a partner, in no difference: {}",
                runs.join(", ")
            ),
        ));
    }
    for metric in &comparison.metrics {
        said.extend(of_metric(metric));
    }
    for stage in comparison
        .control_stages
        .iter()
        .filter(|stage| !stage.equivalent)
    {
        let name = escape(&stage.name);
        let margin = or_none(stage.margin, |one| signed_amount(one, Nanos(1)));
        said.push(remark(
            "unproven",
            format!("UNPROVEN: `{name}`, which the change cannot touch, is not shown to have stayed within ±{}: {}", margin.trim_start_matches('+'), bounds(&stage.shift)),
        ));
    }
    said
}

fn of_metric(metric: &MetricChange) -> Vec<Remark> {
    let name = escape(&metric.name);
    let effect = &metric.effect;
    let mut said = Vec::new();
    if let Ok(found) = effect.autocorrelation
        && metric.autocorrelated()
    {
        said.push(remark(
            "autocorrelated",
            format!("`{name}`: neighbouring pairs are alike beyond order and drift (lag-1 autocorrelation {:.2}): its interval is too short", found.r),
        ));
    }
    if !metric.missing.is_empty() {
        let runs: Vec<String> = metric
            .missing
            .iter()
            .take(NAMED_MAX)
            .map(|run| escape(run))
            .collect();
        let n = counted(metric.missing.len(), "run");
        said.push(remark(
            "missing_values",
            format!("`{name}` cannot be had from {n}: {}", runs.join(", ")),
        ));
    }
    if effect.failed_candidates + effect.failed_controls > 0 {
        said.push(remark(
            "failed_pairs",
            format!("`{name}`: {} whose candidate failed count as infinitely slow; {} whose control failed are left out", counted(effect.failed_candidates, "pair"), counted(effect.failed_controls, "pair")),
        ));
    }
    if effect.order.excludes_zero() {
        said.push(remark(
            "order_effect",
            format!(
                "`{name}`: the order within a pair is worth {} each way ({})",
                figure(&effect.order),
                interval(&effect.order)
            ),
        ));
    }
    if effect.drift.excludes_zero() {
        said.push(remark(
            "drift",
            format!(
                "`{name}`: the difference drifted by {} over the experiment ({})",
                figure(&effect.drift),
                interval(&effect.drift)
            ),
        ));
    }
    said
}

/// What the comparison found.
#[must_use]
pub(super) fn findings(comparison: &Comparison) -> Vec<Remark> {
    let mut said: Vec<Remark> = comparison.metrics.iter().filter_map(moved).collect();
    said.extend(undecided(comparison));
    // The client's window holds the stages of the request's: said once.
    let mut carriers_said = BTreeSet::new();
    for window in &comparison.windows {
        let found = carried(window).filter(|(stages, _)| carriers_said.insert(stages.clone()));
        said.extend(found.map(|(_, remark)| remark));
    }
    for one in &comparison.relocations {
        let part = or_none(one.part_shift, |shift| signed_amount(shift, Nanos(1)));
        said.push(remark(
            "relocation",
            format!(
                "relocation, no gain: `{}` moved by {part}, but `{}`, which holds it, by {} ({})",
                escape(&one.part),
                escape(&one.whole),
                figure(&one.whole_shift),
                interval(&one.whole_shift)
            ),
        ));
    }
    said.extend(comparison.windows.iter().flat_map(added));
    said.extend(failures(comparison));
    said
}

/// A metric whose interval leaves out zero.
fn moved(metric: &MetricChange) -> Option<Remark> {
    let effect = &metric.effect;
    let shift = &effect.shift;
    shift.excludes_zero().then(|| {
        let up = shift.estimate.is_some_and(|value| value > 0.0);
        let how = match (is_time(metric), up) {
            (true, true) => "slower",
            (true, false) => "faster",
            (false, true) => "more",
            (false, false) => "less",
        };
        let n = counted(effect.differences.len(), "pair");
        remark(
            "moved",
            format!(
                "`{}`: {how}, {} ({}, {n})",
                escape(&metric.name),
                figure(shift),
                interval(shift)
            ),
        )
    })
}

fn undecided(comparison: &Comparison) -> Option<Remark> {
    let n = comparison.pairing.n;
    let open: Vec<String> = comparison
        .metrics
        .iter()
        .filter(|metric| !metric.effect.shift.excludes_zero())
        .map(|metric| format!("`{}`", escape(&metric.name)))
        .collect();
    let tails = comparison
        .metrics
        .iter()
        .any(|metric| metric.effect.p95.interval.is_none());
    let p95 = tails.then(|| {
        let (two, one) = (needs(0.95, Tail::TwoAndAHalf), needs(0.95, Tail::Five));
        format!("how P95 changed (an interval needs {two} pairs, a one-sided bound {one})")
    });
    let shifts =
        (!open.is_empty()).then(|| format!("in which direction {} moved", open.join(", ")));
    let parts: Vec<String> = shifts.into_iter().chain(p95).collect();
    let n = counted(n, "pair");
    (!parts.is_empty()).then(|| {
        remark(
            "undecided",
            format!("{n} cannot decide {}", parts.join(", nor ")),
        )
    })
}

/// The stages that carry the shift of their window, and the sentence.
fn carried(window: &WindowChange) -> Option<(Vec<String>, Remark)> {
    let total = window
        .total
        .estimate
        .filter(|_| window.total.excludes_zero())?;
    let share = |stage: &&StageChange| {
        let shift = stage.shift.estimate.unwrap_or(0.0);
        stage.shift.excludes_zero() && shift / total >= CARRIES
    };
    let mut carriers: Vec<&StageChange> = window.stages.iter().filter(share).collect();
    let size = |stage: &StageChange| stage.shift.estimate.map_or(0.0, f64::abs);
    carriers.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let (first, _) = carriers.split_first()?;
    let least = carriers
        .iter()
        .filter_map(|stage| stage.p_holm)
        .fold(first.p_holm.unwrap_or(1.0), f64::min);
    let named = carriers.iter().take(NAMED_MAX);
    let named: Vec<String> = named
        .map(|stage| format!("`{}` {}", escape(&stage.name), figure(&stage.shift)))
        .collect();
    let proof = if carriers.iter().all(|stage| stage.moved()) {
        format!(
            "each beyond {:.0} % after Holm's correction for all stages",
            LEVEL * 100.0
        )
    } else {
        format!(
            "among all stages {} do not prove each by itself: least p after Holm's correction {least:.3}",
            counted(window.n_pairs, "pair")
        )
    };
    let said = format!(
        "`{}` {} is carried by {}; {proof}",
        escape(&window.name),
        figure(&window.total),
        named.join(", ")
    );
    Some((named, remark("carried_by", said)))
}

fn added(window: &WindowChange) -> Vec<Remark> {
    let stages = window.stages.iter().filter_map(|stage| {
        let (code, arm) = match stage.presence {
            Presence::Both => return None,
            Presence::Added => ("stage_added", "candidate"),
            Presence::Removed => ("stage_removed", "control"),
        };
        let length = stage.shift.estimate.map(f64::abs).map(Nanos::rounded);
        let length = or_none(length, |length| time(length, Nanos(1)));
        Some(remark(
            code,
            format!(
                "`{}` of `{}` is in the {arm} only, median {length}",
                escape(&stage.name),
                escape(&window.name)
            ),
        ))
    });
    stages.collect()
}

fn failures(comparison: &Comparison) -> Option<Remark> {
    let (a, b) = (&comparison.control, &comparison.candidate);
    (a.failed + b.failed > 0).then(|| {
        let first = a.failures.iter().chain(&b.failures).next();
        let first = first.map_or_else(String::new, |(run, why)| {
            format!("; first: {} ({})", escape(run), escape(why))
        });
        remark(
            "failures",
            format!(
                "failed runs: {}/{} of the control, {}/{} of the candidate{first}",
                a.failed, a.runs, b.failed, b.runs
            ),
        )
    })
}

/// The figure with its sign.
#[must_use]
pub(crate) fn figure(figured: &Figured) -> String {
    let amount: Option<Amount> = figured
        .estimate
        .and_then(|value| in_unit(figured.unit, value));
    or_none(amount, |amount| signed_amount(amount, figured.quantum))
}

/// The 95 % interval in words.
#[must_use]
pub(crate) fn interval(figured: &Figured) -> String {
    match figured.interval {
        Some(ends) => format!("95 % interval {}", range(figured, ends)),
        None => figured.reason.clone().unwrap_or_default(),
    }
}

fn bounds(figured: &Figured) -> String {
    match figured.bounds {
        Some(ends) => format!("90 % interval {}", range(figured, ends)),
        None => figured.reason.clone().unwrap_or_default(),
    }
}

/// Both ends; an infinite one is more than anything measured.
#[must_use]
pub(crate) fn range(figured: &Figured, (low, high): (f64, f64)) -> String {
    let end = |value: f64| {
        let amount = in_unit(figured.unit, value);
        amount.map_or_else(
            || "beyond measure".to_owned(),
            |one| signed_amount(one, figured.quantum),
        )
    };
    format!("{} … {}", end(low), end(high))
}
