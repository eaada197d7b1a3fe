//! OTLP JSON: lines, whole files and bare `ResourceSpans`.
//!
//! Source: OpenTelemetry protocol specification, "JSON Protobuf Encoding", and
//! the file exporter specification. Borrowed structs, no value tree. Unknown
//! fields are ignored, as the specification demands; 64-bit integers are taken
//! as text and as numbers, ids as hexadecimal of either case.

use serde::Deserialize;

use crate::problems::{Code, Place};
use crate::trace::attributes::Attributes;
use crate::trace::names::{Names, Symbol};
use crate::trace::span::{Event, Extra, Link, ResourceIndex, Span, SpanId, Status, TraceId, Value};
use crate::units::{Interval, LENGTH_MAX, Timestamp};

use super::batch::Batch;
use super::lenient::{Id, List, Scalar, Text};
use super::record::parse;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct TracesData<'a> {
    #[serde(default, alias = "batches", alias = "resource_spans")]
    resource_spans: List<ResourceSpans<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct ResourceSpans<'a> {
    #[serde(default)]
    resource: Option<OtlpResource<'a>>,
    #[serde(default, alias = "instrumentationLibrarySpans", alias = "scope_spans")]
    scope_spans: List<ScopeSpans<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(bound(deserialize = "'de: 'a"))]
struct OtlpResource<'a> {
    #[serde(default)]
    attributes: List<KeyValue<'a>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct ScopeSpans<'a> {
    #[serde(default)]
    spans: List<OtlpSpan<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct OtlpSpan<'a> {
    #[serde(default, alias = "trace_id")]
    trace_id: Id<16>,
    #[serde(default, alias = "span_id")]
    span_id: Id<8>,
    #[serde(default, alias = "parent_span_id")]
    parent_span_id: Id<8>,
    #[serde(default)]
    name: Text<'a>,
    #[serde(default, alias = "start_time_unix_nano")]
    start_time_unix_nano: Scalar<'a>,
    #[serde(default, alias = "end_time_unix_nano")]
    end_time_unix_nano: Scalar<'a>,
    #[serde(default)]
    attributes: List<KeyValue<'a>>,
    #[serde(default)]
    events: List<OtlpEvent<'a>>,
    #[serde(default)]
    links: List<OtlpLink>,
    #[serde(default)]
    status: Option<OtlpStatus<'a>>,
    #[serde(default)]
    dropped_attributes_count: Scalar<'a>,
    #[serde(default)]
    dropped_events_count: Scalar<'a>,
    #[serde(default)]
    dropped_links_count: Scalar<'a>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
#[serde(rename_all = "camelCase")]
struct OtlpEvent<'a> {
    #[serde(default, alias = "time_unix_nano")]
    time_unix_nano: Scalar<'a>,
    #[serde(default)]
    name: Text<'a>,
    #[serde(default)]
    attributes: List<KeyValue<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OtlpLink {
    #[serde(default)]
    trace_id: Id<16>,
    #[serde(default)]
    span_id: Id<8>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct OtlpStatus<'a> {
    #[serde(default)]
    code: Scalar<'a>,
    #[serde(default)]
    message: Text<'a>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct KeyValue<'a> {
    #[serde(default)]
    key: Text<'a>,
    #[serde(default)]
    value: Option<AnyValue<'a>>,
}

/// One field is set; the others say nothing.
#[expect(
    clippy::struct_field_names,
    reason = "the fields bear the names of the wire format"
)]
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct AnyValue<'a> {
    #[serde(default, alias = "string_value")]
    string_value: Option<Text<'a>>,
    #[serde(default, alias = "bool_value")]
    bool_value: Option<bool>,
    #[serde(default, alias = "int_value")]
    int_value: Option<Scalar<'a>>,
    #[serde(default, alias = "double_value")]
    double_value: Option<Scalar<'a>>,
}

/// Reads `{"resourceSpans":[…]}`.
///
/// # Errors
/// The parser's reason; `batch` is then unchanged.
pub fn read_spans(bytes: &[u8], place: Place, batch: &mut Batch) -> Result<(), String> {
    let data: TracesData<'_> = parse(bytes)?;
    for group in data.resource_spans.0 {
        add_group(group, place, batch);
    }
    Ok(())
}

/// Reads one bare `ResourceSpans` object.
///
/// # Errors
/// The parser's reason; `batch` is then unchanged.
pub fn read_resource_spans(bytes: &[u8], place: Place, batch: &mut Batch) -> Result<(), String> {
    let group: ResourceSpans<'_> = parse(bytes)?;
    add_group(group, place, batch);
    Ok(())
}

fn add_group(group: ResourceSpans<'_>, place: Place, batch: &mut Batch) {
    let attributes = keep_attributes(
        group.resource.unwrap_or_default().attributes.0,
        place,
        batch,
    );
    let resource = batch.resource(attributes);
    for scope in group.scope_spans.0 {
        for span in scope.spans.0 {
            batch.counts.spans += 1;
            if let Some(span) = keep_span(span, resource, place, batch) {
                batch.spans.push(span);
            }
        }
    }
}

/// When an event was; 0 means that nobody said.
pub(super) fn event_time(nanos: Option<u64>) -> Option<Timestamp> {
    nanos.filter(|nanos| *nanos > 0).map(Timestamp)
}

fn keep_span(
    span: OtlpSpan<'_>,
    resource: ResourceIndex,
    place: Place,
    batch: &mut Batch,
) -> Option<Span> {
    let (trace, id) = check_ids(span.trace_id, span.span_id, &span.name.0, place, batch)?;
    let parent = check_parent(span.parent_span_id, &span.name.0, place, batch);
    check_numbers(&span, place, batch);
    let times = (
        span.start_time_unix_nano.as_u64(),
        span.end_time_unix_nano.as_u64(),
    );
    let interval = check_times(times, &span.name.0, place, batch)?;
    let (status, message) = keep_status(span.status, &mut batch.names);
    let events = span.events.0.into_iter().map(|event| Event {
        name: batch.names.intern(&event.name.0),
        time: event_time(event.time_unix_nano.as_u64()),
        attributes: keep_attributes(event.attributes.0, place, batch),
    });
    let events: Vec<Event> = events.collect();
    let links = span.links.0.iter().filter_map(|link| {
        Some(Link {
            trace: TraceId(link.trace_id.bytes()?),
            span: SpanId(link.span_id.bytes()?),
        })
    });
    Some(Span {
        trace,
        id,
        parent,
        name: batch.names.intern(&span.name.0),
        status,
        message,
        interval,
        extra: Extra::of(events, links.collect()),
        attributes: keep_attributes(span.attributes.0, place, batch),
        resource,
    })
}

/// The parent's id, or a problem.
pub(super) fn check_parent(
    id: Id<8>,
    name: &str,
    place: Place,
    batch: &mut Batch,
) -> Option<SpanId> {
    if id == Id::Invalid {
        let reason = format!("span `{name}` has a parent id that is no 16 hexadecimal digits");
        batch.problems.add(Code::InvalidId, Some(place), reason);
    }
    id.bytes().map(SpanId)
}

/// Numbers that say less than they seem to, or nothing.
fn check_numbers(span: &OtlpSpan<'_>, place: Place, batch: &mut Batch) {
    let rounded = |time: &Scalar<'_>| matches!(time, Scalar::Unsigned(_) | Scalar::Double(_));
    if rounded(&span.start_time_unix_nano) || rounded(&span.end_time_unix_nano) {
        let reason = format!(
            "span `{}` has its times as numbers: if a double held them, they are rounded to 256 ns",
            span.name.0
        );
        batch.problems.add(Code::TimeAsNumber, Some(place), reason);
    }
    let counts = [
        &span.dropped_attributes_count,
        &span.dropped_events_count,
        &span.dropped_links_count,
    ];
    if counts
        .iter()
        .any(|count| matches!(count, Scalar::Signed(_)))
    {
        let reason = format!(
            "span `{}` has a negative dropped count; it is ignored",
            span.name.0
        );
        batch.problems.add(Code::InvalidCount, Some(place), reason);
    }
}

/// Both ids of a span, or a problem.
pub(super) fn check_ids(
    trace: Id<16>,
    span: Id<8>,
    name: &str,
    place: Place,
    batch: &mut Batch,
) -> Option<(TraceId, SpanId)> {
    if let (Some(trace_id), Some(span_id)) = (trace.bytes(), span.bytes()) {
        if matches!(trace, Id::Base64(_)) || matches!(span, Id::Base64(_)) {
            let reason = format!("span `{name}` has its ids in base64 instead of hexadecimal");
            batch.problems.add(Code::Base64Id, Some(place), reason);
        }
        return Some((TraceId(trace_id), SpanId(span_id)));
    }
    let which = if trace.bytes().is_some() {
        "span id"
    } else {
        "trace id"
    };
    let reason = format!("span `{name}` has no valid {which}; it is left out");
    batch.problems.add(Code::InvalidId, Some(place), reason);
    None
}

/// The interval of a span, or a problem; times are never mended.
pub(super) fn check_times(
    (start, end): (Option<u64>, Option<u64>),
    name: &str,
    place: Place,
    batch: &mut Batch,
) -> Option<Interval> {
    let (Some(start @ 1..), Some(end @ 1..)) = (start, end) else {
        let reason = format!("span `{name}` has no usable start or end; it is left out");
        batch.problems.add(Code::InvalidTime, Some(place), reason);
        return None;
    };
    let interval = Interval::new(Timestamp(start), Timestamp(end));
    if interval.is_some_and(|interval| interval.length() > LENGTH_MAX) {
        let reason = format!("span `{name}` lasts more than a year; it is left out");
        batch.problems.add(Code::InvalidTime, Some(place), reason);
        return None;
    }
    if interval.is_none() {
        let reason = format!(
            "span `{name}` ends {} ns before it starts; it is left out",
            start - end
        );
        batch
            .problems
            .add(Code::EndBeforeStart, Some(place), reason);
    }
    interval
}

fn keep_status(status: Option<OtlpStatus<'_>>, names: &mut Names) -> (Status, Option<Symbol>) {
    let Some(status) = status else {
        return (Status::Unset, None);
    };
    let code = match (&status.code, status.code.as_u64()) {
        (_, Some(1)) => Status::Ok,
        (_, Some(2)) => Status::Error,
        // Enum names are forbidden by the specification and written all the same.
        (Scalar::Text(text), None) if text == "STATUS_CODE_OK" => Status::Ok,
        (Scalar::Text(text), None) if text == "STATUS_CODE_ERROR" => Status::Error,
        _ => Status::Unset,
    };
    let message = (!status.message.0.is_empty()).then(|| names.intern(&status.message.0));
    (code, message)
}

fn keep_attributes(list: Vec<KeyValue<'_>>, place: Place, batch: &mut Batch) -> Attributes {
    let mut kept = Vec::with_capacity(list.len());
    for pair in list {
        let value = match pair.value {
            None => Value::Other,
            Some(value) => match keep_value(value, &mut batch.names) {
                Ok(value) => value,
                Err(what) => {
                    let reason =
                        format!("attribute `{}` is declared {what} and is none", pair.key.0);
                    batch
                        .problems
                        .add(Code::InvalidAttribute, Some(place), reason);
                    continue;
                }
            },
        };
        kept.push((batch.names.intern(&pair.key.0), value));
    }
    kept.into_iter().collect()
}

fn keep_value(value: AnyValue<'_>, names: &mut Names) -> Result<Value, &'static str> {
    if let Some(text) = value.string_value {
        Ok(Value::Text(names.intern(&text.0)))
    } else if let Some(value) = value.bool_value {
        Ok(Value::Bool(value))
    } else if let Some(value) = value.int_value {
        value.as_i64().map(Value::Int).ok_or("an integer")
    } else if let Some(value) = value.double_value {
        value.as_f64().map(Value::Double).ok_or("a number")
    } else {
        Ok(Value::Other)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogsData {
    #[serde(default)]
    resource_logs: List<ResourceLogs>,
    #[serde(default)]
    scope_logs: List<ScopeLogs>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceLogs {
    #[serde(default)]
    scope_logs: List<ScopeLogs>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ScopeLogs {
    #[serde(default)]
    log_records: List<serde::de::IgnoredAny>,
}

/// Counts the log records of an OTLP value; they are not analysed.
///
/// # Errors
/// The parser's reason.
pub fn count_logs(bytes: &[u8], batch: &mut Batch) -> Result<(), String> {
    let data: LogsData = parse(bytes)?;
    let nested = data
        .resource_logs
        .0
        .iter()
        .flat_map(|group| &group.scope_logs.0);
    let counts = nested
        .chain(&data.scope_logs.0)
        .map(|scope| scope.log_records.0.len() as u64);
    batch.counts.logs += counts.sum::<u64>();
    Ok(())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MetricsData {
    #[serde(default)]
    resource_metrics: List<ResourceMetrics>,
    #[serde(default)]
    scope_metrics: List<ScopeMetrics>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceMetrics {
    #[serde(default)]
    scope_metrics: List<ScopeMetrics>,
}

#[derive(Deserialize)]
struct ScopeMetrics {
    #[serde(default)]
    metrics: List<serde::de::IgnoredAny>,
}

/// Counts the metrics of an OTLP or SDK value; they are not analysed.
///
/// # Errors
/// The parser's reason.
pub fn count_metrics(bytes: &[u8], batch: &mut Batch) -> Result<(), String> {
    let data: MetricsData = parse(bytes)?;
    let nested = data
        .resource_metrics
        .0
        .iter()
        .flat_map(|group| &group.scope_metrics.0);
    let counts = nested
        .chain(&data.scope_metrics.0)
        .map(|scope| scope.metrics.0.len() as u64);
    batch.counts.metrics += counts.sum::<u64>();
    Ok(())
}
