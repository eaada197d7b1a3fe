//! Calendar days, for exemptions that end. Knows no clock.

use std::fmt;

/// A day of the proleptic Gregorian calendar; ordered by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Date {
    year: u16,
    month: u8,
    day: u8,
}

impl Date {
    /// The first day that there is: before every expiry.
    pub(crate) const FIRST: Self = Self {
        year: 0,
        month: 1,
        day: 1,
    };

    /// Reads `YYYY-MM-DD`; `None` unless it is a day that exists.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if parts.next().is_some() || (year.len(), month.len(), day.len()) != (4, 2, 2) {
            return None;
        }
        if ![year, month, day].into_iter().all(digits) {
            return None;
        }
        let date = Self {
            year: year.parse().ok()?,
            month: month.parse().ok()?,
            day: day.parse().ok()?,
        };
        let exists = (1..=12).contains(&date.month)
            && (1..=days_of(date.year, date.month)).contains(&date.day);
        exists.then_some(date)
    }

    /// The day in UTC that is `seconds` after 1970-01-01; saturates at the year 9999.
    pub(crate) fn from_unix_seconds(seconds: u64) -> Self {
        let mut days = seconds / 86_400;
        let mut date = Self {
            year: 1970,
            month: 1,
            day: 1,
        };
        while date.year < 9999 && days >= days_of_year(date.year) {
            days -= days_of_year(date.year);
            date.year += 1;
        }
        while date.month < 12 && days >= u64::from(days_of(date.year, date.month)) {
            days -= u64::from(days_of(date.year, date.month));
            date.month += 1;
        }
        let last = u64::from(days_of(date.year, date.month)) - 1;
        date.day += u8::try_from(days.min(last)).unwrap_or(30);
        date
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

const fn is_leap(year: u16) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

const fn days_of_year(year: u16) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

const fn days_of(year: u16, month: u8) -> u8 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::Date;

    /// Expectations from `date -u -d @SECONDS +%F`.
    #[test]
    fn unix_seconds_become_days() {
        for (seconds, day) in [
            (0, "1970-01-01"),
            (86_399, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (1_796_083_199, "2026-11-30"),
            (1_796_083_200, "2026-12-01"),
        ] {
            assert_eq!(Date::from_unix_seconds(seconds).to_string(), day);
        }
        assert_eq!(Date::from_unix_seconds(u64::MAX).to_string(), "9999-12-31");
    }

    #[test]
    fn only_days_that_exist_are_read() {
        assert!(Date::parse("2028-02-29").is_some());
        for wrong in [
            "2027-02-29",
            "2027-13-01",
            "2027-1-01",
            "+027-01-01",
            "2027-01-01-1",
            "",
        ] {
            assert!(Date::parse(wrong).is_none(), "{wrong}");
        }
    }
}
