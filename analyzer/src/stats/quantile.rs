//! Sample quantiles under a named definition.
//!
//! For sorted `x_1 ≤ … ≤ x_n` and 0 ≤ p ≤ 1:
//! *type 7*: `h = (n − 1)p + 1`, `Q = x_⌊h⌋ + (h − ⌊h⌋)(x_(⌊h⌋+1) − x_⌊h⌋)`;
//! *nearest rank*: `Q = x_⌈np⌉`, and `x_1` for p = 0.
//! Source: Hyndman and Fan, "Sample quantiles in statistical packages" (1996),
//! definition 7, the default of R and numpy. n = 0: undefined. n = 1: the value.
//!
//! Values may be [`Sample::Beyond`], a run that never finished: larger than
//! every other. A quantile that touches one is beyond too; nothing is
//! interpolated towards infinity.

/// How a quantile is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Definition {
    /// Linear interpolation, Hyndman and Fan's type 7.
    #[default]
    Type7,
    /// The smallest value with at least p·n values at or below it.
    NearestRank,
}

impl Definition {
    /// The definition's name in reports and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Type7 => "type7",
            Self::NearestRank => "nearest-rank",
        }
    }
}

/// One value of a sample.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub enum Sample {
    /// A measured value.
    Value(f64),
    /// More than anything measured: the run failed or timed out.
    Beyond,
}

/// A quantile of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantile {
    /// The value.
    Value(f64),
    /// More than this bound, the largest measured value.
    Above(f64),
}

/// The quantile of finite, sorted values.
#[must_use]
pub fn quantile(sorted: &[f64], p: f64, definition: Definition) -> Option<f64> {
    let (low, high, weight) = position(sorted.len(), p, definition)?;
    let (low, high) = (*sorted.get(low)?, *sorted.get(high)?);
    Some(low + weight * (high - low))
}

/// The quantile of sorted values of which some may be beyond measure.
/// `None` for no values, or when nothing was measured at all.
#[must_use]
pub fn censored(sorted: &[Sample], p: f64, definition: Definition) -> Option<Quantile> {
    let measured = sorted.iter().rev().find_map(|sample| match sample {
        Sample::Value(value) => Some(*value),
        Sample::Beyond => None,
    })?;
    let (low, high, weight) = position(sorted.len(), p, definition)?;
    match (sorted.get(low)?, sorted.get(high)?) {
        (Sample::Value(low), Sample::Value(high)) => {
            Some(Quantile::Value(low + weight * (high - low)))
        }
        (Sample::Value(low), Sample::Beyond) if weight == 0.0 => Some(Quantile::Value(*low)),
        _ => Some(Quantile::Above(measured)),
    }
}

/// Indices from 0 of the two order statistics and the weight of the upper one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "p is in 0..=1, so the index is below n"
)]
fn position(n: usize, p: f64, definition: Definition) -> Option<(usize, usize, f64)> {
    let last = n.checked_sub(1)?;
    let p = p.clamp(0.0, 1.0);
    match definition {
        Definition::Type7 => {
            let h = last as f64 * p;
            let low = (h.floor() as usize).min(last);
            Some((low, (low + 1).min(last), h - h.floor()))
        }
        Definition::NearestRank => {
            let rank = (n as f64 * p).ceil() as usize;
            let index = rank.saturating_sub(1).min(last);
            Some((index, index, 0.0))
        }
    }
}

/// Sorts finite values.
#[must_use]
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// The median of finite values in any order; `None` for none.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let (middle, odd) = (values.len() / 2, values.len() % 2 == 1);
    let mut values = values.to_vec();
    if values.is_empty() {
        return None;
    }
    // Selecting the middle takes a fraction of the time of sorting.
    let (below, high, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let high = *high;
    if odd {
        return Some(high);
    }
    let low = below.iter().copied().max_by(f64::total_cmp)?;
    Some(low + 0.5 * (high - low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_7_interpolates_and_nearest_rank_does_not() {
        let x = [1.0, 2.0, 4.0, 8.0];
        assert_eq!(quantile(&x, 0.5, Definition::Type7), Some(3.0));
        assert_eq!(quantile(&x, 0.5, Definition::NearestRank), Some(2.0));
        // h = 3 · 0.95 + 1 = 3.85, so 4 + 0.85 · 4.
        assert!((quantile(&x, 0.95, Definition::Type7).unwrap() - 7.4).abs() < 1e-12);
        assert_eq!(quantile(&x, 0.95, Definition::NearestRank), Some(8.0));
        assert_eq!(quantile(&x, 0.0, Definition::NearestRank), Some(1.0));
    }

    #[test]
    fn the_median_is_the_middle_or_between_the_two_middle_values() {
        assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
        assert_eq!(median(&[9.0, 1.0, 5.0, 2.0]), Some(3.5));
        assert_eq!(median(&[4.0, 4.0]), Some(4.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn no_value_has_no_quantile_and_one_value_is_every_quantile() {
        assert_eq!(quantile(&[], 0.5, Definition::Type7), None);
        assert_eq!(quantile(&[5.0], 0.95, Definition::Type7), Some(5.0));
    }

    #[test]
    fn a_quantile_that_touches_a_failed_run_is_above_all_that_was_measured() {
        use Sample::{Beyond, Value};
        let x = [Value(1.0), Value(2.0), Value(3.0), Beyond];
        assert_eq!(
            censored(&x, 0.5, Definition::Type7),
            Some(Quantile::Value(2.5))
        );
        assert_eq!(
            censored(&x, 0.95, Definition::Type7),
            Some(Quantile::Above(3.0))
        );
        assert_eq!(
            censored(&x[..3], 1.0, Definition::Type7),
            Some(Quantile::Value(3.0))
        );
        assert_eq!(censored(&[Beyond], 0.5, Definition::Type7), None);
    }
}
