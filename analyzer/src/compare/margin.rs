//! Amounts as people write them: `10ms`, `500us`, `2s`, `5MiB`, `300KiB`.
//!
//! A number without a unit is refused: nobody can tell ten of what.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::model::window_rules::Unit;
use crate::report::numbers;
use crate::units::Nanos;

use super::effect::in_unit;

/// Units and what one of each is in nanoseconds or bytes.
const UNITS: [(&str, Unit, f64); 8] = [
    ("ns", Unit::Ms, 1.0),
    ("us", Unit::Ms, 1e3),
    ("µs", Unit::Ms, 1e3),
    ("ms", Unit::Ms, 1e6),
    ("KiB", Unit::Bytes, 1024.0),
    ("MiB", Unit::Bytes, 1_048_576.0),
    ("s", Unit::Ms, 1e9),
    ("B", Unit::Bytes, 1.0),
];

/// An amount that is not negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    /// Its unit.
    pub unit: Unit,
    /// Nanoseconds or bytes, 0 or more and finite.
    pub value: f64,
}

/// Why a text is no amount.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{text}` is no amount; write a number and a unit, such as 10ms, 500us, 2s, 5MiB")]
pub struct MarginError {
    text: String,
}

impl FromStr for Margin {
    type Err = MarginError;

    fn from_str(text: &str) -> Result<Self, MarginError> {
        let refuse = || MarginError {
            text: text.to_owned(),
        };
        let units = UNITS.iter();
        let parsed = units.filter_map(|(name, unit, scale)| {
            let number: f64 = text.trim().strip_suffix(name)?.trim_end().parse().ok()?;
            Some(Self {
                unit: *unit,
                value: number * scale,
            })
        });
        let mut sound = parsed.filter(|one| one.value.is_finite() && one.value >= 0.0);
        sound.next().ok_or_else(refuse)
    }
}

impl fmt::Display for Margin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let amount = in_unit(self.unit, self.value);
        f.write_str(&numbers::or_none(amount, |one| {
            numbers::amount(one, Nanos(1))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(Unit, f64)>) {
        let found = text.parse::<Margin>().ok();
        assert_eq!(found.map(|one| (one.unit, one.value)), expected, "{text}");
    }

    #[test]
    fn amounts_need_a_number_and_a_unit() {
        check("10ms", Some((Unit::Ms, 10e6)));
        check("0.5 s", Some((Unit::Ms, 5e8)));
        check("5MiB", Some((Unit::Bytes, 5.0 * 1_048_576.0)));
        check("7B", Some((Unit::Bytes, 7.0)));
        for wrong in ["10", "ms", "-1ms", "1e999ms", "NaNms", "5MB", ""] {
            check(wrong, None);
        }
    }
}
