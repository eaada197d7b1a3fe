//! Traces as Jaeger's HTTP API and its user interface write them:
//! `{"data":[{"traceID":…,"spans":[…],"processes":{…}}]}`, or one such trace.
//!
//! Times are microseconds. Ids are hexadecimal, and older writers leave leading
//! zeros out. A `CHILD_OF` reference within the trace is the parent; all others
//! are links. Tags become attributes, those of the process resource attributes.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;

use crate::problems::{Code, Place};
use crate::trace::attributes::Attributes;
use crate::trace::span::{Extra, Link, ResourceIndex, Span, SpanId, Status, TraceId, Value};

use super::batch::Batch;
use super::lenient::{List, Pairs, Scalar, Text};
use super::otlp::check_times;
use super::record::parse;

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Answer<'a> {
    #[serde(default)]
    data: List<Trace<'a>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Trace<'a> {
    #[serde(default)]
    spans: List<JaegerSpan<'a>>,
    #[serde(default)]
    processes: Pairs<'a, Process<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct Process<'a> {
    #[serde(default)]
    service_name: Text<'a>,
    #[serde(default)]
    tags: List<Tag<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct JaegerSpan<'a> {
    #[serde(default, rename = "traceID")]
    trace_id: Text<'a>,
    #[serde(default, rename = "spanID")]
    span_id: Text<'a>,
    #[serde(default)]
    operation_name: Text<'a>,
    #[serde(default)]
    references: List<Reference<'a>>,
    #[serde(default)]
    start_time: Scalar<'a>,
    #[serde(default)]
    duration: Scalar<'a>,
    #[serde(default)]
    tags: List<Tag<'a>>,
    #[serde(default, rename = "processID")]
    process_id: Text<'a>,
    #[serde(default)]
    process: Option<Process<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct Reference<'a> {
    #[serde(default)]
    ref_type: Text<'a>,
    #[serde(default, rename = "traceID")]
    trace_id: Text<'a>,
    #[serde(default, rename = "spanID")]
    span_id: Text<'a>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Tag<'a> {
    #[serde(default)]
    key: Text<'a>,
    #[serde(default)]
    value: Scalar<'a>,
}

/// Reads an answer of the API.
///
/// # Errors
/// The parser's reason; `batch` is then unchanged.
pub fn read_answer(bytes: &[u8], place: Place, batch: &mut Batch) -> Result<(), String> {
    let answer: Answer<'_> = parse(bytes)?;
    for trace in answer.data.0 {
        add_trace(trace, place, batch);
    }
    Ok(())
}

/// Reads one bare trace.
///
/// # Errors
/// The parser's reason; `batch` is then unchanged.
pub fn read_trace(bytes: &[u8], place: Place, batch: &mut Batch) -> Result<(), String> {
    add_trace(parse(bytes)?, place, batch);
    Ok(())
}

fn add_trace(trace: Trace<'_>, place: Place, batch: &mut Batch) {
    let mut processes: HashMap<Cow<'_, str>, ResourceIndex> = HashMap::new();
    for (name, process) in trace.processes.0 {
        let resource = keep_process(&process, batch);
        processes.insert(name, resource);
    }
    for span in trace.spans.0 {
        batch.counts.spans += 1;
        add_span(span, &processes, place, batch);
    }
}

fn keep_process(process: &Process<'_>, batch: &mut Batch) -> ResourceIndex {
    let key = batch
        .names
        .intern(coldpath_trace_format::attributes::SERVICE_NAME);
    let name = Value::Text(batch.names.intern(&process.service_name.0));
    let tags = keep_tags(&process.tags.0, batch);
    batch.resource(std::iter::once((key, name)).chain(tags).collect())
}

fn add_span(
    span: JaegerSpan<'_>,
    processes: &HashMap<Cow<'_, str>, ResourceIndex>,
    place: Place,
    batch: &mut Batch,
) {
    let name = &span.operation_name.0;
    let (Some(trace), Some(id)) = (padded::<16>(&span.trace_id.0), padded::<8>(&span.span_id.0))
    else {
        let reason = format!("span `{name}` has no valid trace id or span id; it is left out");
        batch.problems.add(Code::InvalidId, Some(place), reason);
        return;
    };
    let start = micros(&span.start_time);
    let end = start
        .zip(micros(&span.duration))
        .and_then(|(start, length)| start.checked_add(length));
    let Some(interval) = check_times((start, end), name, place, batch) else {
        return;
    };
    let (mut parent, mut links) = (None, Vec::new());
    for reference in &span.references.0 {
        let ids = padded::<16>(&reference.trace_id.0).zip(padded::<8>(&reference.span_id.0));
        match ids {
            Some((of, span))
                if of == trace && parent.is_none() && reference.ref_type.0 == "CHILD_OF" =>
            {
                parent = Some(SpanId(span));
            }
            Some((trace, span)) => links.push(Link {
                trace: TraceId(trace),
                span: SpanId(span),
            }),
            None => {}
        }
    }
    let failed = span.tags.0.iter().any(|tag| {
        tag.key.0 == "error" && matches!(&tag.value, Scalar::Bool(true))
            || tag.key.0 == "otel.status_code"
                && matches!(&tag.value, Scalar::Text(text) if text == "ERROR")
    });
    let resource = match span.process {
        Some(process) => keep_process(&process, batch),
        None => processes
            .get(&span.process_id.0)
            .copied()
            .unwrap_or_else(|| batch.resource(Attributes::default())),
    };
    let attributes = keep_tags(&span.tags.0, batch);
    batch.spans.push(Span {
        trace: TraceId(trace),
        id: SpanId(id),
        parent,
        name: batch.names.intern(name),
        status: if failed { Status::Error } else { Status::Unset },
        message: None,
        interval,
        attributes: attributes.into_iter().collect(),
        extra: Extra::of(Vec::new(), links),
        resource,
    });
}

fn keep_tags(tags: &[Tag<'_>], batch: &mut Batch) -> Vec<(crate::trace::names::Symbol, Value)> {
    let keep = |tag: &Tag<'_>| {
        let value = match &tag.value {
            Scalar::Bool(value) => Value::Bool(*value),
            Scalar::Text(text) => Value::Text(batch.names.intern(text)),
            Scalar::Double(value) => Value::Double(*value),
            other => other.as_i64().map_or(Value::Other, Value::Int),
        };
        (batch.names.intern(&tag.key.0), value)
    };
    tags.iter().map(keep).collect()
}

/// A hexadecimal id without its leading zeros; `None` for zero and for anything else.
fn padded<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.is_empty() || digits.len() > 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (place, digit) in digits.iter().rev().enumerate() {
        let value = (*digit as char).to_digit(16)?;
        let value = u8::try_from(value).ok()? << (4 * (place % 2));
        bytes[N - 1 - place / 2] |= value;
    }
    (bytes != [0; N]).then_some(bytes)
}

/// Microseconds in nanoseconds.
fn micros(value: &Scalar<'_>) -> Option<u64> {
    value.as_u64()?.checked_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::padded;

    #[test]
    fn ids_without_leading_zeros_are_whole_ids() {
        assert_eq!(padded::<2>("abc"), Some([0x0a, 0xbc]));
        assert_eq!(padded::<2>("00ff"), Some([0, 0xff]));
        assert_eq!(padded::<2>("0"), None);
        assert_eq!(padded::<2>("12345"), None);
        assert_eq!(padded::<2>("xy"), None);
    }
}
