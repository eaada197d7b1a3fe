//! What the scenarios of the built-in driver do to a daemon.

use crate::fake;
use crate::lab::{Lab, Span, only, run_of};

const ONE_RUN: [&str; 4] = ["--runs", "1", "--warmup", "0"];

fn run(behaviour: &str, scenario: &str) -> (Lab, Vec<Span>) {
    let lab = Lab::new();
    let mut options = ONE_RUN.to_vec();
    options.extend(["--scenario", scenario]);
    let output = lab.measure(behaviour, &options);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let spans = lab.runs().remove(0);
    assert_eq!(run_of(&spans).text("coldpath.run.scenario"), scenario);
    (lab, spans)
}

fn requests(lab: &Lab) -> Vec<String> {
    let log = lab.log().into_iter();
    log.filter(|line| !line.starts_with("env "))
        .map(|line| line.split(" HTTP").next().unwrap().to_owned())
        .collect()
}

#[test]
fn concurrent_sessions_stand_in_one_action() {
    let (_, spans) = run("good", "concurrent=3");
    let action = only(&spans, "client.action");
    let cold: Vec<&Span> = spans
        .iter()
        .filter(|span| span.name == "client.session" && span.parent == action.id)
        .collect();
    assert_eq!(cold.len(), 3);
    assert_eq!(cold.iter().map(|span| span.start).min(), Some(action.start));
    assert_eq!(cold.iter().map(|span| span.end).max(), Some(action.end));
    // All were sent before the first answer was read.
    let first_end = cold.iter().map(|span| span.end).min().unwrap();
    assert!(cold.iter().all(|span| span.start < first_end));
}

#[test]
fn a_delay_lies_between_health_and_action() {
    let (_, spans) = run("good", "delay=40");
    let (health, action) = (only(&spans, "client.health"), only(&spans, "client.action"));
    assert!(action.start - health.end >= 40_000_000, "no wait");
}

#[test]
fn an_early_preheat_is_sent_and_not_awaited_where_the_daemon_offers_it() {
    let (lab, spans) = run("modern", "early-preheat=20");
    assert_eq!(
        requests(&lab),
        [
            "GET /health",
            "GET /capabilities",
            "POST /workspace/acp/preheat?timeoutMs=30000",
            "POST /session",
            "POST /session"
        ]
    );
    let run = run_of(&spans);
    assert!(!run.has("coldpath.run.fallback"));
    assert_eq!(only(&spans, "client.preheat").parent, run.id);
}

#[test]
fn an_awaited_preheat_is_part_of_the_action() {
    let (_, spans) = run("modern", "await-preheat");
    let action = only(&spans, "client.action");
    for name in ["client.capabilities", "client.preheat"] {
        assert_eq!(only(&spans, name).parent, action.id);
    }
    assert_eq!(action.start, only(&spans, "client.capabilities").start);
    assert_eq!(action.text("coldpath.session.temperature"), "cold");
}

#[test]
fn an_old_daemon_is_driven_without_what_it_does_not_offer_and_labelled() {
    for (behaviour, expected) in [
        (
            "good",
            "no feature `workspace_acp_preheat`: `preheat` was not sent",
        ),
        (
            "ancient",
            "no `capabilities`: GET /capabilities answered 404: `{\"error\":\"no such route\"}`; \
             no feature `workspace_acp_preheat`: `preheat` was not sent",
        ),
    ] {
        let (lab, spans) = run(behaviour, "await-preheat");
        assert_eq!(run_of(&spans).text("coldpath.run.fallback"), expected);
        assert_eq!(
            requests(&lab),
            ["GET /capabilities", "POST /session", "POST /session"]
        );
        let fallbacks = lab.result(0)["fallbacks"].clone();
        assert!(!fallbacks.as_array().unwrap().is_empty());
    }
}

#[test]
fn a_delay_that_the_program_does_not_make_fails_the_run() {
    let lab = Lab::new();
    let mut options = ONE_RUN.to_vec();
    options.extend(["--inject", "session.new=+1ms"]);
    assert_eq!(lab.measure("good", &options).status.code(), Some(1));
    assert_eq!(lab.result(0)["failure"]["code"], "not_injected");
    let log = lab.log();
    assert!(log.contains(&"env COLDPATH_INJECT=session.new=1000000".to_owned()));
    let runs = lab.runs();
    let run = run_of(&runs[0]);
    assert_eq!(run.number("coldpath.run.inject.session.new_ns"), 1_000_000);
}

#[test]
fn the_suite_prints_a_row_for_each_claim_and_any_that_fails_is_exit_1() {
    let lab = Lab::new();
    let output = lab
        .verb("suite", &["--runs", "1"])
        .env(fake::BEHAVIOUR, "modern")
        .arg("--")
        .args(fake::command())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let verdicts: Vec<(&str, &str)> = said
        .lines()
        .filter(|line| {
            ["PASS", "FAIL", "n/a "]
                .iter()
                .any(|word| line.starts_with(word))
        })
        .map(|line| line.split_once("  ").unwrap())
        .map(|(verdict, rest)| (verdict.trim(), rest.split("  ").next().unwrap().trim()))
        .collect();
    // This daemon ends by the signal, says nothing of channels, and gives every
    // session one id.
    assert_eq!(
        verdicts,
        [
            ("PASS", "success"),
            ("FAIL", "exit 0"),
            ("FAIL", "distinct session ids"),
            ("n/a", "one channel for concurrent colds"),
            ("FAIL", "response keys"),
            ("PASS", "no files when telemetry is off"),
            ("FAIL", "default-single shape"),
            ("PASS", "no leftovers"),
            ("PASS", "no process killed for memory"),
        ],
        "{said}"
    );
    assert_eq!(output.status.code(), Some(1));
}
