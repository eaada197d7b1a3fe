//! Trace context and spawn stamps: which are taken over, which are not believed,
//! and what is handed on.

use crate::{clocks, fake_agent, logging_agent, session_requests};
use coldpath_tests::{Request, Sandbox, assert_complete_session, assert_process_part};
use serde_json::json;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

fn traceparent(flags: &str) -> String {
    format!("00-{TRACE}-{SPAN}-{flags}")
}

#[test]
fn a_spawner_s_context_and_clock_are_taken_over() {
    let sandbox = Sandbox::new();
    let (wall, mono) = clocks();
    // An anchor that is an hour off: everything must follow it all the same.
    let wall = wall - 3_600_000_000_000;
    let stamp = format!("v1:{wall}:{mono}:{}:{}", mono + 1_000, std::process::id());
    let daemon = sandbox
        .daemon()
        .traced()
        .env("TRACEPARENT", traceparent("01"))
        .env("TRACESTATE", "vendor=1")
        .env("COLDPATH_SPAWN", stamp)
        .start();
    daemon.get("/health").expect_status(200);
    daemon.thread_session().expect_status(200);
    let status = daemon.get("/daemon/status").json();
    daemon.stop_cleanly();
    let traces = sandbox.traces();
    assert_process_part(&traces);
    let boot = traces.one("daemon.boot").child_of_remote(TRACE, SPAN);
    assert_eq!(boot.span().start, wall + 1_000);
    assert_eq!(boot.span().resource["coldpath.process_start"], "spawn");
    assert!(
        !boot
            .span()
            .resource
            .contains_key("coldpath.context.rejected")
    );
    let exec = traces.one("boot.exec").child_of("daemon.boot").span();
    assert_eq!(exec.start, boot.span().start);
    let request = traces.one("POST /session");
    assert_complete_session(&traces, request.root().span());
    for span in traces.spans() {
        let offset = i128::from(span.start) - i128::from(wall);
        assert!((0..60_000_000_000).contains(&offset), "{span:?}");
    }
    let startup = &status["daemon"]["startup"];
    assert!(startup["processToListenMs"].as_f64() >= startup["mainToListenMs"].as_f64());
}

#[test]
fn a_forged_spawn_stamp_is_counted_and_ignored() {
    let (wall, mono) = clocks();
    let own = std::process::id();
    let minute = 60_000_000_000;
    for stamp in [
        format!("v1:{wall}:{mono}:{mono}:1"),
        format!("v1:{wall}:{mono}:{}:{own}", mono + minute),
        format!("v1:{wall}:{mono}:{}:{own}", mono - minute - 1_000_000_000),
        format!("v2:{wall}:{mono}:{mono}:{own}"),
        format!("v1:{wall}:{mono}:{mono}:{own}:1"),
        format!("v1:{wall}:-{mono}:{mono}:{own}"),
        format!("v1:{wall}:99999999999999999999999:{mono}:{own}"),
        String::new(),
        "\u{1b}[31m".to_owned(),
    ] {
        let sandbox = Sandbox::new();
        let daemon = sandbox
            .daemon()
            .traced()
            .env("COLDPATH_SPAWN", &stamp)
            .start();
        daemon.thread_session().expect_status(200);
        daemon.stderr.wait_for("COLDPATH_SPAWN");
        daemon.stop_cleanly();
        let traces = sandbox.traces();
        assert_process_part(&traces);
        traces.none("boot.exec");
        let boot = traces.one("daemon.boot").span();
        assert_eq!(boot.resource["coldpath.context.rejected"], 1, "{stamp:?}");
        assert_eq!(boot.resource["coldpath.process_start"], "main");
        let request = traces.one("POST /session").span();
        assert_complete_session(&traces, request);
        // The agent gets a stamp of its own, not the forged one.
        let startup = traces.one("agent.startup").span();
        assert_eq!(startup.resource["coldpath.process_start"], "spawn");
    }
}

#[test]
fn an_invalid_trace_context_of_the_environment_is_counted_and_ignored() {
    for text in [
        "garbage",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
    ] {
        let sandbox = Sandbox::new();
        let launch = sandbox.daemon().agent(fake_agent("")).passive().traced();
        launch.env("TRACEPARENT", text).start().stop_cleanly();
        let boot = sandbox.traces();
        let boot = boot.one("daemon.boot").root().span();
        assert_eq!(boot.resource["coldpath.context.rejected"], 1, "{text}");
    }
}

#[test]
fn a_request_s_context_goes_through_to_the_agent() {
    let sandbox = Sandbox::new();
    let agent = logging_agent(&sandbox, "");
    let daemon = sandbox.daemon().agent(agent).traced().start();
    let health = Request::get("/health").header("traceparent", &traceparent("01"));
    daemon.ask(&health).expect_status(200);
    let session = Request::session("thread")
        .header("Traceparent", &traceparent("01"))
        .header("tracestate", "vendor=opaque,other=2");
    daemon.ask(&session).expect_status(200);
    let ignored = Request::session("thread").header("traceparent", "00-nonsense");
    daemon.ask(&ignored).expect_status(200);
    daemon.stop_cleanly();
    let traces = sandbox.traces();
    traces.one("health.first").child_of_remote(TRACE, SPAN);
    let requests = session_requests(&traces);
    let parented = traces
        .expect(requests[0])
        .child_of_remote(TRACE, SPAN)
        .span();
    traces.expect(requests[1]).root();
    assert_eq!(requests[1].events, ["traceparent.invalid"]);

    let call = &sandbox.agent_calls("session/new")[0]["params"]["_meta"];
    let new = traces.child(parented, "session.new").span();
    let expected = format!("00-{TRACE}-{}-01", new.span_id);
    for key in ["traceparent", "qwen.telemetry.traceparent"] {
        assert_eq!(call[key], expected);
    }
    for key in ["tracestate", "qwen.telemetry.tracestate"] {
        assert_eq!(call[key], "vendor=opaque,other=2");
    }
    let call = &sandbox.agent_calls("initialize")[0]["params"]["_meta"];
    let initialize = traces.one("channel.initialize").span();
    let expected = format!("00-{}-{}-01", initialize.trace_id, initialize.span_id);
    assert_eq!(call["traceparent"], expected);
    for key in [
        "coldpath.startupProfile",
        "qwen.daemon.channelStartupProfile",
    ] {
        assert_eq!(call[key], json!({"v": 1}));
    }
}

#[test]
fn an_unsampled_parent_is_recorded_and_its_flag_handed_on() {
    let sandbox = Sandbox::new();
    let agent = logging_agent(&sandbox, "");
    let launch = sandbox.daemon().agent(agent).traced();
    let daemon = launch.env("TRACEPARENT", traceparent("00")).start();
    let session = Request::session("thread").header("traceparent", &traceparent("00"));
    daemon.ask(&session).expect_status(200);
    daemon.stop_cleanly();
    let traces = sandbox.traces();
    assert_process_part(&traces);
    traces.one("daemon.boot").child_of_remote(TRACE, SPAN);
    traces.one("POST /session").child_of_remote(TRACE, SPAN);
    traces.one("session.new").child_of("POST /session");
    for method in ["initialize", "session/new"] {
        let call = &sandbox.agent_calls(method)[0]["params"]["_meta"]["traceparent"];
        assert!(call.as_str().unwrap().ends_with("-00"), "{call}");
    }
}

#[test]
fn an_invalid_context_of_the_first_health_is_noted() {
    for starts_runtime in [false, true] {
        let sandbox = Sandbox::new();
        let launch = sandbox.daemon().agent(fake_agent("")).passive().traced();
        let daemon = launch.start();
        if starts_runtime {
            daemon.thread_session().expect_status(200);
        }
        let health = Request::get("/health").header("traceparent", "00-nonsense");
        daemon.ask(&health).expect_status(200);
        daemon.stop_cleanly();
        let traces = sandbox.traces();
        let health = traces.one("health.first").child_of("daemon.boot");
        assert_eq!(health.span().events, ["traceparent.invalid"]);
    }
}

#[test]
fn an_agent_is_told_its_parent_and_the_instant_of_its_spawn() {
    let sandbox = Sandbox::new();
    let environ = sandbox.path("environ");
    let words = format!("'env={}'", environ.display());
    let agent = logging_agent(&sandbox, &words);
    let daemon = sandbox.daemon().agent(agent).traced().start();
    daemon.thread_session().expect_status(200);
    let pid = daemon.pid();
    daemon.stop_cleanly();
    let text = std::fs::read_to_string(&environ).unwrap();
    let value = |name: &str| {
        let named =
            |variable: &str| Some(variable.strip_prefix(name)?.strip_prefix('=')?.to_owned());
        text.split('\0').find_map(named)
    };
    let traces = sandbox.traces();
    let spawn = traces.one("channel.spawn").span();
    let expected = format!("00-{}-{}-01", spawn.trace_id, spawn.span_id);
    assert_eq!(value("TRACEPARENT"), Some(expected));
    assert_eq!(
        value("COLDPATH_TRACE_DIR"),
        sandbox.trace_dir().to_str().map(str::to_owned)
    );
    let stamp = value("COLDPATH_SPAWN").unwrap();
    let fields: Vec<u64> = stamp
        .strip_prefix("v1:")
        .unwrap()
        .split(':')
        .map(|field| field.parse().unwrap())
        .collect();
    let [wall, mono, instant, spawner] = fields[..] else {
        panic!("{stamp}");
    };
    assert_eq!(spawner, u64::from(pid));
    // The instant lies in the span, by the anchor that it comes with.
    let at = wall + instant - mono;
    assert!((spawn.start..=spawn.end).contains(&at), "{at} of {spawn:?}");
}
