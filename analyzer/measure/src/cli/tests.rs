use super::args::{Cli, Command};
use super::*;
use crate::arm::Arm;
use crate::draft::{DraftError, Surroundings, check_sets};

fn parse(args: &[&str]) -> Draft {
    let line = ["measure"].iter().chain(args).copied();
    let draft = match <Cli as clap::Parser>::try_parse_from(line).unwrap().command {
        Command::Run(given) => given.into_draft(),
        Command::Pair(given) => given.into_draft(),
        Command::Aa(given) => given.into_draft(),
        Command::Suite(given) => given.into_draft(),
        Command::Shim { .. } | Command::Watchdog { .. } => panic!("another command"),
    };
    draft.unwrap()
}

fn run(args: &[&str]) -> Result<Draft, UsageError> {
    let line = ["measure", "run", "--out", "unused"]
        .iter()
        .chain(args)
        .copied();
    match <Cli as clap::Parser>::try_parse_from(line).unwrap().command {
        Command::Run(given) => given.into_draft(),
        _ => panic!("another command"),
    }
}

fn arms_of(draft: Draft) -> Result<Vec<Arm>, DraftError> {
    let around = Surroundings {
        current_dir: "/".into(),
        search_path: "/bin:/usr/bin".into(),
        own: "/measure".into(),
    };
    check_sets(draft.sets, &around).map(|(_, arms)| arms)
}

#[track_caller]
fn check_refused(args: &[&str], expected: &str) {
    let message = match run(args) {
        Err(error) => error.to_string(),
        Ok(draft) => arms_of(draft).unwrap_err().to_string(),
    };
    assert!(message.contains(expected), "{message}");
}

#[test]
fn a_choice_is_for_all_arms_or_for_one() {
    let draft = run(&[
        "--arm",
        "on=sh -c 'exit 0'",
        "--arm",
        "off=sh",
        "--scenario",
        "off=no-telemetry",
        "--stop-at",
        "on=ready",
        "--stop-at",
        "health",
        "--sampler",
        "off=off",
        "--inject",
        "on=session.new=+2ms",
    ]);
    let arms = arms_of(draft.unwrap()).unwrap();
    let read: Vec<_> = arms
        .iter()
        .map(|arm| (arm.name.as_str(), arm.scenario.to_string(), arm.stop_at))
        .collect();
    assert_eq!(
        read,
        [
            ("on", "cold".to_owned(), StopAt::Ready),
            ("off", "no-telemetry".to_owned(), StopAt::Health),
        ]
    );
    assert_eq!(arms[0].words, ["sh", "-c", "exit 0"]);
    assert!(arms[0].program.is_absolute());
    assert_eq!(arms[0].injections.len(), 1);
    assert!(arms[1].injections.is_empty());
    assert_eq!(arms[0].sampling, Sampling::USUAL);
    assert_eq!(arms[1].sampling, Sampling::Off);
}

#[test]
fn a_command_after_the_dashes_is_one_arm_named_by_its_program() {
    let draft = run(&["--", "/bin/sh", "-c", "a b"]).unwrap();
    let arms = arms_of(draft).unwrap();
    assert_eq!(arms.len(), 1);
    assert_eq!(arms[0].name, "sh");
    assert_eq!(arms[0].words, ["/bin/sh", "-c", "a b"]);
    assert_eq!(arms[0].stop_at, StopAt::Session);
}

#[test]
fn of_several_delays_at_one_stage_the_last_is_made() {
    let options = ["x=+1ms", "y=+2ms", "b=x=+3ms"].map(|delay| ["--inject", delay]);
    let arms = ["--arm", "a=sh", "--arm", "b=sh"];
    let draft = run(&[&arms[..], &options.concat()].concat()).unwrap();
    let made = |arm: usize| -> Vec<(String, u64)> {
        let injections = draft.sets[0].arms[arm].injections.iter();
        injections
            .map(|one| (one.stage.clone(), one.nanos()))
            .collect()
    };
    let pair = |stage: &str, nanos| (stage.to_owned(), nanos);
    assert_eq!(made(0), [pair("x", 1_000_000), pair("y", 2_000_000)]);
    assert_eq!(made(1), [pair("y", 2_000_000), pair("x", 3_000_000)]);
}

#[test]
fn a_pair_injects_into_the_candidate_and_an_aa_runs_one_command_twice() {
    let draft = parse(&[
        "pair",
        "--out",
        "x",
        "--control",
        "sh a",
        "--candidate",
        "sh b",
        "--inject",
        "session.new=+5ms",
        "--pairs",
        "3",
    ]);
    assert_eq!(draft.kind, Kind::Pair);
    assert_eq!((draft.sets[0].runs, draft.sets[0].warmup), (3, 1));
    let [control, candidate] = &draft.sets[0].arms[..] else {
        panic!("two arms");
    };
    assert_eq!([&control.name, &candidate.name], PAIR);
    assert!(control.injections.is_empty());
    assert_eq!(candidate.injections[0].nanos(), 5_000_000);

    let draft = parse(&[
        "aa",
        "--out",
        "x",
        "--scenario",
        "delay=250",
        "--",
        "sh",
        "a",
    ]);
    let [a, b] = &draft.sets[0].arms[..] else {
        panic!("two arms");
    };
    assert_eq!((&a.words, &a.scenario), (&b.words, &b.scenario));
    assert_eq!(a.scenario.to_string(), "delay=250");
    assert_eq!(draft.sets[0].runs, 60);
}

#[test]
fn a_suite_runs_every_scenario_of_the_campaign() {
    let draft = parse(&["suite", "--out", "x", "--", "sh"]);
    let arms = arms_of(draft).unwrap();
    let scenarios: Vec<String> = arms.iter().map(|arm| arm.scenario.to_string()).collect();
    assert_eq!(scenarios, suite::SCENARIOS);
}

#[test]
fn wrong_arms_and_choices_are_named() {
    check_refused(&[], "nothing to run");
    check_refused(&["--arm", "sh"], "`--arm sh` is not NAME=CMD");
    check_refused(&["--arm", "a b=sh"], "`a b` is no name for an arm");
    check_refused(&["--arm", "=sh"], "`` is no name for an arm");
    check_refused(&["--arm", "a=sh", "--arm", "a=sh"], "`a` is given twice");
    check_refused(&["--arm", "a='sh"], "unfinished quote");
    check_refused(&["--arm", "a="], "arm `a`: the command is empty");
    check_refused(&["--arm", "a=no-such-program"], "not found in PATH");
    check_refused(
        &["--arm", "a=sh", "--stop-at", "b=ready"],
        "`--stop-at b=ready` names an arm that is not given",
    );
    check_refused(
        &["--arm", "a=sh", "--stop-at", "a=later"],
        "one of ready, health, session",
    );
    check_refused(
        &["--arm", "a=sh", "--scenario", "warm"],
        "arm `a`: driver `http` has no scenario `warm`\nhint: it has await-preheat, cold,",
    );
    check_refused(
        &["--arm", "a=sh", "--driver", "htpt"],
        "arm `a`: driver htpt: there is no such driver",
    );
    check_refused(&["--arm", "a=sh", "--inject", "x=5ms"], "is no injection");
    check_refused(
        &["--arm", "a=sh", "--sampler", "often"],
        "`--sampler often` is not known",
    );
    check_refused(
        &["--experiment", "x.toml", "--scenario", "cold"],
        "`--scenario` does not go with --experiment",
    );
    check_refused(
        &["--experiment", "./no-such.toml"],
        "cannot read ./no-such.toml",
    );
}

/// What `measure` says of a line that is refused.
fn refusal(line: &[&str]) -> String {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = crate::main_impl(line.iter().map(Into::into), &mut out, &mut err);
    assert_eq!(code, crate::exit::USAGE, "{line:?}");
    String::from_utf8(err).unwrap()
}

#[test]
fn a_command_without_its_dashes_is_told_where_it_stands() {
    let hint = "hint: the command stands behind `--`";
    let forgotten = refusal(&["measure", "run", "--out", "x", "sh", "-c", "true"]);
    assert!(forgotten.contains(hint), "{forgotten}");
    let mistyped = refusal(&["measure", "run", "--out", "x", "--rnus", "3"]);
    assert!(!mistyped.contains(hint), "{mistyped}");
}

#[test]
fn an_arm_and_a_command_exclude_each_other() {
    let line = ["measure", "run", "--out", "x", "--arm", "a=b", "--", "c"];
    assert!(<Cli as clap::Parser>::try_parse_from(line).is_err());
}
