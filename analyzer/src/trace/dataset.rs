//! All spans in one order, without duplicates.
//!
//! The order is by trace, span id and start, so that the report is the same
//! whatever order the files, lines and spans came in.

use std::cmp::Ordering;
use std::ops::Range;

use crate::input::batch::Batch;
use crate::input::chrome;
use crate::input::client::ClientRecord;
use crate::input::manifest::Manifest;
use crate::input::profile::{PhaseProfile, SessionProfile};
use crate::problems::{Code, Problems};

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
    /// Spans by trace id, span id.
    pub spans: Vec<Span>,
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
            .spans
            .binary_search_by(|span| (span.trace, span.id).cmp(&(trace, id)));
        found
            .ok()
            .and_then(|index| u32::try_from(index).ok())
            .map(SpanIndex)
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

/// Sorts spans in their place. Keys and places are sorted instead of the spans,
/// which are ten times as large and then move once.
fn order(spans: &mut [Span], names: &Names) {
    if spans.is_sorted_by(|a, b| compare(names, a, b).is_le()) {
        return;
    }
    // The halves of a trace id by themselves are not always random: both count.
    let key = |span: &Span| {
        let (trace, id) = (
            u128::from_be_bytes(span.trace.0),
            u64::from_be_bytes(span.id.0),
        );
        (trace, id)
    };
    let places = 0..u32::try_from(spans.len()).unwrap_or(u32::MAX);
    let mut order: Vec<(u128, u64, u32)> = spans
        .iter()
        .zip(places)
        .map(|(span, place)| (key(span).0, key(span).1, place))
        .collect();
    order.sort_unstable_by(|a, b| {
        (a.0, a.1)
            .cmp(&(b.0, b.1))
            .then_with(|| compare(names, &spans[a.2 as usize], &spans[b.2 as usize]))
    });
    let mut from: Vec<u32> = order.iter().map(|(_, _, place)| *place).collect();
    drop(order);
    // Each cycle of the permutation is walked once, swapping along.
    for start in 0..from.len() {
        let mut at = start;
        while from[at] as usize != start && from[at] as usize != at {
            let next = from[at] as usize;
            spans.swap(at, next);
            from[at] = u32::try_from(at).unwrap_or(u32::MAX);
            at = next;
        }
        from[at] = u32::try_from(at).unwrap_or(u32::MAX);
    }
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
