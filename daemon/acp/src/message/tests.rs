use super::*;
use serde_json::json;

/// What was read, in one line of text.
fn read(line: &str) -> String {
    let raw = |raw: Option<&RawValue>| raw.map_or("-".to_owned(), |raw| raw.get().to_owned());
    match parse(line.as_bytes()) {
        Ok(Incoming::Request { id, method, params }) => {
            format!("request {id} {method} {}", raw(params))
        }
        Ok(Incoming::Notification { method, params }) => {
            format!("notification {method} {}", raw(params))
        }
        Ok(Incoming::Response { id, outcome }) => match outcome {
            Ok(result) => format!("response {id} {result}"),
            Err(error) => format!("error {id} {error}"),
        },
        Err(ParseError::Json(_)) => "not json".to_owned(),
        Err(ParseError::Shape { id, .. }) => format!("no message {}", raw(id.as_deref())),
    }
}

#[track_caller]
fn check(line: &str, expected: &str) {
    assert_eq!(read(line), expected, "{line}");
}

#[test]
fn ids_are_kept_as_the_peer_wrote_them() {
    check(r#"{"id":0,"method":"a"}"#, "request 0 a -");
    check(r#"{"id":1.0,"method":"a"}"#, "request 1.0 a -");
    check(
        r#"{"id":"01a22df8-6f28-76d3","method":"a"}"#,
        r#"request "01a22df8-6f28-76d3" a -"#,
    );
    check(r#"{"id":null,"method":"a"}"#, "request null a -");
    check(
        r#"{"id":18446744073709551617,"result":{}}"#,
        "response 18446744073709551617 {}",
    );
}

#[test]
fn lines_of_real_agents_are_read() {
    // qwen: a notification before the answer, spaces after colons.
    check(
        r#"{"jsonrpc": "2.0", "method": "qwen/notify/channel/active-work", "params": {"v": 1, "seq": 1}}"#,
        r#"notification qwen/notify/channel/active-work {"v": 1, "seq": 1}"#,
    );
    // codex-acp (Rust): the result before the id.
    check(
        r#"{"jsonrpc":"2.0","result":{"protocolVersion":1},"id":0}"#,
        r#"response 0 {"protocolVersion":1}"#,
    );
    // copilot and others without credentials.
    check(
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Authentication required"}}"#,
        "error 1 Authentication required (code -32000)",
    );
    check(r#"{"id":7,"result":null}"#, "response 7 null");
    check(
        r#"{"id":7,"result":{"a":1},"error":null}"#,
        r#"response 7 {"a":1}"#,
    );
    check(r#"{"method":"a\/b","params":null}"#, "notification a/b -");
    check(r#"{"id":1,"method":"a","extra":[{}]}"#, "request 1 a -");
}

#[test]
fn odd_error_objects_stay_errors() {
    check(
        r#"{"id":1,"error":"boom"}"#,
        r#"error 1 "boom" (code -32603)"#,
    );
    check(r#"{"id":1,"error":{"code":5}}"#, "error 1  (code 5)");
    check(
        r#"{"error":{"code":-32700,"message":"Parse error"}}"#,
        "error null Parse error (code -32700)",
    );
}

#[test]
fn data_of_an_error_is_kept() {
    let line = br#"{"id":1,"error":{"code":-32000,"message":"m","data":{"authMethods":[]}}}"#;
    let Ok(Incoming::Response { outcome, .. }) = parse(line) else {
        panic!("not a response");
    };
    assert_eq!(outcome.unwrap_err().data, Some(json!({"authMethods": []})));
}

#[test]
fn what_is_no_message_is_told_apart_from_what_is_not_json() {
    for line in ["", "garbage", r#"{"id":1"#, r#"{"id":1}x"#, r#"{"id":01}"#] {
        check(line, "not json");
    }
    for line in [
        "[]",
        "{}",
        "1",
        "null",
        r#"[{"id":1,"method":"a"}]"#,
        r#"[1,"a",{}]"#,
    ] {
        check(line, "no message -");
    }
    check(r#"{"id":3}"#, "no message 3");
    check(r#"{"id":3,"method":5}"#, "no message 3");
    check(r#"{"result":{}}"#, "no message -");
    assert!(matches!(
        parse(b"{\"method\":\"\xff\"}"),
        Err(ParseError::Json(_))
    ));
}

#[test]
fn deep_nesting_is_carried_without_recursion() {
    let deep = format!(
        r#"{{"method":"a","params":{}{}}}"#,
        "[".repeat(500_000),
        "]".repeat(500_000)
    );
    assert!(matches!(
        parse(deep.as_bytes()),
        Ok(Incoming::Notification { .. })
    ));
}

#[test]
fn refusals_answer_under_the_id_that_could_be_read() {
    let refused = parse(br#"{"id":"x","method":5}"#).unwrap_err();
    let (id, error) = refused.to_rpc();
    assert_eq!((id.unwrap().get(), error.code), (r#""x""#, INVALID_REQUEST));
    let refused = parse(b"{").unwrap_err();
    let (id, error) = refused.to_rpc();
    assert_eq!((id.is_none(), error.code), (true, PARSE_ERROR));
}

fn text(line: Vec<u8>) -> String {
    String::from_utf8(line).unwrap()
}

#[test]
fn written_lines_are_json_rpc_2() {
    let raw = RawValue::from_string(r#""id-1""#.to_owned()).unwrap();
    assert_eq!(
        text(request(7, "initialize", &json!({"a": "x\ny"}))),
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"initialize\",\"params\":{\"a\":\"x\\ny\"}}\n"
    );
    assert_eq!(
        text(notification("session/cancel", &json!({}))),
        "{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\",\"params\":{}}\n"
    );
    assert_eq!(
        text(response(&raw, &json!({"ok": true}))),
        "{\"jsonrpc\":\"2.0\",\"id\":\"id-1\",\"result\":{\"ok\":true}}\n"
    );
    assert_eq!(
        text(error_response(
            None,
            &RpcError::new(PARSE_ERROR, "not JSON")
        )),
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"not JSON\"}}\n"
    );
}

#[test]
fn a_raw_value_with_line_ends_stays_one_line() {
    let raw = RawValue::from_string("{\r\n \"a\": [1,\n2]}".to_owned()).unwrap();
    let line = text(notification("m", &raw));
    assert_eq!(line.matches(['\n', '\r']).count(), 1);
    assert_eq!(read(line.trim_end()), "notification m {   \"a\": [1, 2]}");
}

#[test]
fn a_result_that_cannot_be_json_becomes_an_error() {
    let keys_are_pairs = std::collections::BTreeMap::from([((1, 2), 3)]);
    let raw = RawValue::from_string("1".to_owned()).unwrap();
    let line = text(response(&raw, &keys_are_pairs));
    assert!(line.starts_with("{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32603"));
    assert!(text(request(1, "m", &keys_are_pairs)).ends_with("\"params\":null}\n"));
}
