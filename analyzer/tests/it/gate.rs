//! Gates: verdicts on planted data, what forbids one, exit codes, placebo, plan.

use std::io::Write;

use serde_json::Value;
use tempfile::NamedTempFile;

use crate::schema;
use crate::support::{Answer, analyze, fixture, named};

const PLACEBO: &str = "verdicts/placebo.json";

fn policy_4748() -> String {
    format!("{}/policies/4748.toml", env!("CARGO_MANIFEST_DIR"))
}

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn gate(policy: &str, folder: &str, more: &[&str]) -> Answer {
    let folder = fixture(folder).display().to_string();
    let words = ["gate", policy, &folder, "--format", "json"];
    analyze(words.iter().chain(more))
}

/// One gate on the shift of `action_to_session`, or what replaces parts of it.
fn policy(head: &str, change: &[(&str, &str)]) -> NamedTempFile {
    let mut text = format!(
        "schema = 1\n{head}\n[[gate]]\nname = \"gain\"\nmetric = \"action_to_session\"\nstatistic = \"shift\"\nkind = \"superiority\"\nmargin = \"10ms\"\n"
    );
    for (from, to) in change {
        text = text.replace(from, to);
    }
    file(&text)
}

#[track_caller]
fn verdicts(judged: &Value, expected: &[(&str, &str)]) {
    let gates = judged["gates"].as_array().unwrap();
    let found: Vec<(&str, &str)> = gates
        .iter()
        .map(|gate| {
            (
                gate["name"].as_str().unwrap(),
                gate["verdict"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(found, expected);
}

fn codes(gate: &Value) -> Vec<&str> {
    let reasons = gate["reasons"].as_array().unwrap().iter();
    reasons
        .map(|reason| reason["code"].as_str().unwrap())
        .collect()
}

#[test]
fn a_planted_gain_passes_and_sixty_pairs_cannot_decide_its_memory_tail() {
    let placebo = fixture(PLACEBO).display().to_string();
    let answer = gate(
        &policy_4748(),
        "verdicts/import-closure",
        &["--placebo", &placebo],
    );
    assert_eq!(answer.code, 3, "{}", answer.stderr);
    let judged = answer.json();
    verdicts(
        &judged,
        &[
            ("user-visible gain", "PASS"),
            ("not paid for before the action", "PASS"),
            ("memory tail", "INCONCLUSIVE"),
            ("warm session tail", "PASS"),
            ("health tail", "PASS"),
            ("every run succeeds", "PASS"),
            ("every chain complete", "PASS"),
            ("no leftovers", "PASS"),
        ],
    );
    let memory = named(&judged["gates"], "memory tail");
    assert_eq!(codes(memory), ["crosses"]);
    assert!(memory["pairs_needed"]["power_80"].as_u64().unwrap() > 60);
    // The old style says PASS, as it would to a change of the margin half of the time.
    assert_eq!(memory["old_style"]["verdict"], "PASS");
    let rate = memory["old_style"]["false_pass"].as_f64().unwrap();
    assert!((0.4..0.6).contains(&rate), "{rate}");
    assert!(memory["old_style"]["false_fail"].as_f64().unwrap() > 0.1);
    let gain = named(&judged["gates"], "user-visible gain");
    assert!(gain["minimum_detectable"].as_f64().unwrap() > 0.0);
    assert!(gain["placebo_effect"].as_f64().unwrap() < 10.0);
}

#[test]
fn relocated_time_fails_the_user_visible_gain() {
    let placebo = fixture(PLACEBO).display().to_string();
    let answer = gate(
        &policy_4748(),
        "verdicts/await-preheat",
        &["--placebo", &placebo],
    );
    assert_eq!(answer.code, 1, "{}", answer.stderr);
    let judged = answer.json();
    assert_eq!(
        named(&judged["gates"], "user-visible gain")["verdict"],
        "FAIL"
    );
    let table = analyze([
        "gate",
        &policy_4748(),
        &fixture("verdicts/await-preheat").display().to_string(),
        "--placebo",
        &placebo,
    ]);
    assert!(
        table
            .stdout
            .contains("relocation, no gain: `session_cold` moved by -877.5 ms")
    );
}

#[test]
fn superiority_without_a_placebo_is_inconclusive() {
    let policy = policy("", &[]);
    let path = policy.path().display().to_string();
    let answer = gate(&path, "verdicts/import-closure", &[]);
    assert_eq!(answer.code, 3);
    assert_eq!(codes(&answer.json()["gates"][0]), ["beyond", "no_placebo"]);
    let placebo = fixture(PLACEBO).display().to_string();
    assert_eq!(
        gate(&path, "verdicts/import-closure", &["--placebo", &placebo]).code,
        0
    );
}

#[test]
fn a_placebo_of_another_host_or_scenario_says_nothing() {
    let text = std::fs::read_to_string(fixture(PLACEBO)).unwrap();
    for (from, to, words) in [
        (
            "Example CPU",
            "Other CPU",
            "the placebo is of host Other CPU",
        ),
        (
            "\"cold\"",
            "\"delay=250\"",
            "the placebo is of scenario delay=250",
        ),
    ] {
        let other = file(&text.replace(from, to));
        let policy = policy("", &[]);
        let path = policy.path().display().to_string();
        let answer = gate(
            &path,
            "verdicts/import-closure",
            &["--placebo", &other.path().display().to_string()],
        );
        assert_eq!(answer.code, 3);
        let judged = answer.json();
        assert!(
            judged["placebo_mismatch"]
                .as_str()
                .unwrap()
                .starts_with(words)
        );
        assert_eq!(codes(&judged["gates"][0]), ["beyond", "no_placebo"]);
    }
}

#[test]
fn a_margin_below_the_placebo_effect_is_inconclusive() {
    // process_to_session differs by 4.6 ms between identical arms.
    let policy = policy(
        "",
        &[("action_to_session", "process_to_session"), ("10ms", "1ms")],
    );
    let placebo = fixture(PLACEBO).display().to_string();
    let answer = gate(
        &policy.path().display().to_string(),
        "verdicts/import-closure",
        &["--placebo", &placebo],
    );
    assert_eq!(answer.code, 3);
    assert_eq!(
        codes(&answer.json()["gates"][0]),
        ["beyond", "below_placebo"]
    );
}

#[test]
fn what_forbids_a_verdict_is_named() {
    let lenient = [("superiority", "non_inferiority"), ("10ms", "500ms")];
    let missing = [
        lenient[0],
        ("10ms", "500MiB"),
        ("action_to_session", "rss_session"),
    ];
    let control = "[[control_stage]]\nname = \"channel.initialize\"\nmargin = \"5ms\"";
    for (folder, head, change, code) in [
        (
            "import-closure",
            "pairs = 100",
            &lenient[..],
            "not_declared",
        ),
        ("bad/one-order", "", &lenient[..], "one_order"),
        ("import-closure", control, &lenient[..], "unproven"),
        ("bad/drift", "", &lenient[..], "autocorrelated"),
        ("bad/missing-metric", "", &missing[..], "missing_values"),
        ("bad/same-arm-twice", "", &lenient[..], "unpaired"),
    ] {
        let policy = policy(head, change);
        let answer = gate(
            &policy.path().display().to_string(),
            &format!("verdicts/{folder}"),
            &[],
        );
        assert_eq!(answer.code, 3, "{folder}: {}", answer.stderr);
        assert_eq!(
            codes(&answer.json()["gates"][0]).last(),
            Some(&code),
            "{folder}"
        );
    }
}

#[test]
fn identical_values_and_single_pairs_are_never_a_verdict() {
    let placebo = fixture(PLACEBO).display().to_string();
    for folder in ["all-equal", "zero-variance", "one-pair"] {
        for margin in ["0ms", "10ms"] {
            let policy = policy("", &[("10ms", margin)]);
            let path = policy.path().display().to_string();
            let answer = gate(
                &path,
                &format!("verdicts/bad/{folder}"),
                &["--placebo", &placebo],
            );
            assert_eq!(answer.code, 3, "{folder}");
            assert_eq!(codes(&answer.json()["gates"][0])[0], "no_interval");
        }
    }
}

#[test]
fn claims_about_every_run_name_the_runs_that_break_them() {
    let claim = |metric: &str| {
        file(&format!(
            "schema = 1\n[[gate]]\nname = \"claim\"\nmetric = \"{metric}\"\nkind = \"every_run\"\n"
        ))
    };
    for (metric, code) in [("succeeded", 0), ("chain_complete", 0), ("no_leftovers", 3)] {
        let policy = claim(metric);
        let answer = gate(
            &policy.path().display().to_string(),
            "qwen-serve-ab",
            &["--pair-by", "start-time"],
        );
        assert_eq!(answer.code, code, "{metric}: {}", answer.stdout);
    }
}

#[track_caller]
fn refused(policy: &str, words: &str) {
    let policy = file(policy);
    let answer = gate(
        &policy.path().display().to_string(),
        "verdicts/import-closure",
        &[],
    );
    assert_eq!(answer.code, 2, "{}", answer.stderr);
    assert!(answer.stderr.contains(words), "{}", answer.stderr);
}

#[test]
fn bad_policies_are_errors_of_usage() {
    let gate = "schema = 1\n[[gate]]\nname = \"a\"\nmetric = \"action_to_session\"\nstatistic = \"shift\"\nkind = \"superiority\"\nmargin = \"10ms\"\n";
    refused(
        &gate.replace("action_to_session", "action_to_sesion"),
        "no run has metric `action_to_sesion`",
    );
    refused(
        &gate.replace("10ms", "10MiB"),
        "does not fit `action_to_session`",
    );
    refused(&gate.replace("margin", "margine"), "margine");
    refused("not toml", "policy ");
    let answer = analyze(["gate", "/no/such/policy.toml", "x"]);
    assert_eq!(answer.code, 2);
    assert!(
        answer
            .stderr
            .contains("cannot read policy /no/such/policy.toml")
    );
    assert!(answer.stderr.contains("the policy comes first"));
}

#[test]
fn no_pairs_are_planned_for_an_effect_of_nothing() {
    for nothing in ["0ms", "0B"] {
        let answer = analyze(["plan", "x", "--effect", nothing]);
        assert_eq!(answer.code, 2);
        assert!(
            answer.stderr.contains("an effect of 0"),
            "{}",
            answer.stderr
        );
    }
}

#[test]
fn the_effective_policy_is_echoed_and_the_document_satisfies_its_schema() {
    let schema: Value =
        serde_json::from_str(include_str!("../../../docs/gate-schema.json")).unwrap();
    let placebo = fixture(PLACEBO).display().to_string();
    for (folder, more) in [
        ("verdicts/import-closure", vec!["--placebo", &placebo]),
        ("verdicts/await-preheat", vec![]),
        ("verdicts/bad/one-pair", vec![]),
    ] {
        let judged = gate(&policy_4748(), folder, &more).json();
        schema::check(&schema, &schema, &judged, folder).unwrap();
        let echoed = named(&judged["policy"]["gates"], "memory tail");
        assert_eq!(
            (&echoed["metric"], &echoed["margin"]),
            (&Value::from("rss_session"), &Value::from("5.0 MiB"))
        );
    }
}

#[test]
fn a_placebo_is_made_of_identical_arms_and_only_of_them() {
    let folder = fixture("verdicts/same").display().to_string();
    let made = analyze(["placebo", &folder]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let kept: Value =
        serde_json::from_str(&std::fs::read_to_string(fixture(PLACEBO)).unwrap()).unwrap();
    assert_eq!(made.json(), kept);
    let folder = fixture("qwen-serve-ab").display().to_string();
    let refused = analyze(["placebo", &folder, "--pair-by", "start-time"]);
    assert_eq!(refused.code, 3);
    assert!(
        refused.stderr.contains("the arms differ in their versions"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_plan_scales_the_noise_of_its_pilot() {
    // (1.95996 + 0.84162)² · (spread / 20)², spread from the pilot's interval.
    let folder = fixture("verdicts/same").display().to_string();
    let plan = analyze(["plan", &folder, "--effect", "20ms", "--format", "json"]).json();
    let metric = named(&plan["metrics"], "action_to_session");
    let spread = metric["spread"].as_f64().unwrap();
    let expected = ((1.959_964 + 0.841_621) * spread / 20.0).powi(2).ceil();
    assert_eq!(
        metric["power_80"]["pairs"].as_f64(),
        Some(expected.max(6.0))
    );
    // Runs start every five seconds, so a pair takes ten.
    let minutes = (expected.max(6.0) * 10.0 / 60.0 * 10.0).ceil() / 10.0;
    assert_eq!(metric["power_80"]["minutes"].as_f64(), Some(minutes));
    assert!(metric["power_95"]["pairs"].as_u64() > metric["power_80"]["pairs"].as_u64());
}
