//! Units as types: instants, durations and intervals in integer nanoseconds.
//!
//! Nothing here reads a clock. Milliseconds exist only at the two borders:
//! decimal text of an input, and text of a report.

use serde::{Serialize, Serializer};

/// Nanoseconds in one millisecond.
const NANOS_PER_MS: i64 = 1_000_000;
/// Longest duration that is believed, about 31 years: everything beyond is a
/// start time that was never set.
const MAX_PLAUSIBLE_MS: f64 = 1e12;

/// An instant: nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

/// A signed duration in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub i64);

impl Nanos {
    /// Reads a number of milliseconds, rounded to the nearest nanosecond.
    ///
    /// `None` for NaN, infinities and anything beyond ±10^12 ms.
    #[must_use]
    pub fn from_ms(ms: f64) -> Option<Self> {
        (ms.is_finite() && ms.abs() <= MAX_PLAUSIBLE_MS).then(|| Self::rounded(ms * 1e6))
    }

    /// Reads decimal text in milliseconds without passing through a float, so
    /// that an epoch time keeps its nanoseconds (`1796068425712.6538`).
    ///
    /// Digits beyond the nanosecond are rounded half up. Text with an exponent
    /// goes through [`Nanos::from_ms`].
    #[must_use]
    pub fn from_decimal_ms(text: &str) -> Option<Self> {
        if text.contains(['e', 'E']) {
            return Self::from_ms(text.parse().ok()?);
        }
        let (sign, digits) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let whole: i64 = whole.parse().ok()?;
        let digit =
            |place: usize| i64::from(fraction.as_bytes().get(place).map_or(0, |b| b - b'0'));
        let below = (0..6).fold(0, |sum, place| sum * 10 + digit(place));
        let carry = i64::from(digit(6) >= 5);
        let nanos = whole
            .checked_mul(NANOS_PER_MS)?
            .checked_add(below + carry)?;
        Some(Self(sign * nanos))
    }

    /// The value in milliseconds, the nearest float; prints as the exact decimal
    /// below 2^53 ns (104 days).
    #[must_use]
    pub fn as_ms(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Rounds a computed number of nanoseconds; NaN counts as 0, infinities
    /// saturate, and neither can come from finite inputs.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the cast saturates, as documented"
    )]
    pub fn rounded(nanos: f64) -> Self {
        Self(nanos.round() as i64)
    }
}

impl Serialize for Nanos {
    /// Milliseconds as a JSON number, exact to the nanosecond.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_ms())
    }
}

/// A stretch of time; `start <= end` always.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interval {
    start: Timestamp,
    end: Timestamp,
}

impl Interval {
    /// Makes an interval; `None` when it would end before it starts.
    #[must_use]
    pub fn new(start: Timestamp, end: Timestamp) -> Option<Self> {
        (start <= end).then_some(Self { start, end })
    }

    /// The interval of length `length` from `start`; a negative length counts as 0.
    #[must_use]
    pub fn starting(start: Timestamp, length: Nanos) -> Self {
        let length = length.0.max(0).unsigned_abs();
        Self {
            start,
            end: Timestamp(start.0.saturating_add(length)),
        }
    }

    /// The interval of length `length` up to `end`; a negative length counts as 0.
    #[must_use]
    pub fn ending(end: Timestamp, length: Nanos) -> Self {
        let length = length.0.max(0).unsigned_abs();
        Self {
            start: Timestamp(end.0.saturating_sub(length)),
            end,
        }
    }

    /// First instant, inclusive.
    #[must_use]
    pub fn start(self) -> Timestamp {
        self.start
    }

    /// Last instant, exclusive.
    #[must_use]
    pub fn end(self) -> Timestamp {
        self.end
    }

    /// Length, never negative.
    #[must_use]
    pub fn length(self) -> Nanos {
        difference(self.end, self.start)
    }

    /// The part inside `other`; `None` when they do not even touch.
    #[must_use]
    pub fn within(self, other: Self) -> Option<Self> {
        Self::new(self.start.max(other.start), self.end.min(other.end))
    }
}

/// What lasts longer has a start or an end that is none; and sums of lengths stay
/// far below what 64 bits hold.
pub const LENGTH_MAX: Nanos = Nanos(366 * 24 * 3600 * 1_000_000_000);

/// `later - earlier`, signed; saturates beyond 292 years.
#[must_use]
pub fn difference(later: Timestamp, earlier: Timestamp) -> Nanos {
    let wide = i128::from(later.0) - i128::from(earlier.0);
    let bound = |value: i128| value.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
    Nanos(i64::try_from(bound(wide)).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_milliseconds_keep_their_nanoseconds() {
        let nanos = |text| Nanos::from_decimal_ms(text).map(|value| value.0);
        assert_eq!(nanos("1796068425712.6538"), Some(1_796_068_425_712_653_800));
        assert_eq!(nanos("388.65200100000004"), Some(388_652_001));
        assert_eq!(nanos("-0.5"), Some(-500_000));
        assert_eq!(nanos("25"), Some(25_000_000));
        assert_eq!(nanos("1e3"), Some(1_000_000_000));
        assert_eq!(nanos("1.x"), None);
        assert_eq!(nanos("99999999999999999999"), None);
    }

    #[test]
    fn a_printed_millisecond_is_the_exact_decimal() {
        assert_eq!(Nanos(605_736_512).as_ms().to_string(), "605.736512");
        assert_eq!(Nanos(270_130_000).as_ms().to_string(), "270.13");
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        assert_eq!(Nanos::from_ms(f64::NAN), None);
        assert_eq!(Nanos::from_ms(f64::INFINITY), None);
        assert_eq!(Nanos::from_ms(1e13), None);
        assert_eq!(Nanos::from_ms(12.21), Some(Nanos(12_210_000)));
    }

    #[test]
    fn differences_are_signed_and_do_not_wrap() {
        assert_eq!(difference(Timestamp(5), Timestamp(8)), Nanos(-3));
        assert_eq!(
            difference(Timestamp(u64::MAX), Timestamp(0)),
            Nanos(i64::MAX)
        );
    }
}
