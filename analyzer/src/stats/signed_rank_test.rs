//! Wilcoxon's signed-rank test of paired differences against zero, two-sided.
//!
//! |d| are ranked with mid-ranks, zeros among them (Pratt 1959) and then left
//! out; W⁺ is the sum of the ranks of positive differences. Up to
//! [`EXACT_MAX`] differences the distribution is
//! counted over all signs of these very ranks, so ties are exact; above, it is
//! normal with mean Σr/2 and variance Σr²/4. p = 2 · min(P(W ≤ w), P(W ≥ w), ½).
//! Assumes differences symmetric about their centre. No difference, or none that
//! is not zero: p = 1.

use statrs::distribution::{ContinuousCDF, Normal};

/// Most differences for which all signs are counted; the normal approximation is
/// within 0.001 of the exact p-value there.
pub const EXACT_MAX: usize = 50;

/// Two-sided p-value of no shift; differences may be +∞.
#[must_use]
pub fn p_value(differences: &[f64]) -> f64 {
    let ranks = doubled_ranks(differences);
    let total: usize = ranks.iter().map(|(rank, _)| rank).sum();
    let positive: usize = ranks
        .iter()
        .filter(|(_, plus)| *plus)
        .map(|one| one.0)
        .sum();
    if total == 0 {
        return 1.0;
    }
    // The distribution is symmetric, so the smaller side decides.
    let smaller = positive.min(total - positive);
    let tail = if ranks.len() <= EXACT_MAX {
        exact(&ranks, smaller)
    } else {
        normal(&ranks, smaller)
    };
    (2.0 * tail).min(1.0)
}

/// Twice the mid-rank of each difference that is not zero, and whether it is positive.
#[expect(clippy::float_cmp, reason = "a tie is exact equality")]
fn doubled_ranks(differences: &[f64]) -> Vec<(usize, bool)> {
    let mut sorted = differences.to_vec();
    sorted.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let mut ranks = Vec::with_capacity(sorted.len());
    let mut from = 0;
    while let Some(first) = sorted.get(from) {
        let group = sorted[from..].iter();
        let same = group.take_while(|one| one.abs() == first.abs()).count();
        // Ranks from+1 ..= from+same; twice their mean.
        let rank = 2 * from + same + 1;
        let own = &sorted[from..from + same];
        ranks.extend(
            own.iter()
                .filter(|one| **one != 0.0)
                .map(|one| (rank, *one > 0.0)),
        );
        from += same;
    }
    ranks
}

/// P(W ≤ w) by counting subsets of the ranks.
fn exact(ranks: &[(usize, bool)], w: usize) -> f64 {
    let mut counts = vec![0.0; w + 1];
    counts[0] = 1.0;
    for (rank, _) in ranks {
        for sum in (*rank..=w).rev() {
            counts[sum] += counts[sum - rank];
        }
    }
    let all: f64 = counts.iter().sum();
    all / 2f64.powi(i32::try_from(ranks.len()).unwrap_or(i32::MAX))
}

fn normal(ranks: &[(usize, bool)], w: usize) -> f64 {
    let total: f64 = ranks.iter().map(|(rank, _)| *rank as f64).sum();
    let squares: f64 = ranks.iter().map(|(rank, _)| (*rank as f64).powi(2)).sum();
    let z = (w as f64 - total / 2.0) / (squares / 4.0).sqrt();
    Normal::standard().cdf(z)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(differences: &[f64], expected: f64) {
        let found = p_value(differences);
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    }

    #[test]
    fn small_samples_by_counting() {
        // All six positive: 2 / 2^6.
        check(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2.0 / 64.0);
        // W⁻ = 1: sums 0 and 1 of the ranks 1..6.
        check(&[-1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 4.0 / 64.0);
        // Ties: mid-ranks 1.5, 1.5, 3; W⁻ = 1.5: {}, {1.5}, {1.5} of 8.
        check(&[-1.0, 1.0, 2.0], 6.0 / 8.0);
    }

    #[test]
    fn zeros_take_ranks_and_say_nothing() {
        // Rank 1 is the zero's; 2 and 3 are both positive: 2 · 1/4.
        check(&[0.0, 2.0, 3.0], 0.5);
        check(&[0.0, 0.0], 1.0);
        check(&[], 1.0);
    }
}
