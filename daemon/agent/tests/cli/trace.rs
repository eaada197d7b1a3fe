//! Trace and profile files of a run, and that there are none when off.

use super::client::{Client, Ended, repository};
use coldpath_trace_format::emit::{Anchor, MonoNanos, SpawnStamp, WallNanos};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

fn traceparent() -> Value {
    json!({"traceparent": format!("00-{TRACE}-{SPAN}-01")})
}

/// What one traced agent wrote.
struct Written {
    spans: Vec<Value>,
    first: BTreeMap<String, String>,
    last: BTreeMap<String, String>,
    profiles: Vec<Value>,
}

impl Written {
    #[track_caller]
    fn read(directory: &Path) -> Self {
        let (mut traces, mut profiles) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            assert!(name.starts_with("coldpath-agent-"), "{name}");
            let lines = fs::read_to_string(&path).unwrap();
            let lines = lines
                .lines()
                .map(|line| serde_json::from_str(line).unwrap());
            if name.ends_with(".profile.jsonl") {
                profiles.extend(lines);
            } else {
                assert!(traces.is_empty(), "two trace files");
                traces = lines.collect::<Vec<Value>>();
            }
        }
        let spans = traces
            .iter()
            .flat_map(|line| line["resourceSpans"][0]["scopeSpans"].as_array().unwrap())
            .flat_map(|scope| scope["spans"].as_array().unwrap().clone())
            .collect();
        let resource =
            |line: Option<&Value>| attributes(&line.unwrap()["resourceSpans"][0]["resource"]);
        Self {
            spans,
            first: resource(traces.first()),
            last: resource(traces.last()),
            profiles,
        }
    }

    #[track_caller]
    fn span(&self, name: &str) -> &Value {
        let mut found = self.spans.iter().filter(|span| span["name"] == name);
        let span = found.next().unwrap_or_else(|| panic!("no span {name}"));
        assert!(found.next().is_none(), "two spans {name}");
        span
    }

    fn children(&self, parent: &Value) -> Vec<&Value> {
        self.spans
            .iter()
            .filter(|span| span["parentSpanId"] == parent["spanId"])
            .collect()
    }
}

/// Attributes of a span or resource, as text.
fn attributes(holder: &Value) -> BTreeMap<String, String> {
    let list = holder["attributes"].as_array().unwrap();
    list.iter()
        .map(|pair| {
            let value = pair["value"].as_object().unwrap().values().next().unwrap();
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            (pair["key"].as_str().unwrap().to_owned(), text)
        })
        .collect()
}

fn nanos(span: &Value, key: &str) -> u64 {
    span[key].as_str().unwrap().parse().unwrap()
}

fn names(spans: &[&Value]) -> Vec<String> {
    let name = |span: &&Value| span["name"].as_str().unwrap().to_owned();
    spans.iter().map(name).collect()
}

/// Children lie one after the other, from the parent's start to its end.
#[track_caller]
fn check_partition(parent: &Value, children: &[&Value]) {
    let mut at = nanos(parent, "startTimeUnixNano");
    for child in children {
        assert_eq!(nanos(child, "startTimeUnixNano"), at, "{child}");
        at = nanos(child, "endTimeUnixNano");
    }
    assert_eq!(at, nanos(parent, "endTimeUnixNano"));
}

#[track_caller]
fn check_sched(span: &Value) {
    let attributes = attributes(span);
    for key in [
        "coldpath.sched.cpu_ns",
        "coldpath.io.major_faults",
        "coldpath.io.read_bytes",
    ] {
        assert!(attributes.contains_key(key), "{key}: {span}");
    }
}

/// Stages of a session's start, in their order.
const SESSION_STAGES: [&str; 6] = [
    "parse",
    "validate",
    "git_head",
    "instructions",
    "register",
    "response",
];

/// One agent spawned with a valid stamp, that opens one session and ends.
#[test]
fn a_traced_run_is_on_the_spawner_s_timeline() {
    let repository = repository();
    let traces = tempfile::tempdir().unwrap();
    // An anchor of a year that no clock of today reads.
    let anchor = Anchor::from_parts(
        WallNanos::from_unix_nanos(4_000_000_000_000_000_000),
        MonoNanos::now(),
    );
    let stamp = SpawnStamp::now(anchor);
    let mut client = Client::start_with(&|command| {
        command
            .env("COLDPATH_SPAWN", stamp.to_string())
            .env("COLDPATH_TRACE_DIR", traces.path().join("new"));
    });
    let mut meta = traceparent();
    meta["coldpath.startupProfile"] = json!({"v": 1});
    let initialized = client.initialize(&meta);
    let session = client.new_session_with(repository.path(), &traceparent());
    client.finish().is_clean();
    let written = Written::read(&traces.path().join("new"));

    assert_eq!(written.first["service.name"], "coldpath-agent");
    assert_eq!(written.first["coldpath.process_start"], "spawn");
    assert!(!written.first.contains_key("coldpath.context.rejected"));
    assert_eq!(written.last["coldpath.trace.final"], "true");
    assert_eq!(written.last["coldpath.trace.dropped_spans"], "0");

    let spawned = anchor.wall_at(stamp.spawned).as_unix_nanos();
    check_startup(&written, &initialized, spawned);
    check_session_start(&written, &session);
    check_session_record(&written, &session);
}

/// The start-up began at the spawn, is divided exactly, and is what the response says.
#[track_caller]
fn check_startup(written: &Written, initialized: &Value, spawned: u64) {
    let startup = written.span("agent.startup");
    assert_eq!(
        (&startup["traceId"], &startup["parentSpanId"]),
        (&json!(TRACE), &json!(SPAN))
    );
    assert_eq!(nanos(startup, "startTimeUnixNano"), spawned);
    let phases = written.children(startup);
    let expected = [
        "exec",
        "trace_probe",
        "arguments",
        "settings_load",
        "instructions",
        "tools",
        "transport",
        "request_wait",
        "initialize",
    ];
    assert_eq!(
        names(&phases),
        expected.map(|name| format!("agent.phase.{name}"))
    );
    check_partition(startup, &phases);
    phases.into_iter().chain([startup]).for_each(check_sched);

    // The profile in the response and the spans are of one measurement.
    let profile = &initialized["_meta"]["coldpath.startupProfile"];
    let length = nanos(startup, "endTimeUnixNano") - nanos(startup, "startTimeUnixNano");
    let total = profile["totalMs"].as_f64().unwrap() * 1e6;
    assert!((total - length as f64).abs() < 1.0, "{total} {length}");
}

/// The session's start stands under its request and names the workspace's state.
#[track_caller]
fn check_session_start(written: &Written, session: &Value) {
    let start = written.span("agent.session_start");
    assert_eq!(
        (&start["traceId"], &start["parentSpanId"]),
        (&json!(TRACE), &json!(SPAN))
    );
    let kept = attributes(start);
    assert_eq!(json!(kept["session.id"]), session["sessionId"]);
    let workspace = &session["_meta"]["coldpath.workspace"];
    assert_eq!(json!(kept["vcs.ref.head.name"]), workspace["branch"]);
    assert_eq!(json!(kept["vcs.ref.head.revision"]), workspace["commit"]);
    let stages = written.children(start);
    assert_eq!(
        names(&stages),
        SESSION_STAGES.map(|name| format!("agent.session.{name}"))
    );
    check_partition(start, &stages);
    stages.into_iter().chain([start]).for_each(check_sched);
}

/// The profile record is of the same measurement as the span.
#[track_caller]
fn check_session_record(written: &Written, session: &Value) {
    let start = written.span("agent.session_start");
    let [record] = &written.profiles[..] else {
        panic!("{:?}", written.profiles);
    };
    assert_eq!(record["kind"], "session_start");
    assert_eq!(record["complete"], true);
    assert_eq!(record["sessionId"], session["sessionId"]);
    assert_eq!(record["spanId"], start["spanId"]);
    assert_eq!(record["startUnixNano"], start["startTimeUnixNano"]);
    let named: Vec<_> = record["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|phase| &phase["name"])
        .collect();
    assert_eq!(named, [&SESSION_STAGES[..], &["unattributed"]].concat());
}

/// A traced agent that is initialized and ends.
fn traced(variables: &[(&str, &str)], meta: &Value) -> Written {
    let traces = tempfile::tempdir().unwrap();
    let mut client = Client::start_with(&|command| {
        command.envs(variables.iter().copied());
        command.arg("--trace-dir").arg(traces.path());
    });
    client.initialize(meta);
    client.finish().is_clean();
    Written::read(traces.path())
}

#[test]
fn without_a_stamp_the_start_is_main_and_there_is_no_exec() {
    let written = traced(&[], &json!({}));
    assert_eq!(written.first["coldpath.process_start"], "main");
    let startup = written.span("agent.startup");
    assert_eq!(startup["parentSpanId"], "");
    let phases = written.children(startup);
    // Asked for by an argument, the figures begin after the arguments.
    assert_eq!(
        names(&phases)[..2],
        ["agent.phase.arguments", "agent.phase.trace_probe"]
    );
    check_partition(startup, &phases);
}

#[test]
fn a_forged_stamp_is_ignored_and_counted() {
    // The right form, but this process is not number 1.
    for stamp in ["v1:1:2:3:1", "nonsense", ""] {
        let written = traced(&[("COLDPATH_SPAWN", stamp)], &json!({}));
        assert_eq!(written.first["coldpath.process_start"], "main", "{stamp}");
        assert_eq!(written.first["coldpath.context.rejected"], "1", "{stamp}");
        assert!(
            names(&written.spans.iter().collect::<Vec<_>>())
                .iter()
                .all(|name| name != "agent.phase.exec")
        );
    }
}

#[test]
fn the_parent_is_that_of_the_request_else_of_the_environment() {
    let other = "00-11111111111111111111111111111111-2222222222222222-01";
    let parent = |variables: &[(&str, &str)], meta: &Value| {
        let written = traced(variables, meta);
        let rejected = written.first.get("coldpath.context.rejected").cloned();
        let parent = written.span("agent.startup")["parentSpanId"].clone();
        (parent, rejected)
    };
    let environment = [("TRACEPARENT", other)];
    assert_eq!(parent(&environment, &traceparent()), (json!(SPAN), None));
    let expected = (json!("2222222222222222"), None);
    assert_eq!(parent(&environment, &json!({})), expected);
    let broken = json!({"traceparent": "00-zz"});
    let expected = (json!("2222222222222222"), Some("1".to_owned()));
    assert_eq!(parent(&environment, &broken), expected);
    let expected = (json!(""), Some("2".to_owned()));
    assert_eq!(parent(&[("TRACEPARENT", "x")], &broken), expected);
}

#[test]
fn a_refused_session_is_a_span_in_error_and_an_incomplete_profile() {
    let traces = tempfile::tempdir().unwrap();
    let mut client = Client::initialized(&|command| {
        command.env("COLDPATH_TRACE_DIR", traces.path());
    });
    let meta = json!({"traceparent": "broken"});
    client.request("session/new", &json!({"cwd": "relative", "_meta": meta}));
    client.finish().is_clean();
    let written = Written::read(traces.path());
    let start = written.span("agent.session_start");
    assert_eq!(start["status"]["code"], 2);
    assert_eq!(attributes(start)["coldpath.context.rejected"], "1");
    let stages = written.children(start);
    assert_eq!(
        names(&stages),
        ["agent.session.parse", "agent.session.validate"]
    );
    assert_eq!(stages[1]["status"]["code"], 2);
    assert_eq!(written.profiles[0]["complete"], false);
    assert_eq!(written.profiles[0]["sessionId"], Value::Null);
}

#[test]
fn a_session_that_came_with_the_initialize_request_begins_after_it() {
    let traces = tempfile::tempdir().unwrap();
    let mut client = Client::start_with(&|command| {
        command.env("COLDPATH_TRACE_DIR", traces.path());
    });
    client.send(
        concat!(
            r#"{"id":0,"method":"initialize","params":{"protocolVersion":1}}"#,
            "\n",
            r#"{"id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#,
            "\n"
        )
        .as_bytes(),
    );
    assert_eq!(client.receive()["id"], 0);
    assert_eq!(client.receive()["id"], 1);
    client.finish().is_clean();
    let written = Written::read(traces.path());
    let end = nanos(written.span("agent.startup"), "endTimeUnixNano");
    let start = nanos(written.span("agent.session_start"), "startTimeUnixNano");
    assert!(start > end, "{start} {end}");
}

#[test]
fn the_trace_is_opened_in_a_pause_without_any_session() {
    let traces = tempfile::tempdir().unwrap();
    let client = Client::initialized(&|command| {
        command.env("COLDPATH_TRACE_DIR", traces.path());
    });
    while fs::read_dir(traces.path()).unwrap().next().is_none() {
        std::thread::yield_now();
    }
    client.finish().is_clean();
    Written::read(traces.path()).span("agent.startup");
}

#[test]
fn an_agent_that_is_never_initialized_leaves_its_start_up_in_error() {
    let traces = tempfile::tempdir().unwrap();
    Client::start_with(&|command| {
        command.env("COLDPATH_TRACE_DIR", traces.path());
    })
    .finish()
    .is_clean();
    let written = Written::read(traces.path());
    let startup = written.span("agent.startup");
    assert_eq!(startup["status"]["code"], 2);
    assert_eq!(attributes(startup)["error.type"], "not_initialized");
    assert_eq!(written.last["coldpath.trace.final"], "true");
}

#[test]
fn off_means_no_file_anywhere() {
    for value in [None, Some("")] {
        let mut client = Client::start_with(&|command| {
            command.env("TRACEPARENT", format!("00-{TRACE}-{SPAN}-01"));
            if let Some(value) = value {
                command.env("COLDPATH_TRACE_DIR", value);
            }
        });
        let home = client.home.path().to_owned();
        client.initialize(&traceparent());
        client.new_session_with(&home, &traceparent());
        let left = fs::read_dir(&home).unwrap().count();
        client.finish().is_clean();
        assert_eq!(left, 0);
    }
}

#[test]
fn a_trace_that_cannot_be_written_is_told_and_the_session_served() {
    let mut client = Client::initialized(&|command| {
        command.env("COLDPATH_TRACE_DIR", "/dev/null/x");
    });
    let home = client.home.path().to_owned();
    client.new_session(&home);
    client.new_session(&home);
    let Ended { status, stderr, .. } = client.finish();
    assert_eq!(status.code(), Some(0));
    assert!(
        stderr.starts_with("coldpath-agent: warning: cannot write traces to /dev/null/x: "),
        "{stderr}"
    );
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}
