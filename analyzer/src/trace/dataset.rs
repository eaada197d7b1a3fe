//! All spans in one order, without duplicates.
//!
//! Traces come by start, their spans by id, so that the report is the same
//! whatever order the files, lines and spans came in.

use std::cmp::Ordering;
use std::ops::Range;

use hashbrown::HashMap;

use crate::input::batch::Batch;
use crate::input::chrome;
use crate::input::client::ClientRecord;
use crate::input::manifest::Manifest;
use crate::input::profile::{PhaseProfile, SessionProfile};
use crate::problems::{Code, Problems};
use crate::units::Timestamp;

use super::attributes::Attributes;
use super::names::{Names, Symbol};
use super::span::{Resource, Span, SpanId, Status, TraceId, Value};

/// Index of a span in its [`Dataset`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanIndex(pub u32);

/// Records read, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Spans as they stood in the input, duplicates included.
    pub spans: u64,
    /// Log records; not analysed.
    pub logs: u64,
    /// Metrics; not analysed.
    pub metrics: u64,
    /// Phase profiles and session profiles.
    pub profiles: u64,
    /// Files of a folder that held nothing to read.
    pub not_traces: u64,
}

/// Everything that was read, in canonical order.
#[derive(Debug, Default)]
pub struct Dataset {
    /// The texts.
    pub names: Names,
    /// Spans: traces by start and id, the spans of each by id.
    pub spans: Vec<Span>,
    /// Where the spans of each trace are, by its id.
    traces: Vec<(TraceId, Range<u32>)>,
    /// Resources; only indexed, in no meaningful order.
    pub resources: Vec<Resource>,
    /// Phase profiles, by channel id, kind and session id.
    pub profiles: Vec<PhaseProfile>,
    /// Session profiles of a qwen agent, by session id.
    pub session_profiles: Vec<SessionProfile>,
    /// Client records, by label.
    pub clients: Vec<ClientRecord>,
    /// Manifests, sorted.
    pub manifests: Vec<Manifest>,
    /// Records read.
    pub counts: Counts,
}

impl Dataset {
    /// Orders a batch and drops repeated spans.
    #[must_use]
    pub fn from_batch(mut batch: Batch) -> (Self, Problems) {
        chrome::assemble(&mut batch);
        let Batch {
            names,
            mut spans,
            resources,
            mut profiles,
            mut session_profiles,
            mut clients,
            mut manifests,
            counts,
            mut problems,
            ..
        } = batch;
        order(&mut spans, &names, &resources);
        drop_repeats(&mut spans, &names, &mut problems);
        spans.shrink_to_fit();
        let traces = index(&spans);
        profiles.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
        profiles.dedup();
        drop_other_profiles(&mut profiles, &mut problems);
        session_profiles.sort();
        session_profiles.dedup();
        drop_conflicting(&mut session_profiles, &mut problems);
        clients.sort_by(|a, b| a.values().cmp(b.values()));
        clients.dedup();
        manifests.sort();
        manifests.dedup();
        let dataset = Self {
            names,
            spans,
            traces,
            resources,
            profiles,
            session_profiles,
            clients,
            manifests,
            counts,
        };
        (dataset, problems)
    }

    /// The span at `index`; indices of this dataset only.
    #[must_use]
    pub fn span(&self, index: SpanIndex) -> &Span {
        &self.spans[index.0 as usize]
    }

    /// All indices, in canonical order.
    pub fn indices(&self) -> impl Iterator<Item = SpanIndex> + use<> {
        (0..u32::try_from(self.spans.len()).unwrap_or(u32::MAX)).map(SpanIndex)
    }

    /// Finds a span by its ids.
    #[must_use]
    pub fn find(&self, trace: TraceId, id: SpanId) -> Option<SpanIndex> {
        let found = self
            .traces
            .binary_search_by_key(&trace, |(trace, _)| *trace);
        let (_, places) = self.traces.get(found.ok()?)?;
        self.find_in(&(places.start as usize..places.end as usize), id)
    }

    /// The places of the spans of one trace, from its first.
    #[must_use]
    pub fn trace_from(&self, first: usize) -> Range<usize> {
        let rest = self.spans.get(first..).unwrap_or(&[]);
        let Some(trace) = rest.first().map(|span| span.trace) else {
            return first..first;
        };
        // Most traces are short, so the end is looked for in growing steps.
        let mut bound = 1;
        while rest.get(bound).is_some_and(|span| span.trace == trace) {
            bound *= 2;
        }
        let bound = bound.min(rest.len());
        first..first + rest[..bound].partition_point(|span| span.trace == trace)
    }

    /// Finds a span by its id among those of one trace.
    #[must_use]
    pub fn find_in(&self, trace: &Range<usize>, id: SpanId) -> Option<SpanIndex> {
        let spans = self.spans.get(trace.clone())?;
        let place = spans.binary_search_by(|span| span.id.cmp(&id)).ok()?;
        u32::try_from(trace.start + place).ok().map(SpanIndex)
    }

    /// The resource attribute `key` of a span.
    #[must_use]
    pub fn resource_attribute(&self, span: SpanIndex, key: Symbol) -> Option<Value> {
        let resource = self.resources.get(self.span(span).resource.0 as usize)?;
        resource.attributes.get(key)
    }

    /// The value as text, where it is text.
    #[must_use]
    pub fn text(&self, value: Value) -> Option<&str> {
        match value {
            Value::Text(symbol) => Some(self.names.text(symbol)),
            _ => None,
        }
    }
}

/// Brings spans into their order: traces by start, the spans of each by id.
///
/// Runs are looked at by their start, again and again, and it is the way to
/// memory that takes the time: what is near in time is to be near in memory.
fn order(spans: &mut [Span], names: &Names, resources: &[Resource]) {
    let mut number_of: HashMap<TraceId, u32> = HashMap::new();
    let mut traces: Vec<(Timestamp, TraceId, u32)> = Vec::new();
    let mut of_span: Vec<u32> = Vec::with_capacity(spans.len());
    for span in &*spans {
        let next = short(traces.len());
        let number = *number_of.entry(span.trace).or_insert_with(|| {
            traces.push((span.start(), span.trace, next));
            next
        });
        let first = &mut traces[number as usize].0;
        *first = span.start().min(*first);
        of_span.push(number);
    }
    drop(number_of);
    traces.sort_unstable();
    let mut counts = vec![0u32; traces.len()];
    for number in &of_span {
        counts[*number as usize] += 1;
    }
    let (mut next, mut sum) = (vec![0u32; traces.len()], 0);
    for (_, _, number) in &traces {
        next[*number as usize] = sum;
        sum += counts[*number as usize];
    }
    // From the number of its trace to the place of the span.
    for place in &mut of_span {
        let slot = &mut next[*place as usize];
        *place = *slot;
        *slot += 1;
    }
    permute(spans, of_span);
    for trace in spans.chunk_by_mut(|a, b| a.trace == b.trace) {
        trace.sort_unstable_by(|a, b| compare(names, resources, a, b));
    }
}

/// Moves each span to its place; every swap brings one there.
fn permute(spans: &mut [Span], mut places: Vec<u32>) {
    for at in 0..places.len() {
        while places[at] as usize != at {
            let to = places[at] as usize;
            spans.swap(at, to);
            places.swap(at, to);
        }
    }
}

/// Places and numbers of spans; more than 2^32 do not fit into memory.
fn short(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// Where the spans of each trace are, by its id.
fn index(spans: &[Span]) -> Vec<(TraceId, Range<u32>)> {
    let mut found = Vec::new();
    let mut first = 0;
    for trace in spans.chunk_by(|a, b| a.trace == b.trace) {
        let end = first + short(trace.len());
        found.push((trace[0].trace, first..end));
        first = end;
    }
    found.sort_unstable_by_key(|(trace, _)| *trace);
    found
}

/// Canonical order; spans that compare equal are interchangeable.
fn compare(names: &Names, resources: &[Resource], a: &Span, b: &Span) -> Ordering {
    let key = |span: &Span| (span.trace, span.id, span.interval);
    key(a)
        .cmp(&key(b))
        .then_with(|| names.text(a.name).cmp(names.text(b.name)))
        .then_with(|| {
            if a == b {
                Ordering::Equal
            } else {
                let of = |span| describe(names, span);
                of(a)
                    .cmp(of(b))
                    .then_with(|| compare_resources(names, resources, a, b))
            }
        })
}

/// Equal indices are equal resources, of which there may be large ones.
fn compare_resources(names: &Names, resources: &[Resource], a: &Span, b: &Span) -> Ordering {
    if a.resource == b.resource {
        return Ordering::Equal;
    }
    let of = |span: &Span| {
        let resource = resources.get(span.resource.0 as usize);
        let attributes = resource.map(|resource| told(names, &resource.attributes));
        attributes.into_iter().flatten()
    };
    of(a).cmp(of(b))
}

/// What is said about a span but its ids, times, name and resource: the tie-break
/// of spans that share these, which is rare. It is told part by part, because the
/// first that differs decides.
fn describe<'a>(names: &'a Names, span: &'a Span) -> impl Iterator<Item = Part<'a>> {
    let text = |symbol: Symbol| Part::Text(names.text(symbol));
    let status = match span.status {
        Status::Unset => 0,
        Status::Ok => 1,
        Status::Error => 2,
    };
    let head = [
        span.parent.map_or(Part::Nothing, Part::Span),
        Part::Count(status),
        span.message.map_or(Part::Nothing, text),
    ];
    let events = span.events().iter().flat_map(move |event| {
        std::iter::once(text(event.name)).chain(told(names, &event.attributes))
    });
    let links = span.links().iter();
    head.into_iter()
        .chain(told(names, &span.attributes))
        .chain([Part::Count(span.events().len())])
        .chain(events)
        .chain(links.map(|link| Part::Link(link.trace, link.span)))
}

/// A part of a description.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part<'a> {
    Nothing,
    Count(usize),
    Text(&'a str),
    /// Kind and bits of a value that is not text.
    Bits(u8, u64),
    Span(SpanId),
    Link(TraceId, SpanId),
}

/// The attributes, begun with their number so that lists do not run together.
fn told<'a>(names: &'a Names, attributes: &'a Attributes) -> impl Iterator<Item = Part<'a>> {
    let pairs = attributes.iter().flat_map(|(key, value)| {
        let value = match value {
            Value::Text(symbol) => Part::Text(names.text(symbol)),
            Value::Int(value) => Part::Bits(0, value.cast_unsigned()),
            Value::Double(value) => Part::Bits(1, value.to_bits()),
            Value::Bool(value) => Part::Bits(2, u64::from(value)),
            Value::Other => Part::Nothing,
        };
        [Part::Text(names.text(key)), value]
    });
    std::iter::once(Part::Count(attributes.len())).chain(pairs)
}

/// Keeps the first of the profiles of one channel or session.
fn drop_other_profiles(profiles: &mut Vec<PhaseProfile>, problems: &mut Problems) {
    profiles.dedup_by(|profile, kept| {
        let (channel, kind, session) = profile.about();
        let is_named = !(channel.is_empty() && session.is_empty());
        let repeats = is_named && kept.about() == (channel, kind, session);
        if repeats {
            let reason = format!(
                "two `{kind}` profiles of channel `{channel}`, session `{session}` differ; one is kept"
            );
            problems.add(Code::ConflictingProfile, None, reason);
        }
        repeats
    });
}

/// Keeps the first of the profiles that name the same session.
fn drop_conflicting(profiles: &mut Vec<SessionProfile>, problems: &mut Problems) {
    profiles.dedup_by(|profile, kept| {
        let repeats = !kept.session.is_empty() && kept.session == profile.session;
        if repeats {
            let session = &profile.session;
            let reason =
                format!("two session profiles of `{session}` differ; the shorter one is kept");
            problems.add(Code::ConflictingProfile, None, reason);
        }
        repeats
    });
}

/// Keeps the first of spans with the same ids.
fn drop_repeats(spans: &mut Vec<Span>, names: &Names, problems: &mut Problems) {
    spans.dedup_by(|span, kept| {
        if (kept.trace, kept.id) != (span.trace, span.id) {
            return false;
        }
        let (code, reason) = if kept == span {
            (
                Code::DuplicateSpan,
                "is in the input more than once; counted once",
            )
        } else {
            (
                Code::ConflictingSpan,
                "shares its id with a different span; the earlier one is kept",
            )
        };
        problems.add(
            code,
            None,
            format!("span `{}` {reason}", names.text(span.name)),
        );
        true
    });
}

#[cfg(test)]
mod tests {
    use crate::units::Interval;

    use super::super::span::{ResourceIndex, Status};
    use super::*;

    fn span(trace: u8, id: u8, start: u64) -> Span {
        Span {
            trace: TraceId([trace; 16]),
            id: SpanId([id; 8]),
            parent: None,
            name: Names::default().intern("x"),
            status: Status::Unset,
            message: None,
            interval: Interval::new(Timestamp(start), Timestamp(start + 1)).unwrap(),
            attributes: Attributes::default(),
            extra: None,
            resource: ResourceIndex(0),
        }
    }

    #[test]
    fn traces_stand_by_their_start_and_spans_by_their_id_however_they_came() {
        let mut batch = Batch::default();
        batch.names.intern("x");
        // Three traces that are mixed up; the second has the earliest span of all.
        let came = [
            (3, 2, 50),
            (2, 9, 40),
            (3, 1, 60),
            (1, 5, 55),
            (2, 4, 10),
            (1, 3, 30),
        ];
        batch.spans = came
            .iter()
            .map(|(trace, id, start)| span(*trace, *id, *start))
            .collect();
        let (data, _) = Dataset::from_batch(batch);
        let order: Vec<_> = data
            .spans
            .iter()
            .map(|span| (span.trace.0[0], span.id.0[0]))
            .collect();
        assert_eq!(order, [(2, 4), (2, 9), (1, 3), (1, 5), (3, 1), (3, 2)]);
        for (place, (trace, id)) in order.into_iter().enumerate() {
            let found = data.find(TraceId([trace; 16]), SpanId([id; 8]));
            assert_eq!(found, Some(SpanIndex(u32::try_from(place).unwrap())));
        }
        // A span of another trace is not found, nor one of a trace that is not there.
        assert_eq!(data.find(TraceId([1; 16]), SpanId([9; 8])), None);
        assert_eq!(data.find(TraceId([7; 16]), SpanId([9; 8])), None);
        let traces = [0, 2, 4, 6].map(|first| data.trace_from(first));
        assert_eq!(traces, [0..2, 2..4, 4..6, 6..6]);
    }
}
