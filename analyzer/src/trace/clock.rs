//! The step of the clock that stamped the spans of each process.
//!
//! 1 ms where all starts are whole milliseconds (such senders measure lengths
//! finely, so ends say nothing), 1 µs where all starts and ends are whole
//! microseconds, else 1 ns. One start alone says nothing about a clock: such a
//! process is taken to have that of the others of its service.

use coldpath_trace_format::attributes::SERVICE_NAME;
use hashbrown::HashMap;

use crate::units::{Interval, Nanos, Timestamp};

use super::dataset::Dataset;
use super::names::Symbol;
use super::span::{Resource, ResourceIndex, Value};

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

/// The clock quantum of each resource, by its place. Resources with the same
/// value of `process`, where it is a key of the data, are one process.
#[must_use]
pub fn quanta(data: &Dataset, process: Option<Symbol>) -> Vec<Nanos> {
    let service = data.names.find(SERVICE_NAME);
    let mut processes = Groups::default();
    let mut services = Groups::default();
    let places: Vec<(usize, usize)> = data
        .resources
        .iter()
        .enumerate()
        .map(|(place, resource)| {
            let own = Group::of(resource, process).unwrap_or(Group::Resource(place));
            let service = Group::of(resource, service).unwrap_or(Group::Nobody);
            (processes.place(own), services.place(service))
        })
        .collect();
    for span in &data.spans {
        let ResourceIndex(resource) = span.resource;
        if let Some((process, service)) = places.get(resource as usize) {
            processes.members[*process].meet(span.interval);
            services.members[*service].meet(span.interval);
        }
    }
    // A process that says nothing has the clock of its service.
    let of = |(process, service): &(usize, usize)| {
        let own = processes.members[*process].quantum();
        own.or_else(|| services.members[*service].quantum())
            .unwrap_or(NANOSECOND)
    };
    places.iter().map(of).collect()
}

/// Whose times are looked at together.
#[derive(PartialEq, Eq, Hash)]
enum Group {
    Named(Symbol),
    Resource(usize),
    Nobody,
}

impl Group {
    fn of(resource: &Resource, key: Option<Symbol>) -> Option<Self> {
        match resource.attributes.get(key?)? {
            Value::Text(name) => Some(Self::Named(name)),
            _ => None,
        }
    }
}

#[derive(Default)]
struct Groups {
    members: Vec<Coarse>,
    places: HashMap<Group, usize>,
}

impl Groups {
    fn place(&mut self, group: Group) -> usize {
        *self.places.entry(group).or_insert_with(|| {
            self.members.push(Coarse::ANY);
            self.members.len() - 1
        })
    }
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

    /// `None` where there are too few starts to say.
    fn quantum(&self) -> Option<Nanos> {
        Some(match self {
            _ if self.starts < COARSE_STARTS => return None,
            _ if self.milliseconds => MILLISECOND,
            _ if self.microseconds => MICROSECOND,
            _ => NANOSECOND,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::input::batch::Batch;
    use crate::trace::attributes::Attributes;
    use crate::trace::span::{Span, SpanId, Status, TraceId};

    use super::*;

    #[track_caller]
    fn check(spans: &[(u64, u64)], quantum: Option<Nanos>) {
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
            Some(MILLISECOND),
        );
        check(
            &[(3_001_000, 3_002_000), (5_000_000, 5_003_000)],
            Some(MICROSECOND),
        );
        // Fine lengths: only whole milliseconds are known to be stamped so.
        check(
            &[(3_001_000, 3_002_001), (5_000_000, 5_003_000)],
            Some(NANOSECOND),
        );
        check(
            &[(3_000_000, 3_500_001), (5_000_001, 5_000_002)],
            Some(NANOSECOND),
        );
    }

    #[test]
    fn one_start_tells_nothing() {
        check(&[], None);
        check(&[(3_000_000, 3_500_001)], None);
        check(&[(3_001_000, 3_002_000)], None);
        check(&[(3_000_000, 3_500_000), (3_000_000, 4_000_000)], None);
    }

    /// A span of a process of a service, which starts at a time.
    fn data(spans: &[(&str, &str, u64)]) -> (Dataset, Option<Symbol>) {
        let mut batch = Batch::default();
        let process = batch.names.intern("process");
        let service = batch.names.intern(SERVICE_NAME);
        let other = batch.names.intern("other");
        let name = batch.names.intern("x");
        for (id, (own, of, start)) in (1..).zip(spans) {
            let own = Value::Text(batch.names.intern(own));
            let of = Value::Text(batch.names.intern(of));
            // Each says something else besides, as resources of one process may.
            let besides = Value::Int(i64::from(id));
            let attributes = [(process, own), (service, of), (other, besides)];
            let resource = batch.resource(attributes.into_iter().collect());
            batch.spans.push(Span {
                trace: TraceId([1; 16]),
                id: SpanId([id; 8]),
                parent: None,
                name,
                status: Status::Unset,
                message: None,
                interval: Interval::new(Timestamp(*start), Timestamp(start + 1)).unwrap(),
                attributes: Attributes::default(),
                extra: None,
                resource,
            });
        }
        (Dataset::from_batch(batch).0, Some(process))
    }

    #[test]
    fn resources_of_one_process_have_one_clock() {
        let (data, key) = data(&[("p", "s", 3_000_000), ("p", "s", 5_000_000), ("q", "t", 7)]);
        assert_eq!(quanta(&data, key), [MILLISECOND, MILLISECOND, NANOSECOND]);
        // Without the key each resource stands for itself, and has the service's.
        assert_eq!(quanta(&data, None), [MILLISECOND, MILLISECOND, NANOSECOND]);
    }

    #[test]
    fn a_process_of_one_span_has_the_clock_of_its_service() {
        let spans = [
            ("p", "s", 3_000_000),
            ("q", "s", 5_000_000),
            ("r", "t", 7_000_000),
        ];
        let (found, key) = data(&spans);
        assert_eq!(quanta(&found, key), [MILLISECOND, MILLISECOND, NANOSECOND]);
        // One process of the service that has a fine clock of its own decides for it.
        let (found, key) = data(&[("p", "s", 3_000_000), ("q", "s", 5_000_001), ("q", "s", 9)]);
        assert_eq!(quanta(&found, key)[0], NANOSECOND);
    }
}
