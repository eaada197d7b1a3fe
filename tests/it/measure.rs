//! `measure` on the real daemon with its embedded agent, and on one whose agent does
//! not end.

use crate::{gate_word, logging_agent, nth_agent};
use coldpath_tests::{Sandbox, programs};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A subcommand of `measure` on the sandbox's workspace; its results are in `out`.
fn measure(sandbox: &Sandbox, verb: &str, options: &[&str]) -> Command {
    let mut command = Command::new(programs().path("measure"));
    command
        .arg(verb)
        .arg("--out")
        .arg(sandbox.path("out"))
        .arg("--workspace")
        .arg(sandbox.workspace())
        .args(options)
        .stdin(Stdio::null());
    command
}

fn daemon() -> String {
    format!(
        "'{}' --port 0 --workspace {{workspace}}",
        programs().coldpathd().display()
    )
}

#[track_caller]
fn succeeds(mut command: Command) -> Output {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    output
}

fn report(out: PathBuf) -> Value {
    let output = Command::new(programs().path("analyze"))
        .args(["--strict", "--format", "json"])
        .arg(out)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_daemon_keeps_every_claim_of_the_suite() {
    let sandbox = Sandbox::new();
    let mut command = measure(&sandbox, "suite", &["--runs", "1"]);
    command.arg("--").arg(programs().coldpathd()).args([
        "--port",
        "0",
        "--workspace",
        "{workspace}",
    ]);
    let said = String::from_utf8(succeeds(command).stdout).unwrap();
    let verdicts: Vec<&str> = said
        .lines()
        .filter_map(|line| line.split_once("  "))
        .map(|(verdict, _)| verdict)
        .filter(|verdict| ["PASS", "FAIL", "n/a "].contains(verdict))
        .collect();
    assert_eq!(verdicts, ["PASS"; 9], "{said}");
    let report = report(sandbox.path("out"));
    assert_eq!(report["input"]["problems"], json!([]));
    assert_eq!(report["runs"]["complete"], report["runs"]["traced"]);
}

#[test]
fn a_pair_with_a_delay_makes_complete_chains_that_carry_it() {
    let sandbox = Sandbox::new();
    let mut command = measure(&sandbox, "pair", &["--pairs", "6", "--warmup", "0"]);
    command
        .args(["--control", &daemon(), "--candidate", &daemon()])
        .args(["--inject", "agent.phase.settings_load=+40ms"]);
    succeeds(command);
    let report = report(sandbox.path("out"));
    assert_eq!(report["runs"]["complete"], 12);
    let injection = &report["injections"][0];
    assert_eq!(injection["stage"], "agent.phase.settings_load");
    assert_eq!(
        (&injection["n_pairs"], &injection["delays"]),
        (&json!(6), &json!([40.0]))
    );
    // In every run of the candidate, and of no other, the phase holds the delay.
    for run in report["runs"]["items"].as_array().unwrap() {
        let windows = run["windows"].as_array().unwrap().iter();
        let startup = windows
            .filter(|window| window["name"] == "agent.startup")
            .find_map(|window| window["stages"]["settings_load"].as_u64())
            .unwrap();
        assert_eq!(startup >= 40_000_000, run["cohort"] == "candidate", "{run}");
    }
}

#[test]
fn an_agent_is_measured_raw_and_through_the_shim() {
    let sandbox = Sandbox::new();
    let agent = format!("'{}'", programs().path("coldpath-agent").display());
    let mut command = measure(
        &sandbox,
        "run",
        &["--runs", "2", "--warmup", "0", "--driver", "acp-stdio"],
    );
    command
        .args(["--arm", &format!("raw={agent}")])
        .args(["--arm", &format!("shim={{shim}} {agent}")])
        .args(["--inject", "shim=agent.startup=+20ms"]);
    succeeds(command);
    let output = Command::new(programs().path("analyze"))
        .args(["--format", "json"])
        .arg(sandbox.path("out"))
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let metric = |cohort: usize, name: &str| {
        let metrics = report["cohorts"][cohort]["metrics"].as_array().unwrap();
        let found = metrics.iter().find(|metric| metric["name"] == name);
        found.unwrap()["p50"].as_f64().unwrap()
    };
    assert_eq!(report["cohorts"][1]["name"], "shim");
    assert!(metric(1, "initialize") >= 20.0);
    assert!(metric(0, "process_to_session") > 0.0);
}

#[test]
fn nothing_is_left_of_a_killed_measure_whose_agent_does_not_end() {
    let sandbox = Sandbox::new();
    let gate = sandbox.gate("session");
    let words = format!("ignore-eof ignore-term {}", gate_word(&gate, "session/new"));
    let agent = logging_agent(&sandbox, &words);
    let mut child = measure(&sandbox, "run", &["--runs", "1", "--warmup", "0"])
        .arg("--")
        .arg(programs().coldpathd())
        .args([
            "--port",
            "0",
            "--workspace",
            "{workspace}",
            "--agent",
            &agent,
        ])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let _waiting = gate.arrival();
    let agent = nth_agent(&sandbox, 0).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    agent.wait("the agent of a killed measure");
}
