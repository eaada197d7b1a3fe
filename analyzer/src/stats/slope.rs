//! Slope of a straight line through pairs (x, y), with its interval.
//!
//! `b = Σ(x−x̄)(y−ȳ) / Σ(x−x̄)²`, standard error
//! `√(Σ(y − ȳ − b(x−x̄))² / (n−2) / Σ(x−x̄)²)`, interval b ± t₀.₉₇₅(n−2) times that.
//! Source: ordinary least squares, as in any text; assumes independent errors of
//! one variance. n < 3, or x that does not vary: undefined. y may be constant:
//! the slope is 0.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::{Undefined, is_constant, mean};

/// Pairs without which the line leaves no error to judge it by.
const N_MIN: usize = 3;
/// Upper tail of a two-sided 95 % interval.
const UPPER: f64 = 0.975;

/// A slope with its 95 % interval, in units of y a unit of x.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slope {
    /// Estimate.
    pub slope: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The slope of y on x.
///
/// # Errors
/// [`Undefined`] for fewer than three pairs, or where x does not vary.
pub fn slope(pairs: &[(f64, f64)]) -> Result<Slope, Undefined> {
    let n = pairs.len();
    let (x, y): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let too_few = Undefined::TooFew { n, needs: N_MIN };
    let (Some(mean_x), Some(mean_y)) = (mean(&x), mean(&y)) else {
        return Err(too_few);
    };
    if n < N_MIN {
        return Err(too_few);
    }
    if is_constant(&x) {
        return Err(Undefined::NoVariance);
    }
    let centred = || pairs.iter().map(|(x, y)| (x - mean_x, y - mean_y));
    let xx: f64 = centred().map(|(x, _)| x * x).sum();
    let xy: f64 = centred().map(|(x, y)| x * y).sum();
    let slope = xy / xx;
    let rest: f64 = centred().map(|(x, y)| (y - slope * x).powi(2)).sum();
    let freedom = (n - 2) as f64;
    let t = StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |t| t.inverse_cdf(UPPER));
    let half = t * (rest / freedom / xx).sqrt();
    if !half.is_finite() {
        return Err(Undefined::NoVariance);
    }
    Ok(Slope {
        slope,
        low: slope - half,
        high: slope + half,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_least_squares() {
        // By hand: x̄ = 2.5, ȳ = 2.75, Sxx = 5, Sxy = 4.5, b = 0.9, residuals
        // −0.4, 0.7, −0.2, −0.1 → SSE 0.70, s² 0.35, se 0.26458, t(2) 4.30265.
        let found = slope(&[(1.0, 1.0), (2.0, 3.0), (3.0, 3.0), (4.0, 4.0)]).unwrap();
        assert!((found.slope - 0.9).abs() < 1e-12);
        assert!((found.high - 0.9 - 1.138_376).abs() < 1e-5, "{found:?}");
        assert!((0.9 - found.low - 1.138_376).abs() < 1e-5);
    }

    #[test]
    fn what_does_not_vary_has_no_slope_or_none_at_all() {
        assert_eq!(
            slope(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]),
            Err(Undefined::NoVariance)
        );
        assert_eq!(
            slope(&[(1.0, 1.0), (2.0, 2.0)]),
            Err(Undefined::TooFew { n: 2, needs: 3 })
        );
        let flat = slope(&[(1.0, 2.0), (2.0, 2.0), (3.0, 2.0)]).unwrap();
        assert_eq!((flat.slope, flat.low, flat.high), (0.0, 0.0, 0.0));
    }
}
