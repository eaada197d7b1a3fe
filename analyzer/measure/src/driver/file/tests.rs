use super::*;

#[test]
fn drivers_that_come_with_the_program_are_valid_and_bear_their_names() {
    for (name, text) in BUILT_IN {
        assert_eq!(parse(text, name).unwrap().name, name);
    }
    let example = include_str!("../../../examples/plain-http.toml");
    assert_eq!(parse(example, "x").unwrap().name, "plain-http");
}

const RIGHT: &str = r#"
schema = 1
name = "x"
kind = "http"
[ready]
marker = "on "
[requests.a]
send = "GET /a"
span = "client.request"
[scenarios.cold]
steps = [{ send = "a" }]
"#;

#[track_caller]
fn check(from: &str, to: &str, expected: &str) {
    assert!(RIGHT.contains(from), "{from}");
    let error = parse(&RIGHT.replace(from, to), "d.toml").unwrap_err();
    let message = error.to_string();
    assert!(
        message.starts_with(&format!("d.toml:{expected}")),
        "{message}"
    );
}

#[test]
fn what_is_wrong_in_a_file_is_named_by_line_and_key() {
    assert!(parse(RIGHT, "d.toml").is_ok());
    check("span =", "spam =", "9: unknown field `spam`");
    check(
        "{ send = \"a\" }",
        "{ sent = \"a\" }",
        "11: unknown field `sent`",
    );
    check("schema = 1", "schema = 2", " schema: 2 is not 1");
    check("\"http\"", "\"ftp\"", "4: unknown variant `ftp`");
    check("on ", "", " kind `http` needs [ready]");
    check(
        "client.request",
        "client.tea",
        " requests.a: span: `client.tea`",
    );
    check(
        "GET /a",
        "GET a",
        " requests.a: send: `GET a` is not METHOD /PATH",
    );
    check("GET /a", "GET /a b\\r\\nX: y", " requests.a: send: ");
    check(
        "send = \"GET",
        "call = \"GET",
        " requests.a: kind `http` needs `send`",
    );
    check(
        "{ send = \"a\" }",
        "{ send = \"b\" }",
        " scenarios.cold: step 1: send: there is no request `b`",
    );
    check(
        "{ send = \"a\" }",
        "{ wait = \"1s\", action = true }",
        " scenarios.cold: step 1: is one of",
    );
    check(
        "{ send = \"a\" }",
        "{ wait = \"{value}\" }",
        " scenarios.cold: step 1: wait: `{value}`",
    );
    check(
        "{ send = \"a\" }",
        "{ wait = \"1s\", since = \"b\" }",
        " scenarios.cold: step 1: since: there is no request `b`",
    );
    check(
        "{ send = \"a\" }",
        "{ send = \"a\", since = \"a\" }",
        " scenarios.cold: step 1: is one of",
    );
    check(
        "{ send = \"a\" }",
        "{ send = \"a\", times = 65 }",
        " scenarios.cold: step 1: times",
    );
    check(
        "{ send = \"a\" }",
        "{ signal = \"SIGKILL\" }",
        " scenarios.cold: step 1: signal",
    );
    check(
        "scenarios.cold",
        "scenarios.warm",
        " scenarios: there is no `cold`",
    );
    check(
        "client.request",
        "client.session",
        " scenarios.cold: step 1: as: a session is",
    );
}

#[test]
fn a_driver_is_a_name_or_a_path() {
    assert_eq!(load("command").unwrap().kind, Kind::Command);
    let message = load("htpt").unwrap_err().to_string();
    assert!(
        message.contains("hint: http, acp-stdio, command"),
        "{message}"
    );
    let message = load("./no-such-file.toml").unwrap_err().to_string();
    assert!(
        message.starts_with("cannot read ./no-such-file.toml"),
        "{message}"
    );
}
