//! Nothing that `measure` started survives it, at whatever moment of a run it is
//! ended, by whatever means, with a program and a child that do not end on SIGTERM.

use crate::fake;
use crate::lab::Lab;
use rustix::process::{Pid, Signal, kill_process};
use std::process::Stdio;

/// Where the program says that it is, and stays.
const MOMENTS: [&str; 4] = ["start", "ready", "health", "session"];

fn ended_at(moment: &str, signal: Signal) -> Option<i32> {
    let lab = Lab::new();
    let mut signs = lab.signs();
    let child = lab
        .command(
            &format!("stubborn-at-{moment}"),
            &["--runs", "1", "--warmup", "0"],
        )
        .env(fake::SIGN, &signs.path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    signs.await_line("stubborn child");
    signs.await_line(moment);
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
    // Program and child both hold the other end, and let it go only by their end.
    signs.await_end();
    { child }.wait().unwrap().code()
}

#[test]
fn nothing_survives_whenever_and_however_measure_is_ended() {
    std::thread::scope(|scope| {
        for moment in MOMENTS {
            for (signal, code) in [(Signal::KILL, None), (Signal::INT, Some(130))] {
                scope.spawn(move || {
                    assert_eq!(ended_at(moment, signal), code, "{moment}, {signal:?}");
                });
            }
        }
    });
}

#[test]
fn nothing_survives_when_measure_is_killed_while_it_stops_the_program() {
    let lab = Lab::new();
    let mut signs = lab.signs();
    let options = ["--runs", "1", "--warmup", "0", "--stop-at", "health"];
    let mut child = lab
        .command("stubborn-at-term", &options)
        .env(fake::SIGN, &signs.path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    signs.await_line("stubborn child");
    signs.await_line("told to end");
    child.kill().unwrap();
    child.wait().unwrap();
    signs.await_end();
}

#[test]
fn what_cleared_its_environment_does_not_survive_either() {
    for (behaviour, signal) in [
        ("leaves-cleared", None),
        ("leaves-cleared-orphan", None),
        ("holds-cleared", Some((Signal::KILL, None))),
        ("holds-cleared", Some((Signal::INT, Some(130)))),
        ("leaves-cleared-orphan", Some((Signal::INT, Some(130)))),
    ] {
        let lab = Lab::new();
        let mut signs = lab.signs();
        let mut child = lab
            .command(behaviour, &["--runs", "1", "--warmup", "0"])
            .env(fake::SIGN, &signs.path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        signs.await_line("cleared child");
        if behaviour == "holds-cleared" {
            // By now the daemon has said all that it says to `measure`.
            signs.await_line("asked for a session");
        }
        if let Some((signal, code)) = signal {
            let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
            kill_process(pid, signal).unwrap();
            signs.await_end();
            assert_eq!(child.wait().unwrap().code(), code, "{behaviour}");
        } else {
            signs.await_end();
            assert_eq!(child.wait().unwrap().code(), Some(1), "{behaviour}");
            assert_eq!(lab.result(0)["failure"]["code"], "leftovers");
        }
    }
}

#[test]
fn what_cleared_its_environment_does_not_survive_measure_that_is_ending_it() {
    for behaviour in ["leaves-telling", "leaves-telling-orphan"] {
        let lab = Lab::new();
        let mut signs = lab.signs();
        let mut child = lab
            .command(behaviour, &["--runs", "1", "--warmup", "0"])
            .env(fake::SIGN, &signs.path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        signs.await_line("cleared child");
        // The daemon has ended, and nothing says any more whose this child was.
        signs.await_line("told to end");
        child.kill().unwrap();
        child.wait().unwrap();
        signs.await_end();
    }
}

#[test]
fn a_program_that_cleared_its_own_environment_does_not_survive() {
    for (signal, code) in [(Signal::KILL, None), (Signal::TERM, Some(143))] {
        let lab = Lab::new();
        let mut signs = lab.signs();
        let options = ["--runs", "1", "--warmup", "0", "--driver", "acp-stdio"];
        let mut child = lab
            .bare(&options)
            .args(["--", "/usr/bin/env", "-i", "/bin/sh", "-c", fake::CLEARED])
            .arg(&signs.path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        signs.await_line("cleared child");
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        signs.await_end();
        assert_eq!(child.wait().unwrap().code(), code, "{signal:?}");
    }
}

#[test]
fn nothing_survives_a_run_that_succeeds_or_fails() {
    for behaviour in ["leaves-child", "exit-early"] {
        let lab = Lab::new();
        let mut signs = lab.signs();
        let mut child = lab
            .command(behaviour, &["--runs", "1", "--warmup", "0"])
            .env(fake::SIGN, &signs.path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        if behaviour == "leaves-child" {
            signs.await_line("stubborn child");
            signs.await_end();
        }
        assert_eq!(child.wait().unwrap().code(), Some(1));
        assert!(!lab.result(0)["succeeded"].as_bool().unwrap());
    }
}
