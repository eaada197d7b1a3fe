//! Who is let in, alike before and after the hand-over: host, origin, token, and
//! heads that are none.

use crate::bootstrap::{OK, is_loading, passive};
use crate::fake_agent;
use coldpath_tests::{Daemon, Request, Sandbox};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

#[test]
fn a_refused_request_starts_nothing() {
    let sandbox = Sandbox::new();
    let daemon = sandbox
        .daemon()
        .agent(fake_agent(""))
        .passive()
        .env("COLDPATH_TOKEN", "secret")
        .args(["--allow-origin", "http://app.test"])
        .start();
    let session = Request::session("thread");
    let port = daemon.port();
    for (request, status) in [
        (session.clone(), 401),
        (session.clone().bearer("wrong"), 401),
        (session.clone().host("evil.test"), 403),
        (
            session
                .clone()
                .bearer("secret")
                .host(&format!("evil.test:{port}")),
            403,
        ),
        (
            session
                .clone()
                .bearer("secret")
                .header("Origin", "http://evil.test"),
            403,
        ),
        (Request::get("/daemon/status"), 401),
        // Only asking for it is open, whatever else that path may be sent.
        (Request::post("/health", ""), 401),
        (Request::new("DELETE", "/health"), 401),
        (
            Request::new("OPTIONS", "/session").header("Origin", "http://app.test"),
            204,
        ),
    ] {
        let answer = daemon.ask(&request).expect_status(status);
        if status == 401 {
            assert_eq!(answer.text(), r#"{"error":"Unauthorized"}"#);
        }
    }
    let status = Request::get("/daemon/status").bearer("secret");
    let loading = |daemon: &Daemon| daemon.ask(&status).json()["runtime"]["loading"].clone();
    assert_eq!(loading(&daemon), true);
    assert_eq!(daemon.get("/health").text(), OK);
    daemon.ask(&session.bearer("secret")).expect_status(200);
    assert_eq!(loading(&daemon), Value::Null);
    daemon.stop_cleanly();
}

#[test]
fn hosts_and_origins_are_judged_alike_before_and_after_the_hand_over() {
    let sandbox = Sandbox::new();
    let daemon = sandbox
        .daemon()
        .agent(fake_agent(""))
        .passive()
        .args(["--allow-origin", "http://app.test"])
        .start();
    for round in 0..2 {
        let get = Request::get("/capabilities");
        let answer = daemon
            .ask(&get.clone().host("evil.test"))
            .expect_status(403);
        assert_eq!(answer.text(), r#"{"error":"Invalid Host header"}"#);
        let answer = daemon
            .ask(&get.clone().header("Origin", "null"))
            .expect_status(403);
        assert_eq!(
            answer.text(),
            r#"{"error":"Request denied by CORS policy"}"#
        );
        assert_eq!(answer.header("vary"), Some("Origin"));
        let answer = daemon
            .ask(&get.header("Origin", "http://app.test"))
            .expect_status(200);
        let allowed = "access-control-allow-origin";
        assert_eq!(answer.header(allowed), Some("http://app.test"));
        let preflight = Request::new("OPTIONS", "/session")
            .header("Origin", "http://app.test")
            .header("Access-Control-Request-Method", "POST");
        let answer = daemon.ask(&preflight).expect_status(204);
        assert_eq!(
            answer.header(allowed),
            Some("http://app.test"),
            "round {round}"
        );
        let methods = answer.header("access-control-allow-methods").unwrap();
        assert!(methods.contains("POST"), "{methods}");
        assert_eq!(is_loading(&daemon), round == 0);
        daemon.thread_session().expect_status(200);
    }
    daemon.stop_cleanly();
}

#[test]
fn ambiguous_heads_are_judged_alike_before_and_after_the_hand_over() {
    let sandbox = Sandbox::new();
    let daemon = passive(&sandbox);
    let port = daemon.port();
    let lines = [
        (&b"X: y"[..], 200),
        (b"Host: evil.test", 400),
        (b"Origin: http://a.test\r\nOrigin: http://a.test", 400),
        (b"Authorization: a\r\nAuthorization: b", 400),
        (b"Origin: http://\xff", 403),
    ];
    for _ in 0..2 {
        for (line, status) in lines {
            let mut client = daemon.connect();
            let start = format!("GET /capabilities HTTP/1.1\r\nHost: localhost:{port}\r\n");
            client.send_bytes(&[start.as_bytes(), line, b"\r\n\r\n"].concat());
            client.read().expect_status(status);
        }
        let mut client = daemon.connect();
        let list = Request::get("/health").header("Connection", "close, x");
        client.send(&list);
        client.expect_answer_and_end(200);
        daemon.thread_session().expect_status(200);
    }
    daemon.stop_cleanly();
}

#[test]
fn a_listener_answers_to_its_own_loopback_address() {
    let sandbox = Sandbox::new();
    let launch = sandbox.daemon().agent(fake_agent("")).passive();
    let daemon = launch.args(["--hostname", "127.0.0.2"]).start();
    for _ in 0..2 {
        for (host, status) in [("127.0.0.2", 200), ("127.0.0.3", 403)] {
            let mut stream = TcpStream::connect(("127.0.0.2", daemon.port())).unwrap();
            let get = Request::get("/capabilities").header("Connection", "close");
            let get = get.host(&format!("{host}:{}", daemon.port()));
            stream.write_all(&get.to_bytes(daemon.port())).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status} ")),
                "{answer}"
            );
        }
        let mut stream = TcpStream::connect(("127.0.0.2", daemon.port())).unwrap();
        let session = Request::session("thread").header("Connection", "close");
        let session = session.host(&format!("127.0.0.2:{}", daemon.port()));
        stream.write_all(&session.to_bytes(daemon.port())).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    daemon.stop_cleanly();
}

#[test]
fn oversized_and_malformed_heads_are_refused_before_and_after_the_hand_over() {
    let sandbox = Sandbox::new();
    let daemon = passive(&sandbox);
    let long = Request::get("/health").header("X-Long", &"a".repeat(9_000));
    let mut many = Request::get("/health");
    for _ in 0..65 {
        many = many.header("X-Field", "v");
    }
    for _ in 0..2 {
        daemon.ask(&long).expect_status(431);
        daemon.ask(&many).expect_status(431);
        for garbage in [&b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n"[..], b"GET\r\n\r\n"] {
            let mut client = daemon.connect();
            client.send_bytes(garbage);
            client.read().expect_status(400);
            client.expect_end();
        }
        daemon.thread_session().expect_status(200);
    }
    daemon.stop_cleanly();
}
