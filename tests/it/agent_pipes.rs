//! An agent's pipes: full, closed, unread. Nothing of it stops the daemon.

use crate::{fake_agent, gate_word, logging_agent};
use coldpath_tests::{Request, Sandbox, programs};
use std::os::unix::fs::PermissionsExt as _;

/// A shell that does something first and then is the fake agent.
fn shell_then_agent(script: &str) -> String {
    format!("sh -c '{script}; exec \"$0\"' {}", fake_agent(""))
}

#[test]
fn a_stderr_that_nobody_reads_stops_nothing() {
    let sandbox = Sandbox::new();
    // The daemon's stderr is a pipe whose other end is open and never read.
    let unread = sandbox.path("unread");
    let script = format!(
        "#!/bin/sh\nmkfifo '{0}.pipe'\nexec 3<>'{0}.pipe'\nexec '{1}' \"$@\" 2>&3\n",
        unread.display(),
        programs().coldpathd().display()
    );
    std::fs::write(&unread, script).unwrap();
    std::fs::set_permissions(&unread, std::fs::Permissions::from_mode(0o700)).unwrap();
    // Six times what a pipe holds.
    let chatty = shell_then_agent("head -c 400000 /dev/zero | tr \"\\\\0\" x | fold -w 100 >&2");
    let daemon = sandbox.daemon_at(&unread).agent(chatty).start();
    daemon.thread_session().expect_status(200);
    daemon.get("/health").expect_status(200);
    daemon.stop_cleanly();
    sandbox.assert_deserted();
}

#[test]
fn an_agent_that_closes_its_input_is_replaced() {
    let sandbox = Sandbox::new();
    let closes = r#"sh -c 'echo started >> "$0"; read line; exec <&-; echo "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"protocolVersion\":1}}"; exec tail -f /dev/null'"#;
    let log = sandbox.path("starts");
    let daemon = sandbox
        .daemon()
        .agent(format!("{closes} '{}'", log.display()))
        .start();
    for starts in 1..=2 {
        let body = daemon.thread_session().expect_status(503).json();
        assert_eq!(body["code"], "channel_closed", "{body}");
        assert!(
            body["error"].as_str().unwrap().contains("closed its input"),
            "{body}"
        );
        let started = std::fs::read_to_string(&log).unwrap().lines().count();
        assert!(
            started >= starts,
            "{started} starts after {starts} requests"
        );
    }
    daemon.stop_cleanly();
    sandbox.assert_deserted();
}

#[test]
fn a_request_that_ran_out_of_time_does_not_cut_the_next_one() {
    let sandbox = Sandbox::new();
    let gate = sandbox.gate("gate");
    let agent = logging_agent(&sandbox, &gate_word(&gate, "session/new"));
    let daemon = sandbox
        .daemon()
        .agent(agent)
        .args(["--initialize-timeout-ms", "400"])
        .start();
    // A live session, so that an agent that is late is not given up.
    let mut first = daemon.connect();
    first.send(&Request::session("thread"));
    gate.arrival().release();
    first.read().expect_status(200);
    // The agent stands at the gate with a small request and does not read the large one.
    let mut small = daemon.connect();
    small.send(&Request::session("thread"));
    let standing = gate.arrival();
    let large = format!(
        r#"{{"sessionScope":"thread","mcpServers":[{{"name":"{}"}}]}}"#,
        "x".repeat(300_000)
    );
    daemon
        .ask(&Request::post("/session", large))
        .expect_status(504);
    small.read().expect_status(504);
    standing.release();
    gate.arrival().release();
    let mut last = daemon.connect();
    last.send(&Request::session("thread"));
    gate.arrival().release();
    last.read().expect_status(200);
    // Four whole requests: the log holds one line for each that was read as JSON.
    assert_eq!(sandbox.agent_calls("session/new").len(), 4);
    daemon.stop_cleanly();
}
