//! What changed in one figure between two arms, from its pairs alone.
//!
//! The primary figure is the Hodges–Lehmann shift; the sign interval checks it,
//! changes of P50 and P95 stand beside it, and order, drift and autocorrelation
//! say whether it may be believed. A failed candidate counts as +∞; a pair whose
//! control failed says nothing and is left out of the differences.

use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::model::window_rules::Unit;
use crate::report::Amount;
use crate::stats::autocorrelation::{Autocorrelation, autocorrelation};
use crate::stats::is_constant;
use crate::stats::order_interval::{OrderInterval, order_interval};
use crate::stats::paired::{Estimate, Ranks, paired_shift};
use crate::stats::quantile::sorted;
use crate::stats::quantile_change::{Places, needs, quantile_change, type_7};
use crate::stats::signed_rank::Tail;
use crate::stats::signed_rank_test::p_value;
use crate::stats::slot::{Fit, fit};
use crate::stats::{Undefined, slot};
use crate::units::Nanos;

use super::pairing::Order;

/// Fewest pairs of a two-sided 95 % interval of the shift.
pub const SHIFT_NEEDS: usize = 6;

/// One pair's figures; +∞ for a run that failed, `None` for one that has none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairValues {
    /// Of the control.
    pub control: Option<f64>,
    /// Of the candidate.
    pub candidate: Option<f64>,
    /// Which went first.
    pub order: Order,
}

/// A figure with its intervals, or words.
#[derive(Clone, Debug, PartialEq)]
pub struct Figured {
    /// Unit of everything in it.
    pub unit: Unit,
    /// The figure, nanoseconds or bytes.
    pub estimate: Option<f64>,
    /// Two-sided 95 % interval.
    pub interval: Option<(f64, f64)>,
    /// One-sided 95 % bounds, lower and upper.
    pub bounds: Option<(f64, f64)>,
    /// Why something is null.
    pub reason: Option<String>,
    /// Finest difference that its values show; prints no finer digits.
    pub quantum: Nanos,
}

/// Values that do not say how fine they are.
const FINEST: Nanos = Nanos(1);

impl Figured {
    /// Wraps an estimate of `n` pairs, which need `needs` for an interval.
    fn new(unit: Unit, found: Result<Estimate, Undefined>, needs: usize) -> Self {
        match found {
            Err(undefined) => Self::absent(unit, undefined.to_string()),
            Ok(found) => {
                let short = found.two_sided.is_none();
                Self {
                    unit,
                    estimate: Some(found.value),
                    interval: found.two_sided,
                    bounds: found.one_sided,
                    reason: short.then(|| format!("a 95 % interval needs {needs} pairs")),
                    quantum: FINEST,
                }
            }
        }
    }

    pub(super) fn absent(unit: Unit, reason: String) -> Self {
        Self {
            unit,
            estimate: None,
            interval: None,
            bounds: None,
            reason: Some(reason),
            quantum: FINEST,
        }
    }

    /// The same without its intervals, for a reason.
    fn without_intervals(self, reason: &str) -> Self {
        let reason = Some(reason.to_owned());
        Self {
            interval: None,
            bounds: None,
            reason,
            ..self
        }
    }

    /// The figures as an estimate of the statistics, where there is one.
    #[must_use]
    pub fn as_estimate(&self) -> Option<Estimate> {
        Some(Estimate {
            value: self.estimate?,
            two_sided: self.interval,
            one_sided: self.bounds,
        })
    }

    /// Whether the 95 % interval leaves out zero.
    #[must_use]
    pub fn excludes_zero(&self) -> bool {
        self.interval
            .is_some_and(|(low, high)| low > 0.0 || high < 0.0)
    }
}

/// A number of nanoseconds or bytes in its unit; `None` for one that is infinite.
#[must_use]
pub fn in_unit(unit: Unit, value: f64) -> Option<Amount> {
    let whole = Nanos::rounded(value);
    let amount = match unit {
        Unit::Ms => Amount::Time(whole),
        Unit::Bytes => Amount::Bytes(whole.0),
    };
    value.is_finite().then_some(amount)
}

impl Serialize for Figured {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let amount = |value: Option<f64>| in_unit(self.unit, value?);
        let mut map = serializer.serialize_struct("Figured", 6)?;
        map.serialize_field("estimate", &amount(self.estimate))?;
        map.serialize_field("low", &amount(self.interval.map(|ends| ends.0)))?;
        map.serialize_field("high", &amount(self.interval.map(|ends| ends.1)))?;
        map.serialize_field("lower_bound", &amount(self.bounds.map(|ends| ends.0)))?;
        map.serialize_field("upper_bound", &amount(self.bounds.map(|ends| ends.1)))?;
        map.serialize_field("reason", &self.reason)?;
        map.end()
    }
}

/// Everything that changed in one figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// Unit.
    pub unit: Unit,
    /// Both values of each pair that has both, control first, in the order of time.
    pub pairs: Vec<(f64, f64)>,
    /// Which run of each of those pairs went first.
    pub orders: Vec<Order>,
    /// Places of pairs of which a run has no value.
    pub missing: Vec<usize>,
    /// Places of pairs whose control failed: no difference.
    pub failed_controls: usize,
    /// Candidates that failed while their control did not: +∞.
    pub failed_candidates: usize,
    /// Candidate − control, in the order of time.
    pub differences: Vec<f64>,
    /// Hodges–Lehmann shift.
    pub shift: Figured,
    /// Median of the differences with its sign interval.
    pub sign: Figured,
    /// Change of the median.
    pub p50: Figured,
    /// Change of P95.
    pub p95: Figured,
    /// P50 and P95 of the control.
    pub control: (Option<f64>, Option<f64>),
    /// P50 and P95 of the candidate.
    pub candidate: (Option<f64>, Option<f64>),
    /// Signed-rank p-value of no shift, two-sided.
    pub p: Option<f64>,
    /// Differences that are exactly zero.
    pub zeros: usize,
    /// Half of what the order is worth: β of the model.
    pub order: Figured,
    /// What the difference drifted by over the experiment: γ of the model.
    pub drift: Figured,
    /// Of what order and drift leave.
    pub autocorrelation: Result<Autocorrelation, Undefined>,
}

/// Computes the effect of one figure over pairs in the order of time.
#[must_use]
pub fn effect(unit: Unit, values: &[PairValues]) -> Effect {
    let missing = values.iter().enumerate();
    let missing = missing.filter(|(_, one)| one.control.is_none() || one.candidate.is_none());
    let missing: Vec<usize> = missing.map(|(place, _)| place).collect();
    let both = values
        .iter()
        .filter_map(|one| Some((one.control?, one.candidate?, one.order)));
    let (mut pairs, mut orders, mut differences, mut terms) = (vec![], vec![], vec![], vec![]);
    for (control, candidate, order) in both {
        pairs.push((control, candidate));
        orders.push(order);
        if control.is_finite() {
            differences.push(candidate - control);
            let sign = if order == Order::ControlFirst {
                1.0
            } else {
                -1.0
            };
            terms.push((sign, candidate - control));
        }
    }
    terms.retain(|(_, difference)| difference.is_finite());
    let fitted = fit(&terms);
    let (control, candidate): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    Effect {
        unit,
        failed_controls: pairs.len() - differences.len(),
        failed_candidates: differences.iter().filter(|one| one.is_infinite()).count(),
        shift: shift(unit, &differences),
        sign: sign(unit, &differences),
        p50: change(unit, &control, &candidate, 0.5),
        p95: change(unit, &control, &candidate, 0.95),
        control: quantiles(&control),
        candidate: quantiles(&candidate),
        p: (!differences.is_empty()).then(|| p_value(&differences)),
        zeros: differences.iter().filter(|one| **one == 0.0).count(),
        order: term(unit, fitted.order, "every pair ran in the same order"),
        drift: term(unit, fitted.drift, "needs 3 pairs"),
        autocorrelation: residual(&fitted),
        pairs,
        orders,
        missing,
        differences,
    }
}

/// The shift, without an interval where nothing varies.
pub(super) fn shift(unit: Unit, differences: &[f64]) -> Figured {
    let found = paired_shift(differences, Ranks::new(differences.len()));
    settle(Figured::new(unit, found, SHIFT_NEEDS), differences)
}

/// Equal differences would have an interval of no width, which looks like certainty.
fn settle(figured: Figured, differences: &[f64]) -> Figured {
    match differences.len() {
        1 => figured.without_intervals("one pair: a point, no interval"),
        n if n > 1 && is_constant(differences) => {
            let words = format!("all {n} differences are equal: zero variance, no interval");
            figured.without_intervals(&words)
        }
        _ => figured,
    }
}

fn sign(unit: Unit, differences: &[f64]) -> Figured {
    let values = sorted(differences);
    if values.is_empty() {
        return Figured::absent(unit, "no pair has both values".to_owned());
    }
    let interval = match order_interval(values.len(), 0.5) {
        OrderInterval::Between { low, high } => Some((values[low - 1], values[high - 1])),
        OrderInterval::NeedsN(_) => None,
    };
    let found = Estimate {
        value: type_7(&values, 0.5),
        two_sided: interval,
        one_sided: None,
    };
    settle(Figured::new(unit, Ok(found), SHIFT_NEEDS), differences)
}

fn change(unit: Unit, control: &[f64], candidate: &[f64], p: f64) -> Figured {
    let found = quantile_change(control, candidate, Places::new(control.len(), p));
    let figured = Figured::new(unit, found, needs(p, Tail::TwoAndAHalf));
    if control.len() > 1 && is_constant(control) && is_constant(candidate) {
        return figured.without_intervals("no run differs from another of its arm: zero variance");
    }
    figured
}

fn quantiles(values: &[f64]) -> (Option<f64>, Option<f64>) {
    let values = sorted(values);
    let of = |p| {
        (!values.is_empty())
            .then(|| type_7(&values, p))
            .filter(|one| one.is_finite())
    };
    (of(0.5), of(0.95))
}

fn term(unit: Unit, term: Option<slot::Term>, otherwise: &str) -> Figured {
    let Some(term) = term else {
        return Figured::absent(unit, otherwise.to_owned());
    };
    Figured {
        unit,
        estimate: Some(term.value),
        interval: term.interval,
        bounds: None,
        reason: term
            .interval
            .is_none()
            .then(|| "nothing is left to judge it by".to_owned()),
        quantum: FINEST,
    }
}

fn residual(fit: &Fit) -> Result<Autocorrelation, Undefined> {
    // What is left of an exact fit is rounding, not noise.
    let largest = fit
        .residuals
        .iter()
        .fold(0.0f64, |most, one| most.max(one.abs()));
    if largest < 0.5 {
        return Err(Undefined::NoVariance);
    }
    autocorrelation(&fit.residuals)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(f64, f64)]) -> Vec<PairValues> {
        let one = |(control, candidate): &(f64, f64)| PairValues {
            control: Some(*control),
            candidate: Some(*candidate),
            order: Order::ControlFirst,
        };
        pairs.iter().map(one).collect()
    }

    #[test]
    fn one_pair_is_a_point() {
        let found = effect(Unit::Ms, &values(&[(10.0, 4.0)]));
        assert_eq!(found.shift.estimate, Some(-6.0));
        assert_eq!(found.shift.interval, None);
        assert_eq!(
            found.shift.reason.as_deref(),
            Some("one pair: a point, no interval")
        );
    }

    #[test]
    fn equal_differences_are_said_in_words() {
        let found = effect(Unit::Ms, &values(&[(10.0, 10.0); 12]));
        assert_eq!(found.shift.interval, None);
        assert_eq!(found.zeros, 12);
        let words = found.shift.reason.unwrap();
        assert!(words.contains("all 12 differences are equal"), "{words}");
        assert_eq!(found.p, Some(1.0));
        assert_eq!(found.autocorrelation, Err(Undefined::NoVariance));
    }

    #[test]
    fn a_failed_candidate_counts_and_a_failed_control_does_not() {
        let mut pairs: Vec<(f64, f64)> = (0..8).map(|i| (f64::from(i), f64::from(2 * i))).collect();
        pairs[0].1 = f64::INFINITY;
        pairs[1].0 = f64::INFINITY;
        let found = effect(Unit::Ms, &values(&pairs));
        assert_eq!((found.failed_candidates, found.failed_controls), (1, 1));
        assert_eq!(found.differences.len(), 7);
        assert!(found.shift.interval.unwrap().1.is_infinite());
        assert_eq!(found.p95.estimate, None);
    }
}
