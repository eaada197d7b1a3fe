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

use super::names::{Names, Symbol};
use super::span::{Resource, Span, SpanId, TraceId, Value};

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
        order(&mut spans, &names);
        drop_repeats(&mut spans, &names, &mut problems);
        spans.shrink_to_fit();
        let traces = index(&spans);
        profiles.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
        profiles.dedup();
        session_profiles.sort_by(|a, b| a.session.cmp(&b.session));
        session_profiles.dedup();
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
fn order(spans: &mut [Span], names: &Names) {
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
        trace.sort_unstable_by(|a, b| compare(names, a, b));
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
fn compare(names: &Names, a: &Span, b: &Span) -> Ordering {
    let key = |span: &Span| (span.trace, span.id, span.interval);
    key(a)
        .cmp(&key(b))
        .then_with(|| names.text(a.name).cmp(names.text(b.name)))
        .then_with(|| {
            if a == b {
                Ordering::Equal
            } else {
                describe(names, a).cmp(&describe(names, b))
            }
        })
}

/// All that is said about a span, in words: the tie-break of spans that share
/// ids and times, which is rare.
fn describe(names: &Names, span: &Span) -> String {
    let mut text = format!("{:?}{:?}", span.parent, span.status);
    for (key, value) in span.attributes.iter() {
        text.push_str(names.text(key));
        text.push_str(&value.print(names));
    }
    text
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
