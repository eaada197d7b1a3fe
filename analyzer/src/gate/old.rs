//! What a gate on point figures says, and how often it is wrong.
//!
//! The old style compares Δ = Q(candidate) − Q(control) with the margin and says
//! yes or no: P50 for a gate on the shift or on P50, P95 for one on P95. Its rates
//! come from swapping labels within pairs ([`permutation`](crate::stats::permutation)),
//! once the shift that was found is taken off the candidate:
//! how often it passes a superiority gate, or fails a non-inferiority gate, when
//! nothing has changed; and how often it passes the latter when the change is
//! exactly the margin.

use serde::Serialize;

use crate::model::window_rules::Unit;
use crate::report::{Amount, millionth};
use crate::stats::permutation::rate;
use crate::stats::quantile_change::type_7;

use crate::compare::effect::{Effect, in_unit};

use super::policy::Statistic;
use super::rule::{Kind, Verdict, limit};

/// The verdict of the old style.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OldVerdict {
    /// `p50` or `p95`.
    pub statistic: &'static str,
    /// The change that it looks at.
    pub change: Option<Amount>,
    /// PASS or FAIL: it knows no third answer.
    pub verdict: Verdict,
    /// How often it passes without the gain (superiority: identical arms;
    /// non-inferiority: a change of exactly the margin).
    pub false_pass: Option<f64>,
    /// Non-inferiority: how often it fails identical arms.
    pub false_fail: Option<f64>,
}

/// Judges in the old style; `None` without pairs.
#[must_use]
pub fn judge(kind: Kind, statistic: Statistic, margin: f64, effect: &Effect) -> Option<OldVerdict> {
    let (p, name) = match statistic {
        Statistic::Shift | Statistic::P50 => (0.5, "p50"),
        Statistic::P95 => (0.95, "p95"),
    };
    let limit = limit(kind, margin);
    let (control, candidate): (Vec<f64>, Vec<f64>) = effect.pairs.iter().copied().unzip();
    let value = change(&control, &candidate, p)?;
    let passes = |a: &[f64], b: &[f64]| change(a, b, p).is_some_and(|value| value <= limit);
    let alike = alike(effect);
    let on_identical = alike.as_ref().and_then(|pairs| rate(pairs, passes));
    let (false_pass, false_fail) = match kind {
        Kind::NonInferiority => {
            // A change of the margin on both sides of the rule cancels.
            let no_higher =
                |a: &[f64], b: &[f64]| change(a, b, p).is_some_and(|value| value <= 0.0);
            let at_margin = alike.as_ref().and_then(|pairs| rate(pairs, no_higher));
            (at_margin, on_identical.map(|rate| 1.0 - rate))
        }
        Kind::Superiority | Kind::EveryRun => (on_identical, None),
    };
    Some(OldVerdict {
        statistic: name,
        change: unit_of(effect.unit, value),
        verdict: if value <= limit {
            Verdict::Pass
        } else {
            Verdict::Fail
        },
        false_pass: false_pass.map(millionth),
        false_fail: false_fail.map(millionth),
    })
}

fn unit_of(unit: Unit, value: f64) -> Option<Amount> {
    in_unit(unit, value)
}

/// The pairs less the shift that was found: alike but for noise. With the shift in
/// them, swapped labels would spread by it and not by the noise alone.
fn alike(effect: &Effect) -> Option<Vec<(f64, f64)>> {
    let shift = effect.shift.estimate.filter(|shift| shift.is_finite())?;
    Some(effect.pairs.iter().map(|(a, b)| (*a, b - shift)).collect())
}

fn change(control: &[f64], candidate: &[f64], p: f64) -> Option<f64> {
    let of = |values: &[f64]| {
        let mut values = values.to_vec();
        values.sort_unstable_by(f64::total_cmp);
        type_7(&values, p)
    };
    let value = of(candidate) - of(control);
    (!value.is_nan()).then_some(value)
}
