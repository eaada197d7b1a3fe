//! Hodges–Lehmann shift of paired differences, with a 95 % interval.
//!
//! For differences `d_1 … d_n` the estimate is the median of the n(n+1)/2 Walsh
//! averages `(d_i + d_j)/2`, i ≤ j; the interval runs from their k-th smallest to
//! their k-th largest, k from the signed-rank distribution. Source: Hodges and
//! Lehmann 1963; Hollander and Wolfe, sections 3.2 and 3.3. Assumes differences
//! symmetric about the shift. n = 0: undefined. n < 6: no interval.

use super::Undefined;
use super::signed_rank::interval_rank;

/// Most differences that are taken: their 12.5 million averages need 100 MB.
pub const PAIRS_MAX: usize = 5_000;

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
/// [`Undefined`] for no difference and for more than [`PAIRS_MAX`].
pub fn shift(differences: &[f64]) -> Result<Shift, Undefined> {
    let n = differences.len();
    if n == 0 {
        return Err(Undefined::TooFew { n, needs: 1 });
    }
    if n > PAIRS_MAX {
        return Err(Undefined::TooMany { n, most: PAIRS_MAX });
    }
    let mut averages = walsh_averages(differences);
    // Four of millions are wanted: selecting them is several times faster than
    // sorting all.
    let last = averages.len() - 1;
    let low = nth(&mut averages, last / 2);
    let high = nth(&mut averages, last.div_ceil(2));
    let interval = interval_rank(n).and_then(|k| {
        let (below, above) = (k.checked_sub(1)?, averages.len().checked_sub(k)?);
        let inside = below <= last && above <= last;
        inside.then(|| (nth(&mut averages, below), nth(&mut averages, above)))
    });
    Ok(Shift {
        estimate: f64::midpoint(low, high),
        interval,
    })
}

/// The value that would stand at `index` if all were sorted.
fn nth(values: &mut [f64], index: usize) -> f64 {
    *values.select_nth_unstable_by(index, f64::total_cmp).1
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

fn walsh_averages(differences: &[f64]) -> Vec<f64> {
    let mut averages = Vec::with_capacity(differences.len() * (differences.len() + 1) / 2);
    for (index, a) in differences.iter().enumerate() {
        averages.extend(differences[index..].iter().map(|b| f64::midpoint(*a, *b)));
    }
    averages
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
