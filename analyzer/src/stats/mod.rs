//! Statistics: one formula a file, with its definition, its source, its
//! degenerate cases and golden values made outside of this program
//! (`tests/goldens/make_stats.py`).
//!
//! Everything here is pure and takes plain numbers. What cannot be computed is
//! `None` or a reason, never NaN.

pub mod attribution;
pub mod autocorrelation;
pub mod correlation;
pub mod hodges_lehmann;
pub mod mover;
pub mod order_interval;
pub mod paired;
pub mod permutation;
pub mod power;
pub mod quantile;
pub mod quantile_change;
pub mod signed_rank;
pub mod signed_rank_test;
pub mod slope;
pub mod slot;
pub mod variance;
pub mod within;

/// Why a statistic is undefined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undefined {
    /// Fewer values than the formula needs.
    TooFew {
        /// How many there are.
        n: usize,
        /// How many it needs.
        needs: usize,
    },
    /// One of the two samples does not vary.
    NoVariance,
    /// It reaches runs that failed, which are more than anything measured.
    NotFinite,
}

impl std::fmt::Display for Undefined {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooFew { n, needs } => write!(f, "n = {n}, needs {needs}"),
            Self::NoVariance => f.write_str("zero variance"),
            Self::NotFinite => f.write_str("it reaches failed runs"),
        }
    }
}

/// Whether all values are the same, decided exactly: only then is a variance
/// zero, and a quotient by it undefined.
#[must_use]
#[expect(clippy::float_cmp, reason = "exact equality is the definition")]
pub fn is_constant(values: &[f64]) -> bool {
    values.windows(2).all(|pair| pair[0] == pair[1])
}

/// Arithmetic mean; `None` for no values.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
