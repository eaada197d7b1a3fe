//! The programs together: what daemon and agent wrote is what `analyze` calls
//! complete, whoever drove them.

use crate::{gate_word, logging_agent, nth_agent, send_at_once};
use coldpath_tests::{Daemon, Request, Sandbox, Signal, programs};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};

/// Exit code and report.
#[track_caller]
fn analyze(input: &Path) -> (Option<i32>, Value) {
    let output = Command::new(programs().path("analyze"))
        .args(["--strict", "--model", "coldpath", "--format", "json"])
        .arg(input)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(!output.stdout.is_empty(), "{output:?}");
    let report = serde_json::from_slice(&output.stdout).unwrap();
    (output.status.code(), report)
}

/// What a daemon did under `drive` is so many runs, some of them failed and all
/// others complete; and nothing in its files is a problem.
#[track_caller]
fn check(sandbox: &Sandbox, daemon: Daemon, drive: impl FnOnce(&Daemon), runs: u64, failed: u64) {
    drive(&daemon);
    daemon.stop_cleanly();
    let (status, report) = analyze(&sandbox.trace_dir());
    let counts = &report["runs"];
    assert_eq!(report["input"]["problems"], json!([]));
    // A failed run is not a complete one, and is named.
    let incomplete = counts["incomplete"].as_array().map(Vec::len);
    assert_eq!(incomplete, usize::try_from(failed).ok(), "{counts}");
    assert_eq!(status, Some(if failed > 0 { 3 } else { 0 }), "{counts}");
    assert_eq!(
        (&counts["total"], &counts["failed"]),
        (&json!(runs), &json!(failed))
    );
    assert_eq!(counts["complete"], runs - failed);
}

fn session(daemon: &Daemon, scope: &str) {
    daemon.ask(&Request::session(scope)).expect_status(200);
}

#[test]
fn sessions_of_every_kind_are_one_complete_run() {
    let sandbox = Sandbox::new();
    let daemon = sandbox.daemon().traced().start();
    let drive = |daemon: &Daemon| {
        daemon.get("/health").expect_status(200);
        for scope in ["thread", "single", "single", "thread"] {
            session(daemon, scope);
        }
        daemon
            .ask(&Request::post("/session", "{"))
            .expect_status(400);
        daemon.get("/no/such/route").expect_status(404);
    };
    check(&sandbox, daemon, drive, 1, 0);
}

#[test]
fn a_session_before_any_health_is_a_complete_run() {
    let sandbox = Sandbox::new();
    let daemon = sandbox.daemon().passive().traced().start();
    check(&sandbox, daemon, |daemon| session(daemon, "thread"), 1, 0);
}

#[test]
fn coalesced_sessions_of_a_foreign_agent_are_one_complete_run() {
    let sandbox = Sandbox::new();
    let gate = sandbox.gate("gate");
    let agent = logging_agent(&sandbox, &gate_word(&gate, "initialize"));
    let daemon = sandbox.daemon().agent(agent).traced().start();
    let drive = |daemon: &Daemon| {
        let clients = send_at_once(daemon, &Request::session("single"), 3);
        gate.arrival().release();
        for mut client in clients {
            client.read().expect_status(200);
        }
    };
    check(&sandbox, daemon, drive, 1, 0);
}

#[test]
fn an_agent_that_was_replaced_makes_two_runs() {
    let sandbox = Sandbox::new();
    let agent = logging_agent(&sandbox, "");
    let daemon = sandbox.daemon().agent(agent).traced().start();
    let drive = |daemon: &Daemon| {
        session(daemon, "thread");
        nth_agent(&sandbox, 0).unwrap().signal(Signal::KILL);
        daemon.stderr.wait_for("the agent ended (signal 9)");
        session(daemon, "thread");
    };
    check(&sandbox, daemon, drive, 2, 0);
}

#[test]
fn an_agent_that_died_makes_a_failed_run_and_the_next_a_complete_one() {
    let sandbox = Sandbox::new();
    let gate = sandbox.gate("gate");
    let words = format!(
        "{} die:initialize=3 'once={}'",
        gate_word(&gate, "initialize"),
        sandbox.path("once").display()
    );
    let agent = logging_agent(&sandbox, &words);
    let daemon = sandbox.daemon().agent(agent).traced().start();
    let drive = |daemon: &Daemon| {
        let mut clients = send_at_once(daemon, &Request::session("thread"), 1);
        gate.arrival().release();
        clients[0].read().expect_status(503);
        clients[0].send(&Request::session("thread"));
        gate.arrival().release();
        clients[0].read().expect_status(200);
    };
    check(&sandbox, daemon, drive, 2, 1);
}

#[test]
fn cold_starts_that_measure_made_are_complete_and_leave_nothing() {
    let sandbox = Sandbox::new();
    let out = sandbox.path("out");
    let output = Command::new(programs().path("measure"))
        .args([
            "run",
            "--runs",
            "2",
            "--warmup",
            "1",
            "--seed",
            "7",
            "--workspace",
        ])
        .arg(sandbox.workspace())
        .arg("--out")
        .arg(&out)
        .arg("--")
        .arg(programs().coldpathd())
        .args(["--workspace", "{workspace}"])
        .env("HOME", sandbox.path("home"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let (status, report) = analyze(&out);
    let counts = &report["runs"];
    assert_eq!(status, Some(0), "{counts}");
    assert_eq!(report["input"]["problems"], json!([]));
    for (key, expected) in [("total", 2), ("complete", 2), ("failed", 0), ("warmup", 1)] {
        assert_eq!(counts[key], expected, "{key} of {counts}");
    }
    let metrics = report["metrics"].as_array().unwrap();
    for name in [
        "process_to_health",
        "session_cold",
        "session_warm",
        "process_to_session",
    ] {
        let metric = metrics
            .iter()
            .find(|metric| metric["name"] == name)
            .unwrap();
        assert_eq!(metric["n"], 2, "{metric}");
    }
}
