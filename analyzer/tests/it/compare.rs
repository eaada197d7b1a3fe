//! Comparisons against an independent script (`goldens/compare.py`, numpy and
//! scipy), on what they say in words, and on inputs that must not give numbers.

use serde_json::Value;

use crate::schema;
use crate::support::{Answer, analyze, fixture, named};

fn run(folder: &str, more: &[&str]) -> Answer {
    let folder = fixture(folder).display().to_string();
    let words = ["compare", &folder, "--format", "json"];
    analyze(words.iter().chain(more))
}

#[track_caller]
fn compared(folder: &str, more: &[&str]) -> Value {
    let answer = run(folder, more);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    answer.json()
}

#[track_caller]
fn said(comparison: &Value, list: &str, code: &str) -> String {
    let remarks = comparison[list].as_array().unwrap();
    let texts: Vec<&str> = remarks
        .iter()
        .filter(|remark| remark["code"] == code)
        .map(|remark| remark["text"].as_str().unwrap())
        .collect();
    assert!(!texts.is_empty(), "no {code} in {remarks:?}");
    texts.join("\n")
}

/// To the nanosecond that a figure is rounded to, and what floats lose.
#[track_caller]
fn near(found: &Value, expected: &Value, what: &str) {
    match (found.as_f64(), expected.as_f64()) {
        (Some(found), Some(expected)) => {
            let slack = 1.1e-6 + expected.abs() * 1e-9;
            // Sizes are whole bytes.
            let slack = if expected.abs() > 1e4 {
                slack.max(0.51)
            } else {
                slack
            };
            assert!(
                (found - expected).abs() <= slack,
                "{what}: {found} {expected}"
            );
        }
        _ => assert_eq!(
            found.is_null(),
            expected.is_null(),
            "{what}: {found} {expected}"
        ),
    }
}

#[track_caller]
fn ends(found: &Value, keys: [&str; 2], expected: &Value, what: &str) {
    near(
        &found[keys[0]],
        &expected[0],
        &format!("{what} {}", keys[0]),
    );
    near(
        &found[keys[1]],
        &expected[1],
        &format!("{what} {}", keys[1]),
    );
}

#[track_caller]
fn figured(found: &Value, expected: &Value, what: &str) {
    near(&found["estimate"], &expected[0], what);
    ends(found, ["low", "high"], &expected[1], what);
    if expected.as_array().unwrap().len() > 2 {
        ends(found, ["lower_bound", "upper_bound"], &expected[2], what);
    }
}

#[track_caller]
fn agrees(folder: &str, more: &[&str]) {
    let goldens: Value = serde_json::from_str(include_str!("../goldens/compare.json")).unwrap();
    let (found, expected) = (compared(folder, more), &goldens[folder]);
    let metrics = expected["metrics"].as_object().unwrap();
    assert_eq!(found["metrics"].as_array().unwrap().len(), metrics.len());
    for (name, expected) in metrics {
        let metric = named(&found["metrics"], name);
        assert_eq!(metric["n_pairs"], expected["n"]);
        for key in ["shift", "sign", "p50", "p95", "order", "drift"] {
            figured(
                &metric[key],
                &expected[key],
                &format!("{folder} {name} {key}"),
            );
        }
        if !expected["p"].is_null() {
            let (found, expected) = (
                metric["p"].as_f64().unwrap(),
                expected["p"].as_f64().unwrap(),
            );
            assert!(
                (found / expected - 1.0).abs() < 1e-4,
                "{name}: {found} {expected}"
            );
        }
        let r = metric["autocorrelation"]["r"].as_f64().unwrap();
        assert!((r - expected["autocorrelation"][0].as_f64().unwrap()).abs() < 1e-6);
        let p = metric["autocorrelation"]["p"].as_f64().unwrap();
        assert!((p - expected["autocorrelation"][1].as_f64().unwrap()).abs() < 1e-6);
    }
    let stages = expected["stages"].as_object().unwrap();
    let window = found["windows"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == "request");
    for (name, expected) in stages {
        let window = window.unwrap();
        if name == "total" {
            figured(&window["total"], expected, "total");
            continue;
        }
        let stage = named(&window["stages"], name);
        if stage["presence"] == "both" {
            figured(&stage["shift"], expected, name);
        }
    }
}

#[test]
fn six_real_pairs_have_the_numbers_of_an_independent_script() {
    agrees("qwen-serve-ab", &["--pair-by", "start-time"]);
}

#[test]
fn sixty_planted_pairs_have_the_numbers_of_an_independent_script() {
    agrees("verdicts/import-closure", &[]);
    agrees("verdicts/await-preheat", &[]);
}

#[test]
fn six_real_pairs_find_the_slowdown_its_stages_and_what_stays_open() {
    let found = compared("qwen-serve-ab", &["--pair-by", "start-time"]);
    let shift = &named(&found["metrics"], "process_to_session")["shift"];
    assert!(shift["low"].as_f64().unwrap() > 0.0, "{shift}");
    let carried = said(&found, "findings", "carried_by");
    let request = carried
        .lines()
        .find(|line| line.starts_with("`request`"))
        .unwrap();
    for stage in ["channel.wait", "runtime.wait", "session.new"] {
        assert!(request.contains(stage), "{request}");
    }
    assert!(
        request.contains("6 pairs do not prove each by itself"),
        "{request}"
    );
    let open = said(&found, "findings", "undecided");
    assert!(
        open.contains("`health`") && open.contains("how P95 changed"),
        "{open}"
    );
    assert_eq!(found["pairing"]["control_first"], 3);
}

#[test]
fn time_that_left_the_request_for_an_awaited_preheat_is_relocation() {
    let found = compared("verdicts/await-preheat", &[]);
    let metrics = &found["metrics"];
    let shift = |name: &str| named(metrics, name)["shift"]["estimate"].as_f64().unwrap();
    assert!((shift("session_cold") + 877.5).abs() < 0.002);
    assert!((shift("action_to_session") + 0.14).abs() < 0.002);
    let relocation = said(&found, "findings", "relocation");
    assert!(
        relocation.contains("`session_cold` moved by -877.5 ms, but `action_to_session`"),
        "{relocation}"
    );
    // A faster candidate relocates nothing.
    let gain = compared("verdicts/import-closure", &[]);
    assert_eq!(gain["relocations"].as_array().unwrap().len(), 0);
}

#[test]
fn a_planted_gain_has_its_size_and_its_stage() {
    let found = compared("verdicts/import-closure", &[]);
    let whole = named(&found["metrics"], "process_to_session")["shift"]["estimate"]
        .as_f64()
        .unwrap();
    assert!((whole + 66.85).abs() < 0.002, "{whole}");
    let channel = named(&found["windows"], "channel");
    let stage = named(&channel["stages"], "channel.initialize");
    assert!((stage["shift"]["estimate"].as_f64().unwrap() + 62.64).abs() < 0.002);
    assert!(stage["p_holm"].as_f64().unwrap() < 0.001);
    let rss = &named(&found["metrics"], "rss_session")["p95"];
    let mib = rss["estimate"].as_f64().unwrap() / 1_048_576.0;
    assert!((mib + 6.57).abs() < 0.001, "{mib}");
    assert!(said(&found, "findings", "carried_by").contains("`acp_import`"));
}

#[test]
fn runs_without_a_partner_are_named() {
    for (folder, run, why) in [
        (
            "odd-pair",
            "control#22",
            "pair 11 has no run of the candidate",
        ),
        (
            "missing-half",
            "candidate#9",
            "pair 4 has no run of the control",
        ),
        (
            "same-arm-twice",
            "control#7",
            "pair 3 has 2 runs of the control and 1 of the candidate",
        ),
    ] {
        let found = compared(&format!("verdicts/bad/{folder}"), &[]);
        assert_eq!(found["pairing"]["n"], 11, "{folder}");
        let text = said(&found, "caveats", "unpaired");
        assert!(text.contains(run) && text.contains(why), "{text}");
    }
}

#[track_caller]
fn refused(folder: &str, more: &[&str], code: i32, words: &str) {
    let answer = run(folder, more);
    assert_eq!(answer.code, code, "{}", answer.stderr);
    assert!(answer.stderr.contains(words), "{}", answer.stderr);
    assert!(answer.stderr.contains("hint: "), "{}", answer.stderr);
    assert!(answer.stdout.is_empty());
}

#[test]
fn what_must_not_be_pooled_or_paired_is_refused_in_words() {
    refused(
        "verdicts/bad/pooled-hosts",
        &[],
        3,
        "come from 2 hosts or boots and are not pooled",
    );
    refused(
        "verdicts/bad/mixed-versions",
        &[],
        3,
        "arm `candidate` mixes versions: coldpath-agent 0.1.0; coldpath-agent 0.2.0",
    );
    refused("verdicts/bad/one-arm", &[], 3, "all 12 runs are of one arm");
    refused(
        "verdicts/same",
        &["--control", "same", "--candidate", "same"],
        2,
        "are the same arm",
    );
    refused(
        "verdicts/same",
        &["--control", "none"],
        2,
        "no run is of arm `none`",
    );
    refused("qwen-serve-ab", &[], 3, "the runs name no pairs");
}

#[test]
fn the_same_files_as_both_arms_are_refused() {
    let folder = fixture("verdicts/same").display().to_string();
    let answer = analyze([
        "compare",
        "--control-files",
        &folder,
        "--candidate-files",
        &folder,
    ]);
    assert_eq!(answer.code, 3);
    assert!(
        answer.stderr.contains("is in both arms"),
        "{}",
        answer.stderr
    );
}

#[test]
fn two_sets_of_files_are_two_arms() {
    let sets = |arm: &str| {
        let all = (1..=6).map(|at| {
            fixture(&format!("qwen-serve-ab/{arm}-0{at}"))
                .display()
                .to_string()
        });
        all.collect::<Vec<String>>()
    };
    let mut words: Vec<String> = ["compare", "--format", "json", "--pair-by", "start-time"]
        .map(str::to_owned)
        .to_vec();
    for (flag, arm) in [
        ("--control-files", "0.21.2"),
        ("--candidate-files", "0.24.4"),
    ] {
        for path in sets(arm) {
            words.extend([flag.to_owned(), path]);
        }
    }
    let found = analyze(&words).json();
    let one = compared("qwen-serve-ab", &["--pair-by", "start-time"]);
    assert_eq!(found["control"]["name"], "control");
    assert_eq!(
        named(&found["metrics"], "process_to_session")["shift"],
        named(&one["metrics"], "process_to_session")["shift"]
    );
}

#[test]
fn equal_differences_and_single_pairs_get_words_and_no_interval() {
    for (folder, estimate, words) in [
        (
            "zero-variance",
            -20.0,
            "all 12 differences are equal: zero variance, no interval",
        ),
        (
            "all-equal",
            0.0,
            "all 12 differences are equal: zero variance, no interval",
        ),
        ("one-pair", -14.0, "one pair: a point, no interval"),
    ] {
        let found = compared(&format!("verdicts/bad/{folder}"), &[]);
        let metric = named(&found["metrics"], "action_to_session");
        assert_eq!(metric["shift"]["estimate"], estimate, "{folder}");
        assert!(metric["shift"]["low"].is_null() && metric["shift"]["upper_bound"].is_null());
        assert_eq!(metric["shift"]["reason"], words);
        assert!(metric["autocorrelation"]["r"].is_null());
    }
}

#[test]
fn ties_and_zeros_are_counted_exactly() {
    // Differences 0, −10, 10, −15, three times each: 3 zeros take ranks 1–3, the
    // tens 4–9, the fifteens 10–12. W⁺ = 3 · 6.5, of 72; counted over all 2⁹ signs.
    let found = compared("verdicts/bad/ties", &[]);
    let metric = named(&found["metrics"], "action_to_session");
    assert_eq!(metric["zeros"], 3);
    let ranks = [6.5, 6.5, 6.5, 6.5, 6.5, 6.5, 11.0, 11.0, 11.0];
    let sums = (0..512u32).map(|signs| {
        let plus = ranks
            .iter()
            .enumerate()
            .filter(|(at, _)| signs >> at & 1 == 1);
        plus.map(|(_, rank)| rank).sum::<f64>()
    });
    let below = sums.filter(|sum| *sum <= 19.5).count();
    let expected = 2.0 * below as f64 / 512.0;
    assert!(
        (metric["p"].as_f64().unwrap() - expected).abs() < 1e-5,
        "{metric} {expected}"
    );
}

#[test]
fn one_order_drift_and_missing_values_are_said() {
    let one_order = compared("verdicts/bad/one-order", &[]);
    assert!(
        said(&one_order, "caveats", "one_order").contains("in all 12 pairs the control ran first")
    );
    let metric = named(&one_order["metrics"], "action_to_session");
    assert_eq!(
        metric["order"]["reason"],
        "every pair ran in the same order"
    );
    let drift = compared("verdicts/bad/drift", &[]);
    assert!(said(&drift, "caveats", "drift").contains("drifted by +95.09 ms"));
    assert!(said(&drift, "caveats", "autocorrelated").contains("lag-1 autocorrelation 0.53"));
    let missing = compared("verdicts/bad/missing-metric", &[]);
    let text = said(&missing, "caveats", "missing_values");
    assert!(
        text.contains(
            "`rss_session` cannot be had from 3 runs: candidate#2, candidate#10, candidate#18"
        ),
        "{text}"
    );
}

#[test]
fn a_control_stage_that_is_not_shown_to_have_stayed_makes_it_unproven() {
    let moved = compared(
        "verdicts/import-closure",
        &["--control-stage", "channel.initialize=5ms"],
    );
    assert_eq!(moved["unproven"], true);
    assert!(said(&moved, "caveats", "unproven").starts_with("UNPROVEN: `channel.initialize`"));
    let stayed = compared(
        "verdicts/import-closure",
        &[
            "--control-stage",
            "channel.spawn=5ms",
            "--control-stage",
            "process_to_listener=20ms",
        ],
    );
    // The spawn has no spread at all, so nothing is shown by it.
    let judged: Vec<&Value> = stayed["control_stages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["equivalent"])
        .collect();
    assert_eq!(judged, [false, true]);
    let absent = compared(
        "verdicts/import-closure",
        &["--control-stage", "no.such=5ms"],
    );
    assert_eq!(absent["unproven"], true);
}

#[test]
fn every_comparison_satisfies_its_schema() {
    let schema: Value =
        serde_json::from_str(include_str!("../../../docs/compare-schema.json")).unwrap();
    for (folder, more) in [
        ("qwen-serve-ab", ["--pair-by", "start-time"]),
        (
            "verdicts/import-closure",
            ["--control-stage", "channel.spawn=5ms"],
        ),
        ("verdicts/await-preheat", ["--pair-by", "attribute"]),
        (
            "verdicts/bad/missing-metric",
            ["--control-stage", "no.such=5ms"],
        ),
        ("verdicts/bad/one-pair", ["--control", "control"]),
        ("verdicts/bad/odd-pair", ["--control", "control"]),
        ("verdicts/bad/zero-variance", ["--control", "control"]),
    ] {
        let found = compared(folder, &more);
        schema::check(&schema, &schema, &found, folder).unwrap();
    }
}

#[test]
fn markdown_is_ready_for_a_pull_request() {
    let folder = fixture("verdicts/import-closure").display().to_string();
    let answer = analyze(["compare", &folder, "--format", "markdown"]);
    assert!(
        answer.stdout.starts_with("### Findings\n\n- `"),
        "{}",
        answer.stdout
    );
    assert!(answer.stdout.contains("| process_to_session "));
}

#[test]
fn the_page_stands_alone_and_draws_every_pair() {
    let folder = fixture("verdicts/import-closure").display().to_string();
    let page = analyze(["compare", &folder, "--format", "html"]).stdout;
    for forbidden in ["<script", "http://", "https://", "NaN", "inf\""] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    // Ten figures of sixty pairs, in half of which the control ran first.
    assert_eq!(page.matches("<circle ").count(), 300);
    assert_eq!(page.matches("<figure>").count(), 10);
    assert!(page.contains("process_to_session: -66.85 ms, 95 % interval"));
}
