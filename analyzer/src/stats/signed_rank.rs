//! Null distribution of Wilcoxon's signed-rank statistic W: the sum of the
//! ranks 1..n that carry a plus, each with probability ½.
//!
//! Exact by counting subsets (dynamic programming over ranks) up to
//! [`EXACT_MAX`], by its normal approximation with mean n(n+1)/4 and variance
//! n(n+1)(2n+1)/24 above. Source: Hollander and Wolfe, *Nonparametric
//! Statistical Methods*, section 3.1.

use super::correlation::Z_975;

/// Largest n for which the distribution is counted: 2^50 is exact in a float.
pub const EXACT_MAX: usize = 50;
/// Smallest n for which a two-sided 95 % interval exists: 2 · 2^−n ≤ 0.05.
pub const INTERVAL_MIN: usize = 6;

/// The number k ≥ 1 such that the k-th smallest and k-th largest Walsh averages
/// bound a two-sided 95 % interval; `None` below [`INTERVAL_MIN`].
///
/// k is the largest with P(W ≤ k − 1) ≤ 0.025.
#[must_use]
pub fn interval_rank(n: usize) -> Option<usize> {
    if n < INTERVAL_MIN {
        return None;
    }
    if n > EXACT_MAX {
        return Some(normal_rank(n));
    }
    let counts = subset_counts(n);
    let all: f64 = counts.iter().sum();
    let mut below = 0.0;
    let mut rank = 0;
    for count in &counts {
        below += count;
        if below / all > 0.025 {
            break;
        }
        rank += 1;
    }
    Some(rank.max(1))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive for n > 50, and clamped to 1 below"
)]
fn normal_rank(n: usize) -> usize {
    let n = n as f64;
    let mean = n * (n + 1.0) / 4.0;
    let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
    (mean - Z_975 * deviation).floor().max(1.0) as usize
}

/// `counts[w]`: how many subsets of 1..=n sum to w.
fn subset_counts(n: usize) -> Vec<f64> {
    let most = n * (n + 1) / 2;
    let mut counts = vec![0.0; most + 1];
    counts[0] = 1.0;
    for rank in 1..=n {
        for sum in (rank..=most).rev() {
            counts[sum] += counts[sum - rank];
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_distributions_are_counted() {
        assert_eq!(subset_counts(3), [1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0]);
        let all: f64 = subset_counts(50).iter().sum();
        assert!((all - 2f64.powi(50)).abs() < 0.5);
    }

    #[test]
    fn interval_ranks_are_those_of_published_tables() {
        // Two-sided 5 % critical values of W: n = 6: 0, 8: 3, 10: 8, 20: 52, 25: 89, 30: 137.
        for (n, critical) in [(6, 0), (8, 3), (10, 8), (20, 52), (25, 89), (30, 137)] {
            assert_eq!(interval_rank(n), Some(critical + 1), "n {n}");
        }
        assert_eq!(interval_rank(5), None);
    }

    #[test]
    fn the_approximation_meets_the_exact_distribution_at_the_border() {
        let exact = interval_rank(EXACT_MAX).unwrap();
        assert!(
            exact.abs_diff(normal_rank(EXACT_MAX)) <= 2,
            "{exact} {}",
            normal_rank(EXACT_MAX)
        );
    }
}
