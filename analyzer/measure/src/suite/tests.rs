use super::*;

const KEYS: [&str; 3] = ["sessionId", "attached", "clientId"];

fn session(id: &str, attached: bool) -> SessionFacts {
    let keys: Vec<String> = KEYS.map(str::to_owned).to_vec();
    SessionFacts {
        id: id.to_owned(),
        keys: Some(keys.clone()),
        expected: keys,
        attached: Some(attached),
    }
}

#[test]
fn an_answer_may_have_more_keys_behind_the_named_ones() {
    let mut facts = campaign();
    for session in &mut facts.runs[2].sessions {
        session.keys.as_mut().unwrap().push("more".to_owned());
    }
    check(&facts, Some(0), &[]);
}

fn run(scenario: &str, sessions: &[SessionFacts]) -> RunFacts {
    RunFacts {
        name: format!("run of {scenario}"),
        scenario: scenario.to_owned(),
        traced: scenario != "no-telemetry",
        failure: None,
        exit: Some(Exit::Code(0)),
        leftovers: 0,
        sessions: sessions.to_vec(),
        files: usize::from(scenario != "no-telemetry"),
        channels: (scenario == "concurrent").then(|| BTreeSet::from(["c".to_owned()])),
    }
}

fn campaign() -> Facts {
    Facts {
        runs: vec![
            run("cold", &[session("a", false), session("b", false)]),
            run("concurrent", &[session("c", false), session("d", false)]),
            run("default-single", &[session("e", false), session("e", true)]),
            run("no-telemetry", &[session("f", false)]),
        ],
    }
}

/// The names of the claims that do not hold.
#[track_caller]
fn check(facts: &Facts, oom_kills: Option<u64>, expected: &[&str]) {
    let claims = facts.judge(oom_kills);
    assert_eq!(claims.len(), 9);
    let failed: Vec<&str> = claims
        .iter()
        .filter(|claim| claim.verdict == Verdict::Fail)
        .map(|claim| claim.name)
        .collect();
    assert_eq!(failed, expected, "{claims:#?}");
}

#[test]
fn a_daemon_that_keeps_its_word_passes_every_claim() {
    let claims = campaign().judge(Some(0));
    assert!(claims.iter().all(|claim| claim.verdict == Verdict::Pass));
    let mut text = Vec::new();
    write(&claims, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let first = text.lines().next().unwrap();
    assert_eq!(first, "PASS  success                           4 of 4 runs");
}

#[test]
fn each_broken_word_fails_its_own_claim() {
    let break_one = |change: fn(&mut RunFacts), at: usize, expected: &[&str]| {
        let mut facts = campaign();
        change(&mut facts.runs[at]);
        check(&facts, Some(0), expected);
    };
    break_one(|run| run.failure = Some("x".to_owned()), 0, &["success"]);
    break_one(|run| run.exit = Some(Exit::Signal(15)), 0, &["exit 0"]);
    break_one(|run| run.leftovers = 1, 1, &["no leftovers"]);
    break_one(|run| run.files = 1, 3, &["no files when telemetry is off"]);
    break_one(
        |run| run.sessions[1].id = "a".to_owned(),
        0,
        &["distinct session ids"],
    );
    break_one(
        |run| run.channels = Some(["c", "d"].map(str::to_owned).into()),
        1,
        &["one channel for concurrent colds"],
    );
    break_one(
        |run| run.sessions[0].keys = Some(vec!["attached".to_owned(), "sessionId".to_owned()]),
        0,
        &["response keys"],
    );
    break_one(
        |run| run.sessions[1].id = "x".to_owned(),
        2,
        &["default-single shape"],
    );
    break_one(
        |run| run.sessions[1].attached = Some(false),
        2,
        &["default-single shape"],
    );
    check(&campaign(), Some(1), &["no process killed for memory"]);
}

#[test]
fn what_cannot_be_seen_is_not_judged() {
    let mut facts = campaign();
    facts.runs[1].channels = None;
    for run in &mut facts.runs {
        run.sessions.iter_mut().for_each(|one| one.expected.clear());
    }
    let claims = facts.judge(None);
    let open: Vec<&str> = claims
        .iter()
        .filter(|claim| claim.verdict == Verdict::NotJudged)
        .map(|claim| claim.name)
        .collect();
    assert_eq!(
        open,
        [
            "one channel for concurrent colds",
            "response keys",
            "no process killed for memory"
        ]
    );
}

#[test]
fn keys_are_read_in_the_order_of_the_text() {
    let keys = keys_in_order(br#"{"b":1,"a":{"c":2},"d":[]}"#).unwrap();
    assert_eq!(keys, ["b", "a", "d"]);
    assert_eq!(keys_in_order(b"[]"), None);
}

#[test]
fn channels_are_those_of_session_requests() {
    let span = |name: &str, id: &str| {
        serde_json::json!({"name": name, "attributes": [
            {"key": "coldpath.channel.id", "value": {"stringValue": id}}]})
    };
    let line = serde_json::json!({"resourceSpans": [{"scopeSpans": [{"spans": [
        span("POST /session", "c-1"), span("channel.wait", "c-2")]}]}]});
    assert_eq!(channels_in(&line.to_string()), ["c-1"]);
    assert_eq!(channels_in("noise"), [""; 0]);
}
