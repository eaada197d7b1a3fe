//! Distribution-free interval for a quantile, from two order statistics.
//!
//! `[x_(l), x_(u)]` covers the p-quantile with probability
//! `Σ_{k=l}^{u−1} C(n,k) p^k (1−p)^(n−k)`. l is the largest index with
//! P(B < l) ≤ α/2 and u the smallest with P(B ≥ u) ≤ α/2, B ~ Binomial(n, p).
//! Where one side has no such index, the extreme order statistic stands there
//! and what is left of α goes to the other side; where even that exceeds α
//! there is no interval, and the answer is how many values would give one.
//! Source: David and Nagaraja, *Order Statistics*, section 7.1. Assumes
//! independent values of one continuous distribution; ties only widen it.

use statrs::distribution::{Binomial, DiscreteCDF};

/// 1 − α of every interval in a report.
pub const CONFIDENCE: f64 = 0.95;
/// No search goes beyond this n: P99.9 needs 2,995.
const N_SEARCH_MAX: usize = 100_000;

/// An interval, or what it would take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderInterval {
    /// Indices of the two order statistics, from 1, `low <= high`.
    Between {
        /// Lower index.
        low: usize,
        /// Upper index.
        high: usize,
    },
    /// The sample is too small.
    NeedsN(usize),
}

/// The interval of the `p`-quantile of `n` values, 0 < p < 1.
#[must_use]
pub fn order_interval(n: usize, p: f64) -> OrderInterval {
    let alpha = 1.0 - CONFIDENCE;
    if n == 0 || miss_at_extremes(n, p) > alpha {
        let needed = (1..N_SEARCH_MAX).find(|n| miss_at_extremes(*n, p) <= alpha);
        return OrderInterval::NeedsN(needed.unwrap_or(N_SEARCH_MAX));
    }
    // P(B < l) at l = 1 and P(B >= u) at u = n: what the extremes themselves miss.
    let below = exponent(1.0 - p, n);
    let above = exponent(p, n);
    let half = alpha / 2.0;
    let low_budget = if above > half { alpha - above } else { half };
    let high_budget = if below > half { alpha - below } else { half };
    let Ok(binomial) = Binomial::new(p, n as u64) else {
        return OrderInterval::Between { low: 1, high: n };
    };
    // P(B < l) = P(B <= l - 1) grows with l, P(B >= u) = 1 - P(B <= u - 1) falls with u.
    let low = largest(n, |l| binomial.cdf(l as u64 - 1) <= low_budget);
    let high = n + 1
        - largest(n, |distance| {
            binomial.sf((n - distance) as u64) <= high_budget
        });
    OrderInterval::Between {
        low,
        high: high.max(low),
    }
}

/// Probability that the p-quantile lies outside of `[x_(1), x_(n)]`.
fn miss_at_extremes(n: usize, p: f64) -> f64 {
    exponent(p, n) + exponent(1.0 - p, n)
}

fn exponent(base: f64, n: usize) -> f64 {
    i32::try_from(n).map_or(0.0, |n| base.powi(n))
}

/// The largest index in 1..=n for which `holds`, which is true up to some index
/// and false from there on; 1 when it holds for none.
fn largest(n: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut good, mut bad) = (1, n + 1);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if holds(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    good
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(n: usize, p: f64, low: usize, high: usize) {
        assert_eq!(
            order_interval(n, p),
            OrderInterval::Between { low, high },
            "n {n} p {p}"
        );
    }

    #[test]
    fn medians_have_the_published_indices() {
        // Tables of the sign test: n = 30 covers 95.7 %, n = 60 covers 97.3 %.
        check(30, 0.5, 10, 21);
        check(60, 0.5, 22, 39);
        check(12, 0.5, 3, 10);
        check(6, 0.5, 1, 6);
    }

    #[test]
    fn a_small_sample_says_how_many_values_it_needs() {
        // 1 - p^n - (1-p)^n >= 0.95 first at n = 6, 29, 59, 299.
        assert_eq!(order_interval(5, 0.5), OrderInterval::NeedsN(6));
        assert_eq!(order_interval(0, 0.9), OrderInterval::NeedsN(29));
        assert_eq!(order_interval(58, 0.95), OrderInterval::NeedsN(59));
        assert_eq!(order_interval(30, 0.99), OrderInterval::NeedsN(299));
        check(59, 0.95, 50, 59);
    }
}
