//! Arguments, settings, signals, the end of the pipes.

use super::client::{Client, Ended, command};
use serde_json::json;
use std::fs;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;

#[track_caller]
fn check_arguments(arguments: &[&str], code: i32, stdout: &str, stderr: &str) {
    let home = tempfile::tempdir().unwrap();
    let output = command(home.path()).args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    let check = |text: Vec<u8>, part: &str| {
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.contains(part) && text.is_empty() == part.is_empty(),
            "{text}"
        );
    };
    check(output.stdout, stdout);
    check(output.stderr, stderr);
}

#[test]
fn help_and_version_are_printed_and_bad_arguments_exit_2() {
    check_arguments(&["--help"], 0, "Usage: coldpath-agent", "");
    let version = concat!("coldpath-agent ", env!("CARGO_PKG_VERSION"), "\n");
    check_arguments(&["--version"], 0, version, "");
    check_arguments(
        &["--acp"],
        2,
        "",
        "coldpath-agent: error: unknown argument `--acp`\nhint: ",
    );
}

#[test]
fn the_end_of_stdin_ends_the_agent_with_0_at_any_point() {
    Client::start().finish().is_clean();
    Client::initialized(&|_| {}).finish().is_clean();
    let mut client = Client::initialized(&|_| {});
    let home = client.home.path().to_owned();
    client.new_session(&home);
    client.finish().is_clean();
}

#[test]
fn a_last_line_without_newline_is_answered() {
    let mut client = Client::start();
    client.send(br#"{"id":"last","method":"session/new"}"#);
    let Ended { lines, status, .. } = client.finish();
    assert_eq!((lines.len(), status.code()), (1, Some(0)));
    assert_eq!(lines[0]["id"], "last");
}

#[test]
fn a_client_that_closes_stdout_ends_the_agent_with_0() {
    let home = tempfile::tempdir().unwrap();
    let mut child = command(home.path()).spawn().unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    // A process that another test is starting holds the pipe's other end for a
    // moment; so more than one answer may be written before it is broken.
    while stdin.write_all(b"x\n").is_ok() {
        std::thread::yield_now();
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn sigterm_ends_it_at_once() {
    let client = Client::initialized(&|_| {});
    let pid = rustix::process::Pid::from_child(&client.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(client.wait().status.signal(), Some(15));
}

#[test]
fn settings_of_the_user_hold_and_those_of_a_workspace_do_not() {
    let home = tempfile::tempdir().unwrap();
    for (dir, disabled) in [
        (".config/coldpath", "search_text"),
        ("coldpath", "read_file"),
    ] {
        let dir = home.path().join(dir);
        fs::create_dir_all(&dir).unwrap();
        let text = format!("[tools]\ndisabled = ['{disabled}']\n");
        fs::write(dir.join("agent.toml"), text).unwrap();
    }
    let workspace = home.path().to_owned();
    let mut client = Client::start_in(home, &|_| {});
    client.initialize(&json!({}));
    let session = client.new_session(&workspace);
    assert_eq!(
        session["_meta"]["coldpath.tools"],
        json!(["read_file", "list_directory"])
    );
    client.finish().is_clean();
}

#[test]
fn a_broken_settings_file_is_told_and_the_agent_serves_with_the_defaults() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join(".config/coldpath");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("agent.toml"), "[tools]\ndisabled = 5\n").unwrap();
    let workspace = home.path().to_owned();
    let mut client = Client::start_in(home, &|_| {});
    client.initialize(&json!({}));
    let session = client.new_session(&workspace);
    assert_eq!(
        session["_meta"]["coldpath.tools"],
        json!(["read_file", "list_directory", "search_text"])
    );
    let Ended { status, stderr, .. } = client.finish();
    assert_eq!(status.code(), Some(0));
    let start = format!(
        "coldpath-agent: warning: {}: line 2: invalid type",
        dir.join("agent.toml").display()
    );
    assert!(stderr.starts_with(&start), "{stderr}");
}

#[cfg(feature = "fault-points")]
#[test]
fn a_fault_point_says_so_and_stops_inside_its_span() {
    use super::client::error_of;
    use std::io::{BufRead as _, BufReader};
    for (span, initialized) in [("agent.startup", false), ("agent.session_start", true)] {
        let mut client = Client::start_with(&|command| {
            command.env("COLDPATH_FAULT", span);
        });
        let early = client.request("session/new", &json!({}));
        assert_eq!(error_of(&early).0, -32_600);
        if initialized {
            client.initialize(&json!({}));
        }
        let method = if initialized {
            "session/new"
        } else {
            "initialize"
        };
        let params = json!({"protocolVersion": 1, "cwd": "/"});
        let request = json!({"id": 9, "method": method, "params": params});
        client.send(format!("{request}\n").as_bytes());
        let mut stderr = BufReader::new(client.child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        assert_eq!(line, format!("fault {span}\n"));
        assert!(client.child.try_wait().unwrap().is_none());
        client.child.kill().unwrap();
        assert_eq!(client.child.wait().unwrap().signal(), Some(9));
    }
}
