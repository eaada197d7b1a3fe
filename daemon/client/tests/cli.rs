//! The client as a program.

use std::process::Command;

fn coldpath() -> Command {
    Command::new(env!("CARGO_BIN_EXE_coldpath"))
}

#[test]
fn help_and_version_are_on_stdout() {
    for argument in ["--help", "--version"] {
        let output = coldpath().arg(argument).output().unwrap();
        assert!(output.status.success() && !output.stdout.is_empty() && output.stderr.is_empty());
    }
}

#[test]
fn bad_arguments_exit_with_2() {
    for arguments in [
        &["top", "--url", "ftp://x"][..],
        &["top", "--every-ms", "1"],
        &["nothing"],
    ] {
        assert_eq!(
            coldpath().args(arguments).output().unwrap().status.code(),
            Some(2),
            "{arguments:?}"
        );
    }
}

#[test]
fn without_a_terminal_the_way_out_is_named() {
    let output = coldpath().arg("top").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("--once"));
}

#[test]
fn a_daemon_that_is_not_there_exits_with_1_and_says_where() {
    // Bound and dropped: nobody listens on that port now.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let output = coldpath()
        .args([
            "top",
            "--once",
            "--url",
            &format!("http://127.0.0.1:{port}"),
        ])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains(&port.to_string())
    );
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .starts_with("health     down")
    );
}
