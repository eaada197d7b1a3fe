//! Pearson and Spearman correlation, and the slope of y on x.
//!
//! r = Σ(x−x̄)(y−ȳ) / √(Σ(x−x̄)² Σ(y−ȳ)²); interval tanh(atanh r ± z/√(n−3))
//! (Fisher 1921, assumes roughly bivariate normal, n ≥ 4); Spearman's ρ is
//! Pearson's r of the mid-ranks, which is right with ties where the Σd²
//! shortcut is not; slope = Σ(x−x̄)(y−ȳ) / Σ(x−x̄)², units of y a unit of x.
//! n < 3 or no variance in x or y, decided on exact equality: undefined.

use super::{Undefined, is_constant, mean};

/// z for a two-sided 95 % interval, Φ⁻¹(0.975).
pub const Z_975: f64 = 1.959_963_984_540_054;
/// With two points every correlation is ±1.
const N_MIN: usize = 3;

/// Correlation of two samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correlation {
    /// Pearson's r, −1..=1.
    pub pearson: f64,
    /// 95 % interval of r; `None` for n = 3.
    pub pearson_ci: Option<(f64, f64)>,
    /// Spearman's ρ, −1..=1.
    pub spearman: f64,
    /// Slope of y on x.
    pub slope: f64,
}

/// Correlates pairs (x, y).
///
/// # Errors
/// [`Undefined`] for fewer than three pairs and for a sample without variance.
pub fn correlate(pairs: &[(f64, f64)]) -> Result<Correlation, Undefined> {
    let n = pairs.len();
    if n < N_MIN {
        return Err(Undefined::TooFew { n, needs: N_MIN });
    }
    let (x, y): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
    let (pearson, slope) = pearson(&x, &y).ok_or(Undefined::NoVariance)?;
    let (spearman, _) =
        self::pearson(&mid_ranks(&x), &mid_ranks(&y)).ok_or(Undefined::NoVariance)?;
    Ok(Correlation {
        pearson,
        pearson_ci: fisher(pearson, n),
        spearman,
        slope,
    })
}

fn pearson(x: &[f64], y: &[f64]) -> Option<(f64, f64)> {
    if is_constant(x) || is_constant(y) {
        return None;
    }
    let (mean_x, mean_y) = (mean(x)?, mean(y)?);
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for (x, y) in x.iter().zip(y) {
        let (dx, dy) = (x - mean_x, y - mean_y);
        xx += dx * dx;
        xy += dx * dy;
        yy += dy * dy;
    }
    let scale = (xx * yy).sqrt();
    (scale > 0.0).then(|| ((xy / scale).clamp(-1.0, 1.0), xy / xx))
}

fn fisher(r: f64, n: usize) -> Option<(f64, f64)> {
    let freedom = n.checked_sub(3).filter(|freedom| *freedom > 0)?;
    if r.abs() >= 1.0 {
        return Some((r, r));
    }
    let (z, half) = (r.atanh(), Z_975 / (freedom as f64).sqrt());
    Some(((z - half).tanh(), (z + half).tanh()))
}

/// Ranks from 1; equal values share the mean of their ranks.
#[expect(clippy::float_cmp, reason = "a tie is exact equality")]
fn mid_ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut from = 0;
    while from < order.len() {
        let same = order[from..]
            .iter()
            .take_while(|index| values[**index] == values[order[from]])
            .count();
        // Ranks from+1 ..= from+same, their mean:
        let rank = f64::midpoint(from as f64 + 1.0, (from + same) as f64);
        for index in &order[from..from + same] {
            ranks[*index] = rank;
        }
        from += same;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mid_ranks_share_ties() {
        assert_eq!(mid_ranks(&[10.0, 30.0, 20.0, 20.0]), [1.0, 4.0, 2.5, 2.5]);
        assert_eq!(mid_ranks(&[7.0, 7.0, 7.0]), [2.0, 2.0, 2.0]);
    }

    #[test]
    fn constants_and_tiny_samples_are_undefined() {
        assert_eq!(
            correlate(&[(1.0, 1.0), (2.0, 2.0)]),
            Err(Undefined::TooFew { n: 2, needs: 3 })
        );
        assert_eq!(
            correlate(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]),
            Err(Undefined::NoVariance)
        );
        assert_eq!(
            correlate(&[(1.0, 0.1), (2.0, 0.1), (4.0, 0.1)]),
            Err(Undefined::NoVariance)
        );
    }

    #[test]
    fn a_line_has_its_slope_and_correlation_one() {
        let found = correlate(&[(1.0, 5.0), (2.0, 3.0), (3.0, 1.0), (4.0, -1.0)]).unwrap();
        assert_eq!(
            found,
            Correlation {
                pearson: -1.0,
                pearson_ci: Some((-1.0, -1.0)),
                spearman: -1.0,
                slope: -2.0
            }
        );
    }

    #[test]
    fn the_interval_is_fishers() {
        // r = 0.916, n = 30: [0.829, 0.960].
        let (low, high) = fisher(0.916, 30).unwrap();
        assert!(
            (low - 0.829).abs() < 5e-4 && (high - 0.960).abs() < 5e-4,
            "{low} {high}"
        );
        assert_eq!(fisher(0.5, 3), None);
    }
}
