//! Span dumps of the OpenTelemetry JavaScript SDK: `JSON.stringify` of its own
//! objects, one after the other.
//!
//! Takes the field names of SDK 1.x (`parentSpanId`, `resource.attributes`) and
//! of 2.x (`parentSpanContext`, `resource._rawAttributes` as pairs). Times are
//! `[seconds, nanoseconds]`. Spans that stand inside the dumped processor are
//! not records and are not counted.

use std::borrow::Cow;

use serde::Deserialize;

use crate::problems::Place;
use crate::trace::attributes::Attributes;
use crate::trace::names::Names;
use crate::trace::span::{Event, Extra, Link, Span, SpanId, Status, TraceId, Value};

use super::batch::Batch;
use super::lenient::{Id, List, Pairs, Scalar, Text};
use super::otlp::{check_ids, check_parent, check_times, event_time};
use super::record::parse;

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "camelCase")]
struct Context {
    #[serde(default)]
    trace_id: Id<16>,
    #[serde(default)]
    span_id: Id<8>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct JsSpan<'a> {
    #[serde(default, rename = "_spanContext", alias = "spanContext")]
    context: Context,
    #[serde(default)]
    parent_span_context: Option<Context>,
    #[serde(default)]
    parent_span_id: Id<8>,
    #[serde(default)]
    name: Text<'a>,
    #[serde(default)]
    start_time: List<Scalar<'a>>,
    #[serde(default)]
    end_time: List<Scalar<'a>>,
    #[serde(default)]
    attributes: Pairs<'a, Scalar<'a>>,
    #[serde(default)]
    events: List<JsEvent<'a>>,
    #[serde(default)]
    links: List<JsLink>,
    #[serde(default)]
    status: Option<JsStatus<'a>>,
    #[serde(default)]
    resource: Option<JsResource<'a>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct JsEvent<'a> {
    #[serde(default)]
    time: List<Scalar<'a>>,
    #[serde(default)]
    name: Text<'a>,
    #[serde(default)]
    attributes: Pairs<'a, Scalar<'a>>,
}

#[derive(Deserialize)]
struct JsLink {
    #[serde(default)]
    context: Context,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct JsStatus<'a> {
    #[serde(default)]
    code: Scalar<'a>,
    #[serde(default)]
    message: Text<'a>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct JsResource<'a> {
    #[serde(default, rename = "_rawAttributes")]
    raw: List<(Text<'a>, Scalar<'a>)>,
    #[serde(default, alias = "_attributes")]
    attributes: Pairs<'a, Scalar<'a>>,
}

/// Reads one dumped span.
///
/// # Errors
/// The parser's reason; `batch` is then unchanged.
pub fn read_span(bytes: &[u8], place: Place, batch: &mut Batch) -> Result<(), String> {
    let span: JsSpan<'_> = parse(bytes)?;
    batch.counts.spans += 1;
    let ids = check_ids(
        span.context.trace_id,
        span.context.span_id,
        &span.name.0,
        place,
        batch,
    );
    let times = (nanos(&span.start_time.0), nanos(&span.end_time.0));
    let interval = check_times(times, &span.name.0, place, batch);
    let (Some((trace, id)), Some(interval)) = (ids, interval) else {
        return Ok(());
    };
    let parent = span
        .parent_span_context
        .map_or(span.parent_span_id, |context| context.span_id);
    let parent = check_parent(parent, &span.name.0, place, batch);
    let names = &mut batch.names;
    let events = span.events.0.into_iter().map(|event| Event {
        name: names.intern(&event.name.0),
        time: event_time(nanos(&event.time.0)),
        attributes: keep(event.attributes.0, names),
    });
    let events: Vec<Event> = events.collect();
    let links = span.links.0.iter().filter_map(|link| {
        Some(Link {
            trace: TraceId(link.context.trace_id.bytes()?),
            span: SpanId(link.context.span_id.bytes()?),
        })
    });
    let (status, message) = match span.status {
        Some(status) => {
            let text = (!status.message.0.is_empty()).then(|| names.intern(&status.message.0));
            (status_of(&status.code), text)
        }
        None => (Status::Unset, None),
    };
    let name = names.intern(&span.name.0);
    let attributes = keep(span.attributes.0, names);
    let resource = span.resource.map_or_else(Attributes::default, |resource| {
        keep_resource(resource, names)
    });
    let resource = batch.resource(resource);
    let links = links.collect();
    batch.spans.push(Span {
        trace,
        id,
        parent,
        name,
        status,
        message,
        interval,
        attributes,
        extra: Extra::of(events, links),
        resource,
    });
    Ok(())
}

/// `[seconds, nanoseconds]` in nanoseconds.
fn nanos(pair: &[Scalar<'_>]) -> Option<u64> {
    let [seconds, nanos] = pair else { return None };
    seconds
        .as_u64()?
        .checked_mul(1_000_000_000)?
        .checked_add(nanos.as_u64()?)
}

fn status_of(code: &Scalar<'_>) -> Status {
    match code.as_u64() {
        Some(1) => Status::Ok,
        Some(2) => Status::Error,
        _ => Status::Unset,
    }
}

fn keep_resource(resource: JsResource<'_>, names: &mut Names) -> Attributes {
    let raw = resource
        .raw
        .0
        .into_iter()
        .map(|(key, value)| (key.0, value));
    keep(raw.chain(resource.attributes.0).collect(), names)
}

fn keep(pairs: Vec<(Cow<'_, str>, Scalar<'_>)>, names: &mut Names) -> Attributes {
    let kept = pairs.into_iter().map(|(key, value)| {
        let value = match value {
            Scalar::Bool(value) => Value::Bool(value),
            Scalar::Text(text) => Value::Text(names.intern(&text)),
            Scalar::Double(value) => Value::Double(value),
            Scalar::Null | Scalar::Nested | Scalar::Long(_) => Value::Other,
            Scalar::Unsigned(_) | Scalar::Signed(_) => {
                value.as_i64().map_or(Value::Other, Value::Int)
            }
        };
        (names.intern(&key), value)
    });
    kept.collect()
}
