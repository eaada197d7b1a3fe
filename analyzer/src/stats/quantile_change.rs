//! Change of a quantile between two arms, with distribution-free ends of each arm.
//!
//! `Δ = Q_B(p) − Q_A(p)`, type 7. Each arm's quantile has one-sided bounds that are
//! order statistics: x_(l) with the largest l for which P(Bin(n, p) < l) ≤ α, and
//! x_(u) with the smallest u for which P(Bin(n, p) ≥ u) ≤ α. The bounds of the
//! difference recover the variance from them (MOVER; Zou and Donner 2008):
//! `L = Δ − √((Q_B − l_B)² + (u_A − Q_A)²)`, `U = Δ + √((u_B − Q_B)² + (Q_A − l_A)²)`.
//! Assumes runs of an arm alike and arms not negatively correlated; a positive
//! correlation within pairs, which pairing brings about, only widens. An upper
//! bound of P95 needs 59 runs at 5 % and 72 at 2.5 %: with fewer there is none.

use statrs::distribution::{Binomial, DiscreteCDF};

use super::Undefined;
use super::paired::Estimate;
use super::signed_rank::Tail;

/// No search for a sufficient n goes beyond this: P99.9 needs 3,688.
const N_SEARCH_MAX: usize = 100_000;

/// Which order statistics bound a quantile of samples of one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Places {
    n: usize,
    p: f64,
    two_sided: Option<(usize, usize)>,
    one_sided: Option<(usize, usize)>,
}

impl Places {
    /// The places for the `p`-quantile, 0 < p < 1, of `n` values.
    #[must_use]
    pub fn new(n: usize, p: f64) -> Self {
        Self {
            n,
            p,
            two_sided: places(n, p, Tail::TwoAndAHalf),
            one_sided: places(n, p, Tail::Five),
        }
    }
}

/// Fewest values with which both bounds of the `p`-quantile exist.
#[must_use]
pub fn needs(p: f64, tail: Tail) -> usize {
    let missed = |n: usize| i32::try_from(n).map_or(0.0, |n| p.max(1.0 - p).powi(n));
    (1..N_SEARCH_MAX)
        .find(|n| missed(*n) <= tail.part())
        .unwrap_or(N_SEARCH_MAX)
}

/// The change of the quantile from `control` to `candidate`, each of as many
/// values as `places` is for, in any order; values may be +∞.
///
/// # Errors
/// [`Undefined`] for no values, other numbers of them, or a quantile that is +∞.
pub fn quantile_change(
    control: &[f64],
    candidate: &[f64],
    places: Places,
) -> Result<Estimate, Undefined> {
    let n = control.len().min(candidate.len());
    if n == 0 || control.len() != places.n || candidate.len() != places.n {
        let needs = places.n.max(1);
        return Err(Undefined::TooFew { n, needs });
    }
    let sorted = |values: &[f64]| {
        let mut values = values.to_vec();
        values.sort_unstable_by(f64::total_cmp);
        values
    };
    let (a, b) = (sorted(control), sorted(candidate));
    let (q_a, q_b) = (type_7(&a, places.p), type_7(&b, places.p));
    if !q_a.is_finite() || !q_b.is_finite() {
        return Err(Undefined::NotFinite);
    }
    let ends = |at: Option<(usize, usize)>| {
        let (low, high) = at?;
        let root = |x: f64, y: f64| x.hypot(y);
        let lower = q_b - q_a - root(q_b - b[low], a[high] - q_a);
        let upper = q_b - q_a + root(b[high] - q_b, q_a - a[low]);
        Some((lower, upper))
    };
    Ok(Estimate {
        value: q_b - q_a,
        two_sided: ends(places.two_sided),
        one_sided: ends(places.one_sided),
    })
}

/// Type 7 quantile of sorted, non-empty values, the last of which may be +∞.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "p is in 0..=1, so the index is below n"
)]
pub fn type_7(sorted: &[f64], p: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let h = last as f64 * p.clamp(0.0, 1.0);
    let low = (h.floor() as usize).min(last);
    let weight = h - h.floor();
    let Some(from) = sorted.get(low) else {
        return f64::INFINITY;
    };
    // Nothing is interpolated from one infinity to another.
    if weight == 0.0 || from.is_infinite() {
        return *from;
    }
    let to = sorted.get(low + 1).unwrap_or(from);
    from + weight * (to - from)
}

/// Indices from 0.
fn places(n: usize, p: f64, tail: Tail) -> Option<(usize, usize)> {
    if n < needs(p, tail) {
        return None;
    }
    let binomial = Binomial::new(p, n as u64).ok()?;
    let below = |l: usize| binomial.cdf((l - 1) as u64);
    // P(B < l) grows with l and P(B >= u) falls with u.
    let low = (1..=n).take_while(|l| below(*l) <= tail.part()).last()?;
    let high = (1..=n).find(|u| binomial.sf((u - 1) as u64) <= tail.part())?;
    Some((low - 1, high - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_has_a_bound_from_the_published_size_on() {
        assert_eq!(needs(0.95, Tail::Five), 59);
        assert_eq!(needs(0.95, Tail::TwoAndAHalf), 72);
        assert_eq!(needs(0.5, Tail::TwoAndAHalf), 6);
        assert_eq!(Places::new(58, 0.95).one_sided, None);
        assert_eq!(Places::new(60, 0.95).one_sided.map(|at| at.1), Some(59));
    }

    #[test]
    fn medians_of_six_by_hand() {
        // Bounds are the extremes: l = 0, u = 5; medians 3.5 and 13.5.
        let control = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let candidate = control.map(|value| value + 10.0);
        let found = quantile_change(&control, &candidate, Places::new(6, 0.5)).unwrap();
        let half = 2.5f64.hypot(2.5);
        assert!((found.value - 10.0).abs() < 1e-12);
        let (low, high) = found.two_sided.unwrap();
        assert!((low - (10.0 - half)).abs() < 1e-12 && (high - (10.0 + half)).abs() < 1e-12);
    }

    #[test]
    fn a_quantile_that_reaches_failed_runs_is_no_number() {
        let control = [1.0, 2.0, 3.0];
        let failed = [1.0, f64::INFINITY, f64::INFINITY];
        let places = Places::new(3, 0.5);
        assert_eq!(
            quantile_change(&control, &failed, places),
            Err(Undefined::NotFinite)
        );
        assert!((type_7(&[1.0, 2.0, f64::INFINITY], 0.5) - 2.0).abs() < 1e-12);
    }
}
