//! Hodges–Lehmann shift of paired differences at the two levels that verdicts use.
//!
//! Definition, source and assumption are those of
//! [`hodges_lehmann`](super::hodges_lehmann): the ends are the k-th smallest and
//! k-th largest Walsh average, exact for n ≤ 200. A difference may be +∞, a
//! candidate run that failed: it stands above every other, and an end that it
//! reaches is infinite too. The ranks depend on n alone and are computed once for
//! many samples of one size. n = 0: undefined; n < 6 and n < 5: no interval.

use super::Undefined;
use super::hodges_lehmann::average;
use super::signed_rank::{Tail, rank_at};

/// Ranks of the ends for samples of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranks {
    n: usize,
    two_sided: Option<usize>,
    one_sided: Option<usize>,
}

impl Ranks {
    /// The ranks for `n` pairs.
    #[must_use]
    pub fn new(n: usize) -> Self {
        Self {
            n,
            two_sided: rank_at(n, Tail::TwoAndAHalf),
            one_sided: rank_at(n, Tail::Five),
        }
    }
}

/// A figure with its intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// Ends of the two-sided 95 % interval.
    pub two_sided: Option<(f64, f64)>,
    /// Lower and upper bound, each one-sided 95 %: together a 90 % interval.
    pub one_sided: Option<(f64, f64)>,
}

/// The shift of `differences`, of which there must be as many as `ranks` are for.
///
/// # Errors
/// [`Undefined`] for no difference, or for another number of them.
pub fn paired_shift(differences: &[f64], ranks: Ranks) -> Result<Estimate, Undefined> {
    let n = differences.len();
    if n == 0 || n != ranks.n {
        let needs = ranks.n.max(1);
        return Err(Undefined::TooFew { n, needs });
    }
    let mut sorted = differences.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let last = n * (n + 1) / 2 - 1;
    let ends = |rank: Option<usize>| {
        let below = rank?.checked_sub(1)?;
        let above = last.checked_sub(below)?;
        Some((average(&sorted, below), average(&sorted, above)))
    };
    let middle = (
        average(&sorted, last / 2),
        average(&sorted, last.div_ceil(2)),
    );
    Ok(Estimate {
        value: f64::midpoint(middle.0, middle.1),
        two_sided: ends(ranks.two_sided),
        one_sided: ends(ranks.one_sided),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_pairs_by_hand() {
        // 2^-6 = 1.6 %: the extremes. One-sided, W ≤ 2 has 3/64 = 4.7 %: the third average.
        let found = paired_shift(&[1.0, 2.0, 3.0, 4.0, 5.0, 60.0], Ranks::new(6)).unwrap();
        assert_eq!(found.two_sided, Some((1.0, 60.0)));
        assert_eq!(found.one_sided, Some((2.0, 32.0)));
    }

    #[test]
    fn a_failed_candidate_stands_above_all_others() {
        let mut differences = vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
        differences.push(f64::INFINITY);
        let found = paired_shift(&differences, Ranks::new(7)).unwrap();
        let (low, high) = found.two_sided.unwrap();
        assert!(low.is_finite() && high.is_infinite() && found.value.is_finite());
    }

    #[test]
    fn few_pairs_have_a_figure_and_no_interval() {
        let found = paired_shift(&[3.0], Ranks::new(1)).unwrap();
        assert_eq!(found.value.to_bits(), 3f64.to_bits());
        assert_eq!((found.two_sided, found.one_sided), (None, None));
        assert!(paired_shift(&[], Ranks::new(0)).is_err());
    }
}
