//! Numbers and texts as people read them.
//!
//! A time shows no more digits than its clock can tell apart, and values below
//! a millisecond are printed in microseconds. Text that came out of a trace is
//! data: control characters, escape sequences and direction overrides are made
//! visible.

use std::fmt::Write as _;

use crate::units::Nanos;

use super::Amount;

const NANOS_PER_MS: f64 = 1e6;
const NANOS_PER_US: f64 = 1e3;
const BYTES_PER_KIB: f64 = 1024.0;
const BYTES_PER_MIB: f64 = 1024.0 * 1024.0;
/// What stands where there is no number.
pub const NONE: &str = "–";

/// A time with its unit, to four significant digits and no finer than `quantum`.
#[must_use]
pub fn time(value: Nanos, quantum: Nanos) -> String {
    let magnitude = value.0.unsigned_abs();
    if magnitude == 0 {
        return "0".to_owned();
    }
    // A coarse clock cannot tell microseconds: such a value stays in ms.
    if magnitude < 1_000_000 && quantum.0 < 1_000_000 {
        let digits =
            significant(magnitude as f64 / NANOS_PER_US).min(decimals(quantum, NANOS_PER_US));
        format!(
            "{:.digits$} µs",
            rounded(value.0 as f64 / NANOS_PER_US, digits)
        )
    } else {
        let digits =
            significant(magnitude as f64 / NANOS_PER_MS).min(decimals(quantum, NANOS_PER_MS));
        format!(
            "{:.digits$} ms",
            rounded(value.0 as f64 / NANOS_PER_MS, digits)
        )
    }
}

/// Decimals that give four significant digits, three at most.
fn significant(value: f64) -> usize {
    match value {
        value if value >= 1000.0 => 1,
        value if value >= 100.0 => 1,
        value if value >= 10.0 => 2,
        _ => 3,
    }
}

/// Decimals that a quantum allows in a unit of `unit` nanoseconds.
fn decimals(quantum: Nanos, unit: f64) -> usize {
    let mut steps = unit / quantum.0.max(1) as f64;
    let mut digits = 0;
    while steps >= 10.0 && digits < 9 {
        steps /= 10.0;
        digits += 1;
    }
    digits
}

/// Rounds half away from zero, as people do by hand, not half to even.
fn rounded(value: f64, digits: usize) -> f64 {
    let scale = 10f64.powi(i32::try_from(digits).unwrap_or(0));
    let rounded = (value * scale).round() / scale;
    // Minus zero would print its sign.
    if rounded == 0.0 { 0.0 } else { rounded }
}

/// A signed time, for differences.
#[must_use]
pub fn signed_time(value: Nanos, quantum: Nanos) -> String {
    let text = time(value, quantum);
    let zero = text.starts_with("0 ") || text == "0";
    if value.0 > 0 && !zero {
        format!("+{text}")
    } else {
        text
    }
}

/// An amount with its unit; `quantum` applies to times.
#[must_use]
pub fn amount(value: Amount, quantum: Nanos) -> String {
    match value {
        Amount::Time(nanos) => time(nanos, quantum),
        Amount::Bytes(bytes) if bytes.unsigned_abs() < 1024 * 1024 => {
            format!("{:.1} KiB", bytes as f64 / BYTES_PER_KIB)
        }
        Amount::Bytes(bytes) => format!("{:.1} MiB", bytes as f64 / BYTES_PER_MIB),
        Amount::Ratio(millionths) => percent(millionths as f64 / 1e6),
    }
}

/// A signed amount, for differences.
#[must_use]
pub fn signed_amount(value: Amount, quantum: Nanos) -> String {
    match value {
        Amount::Time(nanos) => signed_time(nanos, quantum),
        Amount::Bytes(bytes) if bytes > 0 => format!("+{}", amount(value, quantum)),
        _ => amount(value, quantum),
    }
}

/// A ratio as a percentage with one decimal.
#[must_use]
pub fn percent(ratio: f64) -> String {
    format!("{:.1} %", rounded(ratio * 100.0, 1))
}

/// A correlation or slope with two decimals.
#[must_use]
pub fn coefficient(value: f64) -> String {
    format!("{:.2}", rounded(value, 2))
}

/// The text of an optional value.
#[must_use]
pub fn or_none<T>(value: Option<T>, print: impl Fn(T) -> String) -> String {
    value.map_or_else(|| NONE.to_owned(), print)
}

/// A count with its noun, which gets an `s` unless it is one.
#[must_use]
pub fn counted(count: impl std::fmt::Display, noun: &str) -> String {
    let count = count.to_string();
    let plural = if count == "1" { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Text from outside, safe to write to a terminal: what could steer one is
/// written as `\u{…}`.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for char in text.chars() {
        if steers(char) {
            // Writing to a String cannot fail.
            let _ = write!(safe, "\\u{{{:x}}}", u32::from(char));
        } else {
            safe.push(char);
        }
    }
    safe
}

/// What stands for the name of runs that no cohort claims.
pub(super) const NO_COHORT: &str = "(no cohort)";

/// A cohort's name, safe to write; runs of an experiment that names none are
/// those without.
#[must_use]
pub(super) fn cohort_name(name: &str) -> String {
    if name.is_empty() {
        NO_COHORT.to_owned()
    } else {
        escape(name)
    }
}

/// Control characters, and what reorders or hides text: line and paragraph
/// separators, and what Unicode calls default ignorable
/// (`DerivedCoreProperties.txt`, `Default_Ignorable_Code_Point`).
pub(super) fn steers(char: char) -> bool {
    let is_ignorable = matches!(u32::from(char),
        0xad | 0x34f | 0x61c | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f
        | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f | 0x3164 | 0xfe00..=0xfe0f
        | 0xfeff | 0xffa0 | 0xfff0..=0xfff8 | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a
        | 0xe0000..=0xe0fff);
    char.is_control() || is_ignorable || matches!(char, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(nanos: i64, quantum: i64, expected: &str) {
        assert_eq!(time(Nanos(nanos), Nanos(quantum)), expected);
    }

    #[test]
    fn digits_never_exceed_the_clock() {
        check(605_736_512, 1, "605.7 ms");
        check(605_736_512, 1_000_000, "606 ms");
        check(12_345_678, 10_000, "12.35 ms");
        check(1_234_567, 1, "1.235 ms");
        check(1_234_567, 100_000, "1.2 ms");
        check(1_034_500_000, 1_000_000, "1035 ms");
    }

    #[test]
    fn below_a_millisecond_it_is_microseconds() {
        check(999_999, 1, "1000.0 µs");
        check(23_456, 1, "23.46 µs");
        check(168_000, 10_000, "168 µs");
        check(400_000, 1_000_000, "0 ms");
        check(-400_000, 1_000_000, "0 ms");
        check(0, 1, "0");
        check(-23_456, 1, "-23.46 µs");
    }

    #[test]
    fn one_is_no_plural() {
        assert_eq!(counted(1, "warm-up"), "1 warm-up");
        assert_eq!(counted(0, "file"), "0 files");
        assert_eq!(counted(12, "run"), "12 runs");
    }

    #[test]
    fn text_from_traces_cannot_steer_a_terminal() {
        assert_eq!(
            escape("a\u{1b}[31mb\u{202e}c\n"),
            "a\\u{1b}[31mb\\u{202e}c\\u{a}"
        );
        assert_eq!(escape("POST /session ü"), "POST /session ü");
        // What no terminal shows: a soft hyphen, a variation selector, a tag.
        assert_eq!(
            escape("a\u{ad}b\u{fe0f}c\u{e0041}d"),
            "a\\u{ad}b\\u{fe0f}c\\u{e0041}d"
        );
    }
}
