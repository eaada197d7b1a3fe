//! Variance share: how much of a total's variance a part carries.
//!
//! `c_j = cov(s_j, T) / var(T)` for `T = Σ s_j`, so that `Σ c_j = 1`; signed. It is
//! the Shapley value of var(T) in the additive game, so no order of parts is
//! preferred. n < 2 or no variance of T: undefined.

use super::{is_constant, mean};

/// Shares of `parts`, each a sample as long as `total`; `None` where undefined.
#[must_use]
pub fn variance_share(part: &[f64], total: &[f64]) -> Option<f64> {
    let (mean_part, mean_total) = (mean(part)?, mean(total)?);
    if is_constant(total) {
        return None;
    }
    let (mut covariance, mut variance) = (0.0, 0.0);
    for (part, total) in part.iter().zip(total) {
        covariance += (part - mean_part) * (total - mean_total);
        variance += (total - mean_total) * (total - mean_total);
    }
    (variance > 0.0).then(|| covariance / variance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_sum_to_one_and_a_constant_part_carries_nothing() {
        let (a, b, c) = ([1.0, 2.0, 4.0], [5.0, 5.0, 5.0], [1.5, 1.0, 0.0]);
        let total: Vec<f64> = (0..3).map(|i| a[i] + b[i] + c[i]).collect();
        let shares = [&a, &b, &c].map(|part| variance_share(part, &total).unwrap());
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(shares[1].abs() < 1e-15);
        assert!(
            shares[2] < 0.0,
            "a part that falls when the total rises is negative"
        );
    }

    #[test]
    fn a_constant_total_has_no_shares() {
        assert_eq!(variance_share(&[1.0, 2.0], &[3.0, 3.0]), None);
        assert_eq!(variance_share(&[1.0], &[3.0]), None);
        assert_eq!(variance_share(&[], &[]), None);
    }
}
