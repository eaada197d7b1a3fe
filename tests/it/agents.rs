//! Quirks and failures of agents: what a client is told, and that it goes on.

use crate::{fake_agent, gate_word, logging_agent, nth_agent, send_at_once};
use coldpath_tests::{Daemon, Request, Response, Sandbox, Signal, programs};
use serde_json::{Value, json};

fn start(sandbox: &Sandbox, words: &str) -> Daemon {
    sandbox
        .daemon()
        .agent(logging_agent(sandbox, words))
        .start()
}

/// A daemon whose agent has a second and a half for each answer: no more than a
/// test wants to wait, and enough for one that does answer.
fn impatient(sandbox: &Sandbox, words: &str) -> Daemon {
    sandbox
        .daemon()
        .agent(logging_agent(sandbox, words))
        .args(["--initialize-timeout-ms", "1500"])
        .start()
}

/// The answer has this status and code, and its message every part.
#[track_caller]
fn check_answer(answer: Response, status: u16, code: &str, parts: &[&str]) -> Value {
    let body = answer.expect_status(status).json();
    assert_eq!(body["code"], code, "{body}");
    let message = body["error"].as_str().unwrap();
    for part in parts {
        assert!(message.contains(part), "no {part:?} in {message:?}");
    }
    body
}

/// An agent with these words serves a session all the same.
#[track_caller]
fn check_survived(words: &str) {
    let sandbox = Sandbox::new();
    let daemon = start(&sandbox, words);
    for _ in 0..2 {
        let body = daemon.thread_session().expect_status(200).json();
        assert!(body["sessionId"].as_str().unwrap().starts_with("session-"));
    }
    assert_eq!(sandbox.agent_calls("initialize").len(), 1);
    daemon.stop_cleanly();
}

#[test]
fn lines_before_the_first_message_that_are_no_json_are_passed_over() {
    check_survived("banner");
}

#[test]
fn notifications_may_come_before_an_answer() {
    check_survived("notify-first");
}

#[test]
fn an_answer_may_carry_its_id_last() {
    check_survived("result-first notify-first");
}

#[test]
fn requests_of_the_agent_are_refused_under_their_own_ids() {
    check_survived("ask-client");
}

#[test]
fn a_line_of_600_kilobytes_before_the_answer_is_read() {
    check_survived("update=600000");
}

#[test]
fn a_line_beyond_the_bound_is_passed_over() {
    let sandbox = Sandbox::new();
    let daemon = sandbox
        .daemon()
        .agent(logging_agent(&sandbox, "update=20000000"))
        // On a busy machine so much takes its time through a pipe.
        .args(["--initialize-timeout-ms", "25000"])
        .start();
    daemon.thread_session().expect_status(200);
    daemon.stop_cleanly();
}

#[test]
fn a_wrapper_s_child_is_as_good_as_the_agent() {
    check_survived("wrap");
    let sandbox = Sandbox::new();
    let agent = format!("sh -c {}", shell_word(&fake_agent("")));
    let daemon = sandbox.daemon().agent(agent).start();
    daemon.thread_session().expect_status(200);
    daemon.stop_cleanly();
}

/// A command line as one word of another one.
fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[test]
fn an_agent_that_cannot_be_started_is_named() {
    let sandbox = Sandbox::new();
    let plain = sandbox.path("plain");
    std::fs::write(&plain, "no program").unwrap();
    let plain = plain.display().to_string();
    let home = sandbox.path("home").display().to_string();
    for command in [
        "/no/such/agent",
        "no-such-agent",
        "./no-such-agent",
        &plain,
        &home,
    ] {
        let daemon = sandbox.daemon().agent(command).start();
        let name = command.trim_start_matches("./");
        for _ in 0..2 {
            check_answer(
                daemon.thread_session(),
                500,
                "agent_spawn_failed",
                &["cannot start the agent", name],
            );
        }
        let status = daemon.get("/daemon/status").json();
        assert_eq!(status["issues"][0]["code"], "acp_channel_down", "{status}");
        assert_eq!(status["daemon"]["startup"]["preheat"]["status"], "failed");
        assert_eq!(daemon.get("/health").text(), r#"{"status":"ok"}"#);
        daemon.stop_cleanly();
    }
}

#[test]
fn a_missing_embedded_agent_is_named_with_a_way_out() {
    let sandbox = Sandbox::new();
    let program = sandbox.path("coldpathd");
    std::fs::copy(programs().coldpathd(), &program).unwrap();
    let daemon = sandbox.daemon_at(&program).start();
    let expected = sandbox.path("coldpath-agent").display().to_string();
    let parts = ["the embedded agent is not at", &expected, "hint: "];
    check_answer(daemon.thread_session(), 500, "agent_spawn_failed", &parts);
    daemon.stop_cleanly();
}

#[test]
fn an_agent_that_dies_before_it_answers_is_told_with_its_last_words() {
    for (at, method) in [
        ("start", "initialize"),
        ("initialize", "initialize"),
        ("session/new", "session/new"),
    ] {
        let sandbox = Sandbox::new();
        let words = format!("die:{at}=7 'stderr=no key in KEYFILE'");
        let daemon = start(&sandbox, &words);
        for _ in 0..2 {
            let parts = [method, "exit code 7", "no key in KEYFILE"];
            let answer = daemon.thread_session();
            assert_eq!(answer.header("retry-after"), Some("5"));
            check_answer(answer, 503, "channel_closed", &parts);
        }
        daemon.stop_cleanly();
    }
}

#[test]
fn an_agent_that_is_killed_is_told_with_the_signal() {
    let sandbox = Sandbox::new();
    let gate = sandbox.gate("gate");
    let daemon = start(&sandbox, &gate_word(&gate, "session/new"));
    let mut clients = send_at_once(&daemon, &Request::session("thread"), 1);
    let _standing = gate.arrival();
    nth_agent(&sandbox, 0).unwrap().signal(Signal::KILL);
    check_answer(
        clients[0].read(),
        503,
        "channel_closed",
        &["session/new", "signal 9"],
    );
    daemon.stop_cleanly();
}

#[test]
fn an_agent_that_answers_garbage_is_quoted_and_ended() {
    let sandbox = Sandbox::new();
    let daemon = impatient(&sandbox, "garbage");
    let parts = ["`initialize`", "not JSON-RPC", "this is no JSON"];
    check_answer(daemon.thread_session(), 504, "init_timeout", &parts);
    wait_until_gone(&sandbox, 0);
    daemon.stop_cleanly();
}

#[test]
fn an_agent_that_never_answers_is_ended_and_the_next_request_tries_again() {
    let sandbox = Sandbox::new();
    let words = format!("silent 'once={}'", sandbox.path("once").display());
    let daemon = impatient(&sandbox, &words);
    let answer = daemon.thread_session();
    assert_eq!(answer.header("retry-after"), Some("5"));
    let body = check_answer(answer, 504, "init_timeout", &["`initialize`", "1500 ms"]);
    let rest = json!({"code": "init_timeout", "errorKind": "init_timeout", "retryable": true,
        "sideEffectPossible": false, "phase": "channel.initialize", "timeoutMs": 1500,
        "error": body["error"]});
    assert_eq!(body, rest);
    daemon.thread_session().expect_status(200);
    wait_until_gone(&sandbox, 0);
    daemon.stop_cleanly();
}

#[test]
fn an_agent_that_hangs_at_sessions_is_given_a_second_chance_and_replaced() {
    let sandbox = Sandbox::new();
    let words = format!(
        "silent:session/new 'once={}'",
        sandbox.path("once").display()
    );
    let daemon = impatient(&sandbox, &words);
    for _ in 0..2 {
        let answer = daemon.thread_session();
        let body = check_answer(answer, 504, "init_timeout", &["`session/new`"]);
        // Whether it was made is not known.
        assert!(
            body["sideEffectPossible"].is_null() && body["phase"].is_null(),
            "{body}"
        );
    }
    wait_until_gone(&sandbox, 0);
    daemon.thread_session().expect_status(200);
    assert_eq!(sandbox.agent_calls("session/new").len(), 3);
    daemon.stop_cleanly();
}

#[test]
fn an_agent_that_hangs_keeps_the_sessions_that_it_has() {
    let sandbox = Sandbox::new();
    let gate = sandbox.gate("gate");
    let daemon = impatient(&sandbox, &gate_word(&gate, "session/new"));
    let mut first = daemon.connect();
    first.send(&Request::session("single"));
    gate.arrival().release();
    first.read().expect_status(200);
    // Nobody opens the gate for these.
    for _ in 0..3 {
        daemon.thread_session().expect_status(504);
    }
    let again = daemon.ask(&Request::session("single")).expect_status(200);
    assert_eq!(again.json()["attached"], true);
    daemon.stop_cleanly();
}

#[track_caller]
fn wait_until_gone(sandbox: &Sandbox, nth: usize) {
    if let Some(agent) = nth_agent(sandbox, nth) {
        agent.wait("an agent that was given up");
    }
}

#[test]
fn another_protocol_version_is_refused_and_the_agent_ended() {
    let sandbox = Sandbox::new();
    let daemon = start(&sandbox, r#"'answer:initialize={"protocolVersion":2}'"#);
    let parts = ["ACP version 2"];
    check_answer(
        daemon.thread_session(),
        502,
        "agent_invalid_response",
        &parts,
    );
    wait_until_gone(&sandbox, 0);
    daemon.stop_cleanly();
}

#[test]
fn a_session_without_an_id_is_no_session() {
    for result in ["{}", "null", "[]", r#"{"sessionId":7}"#] {
        let sandbox = Sandbox::new();
        let daemon = start(&sandbox, &format!("'answer:session/new={result}'"));
        let parts = ["`session/new`"];
        check_answer(
            daemon.thread_session(),
            502,
            "agent_invalid_response",
            &parts,
        );
        daemon.stop_cleanly();
    }
}

#[test]
fn missing_credentials_are_the_agent_s_own_words() {
    let sandbox = Sandbox::new();
    let words = format!("auth-required 'once={}'", sandbox.path("once").display());
    let daemon = start(&sandbox, &words);
    let parts = ["Authentication required: log in first"];
    let body = check_answer(daemon.thread_session(), 502, "agent_error", &parts);
    assert_eq!(body["agentCode"], -32_000);
    daemon.stop_cleanly();
}

#[test]
fn an_agent_that_ends_later_is_replaced_by_the_next_request() {
    let sandbox = Sandbox::new();
    let agent = logging_agent(&sandbox, "");
    let daemon = sandbox.daemon().agent(agent).traced().start();
    let first = daemon
        .ask(&Request::session("single"))
        .expect_status(200)
        .json();
    nth_agent(&sandbox, 0).unwrap().signal(Signal::KILL);
    daemon.stderr.wait_for("the agent ended (signal 9)");
    let status = daemon.get("/daemon/status").json();
    assert_eq!(status["runtime"]["sessions"]["active"], 0);
    assert_eq!(status["runtime"]["channel"]["live"], false);
    let second = daemon
        .ask(&Request::session("single"))
        .expect_status(200)
        .json();
    assert_eq!(second["attached"], false);
    assert_ne!(second["sessionId"], first["sessionId"]);
    daemon.stop_cleanly();
    let traces = sandbox.traces();
    let channels: Vec<_> = traces
        .named("channel.spawn")
        .iter()
        .map(|span| span.attribute("coldpath.channel.id").to_string())
        .collect();
    assert!(
        channels.len() == 2 && channels[0] != channels[1],
        "{channels:?}"
    );
    let waits = traces.named("channel.wait");
    assert_eq!(
        waits[1].attribute("coldpath.channel.path"),
        "spawned_on_request"
    );
    traces
        .expect(traces.named("channel.spawn")[1])
        .child_of("channel.wait");
    traces
        .expect(traces.named("channel.initialize")[1])
        .child_of("channel.wait");
}

#[test]
fn an_agent_that_closes_its_output_is_replaced_and_ended() {
    let sandbox = Sandbox::new();
    let words = format!(
        "mute:session/new ignore-eof 'once={}'",
        sandbox.path("once").display()
    );
    let daemon = start(&sandbox, &words);
    let parts = ["`session/new`", "closed its output"];
    check_answer(daemon.thread_session(), 503, "channel_closed", &parts);
    daemon.thread_session().expect_status(200);
    // It would stay for ever: it does not end by the end of its input.
    wait_until_gone(&sandbox, 0);
    daemon.stop_cleanly();
}

#[test]
fn whoever_waits_for_an_agent_is_answered_when_the_daemon_stops() {
    for method in ["initialize", "session/new"] {
        let sandbox = Sandbox::new();
        let gate = sandbox.gate("gate");
        let agent = logging_agent(&sandbox, &gate_word(&gate, method));
        let daemon = sandbox.daemon().agent(agent).start();
        let mut clients = send_at_once(&daemon, &Request::session("thread"), 2);
        let _standing = gate.arrival();
        daemon.signal(Signal::TERM);
        for client in &mut clients {
            client.read().expect_status(503);
        }
        let exit = daemon.wait();
        assert_eq!(exit.code, Some(0), "{exit:?}");
        sandbox.assert_deserted();
    }
}

#[test]
fn an_agent_s_stderr_is_passed_on_without_token_and_control_characters() {
    let sandbox = Sandbox::new();
    let words = "'stderr=ready \u{1b}[31mred secret-7 \u{7}'";
    let daemon = sandbox
        .daemon()
        .agent(fake_agent(words))
        .env("COLDPATH_TOKEN", "secret-7")
        .start();
    assert_eq!(daemon.get("/health").status, 200);
    let line = daemon.stderr.wait_for("ready");
    assert!(line.starts_with("coldpathd: [agent "), "{line}");
    assert!(
        line.ends_with("] ready \u{fffd}[31mred [token] \u{fffd}"),
        "{line}"
    );
    daemon.stop_cleanly();
}

#[test]
fn an_agent_runs_in_the_workspace_without_the_daemon_s_token() {
    let sandbox = Sandbox::new();
    let gate = sandbox.gate("gate");
    let environ = sandbox.path("environ");
    let words = format!(
        "'env={}' {}",
        environ.display(),
        gate_word(&gate, "initialize")
    );
    let daemon = sandbox
        .daemon()
        .agent(logging_agent(&sandbox, &words))
        .env("COLDPATH_TOKEN", "secret-7")
        .env(
            "TRACEPARENT",
            "00-11111111111111111111111111111111-2222222222222222-01",
        )
        .env("COLDPATH_SPAWN", "v1:1:1:1:1")
        .env("KEPT", "value")
        .start();
    assert_eq!(daemon.get("/health").status, 200);
    let standing = gate.arrival();
    let pid = nth_agent(&sandbox, 0).unwrap().pid();
    let cwd = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap();
    assert_eq!(cwd, sandbox.workspace());
    standing.release();
    let text = std::fs::read_to_string(&environ).unwrap();
    let has = |name: &str| text.split('\0').any(|variable| variable.starts_with(name));
    assert!(has("KEPT=value") && has("COLDPATH_RUN_TOKEN="), "{text:?}");
    // Without traces nothing of the trace context is passed on, stale as it would be.
    for gone in [
        "COLDPATH_TOKEN=",
        "TRACEPARENT=",
        "COLDPATH_SPAWN=",
        "COLDPATH_TRACE_DIR=",
    ] {
        assert!(!has(gone), "{gone} in {text:?}");
    }
    assert!(!text.contains("secret-7"), "{text:?}");
    daemon.stop_cleanly();
}
