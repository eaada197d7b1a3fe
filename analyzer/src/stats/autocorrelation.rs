//! Lag-1 autocorrelation of residuals: whether one pair says something about the next.
//!
//! `r = Σ e_i e_{i+1} / Σ e_i²` of centred e; without autocorrelation r is about
//! normal with mean −1/n and variance 1/n (Box, Jenkins and Reinsel, section 2.1).
//! The p-value is one-sided, against positive autocorrelation: only that makes
//! intervals too short. n < 6 or no variance: undefined.

use statrs::distribution::{ContinuousCDF, Normal};

use super::{Undefined, is_constant, mean};

/// Fewest residuals for which the approximation means anything.
const N_MIN: usize = 6;

/// Lag-1 autocorrelation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Autocorrelation {
    /// r, −1..=1.
    pub r: f64,
    /// One-sided p-value of none, against a positive one.
    pub p: f64,
}

/// The autocorrelation of values in the order of time.
///
/// # Errors
/// [`Undefined`] for fewer than six values and for values without variance.
pub fn autocorrelation(values: &[f64]) -> Result<Autocorrelation, Undefined> {
    let n = values.len();
    if n < N_MIN {
        return Err(Undefined::TooFew { n, needs: N_MIN });
    }
    if is_constant(values) {
        return Err(Undefined::NoVariance);
    }
    let centre = mean(values).unwrap_or_default();
    let squares: f64 = values.iter().map(|one| (one - centre).powi(2)).sum();
    let products: f64 = values
        .windows(2)
        .map(|two| (two[0] - centre) * (two[1] - centre))
        .sum();
    if squares <= 0.0 {
        return Err(Undefined::NoVariance);
    }
    let r = products / squares;
    let n = n as f64;
    let z = (r + 1.0 / n) * n.sqrt();
    Ok(Autocorrelation {
        r,
        p: Normal::standard().sf(z),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternation_is_negative_and_a_trend_positive() {
        // Σ e_i e_{i+1} = −5, Σ e² = 6.
        let found = autocorrelation(&[1.0, -1.0, 1.0, -1.0, 1.0, -1.0]).unwrap();
        assert!((found.r + 5.0 / 6.0).abs() < 1e-12 && found.p > 0.9);
        let trend: Vec<f64> = (0..30).map(f64::from).collect();
        assert!(autocorrelation(&trend).unwrap().p < 1e-4);
    }

    #[test]
    fn few_or_equal_values_have_none() {
        assert_eq!(
            autocorrelation(&[1.0; 5]),
            Err(Undefined::TooFew { n: 5, needs: 6 })
        );
        assert_eq!(autocorrelation(&[1.0; 9]), Err(Undefined::NoVariance));
    }
}
