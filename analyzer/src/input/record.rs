//! Tells top-level JSON values apart by their keys and hands each to its reader.

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::problems::{Code, Place};

use super::batch::Batch;
use super::lenient::Text;
use super::{canonical, chrome, client, jaeger, js_sdk, manifest, otlp, profile, room};

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    OtlpSpans,
    OtlpResourceSpans,
    OtlpLogs,
    OtlpMetrics,
    JaegerAnswer,
    JaegerTrace,
    ChromeDocument,
    ChromeEvent,
    JsSpan,
    JsLog,
    JsMetric,
    PhaseProfile,
    SessionProfile,
    Client,
    Manifest,
    /// A document of this project that holds no measurement, such as a manifest.
    OwnDocument,
    Empty,
    Unknown,
}

/// The keys of a value that decide what it is.
#[derive(Default)]
struct Keys {
    schema: Option<String>,
    seen: u32,
    any: bool,
}

const RESOURCE_SPANS: u32 = 1;
const SCOPE_SPANS: u32 = 1 << 1;
const RESOURCE_LOGS: u32 = 1 << 2;
const RESOURCE_METRICS: u32 = 1 << 3;
const SPAN_CONTEXT: u32 = 1 << 4;
const START_TIME: u32 = 1 << 5;
const NAME: u32 = 1 << 6;
const LOG_BODY: u32 = 1 << 7;
const LOG_TIME: u32 = 1 << 8;
const SCOPE_METRICS: u32 = 1 << 9;
const STAGES: u32 = 1 << 10;
const TOTAL_MS: u32 = 1 << 11;
const CLIENT_COLD: u32 = 1 << 12;
const SCOPE_LOGS: u32 = 1 << 13;
const DATA: u32 = 1 << 14;
const JAEGER_TRACE: u32 = 1 << 15;
const JAEGER_SPANS: u32 = 1 << 16;
const TRACE_EVENTS: u32 = 1 << 17;
const EVENT_PHASE: u32 = 1 << 18;
const EVENT_PROCESS: u32 = 1 << 19;
const SNAKE_CASE: u32 = 1 << 20;

fn flag(key: &str) -> u32 {
    match key {
        // Tempo's API writes `batches`.
        "resourceSpans" | "batches" => RESOURCE_SPANS,
        "resource_spans" => RESOURCE_SPANS | SNAKE_CASE,
        "data" => DATA,
        "traceID" => JAEGER_TRACE,
        "spans" => JAEGER_SPANS,
        "traceEvents" => TRACE_EVENTS,
        "ph" => EVENT_PHASE,
        "pid" => EVENT_PROCESS,
        "scope_spans" => SCOPE_SPANS | SNAKE_CASE,
        "scopeSpans" | "instrumentationLibrarySpans" => SCOPE_SPANS,
        "resourceLogs" => RESOURCE_LOGS,
        "resourceMetrics" => RESOURCE_METRICS,
        "_spanContext" | "spanContext" => SPAN_CONTEXT,
        "startTime" => START_TIME,
        "name" => NAME,
        "_body" | "body" => LOG_BODY,
        "_hrTime" | "hrTime" => LOG_TIME,
        "scopeMetrics" => SCOPE_METRICS,
        "scopeLogs" => SCOPE_LOGS,
        "stages" => STAGES,
        "totalMs" => TOTAL_MS,
        "cold_session_ms" | "spawn_to_listener_ms" => CLIENT_COLD,
        _ => 0,
    }
}

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Keys;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                let mut keys = Keys::default();
                while let Some(Text(key)) = map.next_key()? {
                    keys.any = true;
                    keys.seen |= flag(&key);
                    if key == "schema" {
                        keys.schema = map
                            .next_value::<super::lenient::Scalar<'_>>()
                            .ok()
                            .and_then(|value| match value {
                                super::lenient::Scalar::Text(text) => Some(text.into_owned()),
                                _ => None,
                            });
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(keys)
            }
        }
        deserializer.deserialize_map(V)
    }
}

impl Keys {
    fn kind(&self) -> Kind {
        let all = |flags: u32| self.seen & flags == flags;
        match &self.schema {
            Some(schema) if schema == profile::SCHEMA => return Kind::PhaseProfile,
            Some(schema) if schema == manifest::SCHEMA => return Kind::Manifest,
            Some(schema) if schema.starts_with("coldpath.") => return Kind::OwnDocument,
            _ => {}
        }
        if all(RESOURCE_SPANS) {
            Kind::OtlpSpans
        } else if all(RESOURCE_LOGS) || all(SCOPE_LOGS) {
            Kind::OtlpLogs
        } else if all(RESOURCE_METRICS) {
            Kind::OtlpMetrics
        } else if all(SCOPE_SPANS) {
            Kind::OtlpResourceSpans
        } else if all(TRACE_EVENTS) {
            Kind::ChromeDocument
        } else if all(EVENT_PHASE | EVENT_PROCESS) {
            Kind::ChromeEvent
        } else if all(JAEGER_TRACE | JAEGER_SPANS) {
            Kind::JaegerTrace
        } else if all(DATA) {
            Kind::JaegerAnswer
        } else if all(SPAN_CONTEXT | START_TIME | NAME) {
            Kind::JsSpan
        } else if all(LOG_BODY) || all(LOG_TIME) {
            Kind::JsLog
        } else if all(SCOPE_METRICS) {
            Kind::JsMetric
        } else if all(STAGES | TOTAL_MS) {
            Kind::SessionProfile
        } else if all(CLIENT_COLD) {
            Kind::Client
        } else if self.any {
            Kind::Unknown
        } else {
            Kind::Empty
        }
    }
}

/// Whether a document is a manifest.
#[must_use]
pub fn is_manifest(bytes: &[u8]) -> bool {
    parse::<Keys>(bytes).is_ok_and(|keys| keys.kind() == Kind::Manifest)
}

/// Reads a line that most likely is one whole value of the most frequent kind;
/// false leaves `batch` as it was, and the line to the splitter.
pub fn read_line(line: &[u8], place: Place, batch: &mut Batch) -> bool {
    if !line.starts_with(b"{\"resourceSpans\"") {
        return false;
    }
    let text = std::str::from_utf8(line).ok();
    text.is_some_and(|line| canonical::read_line(line, batch).is_some())
        || otlp::read_spans(line, place, batch).is_ok()
}

/// Reads one value into `batch`.
///
/// # Errors
/// The reason, when the bytes are not a valid value of their kind; the batch
/// then holds nothing of them.
pub fn read(bytes: &[u8], place: Place, batch: &mut Batch) -> Result<(), String> {
    // The common case is told by its first key, without a pass over all keys.
    if bytes.starts_with(b"{\"resourceSpans\"") {
        return otlp::read_spans(bytes, place, batch);
    }
    let keys = parse::<Keys>(bytes)?;
    if keys.seen & SNAKE_CASE != 0 {
        let reason = "OTLP JSON with snake_case keys, which the specification forbids; it is read";
        batch.problems.add(Code::SnakeCaseKeys, Some(place), reason);
    }
    match keys.kind() {
        Kind::OtlpSpans => otlp::read_spans(bytes, place, batch),
        Kind::OtlpResourceSpans => otlp::read_resource_spans(bytes, place, batch),
        Kind::OtlpLogs => otlp::count_logs(bytes, batch),
        Kind::OtlpMetrics | Kind::JsMetric => otlp::count_metrics(bytes, batch),
        Kind::JaegerAnswer => jaeger::read_answer(bytes, place, batch),
        Kind::JaegerTrace => jaeger::read_trace(bytes, place, batch),
        Kind::ChromeDocument => chrome::read_document(bytes, place, batch),
        Kind::ChromeEvent => chrome::read_event(bytes, place, batch),
        Kind::JsSpan => js_sdk::read_span(bytes, place, batch),
        Kind::JsLog => {
            batch.counts.logs += 1;
            Ok(())
        }
        Kind::PhaseProfile => profile::read_phases(bytes, place, batch),
        Kind::SessionProfile => profile::read_session(bytes, batch),
        Kind::Client => client::read(bytes, batch),
        Kind::Manifest => manifest::read(bytes, batch),
        Kind::OwnDocument => {
            batch.documents += 1;
            Ok(())
        }
        Kind::Empty => {
            let reason = "`{}`: the exporter could not print this record";
            batch.problems.add(Code::EmptyRecord, Some(place), reason);
            Ok(())
        }
        Kind::Unknown => {
            let reason = "valid JSON, but no span, log, metric, profile or client record";
            batch.problems.add(Code::UnknownRecord, Some(place), reason);
            Ok(())
        }
    }
}

/// Parses `bytes`, with the reason in words where they are not valid.
///
/// # Errors
/// What the JSON parser says, with line and column counted within the record.
pub(super) fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, String> {
    // Text that is checked as a whole is read a quarter faster than bytes of
    // which every string is checked by itself; the reason comes from the bytes.
    let read = || match std::str::from_utf8(bytes) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(bytes),
    };
    room::within(bytes.len(), read).map_err(|error| error.to_string())
}
