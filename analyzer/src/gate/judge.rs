//! Applies a policy to a comparison: every gate gets PASS, FAIL or INCONCLUSIVE,
//! the reasons, and what it would take.
//!
//! The interval decides ([`rule`](super::rule)); then everything that forbids a
//! verdict turns it to INCONCLUSIVE: a number of pairs other than the declared
//! one, one order, a control stage that moved, autocorrelation, missing values, a
//! margin below the placebo effect, a superiority gate without a placebo.

use serde::Serialize;
use thiserror::Error;

use crate::compare::effect::{Figured, in_unit};
use crate::compare::margin::Margin;
use crate::compare::words::{figure, range};
use crate::compare::{Arm, Comparison, MetricChange, Remark};
use crate::report::Amount;
use crate::report::numbers::{counted, escape};
use crate::stats::power::{Power, detectable, pairs_needed, standard_error};
use crate::stats::quantile_change::needs;
use crate::stats::signed_rank::Tail;

use super::old::{self, OldVerdict};
use super::placebo::Placebo;
use super::policy::{Gate, Policy, Statistic};
use super::rule::{Kind, Verdict, decide, limit};

/// Part of the pairs that may lack a value before a verdict is refused.
pub const MISSING_MAX: f64 = 0.05;
/// Code with which a failure begins that names processes left behind.
const LEFTOVERS: &str = "leftovers";
/// Runs that a sentence names.
const NAMED_MAX: usize = 5;

/// Why a policy cannot be applied to a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JudgeError {
    /// No run has the metric.
    #[error("gate `{gate}`: no run has metric `{metric}`\nhint: these runs have {known}")]
    UnknownMetric {
        /// The gate.
        gate: String,
        /// The metric.
        metric: String,
        /// Metrics that there are.
        known: String,
    },
    /// A margin in another unit than the metric.
    #[error("gate `{gate}`: margin {margin} does not fit `{metric}`, which is measured in {unit}")]
    WrongUnit {
        /// The gate.
        gate: String,
        /// The margin.
        margin: String,
        /// The metric.
        metric: String,
        /// Its unit.
        unit: &'static str,
    },
}

/// All gates judged.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// Whether any gate says no, else whether any cannot tell.
    pub verdict: Verdict,
    /// The gates, in the policy's order.
    pub gates: Vec<GateReport>,
    /// Why the placebo that was given says nothing here.
    pub placebo_mismatch: Option<String>,
}

/// One gate judged.
#[derive(Clone, Debug, Serialize)]
pub struct GateReport {
    /// Name.
    pub name: String,
    /// Metric or claim.
    pub metric: String,
    /// `shift`, `p50`, `p95`; null for `every_run`.
    pub statistic: Option<&'static str>,
    /// Kind.
    pub kind: Kind,
    /// Margin, in milliseconds or bytes.
    pub margin: Option<Amount>,
    /// Answer.
    pub verdict: Verdict,
    /// Why.
    pub reasons: Vec<Remark>,
    /// Pairs, or runs for `every_run`.
    pub n: usize,
    /// The figure that was judged.
    pub figure: Option<Figured>,
    /// Pairs with which an effect like this one is decided.
    pub pairs_needed: PairsNeeded,
    /// Smallest effect that this many pairs see with 80 % power.
    pub minimum_detectable: Option<Amount>,
    /// Size of what identical arms differ by.
    pub placebo_effect: Option<Amount>,
    /// What the old style says.
    pub old_style: Option<OldVerdict>,
}

/// Pairs by power; null where no number of them would do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PairsNeeded {
    /// For 80 %.
    pub power_80: Option<usize>,
    /// For 95 %.
    pub power_95: Option<usize>,
}

/// Judges every gate.
///
/// # Errors
/// [`JudgeError`] for a gate that does not fit the runs.
pub fn judge(
    policy: &Policy,
    comparison: &Comparison,
    placebo: Option<&Placebo>,
) -> Result<Judgement, JudgeError> {
    let placebo_mismatch = placebo.and_then(|one| one.mismatch(comparison));
    let usable = placebo.filter(|_| placebo_mismatch.is_none());
    let gates = policy.gates.iter().map(|gate| match &gate.limit {
        None => Ok(every_run(gate, comparison)),
        Some(limit) => figure_gate(policy, gate, *limit, comparison, usable),
    });
    let gates: Vec<GateReport> = gates.collect::<Result<_, _>>()?;
    let verdict = gates.iter().map(|gate| gate.verdict).max();
    Ok(Judgement {
        verdict: verdict.unwrap_or(Verdict::Inconclusive),
        gates,
        placebo_mismatch,
    })
}

fn figure_gate(
    policy: &Policy,
    gate: &Gate,
    (statistic, margin): (Statistic, Margin),
    comparison: &Comparison,
    placebo: Option<&Placebo>,
) -> Result<GateReport, JudgeError> {
    let metric = metric(gate, comparison)?;
    let effect = &metric.effect;
    if effect.unit != margin.unit {
        return Err(JudgeError::WrongUnit {
            gate: gate.name.clone(),
            margin: margin.to_string(),
            metric: gate.metric.clone(),
            unit: effect.unit.name(),
        });
    }
    let figured = match statistic {
        Statistic::Shift => &effect.shift,
        Statistic::P50 => &effect.p50,
        Statistic::P95 => &effect.p95,
    };
    let estimate = figured.as_estimate();
    let by_interval = estimate.map_or(Verdict::Inconclusive, |one| {
        decide(gate.kind, margin.value, &one)
    });
    let placebo_effect = placebo.and_then(|one| one.effect(&gate.metric, effect.unit));
    let mut reasons = vec![by_words(gate.kind, margin, figured, by_interval)];
    let against = blockers(policy, gate, comparison, metric);
    let placebo_against = against_placebo(gate.kind, margin, placebo_effect);
    let verdict = if against.is_empty() && placebo_against.is_none() {
        by_interval
    } else {
        Verdict::Inconclusive
    };
    reasons.extend(against);
    reasons.extend(placebo_against);
    let error = estimate.and_then(|one| standard_error(&one));
    let tail = gate.kind.tail();
    let amount = |value: Option<f64>| in_unit(effect.unit, value?);
    Ok(GateReport {
        name: gate.name.clone(),
        metric: gate.metric.clone(),
        statistic: Some(statistic.name()),
        kind: gate.kind,
        margin: amount(Some(margin.value)),
        verdict,
        reasons,
        n: effect.differences.len(),
        // Where the interval has decided, more pairs would change nothing.
        pairs_needed: if by_interval == Verdict::Inconclusive {
            needed(
                gate.kind,
                statistic,
                margin.value,
                effect.differences.len(),
                figured,
                error,
            )
        } else {
            PairsNeeded::default()
        },
        minimum_detectable: amount(error.map(|error| detectable(error, tail, Power::Eighty))),
        placebo_effect: amount(placebo_effect),
        old_style: old::judge(gate.kind, statistic, margin.value, effect),
        figure: Some(figured.clone()),
    })
}

fn metric<'c>(gate: &Gate, comparison: &'c Comparison) -> Result<&'c MetricChange, JudgeError> {
    comparison.metric(&gate.metric).ok_or_else(|| {
        let known = comparison.metrics.iter().map(|metric| metric.name.as_str());
        JudgeError::UnknownMetric {
            gate: gate.name.clone(),
            metric: gate.metric.clone(),
            known: known.collect::<Vec<_>>().join(", "),
        }
    })
}

/// What the interval says, in words.
fn by_words(kind: Kind, margin: Margin, figured: &Figured, verdict: Verdict) -> Remark {
    let (ends, name) = match kind {
        Kind::Superiority => (figured.interval, "95 % interval"),
        Kind::NonInferiority | Kind::EveryRun => (figured.bounds, "one-sided 95 % bounds"),
    };
    let sign = if kind == Kind::Superiority {
        "−"
    } else {
        "+"
    };
    let Some(ends) = ends else {
        let why = figured.reason.clone().unwrap_or_default();
        return Remark {
            code: "no_interval",
            text: format!("{}: {why}", figure(figured)),
        };
    };
    let (code, how) = match verdict {
        Verdict::Pass => ("beyond", "wholly on the good side of"),
        Verdict::Fail => ("short", "wholly on the bad side of"),
        Verdict::Inconclusive => ("crosses", "on both sides of"),
    };
    Remark {
        code,
        text: format!(
            "{}, {name} {}: {how} {sign}{margin}",
            figure(figured),
            range(figured, ends)
        ),
    }
}

/// Everything but the placebo that forbids a verdict.
fn blockers(
    policy: &Policy,
    gate: &Gate,
    comparison: &Comparison,
    metric: &MetricChange,
) -> Vec<Remark> {
    let n = comparison.pairing.n;
    let mut said = Vec::new();
    let mut say = |code, text| said.push(Remark { code, text });
    if let Some(declared) = policy.pairs
        && declared != n
    {
        say(
            "not_declared",
            format!(
                "{declared} pairs were declared and there are {n}: a verdict is taken once, at the declared number"
            ),
        );
    }
    if comparison.one_order() {
        say(
            "one_order",
            "every pair ran in the same order: its slot cannot be told from the change".to_owned(),
        );
    }
    for stage in comparison
        .control_stages
        .iter()
        .filter(|stage| !stage.equivalent)
    {
        say(
            "unproven",
            format!(
                "UNPROVEN: `{}`, which the change cannot touch, is not shown to have stayed",
                escape(&stage.name)
            ),
        );
    }
    if metric.autocorrelated() {
        say(
            "autocorrelated",
            "neighbouring pairs are alike beyond order and drift: the interval is too short"
                .to_owned(),
        );
    }
    let missing = metric.effect.missing.len();
    if missing as f64 > MISSING_MAX * n as f64 {
        let runs: Vec<String> = metric
            .missing
            .iter()
            .take(NAMED_MAX)
            .map(|run| escape(run))
            .collect();
        say(
            "missing_values",
            format!(
                "{} of {n} lack `{}`: {}",
                counted(missing, "pair"),
                escape(&gate.metric),
                runs.join(", ")
            ),
        );
    }
    let lost = comparison.pairing.unpaired.len();
    if lost as f64 > MISSING_MAX * (2 * n) as f64 {
        say(
            "unpaired",
            format!(
                "{} without a partner beside {}",
                counted(lost, "run"),
                counted(n, "pair")
            ),
        );
    }
    said
}

fn against_placebo(kind: Kind, margin: Margin, effect: Option<f64>) -> Option<Remark> {
    match effect {
        Some(effect) if margin.value < effect => Some(Remark {
            code: "below_placebo",
            text: format!("identical arms differ by {} here, more than the margin", Margin { unit: margin.unit, value: effect }),
        }),
        None if kind == Kind::Superiority => Some(Remark {
            code: "no_placebo",
            text: "no placebo of this host and scenario: what identical arms differ by is unknown; `measure aa`, then `analyze placebo`".to_owned(),
        }),
        _ => None,
    }
}

fn needed(
    kind: Kind,
    statistic: Statistic,
    margin: f64,
    n: usize,
    figured: &Figured,
    error: Option<f64>,
) -> PairsNeeded {
    let tail = kind.tail();
    let least = match (statistic, tail) {
        (Statistic::Shift | Statistic::P50, Tail::TwoAndAHalf) => 6,
        (Statistic::Shift | Statistic::P50, Tail::Five) => 5,
        (Statistic::P95, tail) => needs(0.95, tail),
    };
    // Without any interval all that is known is how many pairs give one.
    let (Some(error), Some(value)) = (error, figured.estimate) else {
        let more = (n < least).then_some(least);
        return PairsNeeded {
            power_80: more,
            power_95: more,
        };
    };
    let distance = value - limit(kind, margin);
    let pairs = |power| pairs_needed(n, error, distance, tail, power).map(|pairs| pairs.max(least));
    PairsNeeded {
        power_80: pairs(Power::Eighty),
        power_95: pairs(Power::NinetyFive),
    }
}

/// N/N claims, over all runs of both arms.
fn every_run(gate: &Gate, comparison: &Comparison) -> GateReport {
    let arms = [&comparison.control, &comparison.candidate];
    let n: usize = arms.iter().map(|arm| arm.runs).sum();
    let (verdict, text) = match gate.metric.as_str() {
        "chain_complete" => chains(&arms),
        "no_leftovers" => leftovers(&arms, n),
        _ => succeeded(&arms, n),
    };
    GateReport {
        name: gate.name.clone(),
        metric: gate.metric.clone(),
        statistic: None,
        kind: gate.kind,
        margin: None,
        verdict,
        reasons: vec![Remark {
            code: "every_run",
            text,
        }],
        n,
        figure: None,
        pairs_needed: PairsNeeded::default(),
        minimum_detectable: None,
        placebo_effect: None,
        old_style: None,
    }
}

fn named<'r>(runs: impl Iterator<Item = &'r String>) -> String {
    let names: Vec<String> = runs.take(NAMED_MAX).map(|run| escape(run)).collect();
    names.join(", ")
}

fn chains(arms: &[&Arm; 2]) -> (Verdict, String) {
    let sum = |of: fn(&Arm) -> usize| arms.iter().map(|arm| of(arm)).sum::<usize>();
    let (complete, runs) = (sum(|arm| arm.complete), sum(|arm| arm.runs));
    let broken = sum(|arm| arm.incomplete.len());
    let text = format!("chains complete {complete}/{runs}");
    if broken > 0 {
        let names = named(arms.iter().flat_map(|arm| &arm.incomplete));
        (Verdict::Fail, format!("{text}; incomplete: {names}"))
    } else if complete < runs {
        (
            Verdict::Inconclusive,
            format!("{text}; the others wrote no trace"),
        )
    } else {
        (Verdict::Pass, text)
    }
}

fn succeeded(arms: &[&Arm; 2], n: usize) -> (Verdict, String) {
    let failed: usize = arms.iter().map(|arm| arm.failed).sum();
    let text = format!("succeeded {}/{n}", n - failed);
    if failed == 0 {
        return (Verdict::Pass, text);
    }
    let runs = arms.iter().flat_map(|arm| &arm.failures);
    let names = named(runs.map(|(run, _)| run));
    (Verdict::Fail, format!("{text}; failed: {names}"))
}

fn leftovers(arms: &[&Arm; 2], n: usize) -> (Verdict, String) {
    let watched: usize = arms.iter().map(|arm| arm.watched).sum();
    let all: Vec<&(String, String)> = arms.iter().flat_map(|arm| &arm.failures).collect();
    let (left, other): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|(_, why)| why.starts_with(LEFTOVERS));
    if !left.is_empty() {
        let names = named(left.iter().map(|(run, _)| run));
        return (
            Verdict::Fail,
            format!("processes outlived {}/{n} runs: {names}", left.len()),
        );
    }
    if watched < n || !other.is_empty() {
        let known = watched.saturating_sub(other.len());
        return (
            Verdict::Inconclusive,
            format!("nothing left behind in {known}/{n}; of the others it is not recorded"),
        );
    }
    (Verdict::Pass, format!("nothing left behind in {n}/{n}"))
}
