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
    rank_at(n, Tail::TwoAndAHalf)
}

/// What an interval leaves out on each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// 2.5 %: both ends together are a 95 % interval.
    TwoAndAHalf,
    /// 5 %: each end alone is a 95 % bound.
    Five,
}

impl Tail {
    /// The part left out, 0..1.
    #[must_use]
    pub fn part(self) -> f64 {
        match self {
            Self::TwoAndAHalf => 0.025,
            Self::Five => 0.05,
        }
    }

    /// Φ⁻¹(1 − part).
    #[must_use]
    pub fn z(self) -> f64 {
        match self {
            Self::TwoAndAHalf => Z_975,
            Self::Five => Z_95,
        }
    }
}

/// Φ⁻¹(0.95).
const Z_95: f64 = 1.644_853_626_951_472_7;

/// The largest k ≥ 1 with P(W ≤ k − 1) ≤ the tail; `None` where 2^−n is more.
#[must_use]
pub fn rank_at(n: usize, tail: Tail) -> Option<usize> {
    if i32::try_from(n).is_ok_and(|n| 0.5f64.powi(n) > tail.part()) {
        return None;
    }
    if n > EXACT_MAX {
        return Some(normal_rank(n, tail));
    }
    let counts = subset_counts(n);
    let all: f64 = counts.iter().sum();
    let mut below = 0.0;
    let mut rank = 0;
    for count in &counts {
        below += count;
        if below / all > tail.part() {
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
fn normal_rank(n: usize, tail: Tail) -> usize {
    let n = n as f64;
    let mean = n * (n + 1.0) / 4.0;
    let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
    (mean - tail.z() * deviation).floor().max(1.0) as usize
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
        // One-sided 5 %: n = 5: 0, 8: 5, 12: 17, 30: 151.
        for (n, critical) in [(5, 0), (8, 5), (12, 17), (30, 151)] {
            assert_eq!(rank_at(n, Tail::Five), Some(critical + 1), "n {n}");
        }
        assert_eq!(rank_at(4, Tail::Five), None);
    }

    #[test]
    fn the_approximation_meets_the_exact_distribution_at_the_border() {
        let exact = interval_rank(EXACT_MAX).unwrap();
        assert!(
            exact.abs_diff(normal_rank(EXACT_MAX, Tail::TwoAndAHalf)) <= 2,
            "{exact} {}",
            normal_rank(EXACT_MAX, Tail::TwoAndAHalf)
        );
    }
}
