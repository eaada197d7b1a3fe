//! Null distribution of Wilcoxon's signed-rank statistic W: the sum of the
//! ranks 1..n that carry a plus, each with probability ½.
//!
//! Counted rank by rank (dynamic programming) up to [`EXACT_MAX`]; above by
//! Cornish and Fisher's expansion to the fourth cumulant, with a correction for
//! continuity. Source: Hollander and Wolfe, *Nonparametric Statistical Methods*,
//! section 3.1; Fellingham and Stoker 1964 for the expansion. Golden ranks:
//! `tests/goldens/signed_rank.py`, in whole numbers.

use super::correlation::Z_975;

/// Largest n for which the distribution is counted. The work grows with the cube
/// of n: for 200 it is two million additions for each comparison. The expansion
/// gives the exact rank for every n from 65 to 130 and for those tried up to 400.
pub const EXACT_MAX: usize = 200;
/// Smallest n for which a two-sided 95 % interval exists: 2 · 2^−n ≤ 0.05.
pub const INTERVAL_MIN: usize = 6;
/// Probability that W may have below the interval.
const TAIL: f64 = 0.025;

/// The number k ≥ 1 such that the k-th smallest and k-th largest Walsh averages
/// bound a two-sided 95 % interval; `None` below [`INTERVAL_MIN`].
///
/// k is the largest with P(W ≤ k − 1) ≤ 0.025: exactly so up to [`EXACT_MAX`].
#[must_use]
pub fn interval_rank(n: usize) -> Option<usize> {
    match n {
        0..INTERVAL_MIN => None,
        INTERVAL_MIN..=EXACT_MAX => Some(counted_rank(n)),
        _ => Some(expanded_rank(n)),
    }
}

fn counted_rank(n: usize) -> usize {
    let mut below = 0.0;
    let probabilities = lower_half(n);
    let inside = probabilities.iter().take_while(|probability| {
        below += **probability;
        below <= TAIL
    });
    inside.count().max(1)
}

/// P(W = w) for every w up to the mean; W is symmetric about it.
///
/// Every term is positive, so that no step loses more than a rounding: after 200
/// ranks the relative error is below 10⁻¹³.
fn lower_half(n: usize) -> Vec<f64> {
    let most = n * (n + 1) / 4;
    let mut probabilities = vec![0.0; most + 1];
    probabilities[0] = 1.0;
    for rank in 1..=n {
        for sum in (0..=most).rev() {
            let with = sum
                .checked_sub(rank)
                .map_or(0.0, |rest| probabilities[rest]);
            probabilities[sum] = f64::midpoint(probabilities[sum], with);
        }
    }
    probabilities
}

/// The rank by expansion. With μ = n(n+1)/4, σ² = n(n+1)(2n+1)/24 and the excess
/// γ = −Σ r⁴ / 8σ⁴, the quantile of W is μ + wσ with w = z + γ(z³ − 3z)/24; W is
/// whole, so that half a step is added.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive from n = 6 on, and clamped to 1 below"
)]
fn expanded_rank(n: usize) -> usize {
    let n = n as f64;
    let mean = n * (n + 1.0) / 4.0;
    let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0;
    let fourth_powers = n * (n + 1.0) * (2.0 * n + 1.0) * (3.0 * n * n + 3.0 * n - 1.0) / 30.0;
    let excess = -fourth_powers / (8.0 * variance * variance);
    let normal = -Z_975;
    let expanded = normal + excess * (normal.powi(3) - 3.0 * normal) / 24.0;
    (mean + expanded * variance.sqrt() + 0.5).floor().max(1.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// n and k, counted in whole numbers by `tests/goldens/signed_rank.py`.
    fn goldens() -> Vec<(usize, usize)> {
        serde_json::from_str(include_str!("../../tests/goldens/signed_rank.json")).unwrap()
    }

    #[test]
    fn small_distributions_are_counted() {
        // Of the 8 subsets of {1, 2, 3}: sums 0, 1, 2 once and 3 twice.
        assert_eq!(lower_half(3), [0.125, 0.125, 0.125, 0.25]);
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
    fn interval_ranks_are_exact() {
        for (n, expected) in goldens() {
            assert_eq!(interval_rank(n), Some(expected), "n {n}");
        }
    }

    #[test]
    fn the_expansion_meets_the_counted_distribution() {
        for (n, expected) in goldens().into_iter().filter(|(n, _)| *n > 64) {
            assert_eq!(expanded_rank(n), expected, "n {n}");
        }
    }
}
