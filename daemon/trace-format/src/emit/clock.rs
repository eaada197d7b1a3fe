//! The one clock of the project.
//!
//! Monotonic time says how long, wall time says when. Every time of a run is
//! `anchor wall + (monotonic − anchor monotonic)`, so one step of the wall clock
//! cannot tear a run apart. `CLOCK_MONOTONIC` is read through rustix because its
//! absolute value crosses to child processes; `std::time::Instant` hides it.

use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, SystemTime};

/// An instant on `CLOCK_MONOTONIC`, nanoseconds since boot; never goes backwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MonoNanos(u64);

/// An instant on the wall clock, nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallNanos(u64);

/// One reading of both clocks: ties monotonic instants to the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    wall: WallNanos,
    mono: MonoNanos,
}

impl MonoNanos {
    /// Reads the clock; about 20 ns through the vDSO.
    #[must_use]
    pub fn now() -> Self {
        Self(read(ClockId::Monotonic))
    }

    /// Takes nanoseconds since boot.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since boot.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time since `earlier`; zero when `earlier` is later, which a monotonic
    /// clock gives only for instants taken in the other order.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The instant `duration` later; saturates after 584 years.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

impl WallNanos {
    /// Reads the clock.
    #[must_use]
    pub fn now() -> Self {
        Self(read(ClockId::Realtime))
    }

    /// Takes nanoseconds since the Unix epoch.
    #[must_use]
    pub const fn from_unix_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the Unix epoch.
    #[must_use]
    pub const fn as_unix_nanos(self) -> u64 {
        self.0
    }

    /// The same instant for the standard library.
    #[must_use]
    pub fn to_system_time(self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_nanos(self.0)
    }

    /// `YYYY-MM-DDThh:mm:ss.mmmZ`, the form of JavaScript's `toISOString`.
    ///
    /// The calendar is the proleptic Gregorian one; algorithm: H. Hinnant,
    /// "chrono-compatible low-level date algorithms", `civil_from_days`.
    #[must_use]
    pub fn to_iso_millis(self) -> String {
        let millis = self.0 / 1_000_000;
        let (days, of_day) = (millis / 86_400_000, millis % 86_400_000);
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 {
            month_from_march + 3
        } else {
            month_from_march - 9
        };
        let year = year_of_era + era * 400 + u64::from(month <= 2);
        format!(
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
            of_day / 3_600_000,
            of_day / 60_000 % 60,
            of_day / 1_000 % 60,
            of_day % 1_000
        )
    }
}

impl Anchor {
    /// Reads both clocks, wall first; they are within a microsecond unless the
    /// thread is descheduled in between.
    #[must_use]
    pub fn take() -> Self {
        Self {
            wall: WallNanos::now(),
            mono: MonoNanos::now(),
        }
    }

    /// Makes an anchor of a reading that was handed over.
    #[must_use]
    pub const fn from_parts(wall: WallNanos, mono: MonoNanos) -> Self {
        Self { wall, mono }
    }

    /// The wall part.
    #[must_use]
    pub const fn wall(self) -> WallNanos {
        self.wall
    }

    /// The monotonic part.
    #[must_use]
    pub const fn mono(self) -> MonoNanos {
        self.mono
    }

    /// Calendar time of a monotonic instant, before or after the anchor.
    /// Saturates at the epoch and after 584 years.
    #[must_use]
    pub fn wall_at(self, instant: MonoNanos) -> WallNanos {
        WallNanos(if instant.0 >= self.mono.0 {
            self.wall.0.saturating_add(instant.0 - self.mono.0)
        } else {
            self.wall.0.saturating_sub(self.mono.0 - instant.0)
        })
    }

    /// How far the wall clock has moved away from this anchor: suspends, steps.
    #[must_use]
    pub fn drift(self) -> Duration {
        let expected = self.wall_at(MonoNanos::now());
        Duration::from_nanos(WallNanos::now().0.abs_diff(expected.0))
    }
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let (secs, nanos) = (time.tv_sec.cast_unsigned(), time.tv_nsec.cast_unsigned());
    secs * 1_000_000_000 + nanos
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_anchor_dates_instants_before_and_after_it() {
        let anchor = Anchor::from_parts(WallNanos(1_000), MonoNanos(500));
        assert_eq!(anchor.wall_at(MonoNanos(700)), WallNanos(1_200));
        assert_eq!(anchor.wall_at(MonoNanos(400)), WallNanos(900));
    }

    #[test]
    fn iso_text_is_that_of_date_in_gnu_coreutils() {
        // date -u -d @N +%Y-%m-%dT%H:%M:%S
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, "2000-02-28T23:59:59.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_796_068_430, "2026-11-30T19:53:50.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(WallNanos(seconds * 1_000_000_000).to_iso_millis(), text);
        }
        assert_eq!(
            WallNanos(1_999_999).to_iso_millis(),
            "1970-01-01T00:00:00.001Z"
        );
    }
}
