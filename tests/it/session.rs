//! `POST /session` and its neighbours: shapes, scopes, limits, refusals.

use crate::{gate_word, logging_agent, send_at_once};
use coldpath_tests::{Client, Daemon, Request, Response, Sandbox};
use serde_json::{Value, json};

fn start(sandbox: &Sandbox, words: &str) -> Daemon {
    sandbox
        .daemon()
        .agent(logging_agent(sandbox, words))
        .start()
}

/// Status and body of every answer, in the order of the connections.
fn read_all(clients: Vec<Client>) -> Vec<Response> {
    clients
        .into_iter()
        .map(|mut client| client.read())
        .collect()
}

#[track_caller]
fn check_refused(daemon: &Daemon, body: &str, status: u16, code: &str) -> Value {
    let answer = daemon.ask(&Request::post("/session", body));
    let answer = answer.expect_status(status).json();
    assert_eq!(answer["code"], code, "{body}: {answer}");
    assert!(answer["error"].is_string(), "{answer}");
    answer
}

/// 8-4-4-4-12 lower-case hex digits.
fn is_uuid(text: &str) -> bool {
    let groups: Vec<_> = text.split('-').collect();
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
        && groups
            .concat()
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

#[test]
fn a_new_session_is_told_in_the_documented_keys_and_order() {
    let sandbox = Sandbox::new();
    let daemon = start(&sandbox, "");
    let answer = daemon.thread_session().expect_status(200);
    let body = answer.json();
    let expected = format!(
        r#"{{"sessionId":{},"workspaceCwd":{},"attached":false,"clientId":{},"createdAt":{}}}"#,
        body["sessionId"], body["workspaceCwd"], body["clientId"], body["createdAt"]
    );
    assert_eq!(answer.text(), expected);
    assert_eq!(
        answer.header("content-type"),
        Some("application/json; charset=utf-8")
    );
    let pid = &sandbox.agent_calls("session/new")[0]["pid"];
    assert_eq!(body["sessionId"], format!("session-{pid}-1"));
    assert_eq!(body["workspaceCwd"], sandbox.workspace().to_str().unwrap());
    let client = body["clientId"].as_str().unwrap();
    assert!(
        client.strip_prefix("client_").is_some_and(is_uuid),
        "{client}"
    );
    let created = body["createdAt"].as_str().unwrap();
    let shape: String = created
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    assert_eq!(shape, "0000-00-00T00:00:00.000Z");
    daemon.stop_cleanly();
}

#[test]
fn threads_are_new_each_time_and_single_is_shared() {
    let sandbox = Sandbox::new();
    let daemon = start(&sandbox, "");
    let first = daemon.ask(&Request::post("/session", "{}")).json();
    assert_eq!(first["attached"], false);
    for body in ["", "{}", r#"{"sessionScope":"single"}"#, r#"{"cwd":null}"#] {
        let again = daemon
            .ask(&Request::post("/session", body))
            .expect_status(200);
        let body = again.json();
        let expected = format!(
            r#"{{"sessionId":{},"workspaceCwd":{},"attached":true,"clientId":{},"createdAt":{},"hasActivePrompt":false}}"#,
            first["sessionId"], first["workspaceCwd"], body["clientId"], first["createdAt"]
        );
        assert_eq!(again.text(), expected);
        assert_ne!(body["clientId"], first["clientId"]);
    }
    let threads = [
        daemon.thread_session().json(),
        daemon.thread_session().json(),
    ];
    for thread in &threads {
        assert_eq!(thread["attached"], false);
        assert_ne!(thread["sessionId"], first["sessionId"]);
    }
    assert_ne!(threads[0]["sessionId"], threads[1]["sessionId"]);
    assert_eq!(sandbox.agent_calls("session/new").len(), 3);
    assert_eq!(sandbox.agent_calls("initialize").len(), 1);
    daemon.stop_cleanly();
}

#[test]
fn concurrent_singles_coalesce_on_one_creation() {
    let sandbox = Sandbox::new();
    let gate = sandbox.gate("gate");
    // Once while the agent starts, once while the session is made.
    for method in ["initialize", "session/new"] {
        let daemon = start(&sandbox, &gate_word(&gate, method));
        let before = sandbox.agent_calls("session/new").len();
        let clients = send_at_once(&daemon, &Request::session("single"), 5);
        gate.arrival().release();
        let answers: Vec<_> = read_all(clients)
            .into_iter()
            .map(|answer| answer.expect_status(200).json())
            .collect();
        let created = answers.iter().filter(|answer| answer["attached"] == false);
        assert_eq!(created.count(), 1, "{answers:?}");
        for answer in &answers {
            assert_eq!(answer["sessionId"], answers[0]["sessionId"]);
            assert_eq!(answer["createdAt"], answers[0]["createdAt"]);
        }
        assert_eq!(sandbox.agent_calls("session/new").len(), before + 1);
        daemon.stop_cleanly();
    }
}

#[test]
fn concurrent_threads_share_one_agent() {
    let sandbox = Sandbox::new();
    let gate = sandbox.gate("gate");
    let daemon = start(&sandbox, &gate_word(&gate, "initialize"));
    let clients = send_at_once(&daemon, &Request::session("thread"), 5);
    gate.arrival().release();
    let mut ids: Vec<_> = read_all(clients)
        .into_iter()
        .map(|answer| answer.expect_status(200).json()["sessionId"].to_string())
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 5, "{ids:?}");
    assert_eq!(sandbox.agent_calls("initialize").len(), 1);
    assert!(gate.is_deserted());
    daemon.stop_cleanly();
}

#[test]
fn concurrent_singles_share_a_failure_and_the_next_request_tries_again() {
    let sandbox = Sandbox::new();
    let gate = sandbox.gate("gate");
    let once = sandbox.path("failed");
    for method in ["initialize", "session/new"] {
        let words = format!(
            "{} 'once={}' 'die:{method}=7'",
            gate_word(&gate, method),
            once.display()
        );
        let daemon = start(&sandbox, &words);
        let clients = send_at_once(&daemon, &Request::session("single"), 4);
        gate.arrival().release();
        let answers = read_all(clients);
        for answer in &answers {
            assert_eq!((answer.status, &answer.body), (503, &answers[0].body));
            assert_eq!(answer.json()["code"], "channel_closed");
        }
        let mut retry = daemon.connect();
        retry.send(&Request::session("single"));
        gate.arrival().release();
        let answer = retry.read().expect_status(200).json();
        assert_eq!(answer["attached"], false);
        daemon.stop_cleanly();
        std::fs::remove_file(&once).unwrap();
    }
}

#[test]
fn a_client_that_leaves_does_not_cancel_what_others_share() {
    let sandbox = Sandbox::new();
    let gate = sandbox.gate("gate");
    let daemon = start(&sandbox, &gate_word(&gate, "session/new"));
    let single = Request::session("single");
    let leaving = send_at_once(&daemon, &single, 1);
    let arrival = gate.arrival();
    drop(leaving);
    let mut staying = send_at_once(&daemon, &single, 1);
    arrival.release();
    let answer = staying[0].read().expect_status(200).json();
    assert_eq!(answer["attached"], true);
    assert_eq!(sandbox.agent_calls("session/new").len(), 1);
    daemon.stop_cleanly();
}

#[test]
fn only_the_bound_workspace_is_served() {
    let sandbox = Sandbox::new();
    let daemon = start(&sandbox, "");
    let workspace = sandbox.workspace();
    let link = sandbox.path("link");
    std::os::unix::fs::symlink(&workspace, &link).unwrap();
    let slashes = format!("/{}//", workspace.display()).into();
    for cwd in [&workspace, &workspace.join("."), &slashes] {
        let body = json!({"cwd": cwd, "sessionScope": "thread"}).to_string();
        daemon
            .ask(&Request::post("/session", body))
            .expect_status(200);
    }
    // The same directory by another name, which only the file system could tell.
    let body = json!({"cwd": link}).to_string();
    let answer = check_refused(&daemon, &body, 400, "workspace_mismatch");
    let hint = "symbolic links and `..` are not followed";
    assert!(answer["error"].as_str().unwrap().contains(hint), "{answer}");
    for cwd in ["/", "relative", "", "/no/such/place"] {
        let body = json!({"cwd": cwd}).to_string();
        let answer = check_refused(&daemon, &body, 400, "workspace_mismatch");
        assert_eq!(answer["boundWorkspace"], workspace.to_str().unwrap());
        assert_eq!(answer["requestedWorkspace"], cwd);
    }
    check_refused(&daemon, r#"{"cwd":[1]}"#, 400, "workspace_mismatch");
    daemon.stop_cleanly();
}

#[test]
fn bad_bodies_are_refused_and_nothing_is_asked_of_the_agent() {
    let sandbox = Sandbox::new();
    let daemon = start(&sandbox, "");
    for body in ["{", "[]", "null", "\"x\"", "{}{}", "\0", "{\"a\":1,}"] {
        let answer = daemon
            .ask(&Request::post("/session", body))
            .expect_status(400);
        assert_eq!(
            answer.text(),
            r#"{"error":"Invalid JSON in request body"}"#,
            "{body:?}"
        );
    }
    // Invalid UTF-8, and a depth that would overflow a recursive reader's stack.
    for body in [vec![b'"', 0xff, b'"'], vec![b'['; 1_000_000]] {
        daemon
            .ask(&Request::post("/session", body))
            .expect_status(400);
    }
    check_refused(
        &daemon,
        r#"{"sessionScope":"both"}"#,
        400,
        "invalid_session_scope",
    );
    check_refused(&daemon, r#"{"mcpServers":"x"}"#, 400, "invalid_mcp_servers");
    assert_eq!(sandbox.agent_calls("session/new").len(), 0);
    daemon.stop_cleanly();
}

#[test]
fn a_body_is_taken_up_to_ten_mebibytes() {
    const LIMIT: usize = 10 * 1024 * 1024;
    let sandbox = Sandbox::new();
    let daemon = start(&sandbox, "");
    let padded = |length: usize| {
        let mut body = br#"{"sessionScope":"thread"}"#.to_vec();
        body.resize(length, b' ');
        body
    };
    daemon
        .ask(&Request::post("/session", padded(LIMIT)))
        .expect_status(200);

    let mut client = daemon.connect();
    let request = Request::post("/session", padded(LIMIT + 1)).to_bytes(daemon.port());
    // The daemon need not read to the end of what it refuses.
    let _ = client.try_send_bytes(&request);
    let answer = client.read().expect_status(413);
    assert_eq!(answer.json()["code"], "body_too_large");

    // Refused by what it says of itself: nothing of the body is sent.
    let declared = Request::new("POST", "/session");
    let declared = declared.header("Content-Length", &(LIMIT + 1).to_string());
    daemon.ask(&declared).expect_status(413);

    // A body whose length nobody says beforehand.
    let mut client = daemon.connect();
    let head = Request::new("POST", "/session").header("Transfer-Encoding", "chunked");
    client.send(&head);
    let chunk = [b"100000\r\n", &vec![b' '; 0x10_0000][..], b"\r\n"].concat();
    for _ in 0..11 {
        if client.try_send_bytes(&chunk).is_err() {
            break;
        }
    }
    client.read().expect_status(413);
    daemon.thread_session().expect_status(200);
    daemon.stop_cleanly();
}

#[test]
fn a_client_may_name_itself() {
    let sandbox = Sandbox::new();
    let daemon = start(&sandbox, "");
    let named =
        |name: &str| daemon.ask(&Request::session("thread").header("X-Qwen-Client-Id", name));
    let longest = "a".repeat(128);
    for name in ["cli:1._-Z", &longest] {
        assert_eq!(named(name).expect_status(200).json()["clientId"], name);
    }
    let too_long = "a".repeat(129);
    for name in ["", "a b", "ä", &too_long] {
        let answer = named(name).expect_status(400).json();
        assert_eq!(answer["code"], "invalid_client_id", "{name}");
    }
    daemon.stop_cleanly();
}

#[test]
fn sessions_are_limited_and_attaching_costs_none() {
    let sandbox = Sandbox::new();
    let agent = logging_agent(&sandbox, "");
    let daemon = sandbox
        .daemon()
        .agent(agent)
        .args(["--max-sessions", "2"])
        .start();
    daemon.ask(&Request::session("single")).expect_status(200);
    daemon.thread_session().expect_status(200);
    let answer = daemon.thread_session().expect_status(503);
    assert_eq!(answer.header("retry-after"), Some("5"));
    let body = answer.json();
    assert_eq!(
        (&body["code"], &body["limit"], &body["scope"]),
        (
            &json!("session_limit_exceeded"),
            &json!(2),
            &json!("workspace")
        )
    );
    let attached = daemon.ask(&Request::session("single")).expect_status(200);
    assert_eq!(attached.json()["attached"], true);
    assert_eq!(sandbox.agent_calls("session/new").len(), 2);
    daemon.stop_cleanly();
}

#[test]
fn sessions_that_are_being_made_count_against_the_limit() {
    let sandbox = Sandbox::new();
    let gate = sandbox.gate("gate");
    let agent = logging_agent(&sandbox, &gate_word(&gate, "session/new"));
    let daemon = sandbox
        .daemon()
        .agent(agent)
        .args(["--max-sessions", "1"])
        .start();
    let mut making = send_at_once(&daemon, &Request::session("thread"), 1);
    let arrival = gate.arrival();
    daemon.thread_session().expect_status(503);
    arrival.release();
    making[0].read().expect_status(200);
    daemon.stop_cleanly();
}

#[test]
fn unknown_routes_are_named() {
    let sandbox = Sandbox::new();
    let daemon = start(&sandbox, "");
    for (method, target, route) in [
        ("GET", "/no/such?x=1", "GET /no/such"),
        ("GET", "/session", "GET /session"),
        ("DELETE", "/session/x", "DELETE /session/x"),
        ("POST", "/health", "POST /health"),
        ("GET", "/%00..%2f", "GET /%00..%2f"),
    ] {
        let answer = daemon.ask(&Request::new(method, target)).expect_status(404);
        let body = answer.json();
        assert_eq!(
            (&body["code"], &body["route"]),
            (&json!("route_not_found"), &json!(route))
        );
        assert!(body["error"].as_str().unwrap().contains(route), "{body}");
    }
    daemon.stop_cleanly();
}

#[test]
fn mcp_servers_and_the_workspace_reach_the_agent() {
    let sandbox = Sandbox::new();
    let daemon = start(&sandbox, "");
    let servers = json!([{"name": "files", "command": "/bin/mcp", "args": ["-x"], "env": []}]);
    let body = json!({"mcpServers": servers, "sessionScope": "thread"}).to_string();
    daemon
        .ask(&Request::post("/session", body))
        .expect_status(200);
    daemon.thread_session().expect_status(200);
    let calls = sandbox.agent_calls("session/new");
    assert_eq!(calls[0]["params"]["mcpServers"], servers);
    assert_eq!(calls[1]["params"]["mcpServers"], json!([]));
    assert_eq!(
        calls[0]["params"]["cwd"],
        sandbox.workspace().to_str().unwrap()
    );
    daemon.stop_cleanly();
}

#[test]
fn preheat_waits_as_long_as_it_is_told_and_cancels_nothing() {
    let sandbox = Sandbox::new();
    let gate = sandbox.gate("gate");
    let daemon = start(&sandbox, &gate_word(&gate, "initialize"));
    let preheat = |query: &str| {
        daemon.ask(&Request::new(
            "POST",
            &format!("/workspace/acp/preheat{query}"),
        ))
    };
    let arrival = {
        let answer = preheat("?timeoutMs=1").expect_status(200).json();
        assert_eq!(answer["ready"], false);
        assert_eq!(answer["channelLive"], false);
        assert_eq!(answer["reason"], "timeout");
        assert_eq!(
            answer["error"],
            "ACP preheat did not complete before the timeout"
        );
        assert!(answer["durationMs"].is_u64(), "{answer}");
        gate.arrival()
    };
    for bad in ["0", "60001", "", "x", "-1", "1.5", "%31"] {
        let answer = preheat(&format!("?timeoutMs={bad}"))
            .expect_status(400)
            .json();
        assert_eq!(answer["code"], "invalid_timeout", "{bad}");
    }
    let status = |daemon: &Daemon| daemon.get("/workspace/acp/status").text();
    assert_eq!(status(&daemon), r#"{"channelLive":false}"#);
    arrival.release();
    let answer = preheat("").expect_status(200).json();
    assert_eq!(
        (&answer["ready"], &answer["channelLive"]),
        (&json!(true), &json!(true))
    );
    assert!(
        answer["reason"].is_null() && answer["durationMs"].is_u64(),
        "{answer}"
    );
    assert_eq!(status(&daemon), r#"{"channelLive":true}"#);
    assert!(gate.is_deserted());
    assert_eq!(sandbox.agent_calls("initialize").len(), 1);
    daemon.stop_cleanly();
}

#[test]
fn a_failed_preheat_is_an_answer_and_not_an_error() {
    let sandbox = Sandbox::new();
    let daemon = start(&sandbox, "die:initialize=3");
    let answer = daemon.ask(&Request::new("POST", "/workspace/acp/preheat"));
    let answer = answer.expect_status(200).json();
    assert_eq!(
        (&answer["ready"], &answer["reason"]),
        (&json!(false), &json!("error"))
    );
    assert!(answer["error"].is_string(), "{answer}");
    daemon.stop_cleanly();
}

#[test]
fn capabilities_and_status_tell_what_there_is() {
    let sandbox = Sandbox::new();
    let daemon = start(&sandbox, "");
    daemon.thread_session().expect_status(200);
    let capabilities = daemon.get("/capabilities").expect_status(200).json();
    assert_eq!(capabilities["v"], 1);
    assert_eq!(
        capabilities["protocolVersions"],
        json!({"current": "v1", "supported": ["v1"]})
    );
    let features = capabilities["features"].as_array().unwrap();
    for feature in [
        "health",
        "session_create",
        "session_scope_override",
        "workspace_acp_preheat",
    ] {
        assert!(features.contains(&json!(feature)), "{features:?}");
    }
    let status = daemon
        .get("/daemon/status?detail=full")
        .expect_status(200)
        .json();
    assert_eq!(status["status"], "ok");
    assert_eq!(status["issues"], json!([]));
    assert_eq!(status["daemon"]["pid"], daemon.pid());
    assert_eq!(
        status["daemon"]["startup"]["preheat"]["status"],
        "succeeded"
    );
    assert_eq!(status["runtime"]["sessions"]["active"], 1);
    assert_eq!(status["runtime"]["channel"]["live"], true);
    let answer = daemon
        .get("/daemon/status?detail=more")
        .expect_status(400)
        .json();
    assert_eq!(answer["code"], "invalid_detail");
    let deep = daemon.get("/health?deep=1").expect_status(200).json();
    assert_eq!(
        (&deep["sessions"], &deep["channelAlive"]),
        (&json!(1), &json!(true))
    );
    daemon.stop_cleanly();
}
