//! What a traced daemon writes: complete chains, one timeline, context in and out.

use crate::{fake_agent, gate_word, logging_agent, nth_agent, send_at_once};
use coldpath_tests::{
    Daemon, Exit, Request, Sandbox, Signal, Span, TraceFile, Traces, assert_complete_session,
    assert_process_part,
};
use rustix::net::sockopt::set_socket_linger;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

fn traceparent(flags: &str) -> String {
    format!("00-{TRACE}-{SPAN}-{flags}")
}

/// Every file was closed in order and nothing was lost.
#[track_caller]
fn assert_closed(traces: &Traces, services: &[&str]) {
    let mut found: Vec<_> = traces.files.iter().map(TraceFile::service).collect();
    found.sort_unstable();
    assert_eq!(found, services);
    for file in &traces.files {
        assert!(file.is_final(), "{} has no final line", file.path.display());
        assert_eq!(file.last_resource["coldpath.trace.dropped_spans"], 0);
        assert_eq!(file.resource["coldpath.trace.version"], 1);
        for key in [
            "service.version",
            "service.instance.id",
            "host.arch",
            "os.type",
        ] {
            assert!(
                file.resource[key].is_string(),
                "{key} in {:?}",
                file.resource
            );
        }
    }
}

/// Requests to make sessions, by start.
fn session_requests(traces: &Traces) -> Vec<&Span> {
    traces.named("POST /session")
}

#[test]
fn a_daemon_driven_by_requests_alone_gives_complete_chains() {
    let sandbox = Sandbox::new();
    let daemon = sandbox.daemon().traced().start();
    daemon.get("/health").expect_status(200);
    for scope in ["thread", "thread", "single", "single"] {
        daemon.ask(&Request::session(scope)).expect_status(200);
    }
    let pid = daemon.pid();
    daemon.stop_cleanly();

    let traces = sandbox.traces();
    assert_closed(&traces, &["coldpath-agent", "coldpathd"]);
    assert_process_part(&traces);
    let boot = traces.one("daemon.boot").root();
    assert_eq!(boot.span().resource["process.pid"], pid);
    assert_eq!(
        boot.span().resource["process.parent_pid"],
        std::process::id()
    );
    assert_eq!(boot.span().resource["coldpath.process_start"], "main");
    traces.none("boot.exec");
    let health = traces.one("health.first").child_of("daemon.boot");
    health.unlinked().lacks("coldpath.sched.cpu_ns");
    traces
        .one("runtime.start")
        .linked_to("health.first")
        .has("coldpath.runtime.trigger", "health");
    let preheat = traces.one("channel.preheat").child_of("runtime.start");
    let channel = preheat.succeeded().attribute("coldpath.channel.id").clone();
    for name in ["channel.spawn", "channel.initialize"] {
        traces
            .one(name)
            .child_of("channel.preheat")
            .has("coldpath.channel.id", channel.clone())
            .has("coldpath.agent.embedded", true)
            .counts("coldpath.sched.cpu_ns");
    }
    let requests = session_requests(&traces);
    assert_eq!(requests.len(), 4);
    for request in &requests[..3] {
        traces
            .expect(request)
            .root()
            .has("http.request.method", "POST")
            .has("http.route", "/session")
            .counts("coldpath.sched.cpu_ns")
            .counts("coldpath.sched.runq_ns")
            .counts("coldpath.io.major_faults")
            .counts("coldpath.io.read_bytes");
        assert_complete_session(&traces, request);
    }
    let reused = traces.child(requests[1], "channel.wait");
    reused.has("coldpath.channel.path", "reused");
    traces
        .expect(requests[3])
        .succeeded()
        .has("coldpath.session.outcome", "attached")
        .has("session.id", requests[2].attribute("session.id").clone());
    assert_eq!(traces.children(requests[3], "session.new").len(), 0);
}

#[test]
fn both_processes_stand_on_one_timeline() {
    let sandbox = Sandbox::new();
    let daemon = sandbox.daemon().traced().start();
    daemon.thread_session().expect_status(200);
    daemon.stop_cleanly();
    let traces = sandbox.traces();
    let spawn = traces.one("channel.spawn").span();
    let initialize = traces.one("channel.initialize").span();
    let startup = traces.one("agent.startup").child_of("channel.initialize");
    // From the instant of the spawn to the answer; not to its arrival.
    assert!(spawn.start <= startup.span().start && startup.span().start <= spawn.end);
    assert!(startup.span().end <= initialize.end);
    assert_eq!(startup.span().resource["coldpath.process_start"], "spawn");
    assert_eq!(
        startup.span().resource["process.parent_pid"],
        spawn.resource["process.pid"]
    );
    startup.counts("coldpath.sched.cpu_ns");
    let mut phases: Vec<_> = traces
        .spans()
        .iter()
        .filter(|span| span.name.starts_with("agent.phase."))
        .collect();
    phases.sort_by_key(|span| span.start);
    let mut at = startup.span().start;
    for phase in &phases {
        traces
            .expect(phase)
            .child_of("agent.startup")
            .inside(startup.span());
        assert!(
            at <= phase.start,
            "`{}` overlaps the one before",
            phase.name
        );
        at = phase.end;
    }
    assert_eq!(phases[0].name, "agent.phase.exec");
}

#[test]
fn a_session_before_any_health_has_a_complete_chain() {
    let sandbox = Sandbox::new();
    let daemon = sandbox.daemon().passive().traced().start();
    daemon.thread_session().expect_status(200);
    daemon.get("/health").expect_status(200);
    daemon.get("/health").expect_status(200);
    daemon.stop_cleanly();
    let traces = sandbox.traces();
    assert_process_part(&traces);
    let request = traces.one("POST /session").root();
    assert_complete_session(&traces, request.span());
    traces
        .child(request.span(), "runtime.wait")
        .inside(request.span())
        .linked_to("runtime.start");
    // The runtime tells it where the loop did not.
    traces.one("health.first").child_of("daemon.boot");
}

#[test]
fn coalesced_requests_are_told_apart_from_the_one_that_creates() {
    let sandbox = Sandbox::new();
    let gate = sandbox.gate("gate");
    let agent = logging_agent(&sandbox, &gate_word(&gate, "initialize"));
    let daemon = sandbox.daemon().agent(agent).traced().start();
    let clients = send_at_once(&daemon, &Request::session("single"), 3);
    gate.arrival().release();
    for mut client in clients {
        client.read().expect_status(200);
    }
    daemon.stop_cleanly();
    let traces = sandbox.traces();
    let requests = session_requests(&traces);
    let outcomes: Vec<_> = requests
        .iter()
        .map(|request| {
            request
                .attribute("coldpath.session.outcome")
                .as_str()
                .unwrap()
        })
        .collect();
    assert_eq!(outcomes, ["created", "coalesced", "coalesced"]);
    for request in requests {
        traces
            .child(request, "channel.wait")
            .succeeded()
            .linked_to("channel.initialize")
            .has("coldpath.channel.path", "joined");
        traces
            .expect(request)
            .has("session.id", request.attribute("session.id").clone());
    }
    traces.one("session.new").child_of("POST /session");
    traces
        .one("channel.spawn")
        .has("coldpath.agent.embedded", false);
}

#[test]
fn a_failed_start_marks_every_span_that_it_fails() {
    let sandbox = Sandbox::new();
    let gate = sandbox.gate("gate");
    let words = format!("{} die:initialize=3", gate_word(&gate, "initialize"));
    let agent = logging_agent(&sandbox, &words);
    let daemon = sandbox.daemon().agent(agent).traced().start();
    let mut clients = send_at_once(&daemon, &Request::session("thread"), 1);
    gate.arrival().release();
    clients[0].read().expect_status(503);
    daemon
        .ask(&Request::post("/session", "{"))
        .expect_status(400);
    daemon.stop_cleanly();
    let traces = sandbox.traces();
    assert_closed(&traces, &["coldpathd"]);
    for name in ["channel.initialize", "channel.wait", "channel.preheat"] {
        traces.one(name).failed("channel_closed");
    }
    traces.one("channel.spawn").succeeded();
    let requests = session_requests(&traces);
    let failed = traces.expect(requests[0]);
    failed.has("coldpath.session.outcome", "failed");
    assert_eq!(failed.span().status.0, 2);
    traces
        .expect(requests[1])
        .succeeded()
        .has("coldpath.session.outcome", "rejected")
        .has("http.response.status_code", 400);
    assert_eq!(traces.children(requests[1], "channel.wait").len(), 0);
}

/// Wall and monotonic clock, nanoseconds.
fn clocks() -> (u64, u64) {
    let read = |clock| {
        let time = clock_gettime(clock);
        u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap()
    };
    (read(ClockId::Realtime), read(ClockId::Monotonic))
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
fn a_trace_directory_that_cannot_be_used_is_no_reason_to_fail() {
    let sandbox = Sandbox::new();
    let file = sandbox.path("file");
    std::fs::write(&file, "mine").unwrap();
    let elsewhere = sandbox.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let link = sandbox.path("link");
    std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
    for dir in [file.clone(), file.join("below"), link] {
        let log = sandbox.path("agent.log");
        let _ = std::fs::remove_file(&log);
        let agent = logging_agent(&sandbox, "");
        let daemon = sandbox
            .daemon()
            .agent(agent)
            .arg("--trace-dir")
            .arg(&dir)
            .start();
        daemon.thread_session().expect_status(200);
        daemon.stderr.wait_for("going on without traces");
        let call = &sandbox.agent_calls("initialize")[0]["params"];
        assert_eq!(call["_meta"], Value::Null);
        daemon.stop_cleanly();
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    assert_eq!(
        sandbox.files_in(&elsewhere),
        Vec::<std::path::PathBuf>::new()
    );
}

#[test]
fn without_a_trace_directory_nothing_is_written() {
    let sandbox = Sandbox::new();
    let daemon = sandbox.daemon().start();
    daemon.get("/health").expect_status(200);
    daemon.thread_session().expect_status(200);
    daemon.stop_cleanly();
    let all = sandbox.files_in(&sandbox.path(""));
    let names: Vec<_> = all.iter().map(|path| path.file_name().unwrap()).collect();
    assert_eq!(names, ["home", "state", "workspace"]);
    assert_eq!(sandbox.files_in(&sandbox.workspace()).len(), 0);
    assert_eq!(sandbox.files_in(&sandbox.path("home")).len(), 0);
}

#[test]
fn the_token_is_nowhere() {
    let secret = "s3cret-t0ken-7";
    let sandbox = Sandbox::new();
    let environ = sandbox.path("environ");
    let words = format!("'env={}' 'stderr=my token is {secret}'", environ.display());
    let agent = logging_agent(&sandbox, &words);
    let launch = sandbox.daemon().agent(agent).traced();
    let daemon = launch.env("COLDPATH_TOKEN", secret).start();
    let ask = |request: Request| daemon.ask(&request.bearer(secret));
    ask(Request::session("thread")).expect_status(200);
    ask(Request::post("/session", "{")).expect_status(400);
    let mut texts = vec![
        ask(Request::get("/daemon/status?detail=full")).text(),
        ask(Request::get("/capabilities")).text(),
        ask(Request::get("/no/such/route")).text(),
        std::fs::read_to_string(&environ).unwrap(),
    ];
    let Exit { stdout, stderr, .. } = daemon.stop_cleanly();
    texts.extend([stdout, stderr]);
    for dir in [sandbox.trace_dir(), sandbox.state_dir()] {
        let files = sandbox.files_in(&dir);
        assert!(!files.is_empty());
        texts.extend(
            files
                .iter()
                .map(|file| std::fs::read_to_string(file).unwrap()),
        );
    }
    let log = std::fs::read_to_string(sandbox.path("agent.log"));
    texts.push(log.unwrap());
    for text in texts {
        assert!(!text.contains(secret), "{text}");
    }
}

/// The daemon is stopped by `signal` before its runtime starts.
#[track_caller]
fn check_early_stop(signal: Signal, before: fn(&Daemon)) -> Traces {
    let sandbox = Sandbox::new();
    let daemon = sandbox
        .daemon()
        .agent(fake_agent(""))
        .passive()
        .traced()
        .start();
    before(&daemon);
    daemon.signal(signal);
    assert_eq!(daemon.wait().code, Some(0));
    let traces = sandbox.traces();
    assert_closed(&traces, &["coldpathd"]);
    traces.one("daemon.boot").root().succeeded();
    for name in ["boot.args", "boot.bind"] {
        traces.one(name).child_of("daemon.boot").succeeded();
    }
    traces.none("runtime.start");
    traces
}

#[test]
fn a_stop_before_the_runtime_still_writes_the_boot() {
    check_early_stop(Signal::TERM, |_| {}).none("health.first");
    check_early_stop(Signal::INT, |_| {}).none("health.first");
    let ask = |daemon: &Daemon| {
        daemon.get("/health").expect_status(200);
    };
    let traces = check_early_stop(Signal::TERM, ask);
    traces.one("health.first").child_of("daemon.boot");
}

#[test]
fn files_are_private() {
    let sandbox = Sandbox::new();
    let daemon = sandbox.daemon().traced().start();
    daemon.thread_session().expect_status(200);
    daemon.stop_cleanly();
    let mode = |path: &Path| {
        std::fs::symlink_metadata(path)
            .unwrap()
            .permissions()
            .mode()
            & 0o7777
    };
    for dir in [sandbox.trace_dir(), sandbox.state_dir()] {
        assert_eq!(mode(&dir), 0o700, "{}", dir.display());
        let files = sandbox.files_in(&dir);
        assert!(files.len() >= 2, "{files:?}");
        for file in files {
            assert_eq!(mode(&file), 0o600, "{}", file.display());
        }
    }
}

#[test]
fn a_killed_daemon_leaves_a_file_that_is_read_as_not_closed() {
    let sandbox = Sandbox::new();
    let agent = logging_agent(&sandbox, "");
    let daemon = sandbox.daemon().agent(agent).traced().start();
    daemon.thread_session().expect_status(200);
    let agent = nth_agent(&sandbox, 0).unwrap();
    daemon.signal(Signal::KILL);
    daemon.wait();
    agent.wait("the agent, whose input has ended");
    // Perhaps it has written nothing yet, perhaps half a line.
    let files = sandbox.files_in(&sandbox.trace_dir());
    assert!(!files.is_empty());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(!text.contains("coldpath.trace.final"), "{text}");
    }
}

#[test]
fn a_runtime_that_fails_is_told_with_the_request_that_started_it() {
    let sandbox = Sandbox::new();
    let file = sandbox.path("file");
    std::fs::write(&file, "").unwrap();
    let launch = sandbox.daemon().passive().traced();
    let daemon = launch.state_dir(file.join("state")).start();
    daemon.thread_session().expect_status(503);
    assert_eq!(daemon.stop().code, Some(1));
    let traces = sandbox.traces();
    assert_closed(&traces, &["coldpathd"]);
    traces.one("runtime.store").failed("store_unavailable");
    for name in ["runtime.start", "POST /session"] {
        traces.one(name).failed("runtime_start_failed");
    }
    traces
        .one("POST /session")
        .has("http.response.status_code", 503)
        .has("coldpath.session.outcome", "failed");
    traces.one("daemon.boot").succeeded();
}

/// A daemon on a clock whose wall time is the monotonic one, so that a test can
/// compare its own instants with those of spans to the nanosecond.
fn on_monotonic_clock(sandbox: &Sandbox) -> Daemon {
    let (_, mono) = clocks();
    let stamp = format!("v1:{mono}:{mono}:{mono}:{}", std::process::id());
    let launch = sandbox.daemon().agent(fake_agent("")).passive().traced();
    launch.env("COLDPATH_SPAWN", stamp).start()
}

/// The span of the only `/health`, which has its answer, began after it was `asked`
/// and was over when the daemon answered something else.
#[track_caller]
fn check_health_times(sandbox: &Sandbox, daemon: Daemon, asked: u64) {
    // The client can have its answer before the daemon knows that it is out.
    daemon.get("/capabilities").expect_status(200);
    let (_, answered) = clocks();
    daemon.stop_cleanly();
    let traces = sandbox.traces();
    let health = traces.one("health.first").child_of("daemon.boot").span();
    assert!(
        asked <= health.start && health.end <= answered,
        "asked {asked}, answered {answered}: {health:?}"
    );
}

#[test]
fn the_first_health_is_timed_from_its_own_bytes_to_its_answer() {
    // Before the runtime, and by the runtime.
    for starts_runtime in [false, true] {
        let prepare = |daemon: &Daemon| {
            if starts_runtime {
                daemon.thread_session().expect_status(200);
            }
        };
        let now = || clocks().1;

        // The bytes come with the connection.
        let sandbox = Sandbox::new();
        let daemon = on_monotonic_clock(&sandbox);
        prepare(&daemon);
        let asked = now();
        daemon.get("/health").expect_status(200);
        check_health_times(&sandbox, daemon, asked);

        // On a connection that was accepted and silent before.
        let sandbox = Sandbox::new();
        let daemon = on_monotonic_clock(&sandbox);
        prepare(&daemon);
        let mut silent = daemon.connect();
        daemon.get("/capabilities").expect_status(200);
        let asked = now();
        silent.ask(&Request::get("/health")).expect_status(200);
        check_health_times(&sandbox, daemon, asked);

        // On a connection that has been used; with a head in two pieces.
        let sandbox = Sandbox::new();
        let daemon = on_monotonic_clock(&sandbox);
        prepare(&daemon);
        let mut used = daemon.connect();
        // Looked at behind the other one: its answer says that both were.
        let mut other = daemon.connect();
        for client in [&mut used, &mut other] {
            client
                .ask(&Request::get("/capabilities"))
                .expect_status(200);
        }
        let asked = now();
        used.send_bytes(b"HEAD /health HTTP/1.1\r\n");
        // The first may be read in the same turn as the half head, and before it.
        for _ in 0..3 {
            other.ask(&Request::get("/capabilities")).expect_status(200);
        }
        let half = now();
        let rest = format!("Host: localhost:{}\r\n\r\n", daemon.port());
        used.send_bytes(rest.as_bytes());
        used.read_head().expect_status(200);
        check_health_times(&sandbox, daemon, asked);
        let traces = sandbox.traces();
        let health = traces
            .one("health.first")
            .has("http.request.method", "HEAD");
        let start = health.span().start;
        assert!(
            start <= half,
            "{start} is not that of the first byte, {half}"
        );
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
fn a_run_that_begins_after_the_clock_moved_stands_on_one_timeline() {
    let sandbox = Sandbox::new();
    let (wall, mono) = clocks();
    let hour = 3_600_000_000_000;
    let stamp = format!("v1:{}:{mono}:{mono}:{}", wall - hour, std::process::id());
    let agent = logging_agent(&sandbox, "");
    let launch = sandbox.daemon().agent(agent).traced();
    let daemon = launch.env("COLDPATH_SPAWN", stamp).start();
    daemon.thread_session().expect_status(200);
    let agent = nth_agent(&sandbox, 0).unwrap();
    agent.signal(Signal::KILL);
    daemon.stderr.wait_for("the agent ended");
    daemon.thread_session().expect_status(200);
    daemon.stop_cleanly();
    let traces = sandbox.traces();
    let requests = session_requests(&traces);
    let [old, new] = [requests[0], requests[1]];
    assert!(new.start - old.start >= hour - 60_000_000_000, "{new:?}");
    for name in ["channel.wait", "session.new"] {
        traces.child(new, name).inside(new);
    }
    let spawn = traces.named("channel.spawn")[1];
    traces.expect(spawn).inside(new);
}

#[test]
fn the_status_tells_the_time_of_the_calendar() {
    let sandbox = Sandbox::new();
    let (wall, mono) = clocks();
    let stamp = format!(
        "v1:{}:{mono}:{mono}:{}",
        wall - 3_600_000_000_000,
        std::process::id()
    );
    let launch = sandbox.daemon().agent(fake_agent("")).passive();
    let daemon = launch.traced().env("COLDPATH_SPAWN", stamp).start();
    let date = || {
        let mut date = std::process::Command::new("date");
        let output = date.args(["-u", "+%FT%T.%3NZ"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    for _ in 0..2 {
        let before = date();
        let status = daemon.get("/daemon/status").expect_status(200).json();
        let told = status["generatedAt"].as_str().unwrap();
        assert!(before.as_str() <= told && told <= date().as_str(), "{told}");
        daemon.thread_session().expect_status(200);
    }
    daemon.stop_cleanly();
}

#[test]
fn a_method_that_a_client_made_up_is_no_name() {
    let sandbox = Sandbox::new();
    let launch = sandbox.daemon().agent(fake_agent("")).traced();
    let daemon = launch.start();
    for method in ["BREW", "get", "DELETE"] {
        daemon.ask(&Request::new(method, "/pot")).expect_status(404);
    }
    daemon.stop_cleanly();
    let traces = sandbox.traces();
    let made_up = traces.named("HTTP");
    assert_eq!(made_up.len(), 2);
    for span in made_up {
        traces.expect(span).has("http.request.method", "_OTHER");
    }
    traces.one("DELETE").has("http.request.method", "DELETE");
}

#[test]
fn a_request_whose_client_left_before_the_runtime_is_told_at_once() {
    let sandbox = Sandbox::new();
    let launch = sandbox.daemon().agent(fake_agent("")).passive().traced();
    let daemon = launch.start();
    // Stopped, the daemon gets the request together with the end of its client.
    daemon.signal(Signal::STOP);
    let rude = TcpStream::connect((Ipv4Addr::LOCALHOST, daemon.port())).unwrap();
    set_socket_linger(&rude, Some(Duration::ZERO)).unwrap();
    let bytes = Request::session("thread").to_bytes(daemon.port());
    (&rude).write_all(&bytes).unwrap();
    drop(rude);
    daemon.signal(Signal::CONT);
    daemon.thread_session().expect_status(200);
    daemon.stop_cleanly();
    let traces = sandbox.traces();
    let [left, served] = session_requests(&traces)[..] else {
        panic!("{}", traces.names());
    };
    traces
        .expect(left)
        .failed("client_gone")
        .lacks("coldpath.session.outcome");
    // Not at the end of the daemon.
    assert!(left.end <= served.end);
    for name in ["runtime.wait", "channel.wait", "session.new"] {
        traces.child(served, name).succeeded();
    }
}
