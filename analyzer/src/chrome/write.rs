//! Writes a trace: one event a line, in the order in which they stand.

use std::io::{self, Write};

use serde_json::{Value as Json, json};

use super::Trace;
use super::event::{Event, Kind};

/// Writes `{"traceEvents":[…]}`.
///
/// # Errors
/// Those of `out`.
pub fn write(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"{\"traceEvents\":[")?;
    for (place, event) in trace.events.iter().enumerate() {
        out.write_all(if place == 0 { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut *out, &event_json(event))?;
    }
    out.write_all(b"\n],\"displayTimeUnit\":\"ms\"}\n")
}

fn event_json(event: &Event) -> Json {
    let mut found = json!({
        "name": event.name, "cat": event.category, "ph": letter(&event.kind),
        "ts": event.at, "pid": event.pid, "tid": event.tid, "args": event.args,
    });
    match event.kind {
        Kind::Slice { length, .. } => found["dur"] = length.into(),
        Kind::ArrowStart(number) => found["id"] = number.into(),
        Kind::ArrowEnd(number) => {
            found["id"] = number.into();
            found["bp"] = "e".into();
        }
        Kind::Instant => found["s"] = "t".into(),
        Kind::Metadata | Kind::Counter => {}
    }
    found
}

/// The phase of an event.
fn letter(kind: &Kind) -> &'static str {
    match kind {
        Kind::Metadata => "M",
        Kind::Slice { .. } => "X",
        Kind::ArrowStart(_) => "s",
        Kind::ArrowEnd(_) => "f",
        Kind::Instant => "i",
        Kind::Counter => "C",
    }
}
