//! The span of a request, and how long it waited for the runtime.

use crate::boot::{RequestRecord, parse_parent};
use crate::http::Head;
use coldpath_trace_format::emit::{MonoNanos, SpanContext, Stage, Telemetry};
use coldpath_trace_format::{attributes as keys, spans};

/// What the first request of a handed-over connection went through.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) since: MonoNanos,
    /// Its span, when it was the one that started the runtime.
    pub(super) stage: Option<Stage>,
    /// Whether it started the runtime.
    pub(super) started: bool,
}

/// Begins the span of the request that started the runtime.
pub(super) fn begin(telemetry: &Telemetry, request: &RequestRecord) -> Stage {
    let parent = parse_parent(
        request.traceparent.as_deref(),
        request.tracestate.as_deref(),
    );
    open(
        telemetry,
        (&request.method, &request.route),
        parent.ok().flatten().as_ref(),
        request.arrived,
    )
}

/// Notes on the span of the request that started the runtime that it was answered
/// by the bootstrap loop, with 503.
pub(super) fn refuse(stage: &mut Stage, request: Option<&RequestRecord>) {
    stage.set(keys::HTTP_STATUS, 503_i64);
    if request.is_some_and(|request| (&*request.method, &*request.route) == ("POST", "/session")) {
        stage.set(keys::SESSION_OUTCOME, "failed");
    }
}

/// Ends the span of a request that started the runtime and whose client left
/// before anything could serve it.
pub(super) fn end_deserted(mut stage: Stage) {
    stage.fail(
        "client_gone",
        "the client left before the runtime was ready",
    );
    stage.end();
}

/// Begins the span of a request that arrives now, or goes on with one that was held.
pub(super) fn arrive(telemetry: &Telemetry, head: &Head<'_>, waited: Option<&mut Held>) -> Stage {
    if !telemetry.is_on() {
        return Stage::off();
    }
    let parent = parse_parent(head.traceparent, head.tracestate);
    let invalid = parent.is_err();
    let (begun, since) = match waited {
        Some(waited) => (waited.stage.take(), waited.since),
        None => (None, MonoNanos::now()),
    };
    let mut stage = begun
        .unwrap_or_else(|| {
            open(
                telemetry,
                (head.method, head.route()),
                parent.ok().flatten().as_ref(),
                since,
            )
        })
        .with_sched();
    if invalid {
        stage.event("traceparent.invalid");
    }
    stage
}

/// Tells the wait for the runtime, as a stage of a request.
pub(super) fn tell_runtime_wait(
    telemetry: &Telemetry,
    request: &Stage,
    held: &Held,
    runtime_start: Option<&SpanContext>,
) {
    let mut stage = telemetry.stage_at(spans::RUNTIME_WAIT, request.context().as_ref(), held.since);
    stage.set(
        keys::RUNTIME_PATH,
        if held.started {
            "started_on_request"
        } else {
            "joined"
        },
    );
    if let Some(runtime_start) = runtime_start {
        stage.link(runtime_start);
    }
    stage.end();
}

fn open(
    telemetry: &Telemetry,
    (method, route): (&str, &str),
    parent: Option<&SpanContext>,
    since: MonoNanos,
) -> Stage {
    let name = label(method, route);
    let mut stage = telemetry.server_stage_at(name.clone(), parent, since);
    stage.set(keys::HTTP_METHOD, known(method).unwrap_or("_OTHER"));
    if let Some((_, route)) = name.split_once(' ') {
        stage.set(keys::HTTP_ROUTE, route.to_owned());
    }
    stage
}

/// A name of low cardinality: method and route, or the method alone where there
/// is no such route; `HTTP` for a method that a client made up.
fn label(method: &str, route: &str) -> String {
    match known(method) {
        Some(method) if super::server::is_route(method, route) => format!("{method} {route}"),
        Some(method) => method.to_owned(),
        None => "HTTP".to_owned(),
    }
}

/// The methods of RFC 9110 and PATCH, which the semantic conventions of HTTP call
/// known; every other one is `_OTHER`.
const METHODS: [&str; 9] = [
    "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE",
];

fn known(method: &str) -> Option<&'static str> {
    METHODS.into_iter().find(|known| *known == method)
}
