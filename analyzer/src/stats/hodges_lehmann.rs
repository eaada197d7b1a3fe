//! Hodges–Lehmann shift of paired differences, with a 95 % interval.
//!
//! For differences `d_1 … d_n` the estimate is the median of the n(n+1)/2 Walsh
//! averages `(d_i + d_j)/2`, i ≤ j; the interval runs from their k-th smallest to
//! their k-th largest, k from the signed-rank distribution. Source: Hodges and
//! Lehmann 1963; Hollander and Wolfe, sections 3.2 and 3.3. Assumes differences
//! symmetric about the shift. n = 0: undefined. n < 6: no interval.

use super::Undefined;
use super::signed_rank::interval_rank;

/// A shift and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// The estimate.
    pub estimate: f64,
    /// Lower and upper end of the 95 % interval; `None` for fewer than six pairs.
    pub interval: Option<(f64, f64)>,
}

/// The shift of `differences`, candidate minus control.
///
/// # Errors
/// [`Undefined`] for no difference.
pub fn shift(differences: &[f64]) -> Result<Shift, Undefined> {
    let n = differences.len();
    if n == 0 {
        return Err(Undefined::TooFew { n, needs: 1 });
    }
    let mut sorted = differences.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let last = n * (n + 1) / 2 - 1;
    let (low, high) = (
        average(&sorted, last / 2),
        average(&sorted, last.div_ceil(2)),
    );
    let interval = interval_rank(n).and_then(|k| {
        let (below, above) = (k.checked_sub(1)?, (last + 1).checked_sub(k)?);
        let inside = below <= last && above <= last;
        inside.then(|| (average(&sorted, below), average(&sorted, above)))
    });
    Ok(Shift {
        estimate: f64::midpoint(low, high),
        interval,
    })
}

/// The Walsh average of finite, sorted differences that would stand at `index`
/// if all n(n+1)/2 of them were sorted.
///
/// They are never made: how many are not above a value is counted in one walk
/// along the differences, because an average grows with both of its parts, and
/// the value is found by halving the range of floats, at most 64 times.
pub(super) fn average(sorted: &[f64], index: usize) -> f64 {
    let (mut low, mut high) = match sorted {
        [] => return f64::NAN,
        [first, .., last] => (rank_of(*first), rank_of(*last)),
        [only] => return *only,
    };
    while low < high {
        let middle = low + (high - low) / 2;
        if count_up_to(sorted, value_of(middle)) > index {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    // What is not above zero is not above minus zero, which comes before it.
    value_of(low) + 0.0
}

/// How many Walsh averages are at most `bound`.
fn count_up_to(sorted: &[f64], bound: f64) -> usize {
    // Of the pairs (i, j), i ≤ j: as i grows, the last j that fits falls.
    let mut end = sorted.len();
    let mut count = 0;
    for (i, a) in sorted.iter().enumerate() {
        while end > i && f64::midpoint(*a, sorted[end - 1]) > bound {
            end -= 1;
        }
        if end <= i {
            break;
        }
        count += end - i;
    }
    count
}

/// The place of a finite float among all floats in their order.
fn rank_of(value: f64) -> u64 {
    // Minus zero is zero, which has one place.
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 0 {
        bits | 1 << 63
    } else {
        !bits
    }
}

/// The float at a place.
fn value_of(rank: u64) -> f64 {
    f64::from_bits(if rank >> 63 == 1 {
        rank & !(1 << 63)
    } else {
        !rank
    })
}

/// The ratio of paired positive values, candidate over control: the shift of
/// their logarithms, exponentiated.
///
/// # Errors
/// As [`shift`]; pairs with a value that is not positive must be left out before.
pub fn ratio(pairs: &[(f64, f64)]) -> Result<Shift, Undefined> {
    let logs: Vec<f64> = pairs
        .iter()
        .map(|(control, candidate)| candidate.ln() - control.ln())
        .collect();
    let found = shift(&logs)?;
    let interval = found.interval.map(|(low, high)| (low.exp(), high.exp()));
    Ok(Shift {
        estimate: found.estimate.exp(),
        interval,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_differences_by_hand() {
        // Walsh averages of 1, 2, 6: 1, 1.5, 2, 3.5, 4, 6; median 2.75.
        assert_eq!(
            shift(&[1.0, 2.0, 6.0]),
            Ok(Shift {
                estimate: 2.75,
                interval: None
            })
        );
        assert_eq!(
            shift(&[4.0]),
            Ok(Shift {
                estimate: 4.0,
                interval: None
            })
        );
        assert_eq!(shift(&[]), Err(Undefined::TooFew { n: 0, needs: 1 }));
    }

    #[test]
    fn selecting_agrees_with_sorting_all_averages() {
        // A linear congruential generator; coarse values make ties.
        let mut state = 1u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            f64::from(u32::try_from(state >> 40).unwrap() % 400) / 8.0 - 25.0
        };
        for n in [1, 2, 3, 7, 30, 61] {
            let differences: Vec<f64> = (0..n).map(|_| next()).collect();
            let mut all = Vec::new();
            for (index, a) in differences.iter().enumerate() {
                all.extend(differences[index..].iter().map(|b| f64::midpoint(*a, *b)));
            }
            all.sort_by(f64::total_cmp);
            let mut sorted = differences.clone();
            sorted.sort_by(f64::total_cmp);
            for (index, expected) in all.iter().enumerate() {
                assert!(
                    average(&sorted, index).total_cmp(expected).is_eq(),
                    "n {n}, index {index}"
                );
            }
        }
    }

    #[test]
    fn a_hundred_thousand_differences_have_a_shift() {
        let differences: Vec<f64> = (0..100_001).map(f64::from).collect();
        let found = shift(&differences).unwrap();
        assert!((found.estimate - 50_000.0).abs() < 1e-9);
    }

    #[test]
    fn six_differences_span_all_their_averages() {
        let found = shift(&[3.0, -1.0, 4.0, 1.0, -5.0, 9.0]).unwrap();
        assert_eq!(found.interval, Some((-5.0, 9.0)));
    }

    #[test]
    fn a_constant_ratio_is_found_exactly_and_mirrors() {
        let pairs: Vec<_> = (1..=8)
            .map(|value| (f64::from(value), 2.0 * f64::from(value)))
            .collect();
        let found = ratio(&pairs).unwrap();
        assert!((found.estimate - 2.0).abs() < 1e-12);
        let mirrored: Vec<_> = pairs.iter().map(|(a, b)| (*b, *a)).collect();
        assert!((ratio(&mirrored).unwrap().estimate - 0.5).abs() < 1e-12);
    }
}
