//! Complete chains: what must be there so that one cold start can be explained.
//!
//! Written from the trace contract's text, not from the analyzer's code.

use crate::{Expected, Span, Traces};
use serde_json::Value;

/// The spans that every run of a process shares: boot, runtime, their parts.
///
/// # Panics
/// One is missing, in error, or stands in the wrong place.
#[track_caller]
pub fn assert_process_part(traces: &Traces) {
    let boot = traces.one("daemon.boot").succeeded().span();
    let mut parts: Vec<_> = ["boot.exec", "boot.args", "boot.bind"]
        .iter()
        .flat_map(|name| traces.children(boot, name))
        .collect();
    parts.sort_by_key(|span| span.start);
    // The parts leave nothing out: each begins where the one before it ends.
    let mut at = boot.start;
    for part in parts {
        assert_eq!(part.start, at, "`{}` begins late", part.name);
        traces.expect(part).inside(boot);
        at = part.end;
    }
    assert_eq!(at, boot.end, "`daemon.boot` has an end of its own");
    let runtime = traces
        .one("runtime.start")
        .child_of("daemon.boot")
        .succeeded();
    for name in ["runtime.telemetry", "runtime.store", "runtime.router"] {
        traces
            .child(runtime.span(), name)
            .succeeded()
            .inside(runtime.span());
    }
    for name in ["daemon.boot", "boot.args", "boot.bind"] {
        traces.one(name).lacks("coldpath.sched.cpu_ns");
    }
    runtime.counts("coldpath.sched.cpu_ns");
}

/// Everything behind one `POST /session` that created its session with the
/// embedded agent: its stages, its channel, and the agent's own spans.
///
/// # Panics
/// Something is missing, in error, or stands in the wrong place.
#[track_caller]
pub fn assert_complete_session(traces: &Traces, request: &Span) {
    let whole = traces
        .expect(request)
        .succeeded()
        .has("coldpath.session.outcome", "created")
        .has("http.response.status_code", 200);
    assert_eq!(request.kind, 2, "kind SERVER");
    let wait = traces
        .child(request, "channel.wait")
        .succeeded()
        .inside(request)
        .linked_to("channel.initialize");
    let new = traces.child(request, "session.new").succeeded();
    let channel = wait.attribute("coldpath.channel.id");
    let session = whole.attribute("session.id");
    assert!(channel.is_string() && session.is_string(), "{request:?}");
    new.inside(request)
        .has("coldpath.channel.id", channel.clone())
        .has("session.id", session.clone());
    assert_channel(traces, channel);
    let start = traces.child(new.span(), "agent.session_start").succeeded();
    start.has("session.id", session.clone()).inside(new.span());
}

/// Spawn and handshake of one channel, and the agent's start-up with its phases.
#[track_caller]
fn assert_channel(traces: &Traces, channel: &Value) {
    of_channel(traces, "channel.spawn", channel).succeeded();
    let initialize = of_channel(traces, "channel.initialize", channel).succeeded();
    let startup = traces.child(initialize.span(), "agent.startup").succeeded();
    let phases: Vec<_> = traces
        .spans()
        .iter()
        .filter(|span| span.name.starts_with("agent.phase."))
        .filter(|span| span.parent_id == startup.span().span_id)
        .collect();
    assert!(!phases.is_empty(), "no phases in {}", traces.names());
    for phase in phases {
        traces.expect(phase).succeeded().inside(startup.span());
    }
}

#[track_caller]
fn of_channel<'a>(traces: &'a Traces, name: &str, channel: &Value) -> Expected<'a> {
    let mut found = traces.named(name);
    found.retain(|span| span.attribute("coldpath.channel.id") == channel);
    match found.as_slice() {
        [span] => traces.expect(span),
        found => panic!("{} spans `{name}` of channel {channel}", found.len()),
    }
}
