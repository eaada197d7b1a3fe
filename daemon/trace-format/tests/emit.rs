//! What a process's trace file holds, read back as plain JSON.

#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

use coldpath_trace_format::emit::{
    Anchor, MonoNanos, ProcessStart, Telemetry, TelemetryConfig, WallNanos, remote_context,
};
use coldpath_trace_format::traceparent::TraceParent;
use serde_json::Value;
use std::path::Path;

fn config(dir: &Path, anchor: Anchor) -> TelemetryConfig {
    TelemetryConfig {
        service: "coldpathd",
        version: "1.2.3",
        instance_id: "instance".to_owned(),
        trace_dir: dir.to_owned(),
        anchor,
        process_start: ProcessStart::Main,
        rejected_contexts: 1,
        collector: None,
    }
}

fn lines(dir: &Path) -> Vec<Value> {
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert_eq!(files.len(), 1, "{files:?}");
    let text = std::fs::read_to_string(&files[0]).unwrap();
    assert!(text.ends_with('\n'));
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn spans(lines: &[Value]) -> Vec<Value> {
    lines
        .iter()
        .flat_map(|line| line["resourceSpans"][0]["scopeSpans"].as_array().unwrap())
        .flat_map(|scope| scope["spans"].as_array().unwrap().clone())
        .collect()
}

fn attribute<'a>(holder: &'a Value, key: &str) -> &'a Value {
    let attributes = holder["attributes"].as_array().unwrap();
    attributes
        .iter()
        .find(|pair| pair["key"] == key)
        .map_or(&Value::Null, |pair| &pair["value"])
}

#[test]
fn a_stage_keeps_its_instants_its_parent_and_its_links_to_the_nanosecond() {
    let dir = tempfile::tempdir().unwrap();
    let anchor = Anchor::from_parts(
        WallNanos::from_unix_nanos(1_796_068_430_000_000_000),
        MonoNanos::from_nanos(1_000),
    );
    let telemetry = Telemetry::open(&config(dir.path(), anchor)).unwrap();
    let parent = telemetry.stage_at("daemon.boot", None, MonoNanos::from_nanos(1_001));
    let context = parent.context().unwrap();
    let mut child = telemetry.stage_at("boot.bind", Some(&context), MonoNanos::from_nanos(1_002));
    child.link(&context);
    child.set("coldpath.channel.id", "c");
    child.end_at(MonoNanos::from_nanos(1_003));
    parent.end_at(MonoNanos::from_nanos(1_007));
    assert!(telemetry.close().final_line);
    let lines = lines(dir.path());
    let spans = spans(&lines);
    let (child, parent) = (&spans[0], &spans[1]);
    assert_eq!(child["name"], "boot.bind");
    assert_eq!(child["startTimeUnixNano"], "1796068430000000002");
    assert_eq!(child["endTimeUnixNano"], "1796068430000000003");
    assert_eq!(child["parentSpanId"], parent["spanId"]);
    assert_eq!(child["traceId"], parent["traceId"]);
    assert_eq!(child["links"][0]["spanId"], parent["spanId"]);
    assert_eq!(attribute(child, "coldpath.channel.id")["stringValue"], "c");
    assert_eq!(parent["parentSpanId"], "");
    assert_eq!(parent["endTimeUnixNano"], "1796068430000000007");
}

#[test]
fn the_last_line_of_a_closed_file_says_so_and_counts_what_was_lost() {
    let dir = tempfile::tempdir().unwrap();
    let telemetry = Telemetry::open(&config(dir.path(), Anchor::take())).unwrap();
    telemetry.stage("a", None).end();
    telemetry.close();
    let lines = lines(dir.path());
    let last = lines.last().unwrap();
    let resource = &last["resourceSpans"][0]["resource"];
    assert_eq!(
        last["resourceSpans"][0]["scopeSpans"],
        serde_json::json!([])
    );
    assert_eq!(
        attribute(resource, "coldpath.trace.final")["boolValue"],
        true
    );
    assert_eq!(
        attribute(resource, "coldpath.trace.dropped_spans")["intValue"],
        "0"
    );
    assert_eq!(
        attribute(resource, "coldpath.trace.version")["intValue"],
        "1"
    );
    assert_eq!(
        attribute(resource, "coldpath.process_start")["stringValue"],
        "main"
    );
    assert_eq!(
        attribute(resource, "coldpath.context.rejected")["intValue"],
        "1"
    );
    assert_eq!(
        attribute(resource, "process.pid")["intValue"],
        std::process::id().to_string()
    );
}

#[test]
fn a_burst_beyond_the_queue_is_counted_and_every_other_span_is_written() {
    const BURST: usize = 5_000;
    let dir = tempfile::tempdir().unwrap();
    let telemetry = Telemetry::open(&config(dir.path(), Anchor::take())).unwrap();
    for _ in 0..BURST {
        telemetry
            .stage_at("a", None, MonoNanos::from_nanos(1))
            .end_at(MonoNanos::from_nanos(2));
    }
    let report = telemetry.close();
    assert!(report.final_line);
    let written = spans(&lines(dir.path())).len() as u64;
    assert_eq!(written + report.dropped_spans, BURST as u64);
    assert!(written >= 512, "{written}");
}

#[test]
fn a_child_of_an_unsampled_parent_is_recorded_and_the_flag_handed_on() {
    let dir = tempfile::tempdir().unwrap();
    let telemetry = Telemetry::open(&config(dir.path(), Anchor::take())).unwrap();
    let parent =
        TraceParent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00").unwrap();
    let stage = telemetry.stage("a", Some(&remote_context(&parent, Some("vendor=1"))));
    assert!(stage.traceparent().unwrap().ends_with("-00"));
    assert_eq!(stage.tracestate().as_deref(), Some("vendor=1"));
    stage.end();
    telemetry.close();
    let spans = spans(&lines(dir.path()));
    assert_eq!(spans[0]["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(spans[0]["parentSpanId"], "00f067aa0ba902b7");
}

#[test]
fn a_stage_dropped_before_its_end_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let telemetry = Telemetry::open(&config(dir.path(), Anchor::take())).unwrap();
    drop(telemetry.stage("a", None));
    telemetry.close();
    assert_eq!(spans(&lines(dir.path()))[0]["status"]["code"], 2);
}

#[test]
fn an_attached_thread_gives_scheduler_figures() {
    let dir = tempfile::tempdir().unwrap();
    let telemetry = Telemetry::open(&config(dir.path(), Anchor::take())).unwrap();
    telemetry.stage("before", None).with_sched().end();
    telemetry.attach_thread();
    telemetry.stage("after", None).with_sched().end();
    telemetry.close();
    let spans = spans(&lines(dir.path()));
    assert_eq!(attribute(&spans[0], "coldpath.sched.cpu_ns"), &Value::Null);
    assert!(attribute(&spans[1], "coldpath.sched.cpu_ns")["intValue"].is_string());
    assert!(attribute(&spans[1], "coldpath.io.major_faults")["intValue"].is_string());
}

#[test]
fn off_means_no_span_and_no_file() {
    let telemetry = Telemetry::off();
    let stage = telemetry.stage("a", None).with_sched();
    assert_eq!(stage.context(), None);
    assert_eq!(stage.traceparent(), None);
    stage.end();
    assert!(!telemetry.close().final_line);
}

#[test]
fn the_last_value_of_a_key_and_the_first_failure_stand() {
    let dir = tempfile::tempdir().unwrap();
    let telemetry = Telemetry::open(&config(dir.path(), Anchor::take())).unwrap();
    let mut stage = telemetry.stage("a", None);
    stage.set("coldpath.channel.path", "joined");
    stage.set("coldpath.channel.path", "reused");
    stage.fail("init_timeout", "zz: too late");
    stage.fail("http_error", "aa: status 504");
    // Dropped without an end: that is no second failure.
    drop(stage);
    telemetry.close();
    let span = &spans(&lines(dir.path()))[0];
    let of = |key: &str| {
        let pairs = span["attributes"].as_array().unwrap();
        let values: Vec<_> = pairs.iter().filter(|pair| pair["key"] == key).collect();
        assert_eq!(values.len(), 1, "{key}");
        values[0]["value"]["stringValue"].clone()
    };
    assert_eq!(of("coldpath.channel.path"), "reused");
    assert_eq!(of("error.type"), "init_timeout");
    assert_eq!(span["status"]["message"], "zz: too late");
}

#[test]
fn an_anchor_is_renewed_only_when_the_wall_clock_moved_by_more_than_a_second() {
    let dir = tempfile::tempdir().unwrap();
    let now = Anchor::take();
    let moved = |by: u64| {
        Anchor::from_parts(
            WallNanos::from_unix_nanos(now.wall().as_unix_nanos() - by),
            now.mono(),
        )
    };
    for (by, renewed) in [(0, false), (500_000_000, false), (2_000_000_000, true)] {
        let trace_dir = dir.path().join(by.to_string());
        let telemetry = Telemetry::open(&config(&trace_dir, moved(by))).unwrap();
        assert_eq!(telemetry.renew_drifted_anchor(), renewed, "{by}");
        assert_eq!(telemetry.anchor() != moved(by), renewed, "{by}");
        telemetry.close();
    }
}

#[test]
fn a_collector_gets_the_lines_of_the_file() {
    use coldpath_trace_format::emit::collector::Endpoint;
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let collector = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
        }
        let length = head
            .split("Content-Length: ")
            .nth(1)
            .unwrap()
            .split("\r\n")
            .next()
            .unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        reader.read_exact(&mut body).unwrap();
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            .unwrap();
        (head, body)
    });
    let dir = tempfile::tempdir().unwrap();
    let telemetry = Telemetry::open(&TelemetryConfig {
        collector: Some(Endpoint::parse(&format!("http://127.0.0.1:{port}")).unwrap()),
        ..config(dir.path(), Anchor::take())
    })
    .unwrap();
    telemetry.stage("a", None).end();
    telemetry.close();
    let (head, body) = collector.join().unwrap();
    assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("Content-Type: application/json"), "{head}");
    let lines = lines(dir.path());
    assert_eq!(serde_json::from_slice::<Value>(&body).unwrap(), lines[0]);
    let last = &lines.last().unwrap()["resourceSpans"][0]["resource"];
    assert_eq!(
        attribute(last, "coldpath.trace.undelivered_lines"),
        &Value::Null
    );
}

#[test]
fn a_collector_that_is_gone_costs_lines_and_nothing_else() {
    use coldpath_trace_format::emit::collector::Endpoint;
    // Bound and dropped: nobody listens on that port now.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let dir = tempfile::tempdir().unwrap();
    let telemetry = Telemetry::open(&TelemetryConfig {
        collector: Some(Endpoint::parse(&format!("http://127.0.0.1:{port}")).unwrap()),
        ..config(dir.path(), Anchor::take())
    })
    .unwrap();
    telemetry.stage("a", None).end();
    assert!(telemetry.close().final_line);
    let lines = lines(dir.path());
    assert_eq!(spans(&lines).len(), 1);
    let last = &lines.last().unwrap()["resourceSpans"][0]["resource"];
    assert_eq!(
        attribute(last, "coldpath.trace.undelivered_lines")["intValue"],
        "1"
    );
}
