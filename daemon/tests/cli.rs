//! The program by itself: what it says and how it ends before it listens.

#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

use std::process::{Command, Output};

fn coldpathd(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_coldpathd"))
        .args(args)
        .env_clear()
        // The default state directory lies below it; nothing is made there.
        .env("HOME", "/no/such/home")
        .output()
        .unwrap()
}

/// Ends with 2, says nothing on stdout and names what is wrong on stderr.
#[track_caller]
fn check_usage(args: &[&str], named: &str) {
    let output = coldpathd(args);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(output.stdout, b"", "{output:?}");
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains(named), "no {named:?} in {message:?}");
}

#[test]
fn version_and_help_go_to_stdout() {
    let output = coldpathd(&["--version"]);
    assert_eq!(output.status.code(), Some(0));
    let expected = format!("coldpathd {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    let output = coldpathd(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    let help = String::from_utf8(output.stdout).unwrap();
    for option in [
        "--hostname",
        "--port",
        "--workspace",
        "--agent",
        "--token-file",
        "--require-auth",
        "--allow-origin",
        "--state-dir",
        "--trace-dir",
        "--runtime-start",
        "--health-grace-ms",
        "--fallback-ms",
        "--initialize-timeout-ms",
        "--max-sessions",
    ] {
        assert!(help.contains(option), "no {option} in:\n{help}");
    }
}

#[test]
fn bad_usage_ends_with_2_and_is_named() {
    check_usage(&["--no-such-option"], "--no-such-option");
    check_usage(&["--port", "65536"], "65536");
    check_usage(
        &["--workspace", "/no/such/place"],
        "workspace /no/such/place",
    );
    check_usage(&["--agent", "\"open"], "--agent");
    check_usage(&["--hostname", "0.0.0.0"], "token");
}
