//! Interval of a difference of two independent estimates from the interval of
//! each (MOVER, the method of variance estimates recovery).
//!
//! With estimates a and b and their intervals `l_a … u_a` and `l_b … u_b`, that of
//! b − a is `b − a − √((b − l_b)² + (u_a − a)²)` to
//! `b − a + √((u_b − b)² + (a − l_a)²)`.
//! Source: Zou and Donner, "Construction of confidence limits about effect
//! measures" (2008). Assumes that the two are independent; it keeps the
//! asymmetry of each. Degenerate: an interval of no width adds nothing.

/// An estimate with its interval, `low <= mid <= high`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Lower end.
    pub low: f64,
    /// The estimate.
    pub mid: f64,
    /// Upper end.
    pub high: f64,
}

/// The interval of `second − first`.
#[must_use]
pub fn of_difference(first: Estimate, second: Estimate) -> (f64, f64) {
    let middle = second.mid - first.mid;
    let below = (second.mid - second.low).hypot(first.high - first.mid);
    let above = (second.high - second.mid).hypot(first.mid - first.low);
    (middle - below, middle + above)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_add_as_squares_and_keep_their_sides() {
        let first = Estimate {
            low: 97.0,
            mid: 100.0,
            high: 104.0,
        };
        let second = Estimate {
            low: 87.0,
            mid: 90.0,
            high: 94.0,
        };
        // √(3² + 4²) below and √(4² + 3²) above.
        assert_eq!(of_difference(first, second), (-15.0, -5.0));
        let sharp = Estimate {
            low: 90.0,
            mid: 90.0,
            high: 90.0,
        };
        assert_eq!(of_difference(first, sharp), (-14.0, -7.0));
    }
}
