//! Correlation within groups, and what is left of a small p-value after many looks.
//!
//! r = Pearson's r of x and y, each less the mean of its group g:
//! what differs between groups as a whole (two arms of an experiment) cannot
//! pass for a relation. k groups cost k − 1 degrees of freedom, so Fisher's
//! z = atanh r · √(n − k − 2), two-sided p = 2 Φ(−|z|) (partial correlation with
//! k − 1 group indicators held; Fisher 1924). Fewer than k + 3 values, or no
//! variance within any group: undefined.
//!
//! Holm (1979): the i-th smallest of m p-values times m − i + 1, made monotone
//! and at most 1, keeps the chance of any false alarm at the nominal level.

use statrs::distribution::{ContinuousCDF, Normal};

use super::correlation::{Correlation, correlate};
use super::{Undefined, is_constant, mean};

/// A correlation within groups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Within {
    /// Pearson's r of the centred values.
    pub pearson: f64,
    /// Spearman's ρ of the centred values.
    pub spearman: f64,
    /// Two-sided p-value of r = 0.
    pub p: f64,
}

/// Correlates (group, x, y).
///
/// # Errors
/// [`Undefined`] for too few values, and where x or y does not vary in any group.
pub fn within(values: &[(usize, f64, f64)]) -> Result<Within, Undefined> {
    let groups = values.iter().map(|(group, _, _)| group + 1).max();
    let mut centred = Vec::with_capacity(values.len());
    let mut found = 0;
    let mut varies = (false, false);
    for group in 0..groups.unwrap_or(0) {
        let of_group = values.iter().filter(|(of, _, _)| *of == group);
        let (x, y): (Vec<f64>, Vec<f64>) = of_group.map(|(_, x, y)| (*x, *y)).unzip();
        let (Some(mean_x), Some(mean_y)) = (mean(&x), mean(&y)) else {
            continue;
        };
        found += 1;
        varies = (varies.0 || !is_constant(&x), varies.1 || !is_constant(&y));
        centred.extend(x.iter().zip(&y).map(|(x, y)| (x - mean_x, y - mean_y)));
    }
    let (n, needs) = (values.len(), found + 3);
    if n < needs {
        return Err(Undefined::TooFew { n, needs });
    }
    if !(varies.0 && varies.1) {
        return Err(Undefined::NoVariance);
    }
    let Correlation {
        pearson, spearman, ..
    } = correlate(&centred)?;
    let freedom = (n - found - 2) as f64;
    Ok(Within {
        pearson,
        spearman,
        p: two_sided(pearson, freedom),
    })
}

/// p-value of Fisher's z; 0 for |r| = 1.
fn two_sided(r: f64, freedom: f64) -> f64 {
    if r.abs() >= 1.0 {
        return 0.0;
    }
    let z = r.atanh().abs() * freedom.sqrt();
    Normal::standard().cdf(-z) * 2.0
}

/// Adjusts p-values for their number, in the order given.
#[must_use]
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut reached: f64 = 0.0;
    for (rank, index) in order.into_iter().enumerate() {
        let left = (p_values.len() - rank) as f64;
        reached = reached.max((p_values[index] * left).min(1.0));
        adjusted[index] = reached;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_between_groups_is_no_relation() {
        // Two arms apart by 100 in both, unrelated within.
        let values = [
            (0, 1.0, 5.0),
            (0, 2.0, 4.0),
            (0, 3.0, 5.0),
            (1, 101.0, 105.0),
            (1, 102.0, 106.0),
            (1, 103.0, 105.0),
        ];
        let found = within(&values).unwrap();
        assert!(found.pearson.abs() < 1e-12, "{found:?}");
        assert!((found.p - 1.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn constants_within_groups_and_small_samples_are_undefined() {
        let constant = [(0, 1.0, 1.0), (0, 1.0, 2.0), (0, 1.0, 3.0), (0, 1.0, 5.0)];
        assert_eq!(within(&constant), Err(Undefined::NoVariance));
        assert_eq!(
            within(&constant[..3]),
            Err(Undefined::TooFew { n: 3, needs: 4 })
        );
        assert_eq!(within(&[]), Err(Undefined::TooFew { n: 0, needs: 3 }));
    }

    #[test]
    fn holm_multiplies_and_stays_monotone() {
        // By hand: 0.01·3, max(0.03, 0.02·2), max(0.04, 0.5·1).
        let found = holm(&[0.02, 0.01, 0.5]);
        for (found, expected) in found.iter().zip([0.04, 0.03, 0.5]) {
            assert!((found - expected).abs() < 1e-12);
        }
        assert!(holm(&[]).is_empty());
    }
}
