//! Quantile-window attribution: what runs near a quantile are made of.
//!
//! `a_j(q)` = mean of `s_j` over the runs whose totals are nearest in rank to q,
//! so `Σ_j a_j(q)` is the mean total of the same runs: parts that sum, which
//! quantiles of parts do not. The P50 window holds a fifth of the runs, centred
//! on the median; the P95 window the upper tenth, whose middle is P95.
//! Source: Euler contributions to a quantile, estimated by nearest order
//! statistics. n = 0: no window. Runs with equal totals are taken in run order.

/// Part of the runs in the P50 window.
const P50_WINDOW: f64 = 0.2;
/// Part of the runs in the P95 window: 0.90 to 1.00 is centred on 0.95.
const P95_WINDOW: f64 = 0.1;

/// Indices of runs near two quantiles of the total.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Windows {
    /// Runs around the median.
    pub p50: Vec<usize>,
    /// The slowest runs.
    pub p95: Vec<usize>,
}

/// Chooses the runs of both windows by their totals.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive part of n"
)]
pub fn windows(totals: &[f64]) -> Windows {
    let n = totals.len();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| totals[*a].total_cmp(&totals[*b]));
    let mut middle = ((n as f64 * P50_WINDOW).round() as usize).clamp(1, n.max(1));
    // Only a width of the same parity as n is centred on the median.
    if middle % 2 != n % 2 {
        middle += 1;
    }
    let middle = middle.min(n);
    let top = ((n as f64 * P95_WINDOW).ceil() as usize).min(n);
    let from = (n - middle) / 2;
    Windows {
        p50: order[from..from + middle].to_vec(),
        p95: order[n - top..].to_vec(),
    }
}

/// Mean of `part` over the runs of a window; `None` for an empty one.
#[must_use]
pub fn attribution(part: &[f64], window: &[usize]) -> Option<f64> {
    let values: Vec<f64> = window
        .iter()
        .filter_map(|index| part.get(*index).copied())
        .collect();
    super::mean(&values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_centred_on_their_quantile() {
        let twelve: Vec<f64> = (0..12).map(f64::from).collect();
        assert_eq!(
            windows(&twelve),
            Windows {
                p50: vec![5, 6],
                p95: vec![10, 11]
            }
        );
        let eleven: Vec<f64> = (0..11).rev().map(f64::from).collect();
        assert_eq!(
            windows(&eleven),
            Windows {
                p50: vec![6, 5, 4],
                p95: vec![1, 0]
            }
        );
        assert_eq!(
            windows(&[3.0]),
            Windows {
                p50: vec![0],
                p95: vec![0]
            }
        );
        assert_eq!(windows(&[]), Windows::default());
    }

    #[test]
    fn parts_sum_to_the_mean_total_of_the_window() {
        let (a, b) = ([1.0, 9.0, 2.0, 4.0], [5.0, 1.0, 8.0, 4.0]);
        let totals: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
        let window = windows(&totals).p50;
        let sum = attribution(&a, &window).unwrap() + attribution(&b, &window).unwrap();
        let total = attribution(&totals, &window).unwrap();
        assert!((sum - total).abs() < 1e-12);
        assert_eq!(attribution(&a, &[]), None);
    }
}
