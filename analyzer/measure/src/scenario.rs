//! Scenarios as they are named: `cold`, `delay=250`. What a run does under one is
//! the driver's to say; here are only the names and the values in them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Longest wait that a scenario may ask for: an hour.
pub const WAIT_MAX: Duration = Duration::from_hours(1);
/// Most requests that a scenario may send at once; each has a socket and a thread of nobody.
pub const TIMES_MAX: usize = 64;

/// A scenario as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// Its name, a key of the driver's `scenarios`.
    pub name: String,
    /// What stands behind `=`, if anything.
    pub value: Option<String>,
}

impl Scenario {
    /// The scenario that every driver has.
    #[must_use]
    pub fn cold() -> Self {
        Self {
            name: "cold".to_owned(),
            value: None,
        }
    }
}

impl FromStr for Scenario {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (text, None),
        };
        Ok(Self {
            name: name.to_owned(),
            value,
        })
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{}={value}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Reads a duration: a whole number with `us`, `ms` or `s`; a bare one is in
/// milliseconds. `None` for anything else, and beyond [`WAIT_MAX`].
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let micros = match unit {
        "us" => 1,
        "" | "ms" => 1_000,
        "s" => 1_000_000,
        _ => return None,
    };
    let duration = Duration::from_micros(number.checked_mul(micros)?);
    (duration <= WAIT_MAX).then_some(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_is_a_name_with_or_without_a_value() {
        let scenario: Scenario = "delay=250".parse().unwrap();
        assert_eq!(
            (scenario.name.as_str(), scenario.value.as_deref()),
            ("delay", Some("250"))
        );
        assert_eq!(scenario.to_string(), "delay=250");
        assert_eq!("cold".parse(), Ok(Scenario::cold()));
    }

    #[test]
    fn durations_have_units_and_a_bare_number_is_milliseconds() {
        let millis = |text| parse_duration(text).map(|duration| duration.as_micros());
        assert_eq!(millis("3s"), Some(3_000_000));
        assert_eq!(millis("250"), Some(250_000));
        assert_eq!(millis("250ms"), Some(250_000));
        assert_eq!(millis("40us"), Some(40));
        for text in [
            "",
            "s",
            "-1",
            "1.5s",
            "1 s",
            "1m",
            "3601s",
            "99999999999999999999s",
        ] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}
