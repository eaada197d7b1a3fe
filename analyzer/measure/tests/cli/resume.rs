//! Experiments that did not come to their end, and are taken up again.

use crate::fake;
use crate::lab::{Lab, run_of};
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Child, Command, Stdio};

const RUNS: [&str; 6] = ["--runs", "3", "--warmup", "1", "--seed", "42"];

/// Two arms, of which the second stops the experiment once, at its third request
/// for a session: as long as a file is not there, it makes it and waits.
fn experiment(lab: &Lab, extra: &[&str]) -> Command {
    let mut options = RUNS.to_vec();
    options.extend(extra);
    let words = fake::command().join(" ");
    let mut command = lab.bare(&options);
    command
        .args(["--arm", &format!("a=env {}=good {words}", fake::BEHAVIOUR)])
        .args([
            "--arm",
            &format!("b=env {}=waits-once {words}", fake::BEHAVIOUR),
        ])
        .env(fake::ONCE, lab.path("once"));
    command
}

/// Position, arm, block and order of every run, as the traces have them.
fn runs(lab: &Lab) -> Vec<String> {
    let spans = lab.runs();
    let line = |spans: &Vec<crate::lab::Span>| {
        let run = run_of(spans);
        let key = |name: &str| run.text(&format!("coldpath.run.{name}")).to_owned();
        let failed = if run.failed { " failed" } else { "" };
        let [index, cohort] = ["index", "cohort"].map(key);
        let [pair, order] = ["pair.index", "pair.order"].map(key);
        format!("{index} {cohort} {pair} {order}{failed}")
    };
    spans.iter().map(line).collect()
}

fn uninterrupted() -> Vec<String> {
    let lab = Lab::new();
    std::fs::write(lab.path("once"), "").unwrap();
    let output = experiment(&lab, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    runs(&lab)
}

/// Begins, and ends it by a signal in the middle of a run.
fn cut_short(lab: &Lab, signal: Signal) -> Option<i32> {
    let mut signs = lab.signs();
    let child: Child = experiment(lab, &[])
        .env(fake::SIGN, &signs.path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    signs.await_line("waits");
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
    let code = { child }.wait().unwrap().code();
    signs.await_end();
    code
}

#[test]
fn resumed_it_has_the_schedule_and_the_pairs_of_an_uninterrupted_one() {
    let expected = uninterrupted();
    assert_eq!(expected.len(), 8);
    for (signal, code) in [(Signal::INT, Some(130)), (Signal::KILL, None)] {
        let lab = Lab::new();
        assert_eq!(cut_short(&lab, signal), code);
        let before = lab.runs().len();
        let output = experiment(&lab, &["--resume"]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(runs(&lab), expected, "after {signal:?}");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let whole = if code.is_some() { before - 1 } else { before };
        assert!(whole > 0, "nothing was kept");
        let kept = format!("resumed: {whole} of 8 runs were made before");
        assert!(said.contains(&kept), "{said}");
        assert!(said.contains("6 of 6 runs succeeded"), "{said}");
        let manifest = lab.manifest();
        assert_eq!(manifest["status"], "complete");
        assert_eq!(manifest["resumed_at"].as_array().unwrap().len(), 1);
        assert!(!lab.out().join("manifest.journal").exists());
        assert!(!lab.out().join("state").exists());
        // Once more there is nothing left to do.
        let output = experiment(&lab, &["--resume"]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(runs(&lab), expected);
    }
}

#[test]
fn another_binary_driver_or_arm_is_another_experiment() {
    let lab = Lab::new();
    let target = lab.path("target");
    std::fs::copy("/bin/true", &target).unwrap();
    let target = target.to_str().unwrap();
    let driver = lab.path("d.toml");
    let write = |comment: &str| {
        let text = "schema = 1\nname = \"d\"\nkind = \"command\"\n[scenarios.cold]\nsteps = []\n";
        std::fs::write(&driver, format!("{text}# {comment}\n")).unwrap();
    };
    let measure = |extra: &[&str]| {
        let mut options = vec!["--runs", "1", "--warmup", "0", "--seed", "1"];
        options.extend(["--driver", driver.to_str().unwrap()]);
        options.extend(extra);
        options.extend(["--", target]);
        let output = lab.bare(&options).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    write("one");
    assert_eq!(measure(&[]), (Some(0), String::new()));
    assert_eq!(measure(&["--resume"]), (Some(0), String::new()));

    let check = |(code, said): (Option<i32>, String), expected: &str| {
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
    };
    write("two");
    check(measure(&["--resume"]), "its driver has changed");
    write("one");
    check(
        measure(&["--resume", "--timeout-ms", "7"]),
        "settings or seed are others",
    );
    check(measure(&[]), "is not empty\nhint:");
    std::fs::copy("/bin/false", target).unwrap();
    check(measure(&["--resume"]), "target has changed\nhint:");
}

#[test]
fn there_must_be_something_to_resume() {
    let lab = Lab::new();
    let output = experiment(&lab, &["--resume"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("--resume") && said.contains("hint:"),
        "{said}"
    );
}
