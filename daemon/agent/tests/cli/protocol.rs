//! JSON-RPC and ACP as a client sees them, good and bad.

use super::client::{Client, error_of};
use coldpath_trace_format::profile::handover;
use serde_json::{Value, json};

#[test]
fn initialize_says_who_the_agent_is_and_what_it_can_do() {
    let mut client = Client::start();
    let result = client.initialize(&json!({}));
    assert_eq!(
        result["agentInfo"],
        json!({"name": "coldpath-agent", "title": "Coldpath", "version": env!("CARGO_PKG_VERSION")})
    );
    let capabilities = &result["agentCapabilities"];
    assert_eq!(capabilities["loadSession"], false);
    assert_eq!(capabilities["promptCapabilities"]["image"], false);
    assert_eq!(
        capabilities["_meta"]["coldpath.tools"][0]["name"],
        "read_file"
    );
    assert_eq!(result["authMethods"], json!([]));
    assert_eq!(result.get("_meta"), None, "the profile was not asked for");
    client.finish().is_clean();
}

#[test]
fn the_profile_is_given_when_asked_for_and_is_complete() {
    let mut client = Client::start();
    let meta = json!({"coldpath.startupProfile": {"v": 1}});
    let first = client.initialize(&meta);
    let read = handover::read(first["_meta"].as_object().unwrap()).unwrap();
    assert!(read.complete, "{first}");
    let names: Vec<_> = read
        .phases
        .phases()
        .iter()
        .map(|phase| phase.name.as_str())
        .collect();
    let expected = [
        "arguments",
        "settings_load",
        "instructions",
        "tools",
        "transport",
        "request_wait",
        "initialize",
    ];
    assert_eq!(names, expected);
    // Asked again, the same start-up is told.
    assert_eq!(client.initialize(&meta), first);
    client.finish().is_clean();
}

#[test]
fn requests_before_initialize_are_refused() {
    let mut client = Client::start();
    for method in ["session/new", "session/prompt", "nothing"] {
        let answer = client.request(method, &json!({"cwd": "/"}));
        let (code, message) = error_of(&answer);
        assert_eq!(
            (code, message),
            (-32_600, &*format!("`{method}` came before `initialize`"))
        );
    }
    client.initialize(&json!({}));
    client.finish().is_clean();
}

#[test]
fn initialize_without_a_version_is_refused_and_can_be_repeated() {
    let mut client = Client::start();
    let answer = client.request("initialize", &json!({}));
    assert_eq!(error_of(&answer).0, -32_602);
    client.send(b"{\"id\":7,\"method\":\"initialize\"}\n");
    let answer = client.receive();
    assert_eq!(error_of(&answer), (-32_602, "`params` is missing"));
    client.initialize(&json!({}));
    client.finish().is_clean();
}

#[test]
fn unknown_methods_are_named_and_ids_come_back_as_they_were() {
    let mut client = Client::initialized(&|_| {});
    for id in ["5", "-1", "1.50", "\"a-b\"", "null", "18446744073709551616"] {
        client.send(format!("{{\"method\":\"session/fly\",\"id\":{id}}}\n").as_bytes());
        let answer = client.receive();
        assert_eq!(
            error_of(&answer),
            (-32_601, "there is no method `session/fly`")
        );
        let expected: Value = serde_json::from_str(id).unwrap();
        assert_eq!(answer["id"], expected);
    }
    client.finish().is_clean();
}

#[test]
fn lines_that_are_no_messages_are_answered_and_the_next_one_is_read() {
    let mut client = Client::initialized(&|_| {});
    for (line, code, id) in [
        (&b"garbage"[..], -32_700, json!(null)),
        (b"{\"id\":1", -32_700, json!(null)),
        (b"{\"id\":1,\"method\":\"\xff\"}", -32_700, json!(null)),
        (
            b"[{\"id\":1,\"method\":\"initialize\"}]",
            -32_600,
            json!(null),
        ),
        (b"{\"id\":\"x\",\"method\":5}", -32_600, json!("x")),
        (b"{\"id\":4}", -32_600, json!(4)),
    ] {
        client.send(&[b"\r\n\n", line, b"\r\n"].concat());
        let answer = client.receive();
        assert_eq!(
            (error_of(&answer).0, &answer["id"]),
            (code, &id),
            "{line:?}"
        );
    }
    let home = client.home.path().to_owned();
    client.new_session(&home);
    client.finish().is_clean();
}

#[test]
fn a_line_beyond_the_bound_is_refused_with_its_length_and_not_kept() {
    let mut client = Client::initialized(&|_| {});
    let megabyte = vec![b'x'; 1 << 20];
    for _ in 0..200 {
        client.send(&megabyte);
    }
    client.send(b"\n");
    let answer = client.receive();
    assert_eq!(
        error_of(&answer),
        (
            -32_600,
            "a line of 209715200 bytes is longer than allowed; the bound is 16777216 bytes"
        )
    );
    let status = std::fs::read_to_string(format!("/proc/{}/status", client.child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak: u64 = peak
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    // The bound, doubled by the growth of its buffer, and the program.
    assert!(peak < 48 * 1024, "{peak} kB");
    let home = client.home.path().to_owned();
    client.new_session(&home);
    client.finish().is_clean();
}

#[test]
fn a_request_in_many_pieces_is_one_request() {
    let mut client = Client::initialized(&|_| {});
    for byte in b"{\"id\":3,\"method\":\"x\"}\n" {
        client.send(&[*byte]);
    }
    assert_eq!(client.receive()["id"], 3);
    client.finish().is_clean();
}

#[test]
fn a_prompt_says_that_no_model_is_configured() {
    let mut client = Client::initialized(&|_| {});
    let home = client.home.path().to_owned();
    let session = client.new_session(&home);
    let prompt = json!([{"type": "text", "text": "hi"}]);
    let params = json!({"sessionId": session["sessionId"], "prompt": prompt});
    let answer = client.request("session/prompt", &params);
    let (code, message) = error_of(&answer);
    assert_eq!(code, -32_603);
    assert!(
        message.starts_with("no model endpoint is configured"),
        "{message}"
    );
    let params = json!({"sessionId": "other", "prompt": prompt});
    let answer = client.request("session/prompt", &params);
    assert_eq!(error_of(&answer), (-32_602, "there is no session `other`"));
    client.finish().is_clean();
}

#[test]
fn notifications_and_responses_are_not_answered() {
    let mut client = Client::initialized(&|_| {});
    client.send(b"{\"method\":\"session/cancel\",\"params\":{\"sessionId\":\"x\"}}\n");
    client.send(b"{\"method\":\"session/fly\"}\n{\"id\":1,\"result\":{}}\n");
    assert_eq!(error_of(&client.request("x", &json!({}))).0, -32_601);
    client.finish().is_clean();
}
