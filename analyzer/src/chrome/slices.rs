//! The slices of one run: its spans and phases on one axis of microseconds,
//! each in its process, with what a viewer shows beside them.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use coldpath_trace_format::attributes::{PROCESS_PID, SERVICE_NAME};
use hashbrown::HashMap;
use serde_json::{Map, Value as Json};

use crate::breakdown::self_time::self_time;
use crate::chain::{ChainState, Run};
use crate::model::lens::Lens;
use crate::trace::dataset::SpanIndex;
use crate::trace::names::Symbol;
use crate::trace::span::{ResourceIndex, Status, Value};
use crate::units::{Interval, Nanos, Timestamp};

use super::critical;
use super::event::{Event, Kind, Text, shown};
use super::lanes::Lanes;
use super::phases::{Phase, Phases, phases};

/// Nanoseconds in a microsecond.
const NANOS: u64 = 1_000;
/// Largest process id of Linux and beyond; what is larger is no process id.
const PID_MAX: i64 = 1 << 30;

/// Events of one span that are drawn, the first: more are a log.
pub const INSTANTS_MAX: usize = 64;

/// Where a slice comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A span.
    Span(SpanIndex),
    /// A length without a span.
    Phase(Phase),
}

/// One slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Where it comes from.
    pub source: Source,
    /// Place of its process in the run.
    pub process: usize,
    /// Its parent among the slices, of any process.
    pub parent: Option<usize>,
    /// First microsecond.
    pub start: u64,
    /// Last microsecond, exclusive.
    pub end: u64,
}

/// A process of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) name: String,
    /// Its real id, where the trace says so.
    pub(super) pid: Option<u64>,
}

/// The slices of one run.
#[derive(Debug, Default)]
pub struct Slices {
    /// All of them.
    pub all: Vec<Slice>,
    /// The place of each span that is shown.
    pub of_span: HashMap<SpanIndex, usize>,
    /// The process of each place, by order of first appearance.
    pub(super) processes: Vec<Process>,
    /// Process and lane numbers of the file, once given.
    pub(super) pids: Vec<u64>,
    pub(super) first_tids: Vec<u64>,
    zero: Timestamp,
    critical: BTreeSet<SpanIndex>,
    /// Spans for which there was no room.
    pub left_out: usize,
}

/// What identifies a process: its key, else its resource.
type ProcessKey = (Option<Symbol>, u32);

fn process_key(lens: &Lens<'_>, span: SpanIndex) -> ProcessKey {
    let ResourceIndex(resource) = lens.data.span(span).resource;
    match lens.process_of(span) {
        Some(key) => (Some(key), 0),
        None => (None, resource),
    }
}

/// The real id of the process that made a span: its attribute, else what the
/// model says stands in its key.
pub(super) fn real_pid(lens: &Lens<'_>, span: SpanIndex) -> Option<u64> {
    let key = lens.data.names.find(PROCESS_PID);
    let said = key.and_then(|key| lens.data.resource_attribute(span, key));
    let in_key = || {
        let key = lens.data.names.text(lens.process_of(span)?);
        let record = lens.model.client.record.as_ref();
        let bare = record.and_then(|record| key.strip_prefix(&record.process.prefix));
        bare.unwrap_or(key).parse().ok()
    };
    let pid = said.and_then(Value::integer).or_else(in_key)?;
    u64::try_from(pid)
        .ok()
        .filter(|_| (1..=PID_MAX).contains(&pid))
}

impl Slices {
    /// Lays out the spans of a run, at most `room` of them, the longest.
    #[must_use]
    pub fn of(lens: &Lens<'_>, run: &Run<'_>, mut spans: Vec<SpanIndex>, room: usize) -> Self {
        let interval = |span: SpanIndex| lens.data.span(span).interval;
        let mut found = Self::default();
        if spans.len() > room {
            found.left_out = spans.len() - room;
            spans.sort_by_key(|span| (Reverse(interval(*span).length()), *span));
            spans.truncate(room);
        }
        spans.sort_by_key(|span| {
            (
                interval(*span).start(),
                Reverse(interval(*span).end()),
                *span,
            )
        });
        let shown: HashMap<SpanIndex, usize> = spans
            .iter()
            .enumerate()
            .map(|(at, span)| (*span, at))
            .collect();
        let mut beside = match run.chain {
            ChainState::NotTraced => Vec::new(),
            _ => phases(lens, run),
        };
        found.critical = critical_spans(lens, run, &mut beside);
        let beside: Vec<_> = beside
            .into_iter()
            .filter(|group| shown.contains_key(&group.host))
            .collect();
        let laid = beside
            .iter()
            .flat_map(|group| group.window.iter().chain(&group.parts));
        let starts = spans
            .iter()
            .map(|span| interval(*span))
            .chain(laid.map(|phase| phase.interval));
        found.zero = starts.map(Interval::start).min().unwrap_or_default();
        let mut places: HashMap<ProcessKey, usize> = HashMap::new();
        for span in &spans {
            let process = *places.entry(process_key(lens, *span)).or_insert_with(|| {
                found.processes.push(process(lens, *span));
                found.processes.len() - 1
            });
            let mut above = lens.tree.ancestors(*span);
            let parent = above.find_map(|above| shown.get(&above)).copied();
            found.push(Source::Span(*span), process, parent, interval(*span));
        }
        for group in beside {
            let host = shown[&group.host];
            let process = found.all[host].process;
            let parent = group.window.map_or(host, |window| {
                let at = window.interval;
                found.push(Source::Phase(window), process, Some(host), at)
            });
            for part in group.parts {
                let at = part.interval;
                found.push(Source::Phase(part), process, Some(parent), at);
            }
        }
        found.of_span = shown;
        found
    }

    fn push(
        &mut self,
        source: Source,
        process: usize,
        parent: Option<usize>,
        at: Interval,
    ) -> usize {
        let slice = Slice {
            source,
            process,
            parent,
            start: self.micros(at.start()),
            end: self.micros(at.end()),
        };
        self.all.push(slice);
        self.all.len() - 1
    }

    /// Whole microseconds after zero, rounded down.
    #[must_use]
    pub fn micros(&self, at: Timestamp) -> u64 {
        at.0.saturating_sub(self.zero.0) / NANOS
    }

    /// Process and lane of a slice in the file.
    #[must_use]
    pub fn place(&self, lanes: &Lanes, at: usize) -> (u64, u64) {
        let process = self.all[at].process;
        (
            self.pids[process],
            self.first_tids[process] + lanes.of[at] as u64,
        )
    }

    /// Slices, and an instant at the end of each span in error.
    pub fn events(&self, lens: &Lens<'_>, lanes: &Lanes, text: &mut Text, events: &mut Vec<Event>) {
        for (at, slice) in self.all.iter().enumerate() {
            let (pid, tid) = self.place(lanes, at);
            let (name, category, args) = match &slice.source {
                Source::Span(span) => {
                    (span_name(lens, *span), "span", self.args(lens, *span, text))
                }
                Source::Phase(phase) => (shown(&phase.name), "phase", phase_args(phase)),
            };
            let kind = Kind::Slice {
                length: slice.end - slice.start,
                depth: lanes.depth[at],
            };
            events.push(Event {
                kind,
                name,
                category,
                at: slice.start,
                pid,
                tid,
                args,
            });
            if let Source::Span(span) = &slice.source {
                self.instants(lens, *span, (pid, tid), text, events);
            }
        }
    }

    /// An instant for each event of a span whose time is known and not before
    /// zero, and one at its end where it is in error.
    fn instants(
        &self,
        lens: &Lens<'_>,
        index: SpanIndex,
        (pid, tid): (u64, u64),
        text: &mut Text,
        events: &mut Vec<Event>,
    ) {
        let span = lens.data.span(index);
        let instant = |name, category, at, args| Event {
            kind: Kind::Instant,
            name,
            category,
            at: self.micros(at),
            pid,
            tid,
            args,
        };
        let names = &lens.data.names;
        let timed = span.events().iter().filter_map(|event| {
            let time = event.time.filter(|time| *time >= self.zero)?;
            Some((event, time))
        });
        for (event, time) in timed.take(INSTANTS_MAX) {
            let mut args = Map::new();
            let attributes = event.attributes.iter();
            let attributes =
                attributes.map(|(key, value)| (names.text(key).to_owned(), json(lens, value)));
            text.add(attributes, &mut args);
            events.push(instant(shown(names.text(event.name)), "event", time, args));
        }
        if span.status == Status::Error {
            let name = format!("error: {}", span_name(lens, index));
            let end = span.interval.end();
            events.push(instant(name, "error", end, message(lens, index)));
        }
    }

    fn args(&self, lens: &Lens<'_>, index: SpanIndex, text: &mut Text) -> Map<String, Json> {
        let span = lens.data.span(index);
        let mut args = message(lens, index);
        let name = shown(lens.data.names.text(span.name));
        if name != span_name(lens, index) {
            args.insert("span_name".into(), name.into());
        }
        args.insert("trace_id".into(), hex(&span.trace.0).into());
        args.insert("span_id".into(), hex(&span.id.0).into());
        if let Some(parent) = span.parent {
            args.insert("parent_id".into(), hex(&parent.0).into());
        }
        let children = lens.tree.children(index).iter();
        let within =
            children.filter(|child| !lens.rule(**child).is_some_and(|rule| rule.asynchronous));
        let within: Vec<_> = within
            .map(|child| lens.data.span(*child).interval)
            .collect();
        args.insert("duration_us".into(), micros(span.interval.length()));
        args.insert("self_us".into(), micros(self_time(span.interval, &within)));
        if self.critical.contains(&index) {
            args.insert("critical".into(), true.into());
        }
        if let Some(sched) = &lens.model.sched {
            let figure = |key: &str| lens.attribute(index, key).and_then(Value::integer);
            if let (Some(cpu), Some(runq)) = (figure(&sched.cpu), figure(&sched.runq)) {
                let blocked = span
                    .interval
                    .length()
                    .0
                    .saturating_sub(cpu.saturating_add(runq));
                args.insert("cpu_us".into(), micros(Nanos(cpu)));
                args.insert("runq_us".into(), micros(Nanos(runq)));
                args.insert("blocked_us".into(), micros(Nanos(blocked.max(0))));
            }
        }
        let names = &lens.data.names;
        let attributes = span.attributes.iter();
        let attributes =
            attributes.map(|(key, value)| (names.text(key).to_owned(), json(lens, value)));
        text.add(attributes, &mut args);
        args
    }
}

/// The critical spans of every cold request, from what its client waited for.
fn critical_spans(lens: &Lens<'_>, run: &Run<'_>, phases: &mut [Phases]) -> BTreeSet<SpanIndex> {
    let kind = lens
        .model
        .client
        .span
        .as_ref()
        .and_then(|name| lens.kind(name));
    let root = |span: SpanIndex| {
        let mut above = lens.tree.ancestors(span);
        let client = above.find(|above| kind.is_some() && lens.kind_of(*above) == kind);
        client.unwrap_or(span)
    };
    let mut found = BTreeSet::new();
    for request in run.cold_requests(lens) {
        let alone = run.with_only(request);
        found.extend(critical::path(lens, &alone, root(request.span), phases));
    }
    found
}

fn process(lens: &Lens<'_>, span: SpanIndex) -> Process {
    let key = lens.process_of(span).map(|key| lens.data.names.text(key));
    let name = lens
        .resource_text(span, SERVICE_NAME)
        .or(key)
        .unwrap_or("process");
    Process {
        name: shown(name),
        pid: real_pid(lens, span),
    }
}

fn phase_args(phase: &Phase) -> Map<String, Json> {
    let mut args = Map::from_iter([
        ("window".to_owned(), shown(&phase.window).into()),
        ("duration_us".to_owned(), micros(phase.interval.length())),
        ("placed".to_owned(), phase.placed.into()),
    ]);
    if phase.critical {
        args.insert("critical".to_owned(), true.into());
    }
    args
}

/// The span's name; where a model tells spans of one name apart by what they
/// carry, its word for them, and the name stands in the arguments.
fn span_name(lens: &Lens<'_>, span: SpanIndex) -> String {
    let rule = lens.rule(span).filter(|rule| !rule.conditions.is_empty());
    let name = || lens.data.names.text(lens.data.span(span).name);
    shown(rule.map_or_else(name, |rule| &rule.kind))
}

/// The message of a span in error.
fn message(lens: &Lens<'_>, span: SpanIndex) -> Map<String, Json> {
    let message = lens
        .data
        .span(span)
        .message
        .map(|text| lens.data.names.text(text));
    let message = message.filter(|text| !text.is_empty());
    message
        .map(|text| ("status_message".to_owned(), shown(text).into()))
        .into_iter()
        .collect()
}

fn json(lens: &Lens<'_>, value: Value) -> Json {
    match value {
        Value::Int(value) => value.into(),
        Value::Bool(value) => value.into(),
        Value::Double(value) if value.is_finite() => value.into(),
        other => shown(&other.print(&lens.data.names)).into(),
    }
}

/// Exact to the nanosecond below 104 days.
fn micros(value: Nanos) -> Json {
    Json::from(value.0 as f64 / NANOS as f64)
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}
