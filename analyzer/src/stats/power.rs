//! How many pairs a question needs, and what a number of pairs can see.
//!
//! The standard error of an estimate is read off its own interval,
//! `se = (high − low) / (2 z)`, so that it is that of the very procedure that
//! judges. Pairs for an effect at distance δ from the margin:
//! `n* = n · ((z_α + z_β) · se / δ)²`; minimum detectable effect: `(z_α + z_β) · se`.
//! Source: the usual normal approximation (e.g. Chow, Shao and Wang, chapter 3).
//! No interval, a width of zero or a δ of zero: no answer.

use super::paired::Estimate;
use super::signed_rank::Tail;

/// Chance of a decision when the effect is as supposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    /// 80 %.
    Eighty,
    /// 95 %.
    NinetyFive,
}

impl Power {
    /// `Φ⁻¹(power)`.
    #[must_use]
    pub fn z(self) -> f64 {
        match self {
            Self::Eighty => 0.841_621_233_572_914_2,
            Self::NinetyFive => 1.644_853_626_951_472_7,
        }
    }
}

/// No more pairs than this are ever advised: a number beyond it means that the
/// question cannot be answered this way.
pub const PAIRS_MAX: usize = 1_000_000;

/// The standard error that an estimate's interval stands for.
#[must_use]
pub fn standard_error(estimate: &Estimate) -> Option<f64> {
    let wide = estimate.two_sided.map(|ends| (ends, Tail::TwoAndAHalf));
    let narrow = estimate.one_sided.map(|ends| (ends, Tail::Five));
    let ((low, high), tail) = wide.or(narrow)?;
    let error = (high - low) / (2.0 * tail.z());
    (error.is_finite() && error > 0.0).then_some(error)
}

/// Pairs with which an effect at `distance` from the margin is decided.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive, and bounded before the cast"
)]
pub fn pairs_needed(
    n: usize,
    error: f64,
    distance: f64,
    tail: Tail,
    power: Power,
) -> Option<usize> {
    let factor = (tail.z() + power.z()) * error / distance.abs();
    let pairs = (n as f64 * factor * factor).ceil();
    (pairs.is_finite() && pairs <= PAIRS_MAX as f64).then_some(pairs as usize)
}

/// The smallest effect that is seen with this power.
#[must_use]
pub fn detectable(error: f64, tail: Tail, power: Power) -> f64 {
    (tail.z() + power.z()) * error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_textbook_case() {
        // sd 20, δ 10, two-sided 5 %, 80 %: (2.8016 · 2)² = 31.4 → 32 pairs.
        let error = 20.0 / 10f64.sqrt();
        let found = pairs_needed(10, error, 10.0, Tail::TwoAndAHalf, Power::Eighty);
        assert_eq!(found, Some(32));
        let seen = detectable(20.0 / 32f64.sqrt(), Tail::TwoAndAHalf, Power::Eighty);
        assert!((seen - 9.905).abs() < 1e-3, "{seen}");
    }

    #[test]
    fn a_margin_that_is_met_exactly_is_never_decided() {
        assert_eq!(pairs_needed(10, 1.0, 0.0, Tail::Five, Power::Eighty), None);
        assert_eq!(pairs_needed(10, 1.0, 1e-9, Tail::Five, Power::Eighty), None);
    }
}
