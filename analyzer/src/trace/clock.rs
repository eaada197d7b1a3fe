//! The step of the clock that stamped the spans of each process.
//!
//! 1 ms where all starts are whole milliseconds (such senders measure lengths
//! finely, so ends say nothing), 1 µs where all starts and ends are whole
//! microseconds, else 1 ns. One start alone says nothing about a clock.

use crate::units::{Interval, Nanos, Timestamp};

use super::dataset::Dataset;
use super::span::ResourceIndex;

/// Clock quantum of senders that stamp starts in whole milliseconds.
const MILLISECOND: Nanos = Nanos(1_000_000);
/// Clock quantum of senders that stamp starts and ends in whole microseconds.
const MICROSECOND: Nanos = Nanos(1_000);
/// Different starts that must say so: one of a nanosecond clock is whole
/// milliseconds once in a million, of a microsecond clock once in a thousand,
/// and large inputs hold as many processes with one span.
const COARSE_STARTS: u32 = 2;
/// Clock quantum of everybody else.
const NANOSECOND: Nanos = Nanos(1);

/// The clock quantum of each resource, by its place.
#[must_use]
pub fn quanta(data: &Dataset) -> Vec<Nanos> {
    let mut coarse: Vec<Coarse> = vec![Coarse::ANY; data.resources.len()];
    for span in &data.spans {
        let ResourceIndex(resource) = span.resource;
        if let Some(found) = coarse.get_mut(resource as usize) {
            found.meet(span.interval);
        }
    }
    coarse.iter().map(Coarse::quantum).collect()
}

/// What the times of one process have in common.
#[derive(Clone)]
struct Coarse {
    /// The start met last.
    last: Option<Timestamp>,
    /// Starts that differ from the one met before.
    starts: u32,
    milliseconds: bool,
    microseconds: bool,
}

impl Coarse {
    const ANY: Self = Self {
        last: None,
        starts: 0,
        milliseconds: true,
        microseconds: true,
    };

    fn meet(&mut self, interval: Interval) {
        let whole = |at: Timestamp, step: Nanos| at.0.is_multiple_of(step.0.unsigned_abs());
        let (start, end) = (interval.start(), interval.end());
        if self.last.replace(start) != Some(start) {
            self.starts = self.starts.saturating_add(1);
        }
        self.milliseconds = self.milliseconds && whole(start, MILLISECOND);
        self.microseconds =
            self.microseconds && whole(start, MICROSECOND) && whole(end, MICROSECOND);
    }

    fn quantum(&self) -> Nanos {
        match self {
            _ if self.starts < COARSE_STARTS => NANOSECOND,
            _ if self.milliseconds => MILLISECOND,
            _ if self.microseconds => MICROSECOND,
            _ => NANOSECOND,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(spans: &[(u64, u64)], quantum: Nanos) {
        let mut coarse = Coarse::ANY;
        for (start, end) in spans {
            coarse.meet(Interval::new(Timestamp(*start), Timestamp(*end)).unwrap());
        }
        assert_eq!(coarse.quantum(), quantum, "{spans:?}");
    }

    #[test]
    fn two_different_starts_tell_a_coarse_clock() {
        check(
            &[(3_000_000, 3_500_001), (5_000_000, 5_000_001)],
            MILLISECOND,
        );
        check(
            &[(3_001_000, 3_002_000), (5_000_000, 5_003_000)],
            MICROSECOND,
        );
        // Fine lengths: only whole milliseconds are known to be stamped so.
        check(
            &[(3_001_000, 3_002_001), (5_000_000, 5_003_000)],
            NANOSECOND,
        );
        check(
            &[(3_000_000, 3_500_001), (5_000_001, 5_000_002)],
            NANOSECOND,
        );
    }

    #[test]
    fn one_start_tells_nothing() {
        check(&[], NANOSECOND);
        check(&[(3_000_000, 3_500_001)], NANOSECOND);
        check(&[(3_001_000, 3_002_000)], NANOSECOND);
        check(
            &[(3_000_000, 3_500_000), (3_000_000, 4_000_000)],
            NANOSECOND,
        );
    }
}
