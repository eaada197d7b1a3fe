use super::*;

fn parse(args: &[&str]) -> RunArgs {
    let line = ["measure", "run", "--out", "unused"]
        .iter()
        .chain(args)
        .copied();
    match Cli::try_parse_from(line).unwrap().command {
        Command::Run(args) => args,
        Command::Watchdog => panic!("another command"),
    }
}

fn arms_of(args: &[&str]) -> Result<Vec<Arm>, UsageError> {
    arms(&parse(args), Path::new("/"), OsStr::new("/bin:/usr/bin"))
}

#[track_caller]
fn check_refused(args: &[&str], expected: &str) {
    let message = arms_of(args).unwrap_err().to_string();
    assert!(message.contains(expected), "{message}");
}

#[test]
fn a_choice_is_for_all_arms_or_for_one() {
    let arms = arms_of(&[
        "--arm",
        "on=sh -c 'exit 0'",
        "--arm",
        "off=sh",
        "--scenario",
        "off=no-telemetry",
        "--stop-at",
        "health",
        "--stop-at",
        "on=ready",
    ])
    .unwrap();
    let read: Vec<_> = arms
        .iter()
        .map(|arm| (arm.name.as_str(), arm.scenario, arm.stop_at))
        .collect();
    assert_eq!(
        read,
        [
            ("on", Scenario::Cold, StopAt::Ready),
            ("off", Scenario::NoTelemetry, StopAt::Health),
        ]
    );
    assert_eq!(arms[0].words, ["sh", "-c", "exit 0"]);
    assert!(arms[0].program.is_absolute());
}

#[test]
fn a_command_after_the_dashes_is_one_arm_named_by_its_program() {
    let arms = arms_of(&["--", "/bin/sh", "-c", "a b"]).unwrap();
    assert_eq!(arms.len(), 1);
    assert_eq!(arms[0].name, "sh");
    assert_eq!(arms[0].words, ["/bin/sh", "-c", "a b"]);
    assert_eq!(arms[0].stop_at, StopAt::Session);
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
        "`--scenario warm` is not known\nhint: one of cold, no-telemetry",
    );
}

#[test]
fn an_arm_and_a_command_exclude_each_other() {
    let line = ["measure", "run", "--out", "x", "--arm", "a=b", "--", "c"];
    assert!(Cli::try_parse_from(line).is_err());
}

#[test]
fn an_output_directory_is_new_or_empty() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    assert_eq!(make_out(&root.join("a/b")).unwrap(), root.join("a/b"));
    assert_eq!(make_out(&root.join("a/b")).unwrap(), root.join("a/b"));
    let message = make_out(&root.join("a")).unwrap_err().to_string();
    assert!(message.contains("is not empty\nhint:"), "{message}");
    std::fs::write(root.join("file"), "").unwrap();
    assert!(matches!(
        make_out(&root.join("file")),
        Err(UsageError::Out(_, _))
    ));
}
