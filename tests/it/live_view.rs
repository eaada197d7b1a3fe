//! The live view: what it shows, against the trace of the same run, and that the
//! analyzer reads it.

use coldpath_tests::{Sandbox, programs};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What ran before a view began: told in its first event, and in the trace only.
const BEFORE: [&str; 14] = [
    "daemon.boot",
    "boot.",
    "health.first",
    "runtime.start",
    "runtime.telemetry",
    "POST /session",
    "runtime.wait",
    "channel.wait",
    "GET ",
    "agent.startup",
    "agent.phase.",
    // Where the session came before a pause in which the view could begin.
    "agent.session_start",
    "agent.session.",
    "session.new",
];

/// A span of either source, in its source's order.
#[derive(Debug)]
struct Shown {
    name: String,
    parent: String,
    start: f64,
    end: f64,
}

fn analyze(arguments: &[&Path], options: &[&str]) -> Value {
    let output = Command::new(programs().path("analyze"))
        .args(options)
        .args(arguments)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or("0000000000000000").to_owned()
}

/// Spans of a view by their ids; every one has ended.
fn live(events: &[Value]) -> BTreeMap<String, Shown> {
    let mut found = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "b") {
        let args = &event["args"];
        let ended =
            |other: &&Value| other["ph"] == "e" && other["args"]["span_id"] == args["span_id"];
        let end = events.iter().find(ended).unwrap();
        let shown = Shown {
            name: text(&event["name"]),
            parent: text(&args["parent_id"]),
            start: event["ts"].as_f64().unwrap(),
            end: end["ts"].as_f64().unwrap(),
        };
        assert!(shown.start <= shown.end);
        assert!(found.insert(text(&args["span_id"]), shown).is_none());
    }
    found
}

fn drawn(trace: &Value) -> BTreeMap<String, Shown> {
    let events = trace["traceEvents"].as_array().unwrap().iter();
    let spans = events.filter(|event| event["ph"] == "X" && event["cat"] == "span");
    spans
        .map(|event| {
            let start = event["ts"].as_f64().unwrap();
            let shown = Shown {
                name: text(&event["name"]),
                parent: text(&event["args"]["parent_id"]),
                start,
                end: start + event["dur"].as_f64().unwrap(),
            };
            (text(&event["args"]["span_id"]), shown)
        })
        .collect()
}

/// The same names and parents, and of siblings the same order.
#[track_caller]
fn check_same(live: &BTreeMap<String, Shown>, drawn: &BTreeMap<String, Shown>) {
    for (id, span) in live {
        let same = &drawn[id];
        assert_eq!((&span.name, &span.parent), (&same.name, &same.parent));
        for (other, sibling) in live.iter().filter(|(_, other)| other.parent == span.parent) {
            // What the trace orders by a microsecond or more, the view orders alike.
            if drawn[other].start >= same.end {
                assert!(sibling.start >= span.end, "{sibling:?} before {span:?}");
            }
        }
    }
}

fn list(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_live_view_shows_the_spans_of_the_trace_under_their_names_and_parents() {
    let sandbox = Sandbox::new();
    let folder = sandbox.path("views");
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join("live.json");
    let daemon = sandbox.daemon().traced().arg("--chrome").arg(&file).start();
    for _ in 0..2 {
        daemon.thread_session().expect_status(200);
    }
    daemon.stop_cleanly();
    let agents: Vec<PathBuf> = sandbox
        .files_in(&folder)
        .into_iter()
        .filter(|path| *path != file)
        .collect();
    assert_eq!(agents.len(), 1, "{agents:?}");
    let name = agents[0]
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    let startup = sandbox.traces().one("agent.startup").span().resource["process.pid"].clone();
    assert_eq!(name, format!("live.agent-{}.json", text_of(&startup)));

    let drawn = drawn(&analyze(&[&sandbox.trace_dir()], &["chrome", "--run", "1"]));
    let (mut all, mut shown) = (BTreeMap::new(), Vec::new());
    for path in [&file, &agents[0]] {
        let events = list(path);
        let first = events.iter().find(|event| event["ph"] != "M").unwrap();
        assert_eq!(first["name"], "live view begins");
        assert!(first["args"]["precedes"].is_string());
        let view = live(&events);
        check_same(&view, &drawn);
        let read = analyze(&[path], &["--format", "json", "--model", "generic"]);
        assert_eq!(read["input"]["records"]["spans"], view.len());
        shown.extend(view.values().map(|span| span.name.clone()));
        all.extend(view);
    }
    for name in [
        "channel.spawn",
        "channel.initialize",
        "session.new",
        "agent.session_start",
    ] {
        assert!(shown.iter().any(|shown| shown == name), "{name}: {shown:?}");
    }
    for (_, span) in drawn.iter().filter(|(id, _)| !all.contains_key(*id)) {
        let known = BEFORE.iter().any(|before| span.name.starts_with(before));
        assert!(known, "{} is in no view", span.name);
    }
}

fn text_of(number: &Value) -> String {
    number
        .as_str()
        .map_or_else(|| number.to_string(), str::to_owned)
}

#[test]
fn without_a_trace_there_is_no_view_and_a_view_that_cannot_be_written_stops_nothing() {
    let sandbox = Sandbox::new();
    let file = sandbox.path("no-such-folder").join("live.json");
    let daemon = sandbox.daemon().traced().arg("--chrome").arg(&file).start();
    daemon.thread_session().expect_status(200);
    let exit = daemon.stop_cleanly();
    assert!(
        exit.stderr.contains("cannot write the live view to"),
        "{}",
        exit.stderr
    );
    sandbox.traces().one("channel.initialize");
}
