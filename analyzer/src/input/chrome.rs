//! Chrome trace JSON: `[event, …]` or `{"traceEvents":[…]}`.
//!
//! Complete events (`X`) are spans; `B` and `E` are paired last in, first out on
//! their process and thread, `b` and `e` by category, id and name. A span's
//! parent is the span of the same thread that encloses it. Flows, counters and
//! instants are skipped. The format has no ids and no epoch: ids come from the
//! contents of the file, and times count from [`EPOCH`].
//! Source: "Trace Event Format"; times are microseconds, fractions allowed.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::problems::{Code, Place};
use crate::trace::attributes::Attributes;
use crate::trace::names::Symbol;
use crate::trace::span::{ResourceIndex, Span, SpanId, Status, TraceId, Value};
use crate::units::{Interval, LENGTH_MAX, Timestamp};

use super::batch::Batch;
use super::lenient::{List, Pairs, Scalar, Text};
use super::record::parse;

/// Where times of the format start: one second after the Unix epoch, because a
/// start of 0 means elsewhere that it was never set.
pub const EPOCH: u64 = 1_000_000_000;
/// Microseconds beyond this are no time: about 292 years.
const MICROS_MAX: f64 = 9.2e15;

/// Phase of an event that stands for time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Begin,
    End,
    Complete,
    AsyncBegin,
    AsyncEnd,
}

/// One event, until its file is read.
#[derive(Clone, Debug)]
pub struct ChromeEvent {
    place: Place,
    phase: Phase,
    process: Symbol,
    thread: Symbol,
    /// Category and id of an asynchronous event.
    id: Option<Symbol>,
    name: Symbol,
    start: u64,
    length: u64,
    attributes: Attributes,
}

impl ChromeEvent {
    /// The same event in the texts of another batch.
    pub(super) fn retold(mut self, texts: &[Symbol]) -> Self {
        let retold = |symbol: Symbol| texts[symbol.place()];
        (self.process, self.thread) = (retold(self.process), retold(self.thread));
        self.id = self.id.map(retold);
        self.name = retold(self.name);
        self.attributes.retell(texts);
        self
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct Document<'a> {
    #[serde(default)]
    trace_events: List<Event<'a>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Event<'a> {
    #[serde(default)]
    ph: Text<'a>,
    #[serde(default)]
    name: Text<'a>,
    #[serde(default)]
    cat: Text<'a>,
    #[serde(default)]
    id: Scalar<'a>,
    #[serde(default)]
    pid: Scalar<'a>,
    #[serde(default)]
    tid: Scalar<'a>,
    #[serde(default)]
    ts: Scalar<'a>,
    #[serde(default)]
    dur: Scalar<'a>,
    #[serde(default)]
    args: Pairs<'a, Scalar<'a>>,
}

/// Reads `{"traceEvents":[…]}`.
///
/// # Errors
/// The parser's reason; `batch` is then unchanged.
pub fn read_document(bytes: &[u8], place: Place, batch: &mut Batch) -> Result<(), String> {
    let document: Document<'_> = parse(bytes)?;
    for event in document.trace_events.0 {
        add(&event, place, batch);
    }
    Ok(())
}

/// Reads one event.
///
/// # Errors
/// The parser's reason; `batch` is then unchanged.
pub fn read_event(bytes: &[u8], place: Place, batch: &mut Batch) -> Result<(), String> {
    add(&parse(bytes)?, place, batch);
    Ok(())
}

fn add(event: &Event<'_>, place: Place, batch: &mut Batch) {
    let phase = match event.ph.0.as_ref() {
        "B" => Phase::Begin,
        "E" => Phase::End,
        "X" => Phase::Complete,
        "b" => Phase::AsyncBegin,
        "e" => Phase::AsyncEnd,
        _ => {
            batch.counts.metrics += 1;
            return;
        }
    };
    let length = match phase {
        Phase::Complete => nanos(&event.dur),
        _ => Some(0),
    };
    let (Some(start), Some(length)) = (nanos(&event.ts), length) else {
        let reason = format!(
            "event `{}` has no usable ts or dur; it is left out",
            event.name.0
        );
        batch.problems.add(Code::InvalidTime, Some(place), reason);
        return;
    };
    let id = match phase {
        Phase::AsyncBegin | Phase::AsyncEnd => {
            let text = format!("{} {} {}", event.cat.0, print(&event.id), event.name.0);
            Some(batch.names.intern(&text))
        }
        _ => None,
    };
    let attributes = event.args.0.iter().map(|(key, value)| {
        let value = match value {
            Scalar::Bool(value) => Value::Bool(*value),
            Scalar::Text(text) => Value::Text(batch.names.intern(text)),
            Scalar::Double(value) => Value::Double(*value),
            other => other.as_i64().map_or(Value::Other, Value::Int),
        };
        (batch.names.intern(key), value)
    });
    let attributes = attributes.collect();
    // Without a thread the event is the process's.
    let thread = match &event.tid {
        Scalar::Null => &event.pid,
        other => other,
    };
    let new = ChromeEvent {
        place,
        phase,
        process: batch.names.intern(&print(&event.pid)),
        thread: batch.names.intern(&print(thread)),
        id,
        name: batch.names.intern(&event.name.0),
        start,
        length,
        attributes,
    };
    batch.chrome.push(new);
}

/// Microseconds after the format's zero as nanoseconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be in range"
)]
fn nanos(value: &Scalar<'_>) -> Option<u64> {
    match value {
        Scalar::Unsigned(micros) => micros.checked_mul(1000),
        Scalar::Null | Scalar::Bool(_) | Scalar::Nested | Scalar::Long(_) => None,
        other => {
            let micros = other.as_f64()?;
            (0.0..MICROS_MAX)
                .contains(&micros)
                .then(|| (micros * 1000.0).round() as u64)
        }
    }
}

fn print(value: &Scalar<'_>) -> String {
    match value {
        Scalar::Text(text) => text.to_string(),
        other => other
            .as_i64()
            .map_or_else(String::new, |value| value.to_string()),
    }
}

/// One span of a file, not yet named by ids.
struct Piece {
    lane: (Symbol, Symbol),
    asynchronous: bool,
    start: u64,
    end: u64,
    name: Symbol,
    attributes: Attributes,
}

/// Turns the events of all files into spans; to be called when all is read.
pub fn assemble(batch: &mut Batch) {
    let mut files: BTreeMap<u32, Vec<ChromeEvent>> = BTreeMap::new();
    for event in std::mem::take(&mut batch.chrome) {
        files.entry(event.place.file).or_default().push(event);
    }
    for (_, mut events) in files {
        events.sort_by_key(|event| (event.start, event.place.byte));
        let mut pieces = pair(events, batch);
        let text = |symbol: Symbol| batch.names.text(symbol).to_owned();
        pieces.sort_by_cached_key(|piece| {
            let lane = (text(piece.lane.0), text(piece.lane.1));
            (
                piece.asynchronous,
                lane,
                piece.start,
                Reverse(piece.end),
                text(piece.name),
            )
        });
        add_spans(pieces, batch);
    }
}

/// Complete events as they are, beginnings with their ends.
fn pair(events: Vec<ChromeEvent>, batch: &mut Batch) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut open: BTreeMap<(String, String, String), Vec<ChromeEvent>> = BTreeMap::new();
    for event in events {
        let key = |batch: &Batch| {
            let text = |symbol| batch.names.text(symbol).to_owned();
            match event.id {
                // Asynchronous events may end on another thread.
                Some(id) => (text(event.process), String::new(), text(id)),
                None => (text(event.process), text(event.thread), String::new()),
            }
        };
        match event.phase {
            Phase::Complete => {
                let end = event.start.saturating_add(event.length);
                pieces.push(piece(event, end));
            }
            Phase::Begin | Phase::AsyncBegin => open.entry(key(batch)).or_default().push(event),
            Phase::End | Phase::AsyncEnd => {
                if let Some(begin) = open.get_mut(&key(batch)).and_then(Vec::pop) {
                    pieces.push(piece(begin, event.start));
                } else {
                    let reason = "an end event has no beginning; it is left out";
                    batch
                        .problems
                        .add(Code::InvalidTime, Some(event.place), reason);
                }
            }
        }
    }
    for event in open.into_values().flatten() {
        let name = batch.names.text(event.name);
        let reason = format!("event `{name}` begins and never ends; it is left out");
        batch
            .problems
            .add(Code::InvalidTime, Some(event.place), reason);
    }
    pieces
}

fn piece(event: ChromeEvent, end: u64) -> Piece {
    Piece {
        lane: (event.process, event.thread),
        asynchronous: event.id.is_some(),
        start: event.start,
        end,
        name: event.name,
        attributes: event.attributes,
    }
}

/// Gives the spans of one file their ids and parents.
fn add_spans(pieces: Vec<Piece>, batch: &mut Batch) {
    let trace = trace_id(&pieces, batch);
    let mut stack: Vec<(u64, SpanId)> = Vec::new();
    let mut lane = None;
    for (place, piece) in pieces.into_iter().enumerate() {
        if lane != Some((piece.lane, piece.asynchronous)) {
            lane = Some((piece.lane, piece.asynchronous));
            stack.clear();
        }
        while stack
            .last()
            .is_some_and(|(end, _)| *end < piece.end || *end <= piece.start)
        {
            stack.pop();
        }
        let id = span_id(trace, place);
        let parent = stack
            .last()
            .map(|(_, id)| *id)
            .filter(|_| !piece.asynchronous);
        stack.push((piece.end, id));
        let times = (EPOCH.checked_add(piece.start), EPOCH.checked_add(piece.end));
        let (Some(start), Some(end)) = times else {
            continue;
        };
        let interval = Interval::new(Timestamp(start), Timestamp(end));
        let Some(interval) = interval.filter(|interval| interval.length() <= LENGTH_MAX) else {
            let reason = "an event lasts more than a year; it is left out";
            batch.problems.add(Code::InvalidTime, None, reason);
            continue;
        };
        batch.counts.spans += 1;
        let resource = process_of(piece.lane.0, batch);
        batch.spans.push(Span {
            trace,
            id,
            parent,
            name: piece.name,
            status: Status::Unset,
            message: None,
            interval,
            attributes: piece.attributes,
            extra: None,
            resource,
        });
    }
}

/// The process id stands for the resource, which the format does not have.
fn process_of(process: Symbol, batch: &mut Batch) -> ResourceIndex {
    let key = batch
        .names
        .intern(coldpath_trace_format::attributes::SERVICE_INSTANCE_ID);
    batch.resource(std::iter::once((key, Value::Text(process))).collect())
}

fn trace_id(pieces: &[Piece], batch: &Batch) -> TraceId {
    let mut hash = Sha256::new();
    for piece in pieces {
        for symbol in [piece.lane.0, piece.lane.1, piece.name] {
            hash.update(batch.names.text(symbol).as_bytes());
            hash.update([0]);
        }
        hash.update(piece.start.to_le_bytes());
        hash.update(piece.end.to_le_bytes());
    }
    let mut id = [0; 16];
    id.copy_from_slice(&hash.finalize()[..16]);
    id[0] |= 1;
    TraceId(id)
}

fn span_id(trace: TraceId, place: usize) -> SpanId {
    let mut hash = Sha256::new();
    hash.update(trace.0);
    hash.update((place as u64).to_le_bytes());
    let mut id = [0; 8];
    id.copy_from_slice(&hash.finalize()[..8]);
    id[0] |= 1;
    SpanId(id)
}
