//! Attaches client records to the runs they measured.
//!
//! By session id first. A record whose session never came about is joined by
//! the daemon's pid, and only to a run that started soon after the record's
//! spawn, because pids come back. A record that fits no run is a run of its own
//! without a trace.

use std::collections::{BTreeSet, HashMap};

use crate::input::client::ClientRecord;
use crate::model::lens::Lens;
use crate::model::metric_rules::{RecordConcurrent, RecordRule};
use crate::trace::dataset::SpanIndex;
use crate::trace::span::Value;
use crate::units::{Interval, Nanos, Timestamp, difference};

use super::{Request, Run};

/// A run that starts later than this after the spawn is another process with
/// the same pid: ten minutes, the longest phase the contract allows.
const PID_WINDOW: Nanos = Nanos(600_000_000_000);

/// Attaches every record of the data.
pub fn attach<'a>(lens: &Lens<'a>, runs: &mut Vec<Run<'a>>) {
    let Some(rule) = &lens.model.client.record else {
        return;
    };
    if lens.data.clients.is_empty() {
        return;
    }
    let mut by_session_id: HashMap<&str, Vec<usize>> = HashMap::new();
    for (place, run) in runs.iter().enumerate() {
        for session in sessions_of(lens, run) {
            by_session_id.entry(session).or_default().push(place);
        }
    }
    for record in &lens.data.clients {
        let lists = rule.concurrent.iter().flat_map(|each| {
            (0..).map_while(move |place| record.get(&format!("{}.{place}", each.session)))
        });
        let single = rule.session.iter().filter_map(|path| record.get(path));
        let ids: Vec<_> = single.chain(lists).collect();
        let places = ids.iter().filter_map(|id| by_session_id.get(id)).flatten();
        let by_session = places
            .copied()
            .filter(|place| runs[*place].record.is_none())
            .min();
        let place = by_session
            .or_else(|| by_process(rule, record, runs))
            .unwrap_or_else(|| {
                let mut run = super::assemble::empty_run(None, None);
                run.first_of_process = true;
                runs.push(run);
                runs.len() - 1
            });
        let run = &mut runs[place];
        run.record = Some(record);
        record
            .get(&rule.cohort)
            .unwrap_or("")
            .clone_into(&mut run.cohort);
        record
            .get(&rule.label)
            .unwrap_or("")
            .clone_into(&mut run.id);
        if let Some(start) = start_of(lens, record) {
            run.start = run.start.min(start);
        }
    }
    super::assemble::sort(runs);
}

/// Every session id that a span or event of the run names.
pub(crate) fn sessions_of<'a>(lens: &Lens<'a>, run: &Run<'_>) -> BTreeSet<&'a str> {
    let below = run
        .requests
        .iter()
        .flat_map(|request| request.below.spans());
    sessions_below(lens, below.chain(run.channel.spans()))
}

/// Every session id that one of these spans or its events names.
fn sessions_below<'a, 's>(
    lens: &Lens<'a>,
    spans: impl Iterator<Item = &'s SpanIndex>,
) -> BTreeSet<&'a str> {
    let Some(key) = lens.data.names.find(&lens.model.keys.session) else {
        return BTreeSet::new();
    };
    let values = spans.flat_map(|span: &SpanIndex| {
        let span = lens.data.span(*span);
        let events = span
            .events()
            .iter()
            .filter_map(move |event| event.attributes.get(key));
        span.attribute(key).into_iter().chain(events)
    });
    let texts = values.filter_map(|value| match value {
        Value::Text(symbol) => Some(lens.data.names.text(symbol)),
        _ => None,
    });
    texts.collect()
}

fn by_process(rule: &RecordRule, record: &ClientRecord, runs: &[Run<'_>]) -> Option<usize> {
    let process = format!("{}{}", rule.process.prefix, record.get(&rule.process.path)?);
    let spawn = instant(record, rule.start.get(..1)?)?;
    runs.iter().position(|run| {
        let age = difference(run.start, spawn);
        run.record.is_none()
            && run.process_key == Some(process.as_str())
            && (Nanos(0)..=PID_WINDOW).contains(&age)
    })
}

/// The sum of milliseconds at `paths` as an instant.
fn instant(record: &ClientRecord, paths: &[String]) -> Option<Timestamp> {
    let mut sum = 0i64;
    for path in paths {
        sum = sum.checked_add(Nanos::from_decimal_ms(record.get(path)?)?.0)?;
    }
    u64::try_from(sum).ok().map(Timestamp)
}

/// When the client of a record sent its request.
#[must_use]
pub fn start_of(lens: &Lens<'_>, record: &ClientRecord) -> Option<Timestamp> {
    instant(record, &lens.model.client.record.as_ref()?.start)
}

/// A cold request as the client saw it: from the client's span above it, else
/// from its record. `alone` says that the run had no other cold request.
#[must_use]
pub fn window_of(
    lens: &Lens<'_>,
    run: &Run<'_>,
    request: &Request,
    of: Concurrent,
) -> Option<Interval> {
    let client = &lens.model.client;
    if let Some(name) = &client.span {
        let kind = lens.kind(name);
        // A request within a request was not sent by the client of the outer one.
        let itself = lens.kind_of(request.span);
        let above = lens.tree.ancestors(request.span);
        let mut above = above.take_while(|above| lens.kind_of(*above) != itself);
        let own = above.find(|above| lens.kind_of(*above) == kind);
        let only = || match of {
            Concurrent::Alone => run.first(lens, name),
            Concurrent::OneOf => None,
        };
        if let Some(span) = own.or_else(only) {
            return Some(lens.data.span(span).interval);
        }
    }
    let rule = client.record.as_ref()?;
    let record = run.record?;
    let own = rule
        .concurrent
        .as_ref()
        .and_then(|each| duration_of_one(lens, record, each, request));
    let whole = || match of {
        Concurrent::Alone => record.get(&rule.duration),
        Concurrent::OneOf => None,
    };
    let length = Nanos::from_decimal_ms(own.or_else(whole)?)?;
    Some(Interval::starting(start_of(lens, record)?, length))
}

/// Whether a cold request had others beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concurrent {
    /// It was the only one: what the client says of the run is about it.
    Alone,
    /// It was one of several: only what names it is about it.
    OneOf,
}

/// The duration that stands at the place of the request's session in a list.
fn duration_of_one<'a>(
    lens: &Lens<'_>,
    record: &'a ClientRecord,
    each: &RecordConcurrent,
    request: &Request,
) -> Option<&'a str> {
    let own = sessions_below(lens, request.below.spans().iter());
    for place in 0.. {
        let session = record.get(&format!("{}.{place}", each.session))?;
        if own.contains(session) {
            return record.get(&format!("{}.{place}", each.duration));
        }
    }
    None
}

/// Whether a record says that no session was made.
#[must_use]
pub fn failed(lens: &Lens<'_>, record: &ClientRecord) -> bool {
    let Some(rule) = &lens.model.client.record else {
        return false;
    };
    record
        .get(&rule.success.path)
        .is_some_and(|value| value != rule.success.equals)
}

/// What a run's record says about its failure.
#[must_use]
pub fn failure(lens: &Lens<'_>, run: &Run<'_>) -> Option<String> {
    let rule = lens.model.client.record.as_ref()?;
    let record = run.record.filter(|record| failed(lens, record))?;
    let value = record.get(&rule.success.path).unwrap_or("");
    Some(format!("the client says {} = {value}", rule.success.path))
}
