//! Starting and refusing to start: ports, workspace, arguments, state directory.

use crate::fake_agent;
use coldpath_tests::{Exit, Launch, Request, Sandbox, reserve_port};
use std::net::{Ipv4Addr, TcpListener};

/// The daemon refuses: nothing on stdout, one message that holds every part.
#[track_caller]
fn check_refused(launch: Launch, code: i32, parts: &[&str]) {
    let exit = launch.run();
    assert_eq!(exit.code, Some(code), "{exit:?}");
    assert_eq!(exit.stdout, "", "{exit:?}");
    for part in parts {
        assert!(exit.stderr.contains(part), "no {part:?} in {exit:?}");
    }
}

#[test]
fn an_explicit_port_that_is_in_use_is_refused() {
    let sandbox = Sandbox::new();
    let port = reserve_port();
    let _holder = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    check_refused(
        sandbox.daemon().port(port),
        1,
        &[&format!("error: port {port} is in use"), "hint: "],
    );
    assert!(!sandbox.state_dir().exists(), "nothing was opened");
}

#[test]
fn the_default_port_walks_up_when_it_is_in_use() {
    let sandbox = Sandbox::new();
    // Somebody else may hold it, which is as good.
    let _holder = TcpListener::bind((Ipv4Addr::LOCALHOST, 4170));
    let daemon = sandbox.daemon().default_port().start();
    assert!((4171..4180).contains(&daemon.port()), "{}", daemon.port());
    daemon.stderr.wait_for("port 4170 is in use, trying 4171");
    daemon.get("/health").expect_status(200);
    daemon.stop_cleanly();
}

#[test]
fn the_ready_line_names_address_and_workspace() {
    let sandbox = Sandbox::new();
    let daemon = sandbox.daemon().passive().start();
    let expected = format!(
        "coldpathd listening on http://127.0.0.1:{} (workspace={})",
        daemon.port(),
        sandbox.workspace().display()
    );
    assert_eq!(daemon.stop_cleanly().stdout, expected);
}

#[test]
fn a_workspace_that_is_no_directory_is_refused() {
    let sandbox = Sandbox::new();
    let missing = sandbox.path("missing");
    check_refused(
        sandbox.daemon().workspace(&missing),
        2,
        &[&format!("workspace {}", missing.display()), "hint: "],
    );
    let file = sandbox.path("file");
    std::fs::write(&file, "").unwrap();
    check_refused(
        sandbox.daemon().workspace(&file),
        2,
        &[&format!("workspace {} is not a directory", file.display())],
    );
}

#[test]
fn bad_arguments_are_refused_by_name() {
    let sandbox = Sandbox::new();
    let no_token = sandbox.path("no-token").display().to_string();
    let cases: [(&[&str], &str); 10] = [
        (&["--bogus"], "--bogus"),
        (&["stray"], "stray"),
        (&["--fallback-ms=-1"], "--fallback-ms"),
        (&["--initialize-timeout-ms", "0"], "--initialize-timeout-ms"),
        (&["--runtime-start", "never"], "--runtime-start"),
        (&["--agent", "'open"], "--agent `'open`"),
        (&["--agent", ""], "--agent is empty"),
        (&["--allow-origin", "http://a.test/path"], "--allow-origin"),
        (&["--hostname", "daemon.test"], "--hostname `daemon.test`"),
        (&["--token-file", &no_token], &no_token),
    ];
    for (args, part) in cases {
        check_refused(sandbox.daemon().args(args), 2, &[part]);
    }
}

#[test]
fn tokens_that_are_needed_or_empty_are_asked_for() {
    let sandbox = Sandbox::new();
    check_refused(
        sandbox.daemon().arg("--require-auth"),
        2,
        &["--require-auth needs a token", "hint: "],
    );
    check_refused(
        sandbox.daemon().env("COLDPATH_TOKEN", "  "),
        2,
        &["the token in COLDPATH_TOKEN is empty"],
    );
    check_refused(
        sandbox.daemon().args(["--hostname", "0.0.0.0"]),
        2,
        &["reachable from other machines", "hint: "],
    );
}

#[test]
fn a_public_listener_with_a_token_asks_for_it_everywhere() {
    let sandbox = Sandbox::new();
    let token_file = sandbox.path("token");
    std::fs::write(&token_file, "secret\n").unwrap();
    let daemon = sandbox
        .daemon()
        .passive()
        .args(["--hostname", "0.0.0.0", "--token-file"])
        .arg(&token_file)
        .start();
    daemon.get("/health").expect_status(401);
    let request = Request::get("/health").bearer("secret");
    daemon.ask(&request).expect_status(200);
    daemon.stop_cleanly();
}

#[test]
fn a_state_directory_in_use_fails_the_runtime_and_not_the_listener() {
    let sandbox = Sandbox::new();
    let agent = fake_agent("");
    let first = sandbox.daemon().agent(&agent).start();
    first.thread_session().expect_status(200);
    let second = sandbox.daemon().agent(&agent).start();
    let message = "is in use by another daemon";

    let answer = second.thread_session().expect_status(503);
    assert_eq!(answer.json()["code"], "daemon_runtime_failed");
    assert!(answer.text().contains(message), "{}", answer.text());
    let health = second.get("/health").expect_status(503).json();
    assert_eq!(health["status"], "degraded");
    assert!(health["error"].as_str().unwrap().contains(message));
    let status = second.get("/daemon/status").expect_status(200).json();
    assert_eq!(status["status"], "error");
    assert_eq!(status["issues"][0]["code"], "daemon_runtime_failed");
    second.get("/capabilities").expect_status(200);
    second.stderr.wait_for(message);

    // The first one has its agent and its session still.
    first.thread_session().expect_status(200);
    let exit = second.stop();
    assert_eq!(exit.code, Some(1), "{exit:?}");
    first.stop_cleanly();
}

#[test]
fn a_failed_runtime_tells_a_client_that_sends_a_large_body() {
    let sandbox = Sandbox::new();
    let file = sandbox.path("file");
    std::fs::write(&file, "").unwrap();
    // Seen only when it is opened: the directory's parent is a file.
    let daemon = sandbox.daemon().state_dir(file.join("state")).start();
    let body = vec![b' '; 1024 * 1024];
    for _ in 0..2 {
        let mut client = daemon.connect();
        // The daemon may close before it has read everything.
        let request = Request::post("/session", body.clone());
        let _ = client.try_send_bytes(&request.to_bytes(daemon.port()));
        let answer = client.read().expect_status(503);
        assert_eq!(answer.json()["code"], "daemon_runtime_failed");
    }
    assert_eq!(daemon.stop().code, Some(1));
}

#[test]
fn a_state_directory_that_is_a_file_is_refused() {
    let sandbox = Sandbox::new();
    let file = sandbox.path("file");
    std::fs::write(&file, "").unwrap();
    check_refused(
        sandbox.daemon().state_dir(&file),
        1,
        &[
            &format!("state directory {}", file.display()),
            "not a directory",
        ],
    );
}

#[test]
fn help_and_version_are_answers() {
    let sandbox = Sandbox::new();
    let Exit { code, stdout, .. } = sandbox.daemon().arg("--help").run();
    assert_eq!(code, Some(0));
    for option in ["--port", "--agent", "--trace-dir", "--state-dir"] {
        assert!(stdout.contains(option), "{stdout}");
    }
    let Exit { code, stdout, .. } = sandbox.daemon().arg("--version").run();
    assert_eq!(code, Some(0));
    assert!(stdout.starts_with("coldpathd "), "{stdout}");
}
