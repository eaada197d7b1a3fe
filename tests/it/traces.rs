//! What a traced daemon writes: complete chains, failures, files.

use crate::{fake_agent, gate_word, logging_agent, nth_agent, send_at_once, session_requests};
use coldpath_tests::{
    Daemon, Exit, Request, Sandbox, Signal, TraceFile, Traces, assert_complete_session,
    assert_process_part,
};
use rustix::net::sockopt::set_socket_linger;
use serde_json::Value;
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

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
