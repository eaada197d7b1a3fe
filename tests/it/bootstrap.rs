//! The loop that answers before anything else exists, and what starts the rest.

use crate::fake_agent;
use coldpath_tests::{Daemon, Request, Sandbox, Signal};
use rustix::net::sockopt::set_socket_linger;
use serde_json::json;
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

pub(crate) const OK: &str = r#"{"status":"ok"}"#;

/// A daemon whose runtime is started by requests alone.
pub(crate) fn passive(sandbox: &Sandbox) -> Daemon {
    sandbox.daemon().agent(fake_agent("")).passive().start()
}

/// Whether the runtime is there, as the status says it.
#[track_caller]
pub(crate) fn is_loading(daemon: &Daemon) -> bool {
    let status = daemon.get("/daemon/status").expect_status(200).json();
    status["runtime"]["loading"] == true
}

#[test]
fn a_silent_connection_delays_nobody() {
    let sandbox = Sandbox::new();
    let daemon = passive(&sandbox);
    let _silent = daemon.connect();
    assert_eq!(daemon.get("/health").text(), OK);
    let mut half = daemon.connect();
    half.send_bytes(b"GET /health HTTP/1.1\r\nHo");
    assert_eq!(daemon.get("/health").text(), OK);
    half.send_bytes(format!("st: localhost:{}\r\n\r\n", daemon.port()).as_bytes());
    assert_eq!(half.read().text(), OK);
    daemon.stop_cleanly();
}

#[test]
fn silent_connections_make_room_when_every_place_is_taken() {
    let sandbox = Sandbox::new();
    let daemon = passive(&sandbox);
    let mut open: Vec<_> = (0..64).map(|_| daemon.connect()).collect();
    let health = Request::get("/health");
    // Accepted in their order: with the last one answered, the first one is asked
    // after all of them were accepted, and from here on is not the oldest.
    for index in [63, 0] {
        assert_eq!(open[index].ask(&health).text(), OK);
    }
    let mut later: Vec<_> = (0..3).map(|_| daemon.connect()).collect();
    for client in &mut later {
        assert_eq!(client.ask(&health).text(), OK);
    }
    for silent in open.drain(1..4) {
        silent.expect_end();
    }
    for client in &mut open {
        assert_eq!(client.ask(&health).text(), OK);
    }
    daemon.stop_cleanly();
}

#[test]
fn a_hundred_clients_at_once_are_all_answered() {
    let sandbox = Sandbox::new();
    let daemon = passive(&sandbox);
    let request = Request::get("/health").header("Connection", "close");
    let clients: Vec<_> = (0..100)
        .map(|_| {
            // One that says nothing for long would have to make room.
            let mut client = daemon.connect();
            client.send(&request);
            client
        })
        .collect();
    for mut client in clients {
        assert_eq!(client.read().text(), OK);
        client.expect_end();
    }
    daemon.stop_cleanly();
}

#[test]
fn requests_in_one_packet_are_answered_in_their_order() {
    let sandbox = Sandbox::new();
    let daemon = passive(&sandbox);
    let mut client = daemon.connect();
    let packet: Vec<u8> = ["/health", "/capabilities", "/daemon/status", "/health"]
        .iter()
        .flat_map(|target| Request::get(target).to_bytes(daemon.port()))
        .collect();
    client.send_bytes(&packet);
    assert_eq!(client.read().text(), OK);
    assert!(client.read().json()["features"].is_array());
    assert_eq!(client.read().json()["runtime"]["loading"], true);
    assert_eq!(client.read().text(), OK);
    daemon.stop_cleanly();
}

#[test]
fn a_session_request_pipelined_behind_health_is_answered_by_the_runtime() {
    let sandbox = Sandbox::new();
    // Once with the runtime started by the request, once by the /health before it.
    for args in [&["--health-grace-ms", "2000000000"][..], &[]] {
        let daemon = sandbox.daemon().agent(fake_agent("")).args(args).start();
        let mut packet = Request::get("/health").to_bytes(daemon.port());
        packet.extend(Request::session("thread").to_bytes(daemon.port()));
        packet.extend(Request::get("/health?deep=1").to_bytes(daemon.port()));
        let mut client = daemon.connect();
        client.send_bytes(&packet);
        assert_eq!(client.read().text(), OK);
        let session = client.read().expect_status(200).json();
        assert_eq!(session["attached"], false);
        let deep = client.read().expect_status(200).json();
        assert_eq!(deep["sessions"], 1);
        daemon.stop_cleanly();
    }
}

#[test]
fn a_session_request_before_any_health_starts_the_runtime() {
    let sandbox = Sandbox::new();
    let daemon = sandbox
        .daemon()
        .agent(fake_agent(""))
        .passive()
        .traced()
        .start();
    assert!(is_loading(&daemon));
    daemon.thread_session().expect_status(200);
    assert!(!is_loading(&daemon));
    daemon.stop_cleanly();
    let traces = sandbox.traces();
    traces
        .one("runtime.start")
        .has("coldpath.runtime.trigger", "request")
        .linked_to("POST /session");
    traces
        .one("runtime.wait")
        .child_of("POST /session")
        .linked_to("runtime.start")
        .has("coldpath.runtime.path", "started_on_request");
    traces.none("health.first");
}

/// The runtime starts by itself: the agent is started without being asked for.
#[track_caller]
fn check_trigger(args: &[&str], ask_health: fn(&Daemon), trigger: &str, link: Option<&str>) {
    let sandbox = Sandbox::new();
    let gate = sandbox.gate("initialize");
    let agent = fake_agent(&format!("gate:initialize={}", gate.path().display()));
    let daemon = sandbox.daemon().agent(agent).args(args).traced().start();
    ask_health(&daemon);
    gate.arrival().release();
    daemon.get("/workspace/acp/status").expect_status(200);
    daemon.stop_cleanly();
    let traces = sandbox.traces();
    let start = traces
        .one("runtime.start")
        .has("coldpath.runtime.trigger", trigger);
    match link {
        Some(name) => start.linked_to(name),
        None => start.unlinked(),
    };
    traces.one("channel.spawn").child_of("channel.preheat");
    traces.one("channel.preheat").child_of("runtime.start");
}

#[test]
fn the_fallback_timer_starts_the_runtime() {
    check_trigger(&["--fallback-ms", "1"], |_| {}, "fallback", None);
}

#[test]
fn an_immediate_start_waits_for_nobody() {
    let args = [
        "--runtime-start",
        "immediate",
        "--fallback-ms",
        "2000000000",
    ];
    check_trigger(&args, |_| {}, "immediate", None);
}

#[test]
fn the_first_answered_health_starts_the_runtime() {
    let ask = |daemon: &Daemon| assert_eq!(daemon.get("/health").text(), OK);
    let args = ["--fallback-ms", "2000000000"];
    check_trigger(&args, ask, "health", Some("health.first"));
}

#[test]
fn a_grace_passes_between_health_and_the_runtime() {
    let ask = |daemon: &Daemon| assert_eq!(daemon.get("/health").text(), OK);
    let args = ["--fallback-ms", "2000000000", "--health-grace-ms", "1"];
    check_trigger(&args, ask, "health", Some("health.first"));
}

#[test]
fn a_deep_health_is_degraded_while_nothing_runs_and_counts_as_health() {
    let sandbox = Sandbox::new();
    let daemon = passive(&sandbox);
    for target in ["/health?deep", "/health?deep=1", "/health/?deep=true"] {
        let answer = daemon.get(target).expect_status(503);
        let body = json!({"status": "degraded", "reason": "bootstrap"});
        assert_eq!(answer.json(), body);
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
    assert_eq!(daemon.get("/health?deep=0").text(), OK);
    daemon.stop_cleanly();
    let probe = |daemon: &Daemon| assert_eq!(daemon.get("/health?deep").status, 503);
    let args = ["--fallback-ms", "2000000000"];
    check_trigger(&args, probe, "health", Some("health.first"));
}

#[test]
fn head_is_get_without_a_body() {
    let sandbox = Sandbox::new();
    let daemon = passive(&sandbox);
    for _ in 0..2 {
        let mut client = daemon.connect();
        let head = client.ask(&Request::new("HEAD", "/health"));
        assert_eq!(
            (head.status, head.header("content-length")),
            (200, Some("15"))
        );
        // Nothing stands between this answer and the next.
        assert_eq!(client.ask(&Request::get("/health")).text(), OK);
        daemon.thread_session().expect_status(200);
    }
    daemon.stop_cleanly();
}

#[test]
fn a_connection_is_closed_when_the_client_asks_for_it() {
    let sandbox = Sandbox::new();
    let daemon = passive(&sandbox);
    for _ in 0..2 {
        let mut client = daemon.connect();
        let request = Request::get("/health").header("Connection", "close");
        let answer = client.ask(&request).expect_status(200);
        assert_eq!(answer.header("connection"), Some("close"));
        client.expect_end();
        let mut old = daemon.connect();
        let text = format!(
            "GET /health HTTP/1.0\r\nHost: localhost:{}\r\n\r\n",
            daemon.port()
        );
        old.send_bytes(text.as_bytes());
        old.expect_answer_and_end(200);
        daemon.thread_session().expect_status(200);
    }
    daemon.stop_cleanly();
}

#[test]
fn a_body_may_come_in_pieces_around_the_hand_over() {
    let sandbox = Sandbox::new();
    let daemon = passive(&sandbox);
    let bytes = Request::session("thread").to_bytes(daemon.port());
    let (first, rest) = bytes.split_at(bytes.len() - 10);
    let mut client = daemon.connect();
    client.send_bytes(first);
    // Answered by the runtime only: the hand-over is done.
    daemon.get("/workspace/acp/status").expect_status(200);
    let (second, third) = rest.split_at(4);
    client.send_bytes(second);
    daemon.get("/workspace/acp/status").expect_status(200);
    client.send_bytes(third);
    assert_eq!(client.read().expect_status(200).json()["attached"], false);
    daemon.stop_cleanly();
}

#[test]
fn a_body_larger_than_the_loop_s_buffer_is_held_and_handed_over_whole() {
    let sandbox = Sandbox::new();
    let daemon = passive(&sandbox);
    let padding = " ".repeat(100_000);
    let body = format!(r#"{{{padding}"sessionScope":"thread"}}"#);
    let answer = daemon.ask(&Request::post("/session", body));
    assert_eq!(answer.expect_status(200).json()["attached"], false);
    daemon.stop_cleanly();
}

#[test]
fn a_connection_stays_open_across_the_hand_over() {
    let sandbox = Sandbox::new();
    let daemon = passive(&sandbox);
    let mut client = daemon.connect();
    let mut idle = daemon.connect();
    assert_eq!(idle.ask(&Request::get("/health")).text(), OK);
    assert_eq!(client.ask(&Request::get("/health")).text(), OK);
    client.ask(&Request::session("thread")).expect_status(200);
    assert_eq!(client.ask(&Request::get("/health")).text(), OK);
    client.ask(&Request::session("thread")).expect_status(200);
    let deep = idle.ask(&Request::get("/health?deep")).expect_status(200);
    assert_eq!(deep.json()["sessions"], 2);
    daemon.stop_cleanly();
}

#[test]
fn clients_that_leave_while_they_are_held_harm_nobody() {
    let sandbox = Sandbox::new();
    let daemon = passive(&sandbox);
    let mut leaving = daemon.connect();
    let mut half = daemon.connect();
    half.send_bytes(b"POST /session HTTP/1.1\r\n");
    leaving.send(&Request::session("thread"));
    drop((leaving, half));
    // One that resets the connection instead of closing it.
    let rude = TcpStream::connect((Ipv4Addr::LOCALHOST, daemon.port())).unwrap();
    set_socket_linger(&rude, Some(Duration::ZERO)).unwrap();
    std::io::Write::write_all(
        &mut &rude,
        &Request::session("thread").to_bytes(daemon.port()),
    )
    .unwrap();
    drop(rude);
    daemon.thread_session().expect_status(200);
    daemon.stop_cleanly();
}

#[test]
fn stop_signals_end_the_loop_and_the_runtime_with_0() {
    let sandbox = Sandbox::new();
    for signal in [Signal::TERM, Signal::INT] {
        let daemon = passive(&sandbox);
        let _open = daemon.connect();
        daemon.signal(signal);
        assert_eq!(daemon.wait().code, Some(0));
        let daemon = passive(&sandbox);
        daemon.thread_session().expect_status(200);
        daemon.signal(signal);
        assert_eq!(daemon.wait().code, Some(0));
        sandbox.assert_deserted();
    }
}

#[test]
fn places_are_left_for_health_while_requests_wait_for_the_runtime() {
    let sandbox = Sandbox::new();
    let launch = sandbox.daemon().passive().fault("runtime.start");
    let daemon = launch.start();
    let mut held: Vec<_> = (0..48).map(|_| daemon.connect()).collect();
    for client in &mut held {
        client.send(&Request::session("thread"));
    }
    // Connections are served in their order: all of those are held by now.
    for _ in 0..3 {
        daemon.get("/daemon/status").expect_status(200);
    }
    let answer = daemon.thread_session().expect_status(503);
    assert_eq!(answer.json()["code"], "daemon_runtime_starting");
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(daemon.get("/health").text(), OK);
}

#[test]
fn a_runtime_that_hangs_has_failed_after_its_time() {
    let sandbox = Sandbox::new();
    let launch = sandbox.daemon().passive().fault("runtime.start");
    let daemon = launch.args(["--runtime-timeout-ms", "1"]).start();
    let message = "it was not ready within 1 ms";
    for _ in 0..2 {
        let answer = daemon.thread_session().expect_status(503);
        assert_eq!(answer.json()["code"], "daemon_runtime_failed");
        assert!(answer.text().contains(message), "{}", answer.text());
    }
    let health = daemon.get("/health").expect_status(503).json();
    assert!(health["error"].as_str().unwrap().contains(message));
    assert_eq!(daemon.stop().code, Some(1));
}

#[test]
fn a_second_signal_does_not_wait_for_a_runtime_that_hangs() {
    let sandbox = Sandbox::new();
    let launch = sandbox.daemon().passive().fault("runtime.start");
    let daemon = launch.start();
    let mut client = daemon.connect();
    client.send(&Request::session("thread"));
    daemon.stderr.wait_for("fault runtime.start");
    daemon.signal(Signal::TERM);
    daemon.stderr.wait_for("stopping");
    daemon.signal(Signal::INT);
    assert_eq!(daemon.wait().code, Some(1));
}

#[test]
fn a_loop_that_cannot_wait_any_more_ends_in_error() {
    let sandbox = Sandbox::new();
    let daemon = passive(&sandbox);
    // poll refuses to look at more descriptors than a process may have.
    let pid = rustix::process::Pid::from_raw(i32::try_from(daemon.pid()).unwrap());
    let limit = rustix::process::Rlimit {
        current: Some(2),
        maximum: Some(2),
    };
    rustix::process::prlimit(pid, rustix::process::Resource::Nofile, limit).unwrap();
    let _client = daemon.connect();
    let exit = daemon.wait();
    assert_eq!(exit.code, Some(1), "{exit:?}");
    assert!(
        exit.stderr.contains("waiting for connections failed"),
        "{exit:?}"
    );
}
