//! Several cohorts: their own metrics, and comparisons in pairs.

use serde_json::{Value, json};

use crate::support::{analyze, analyze_stdin, fixture, named, report};

fn cohorts() -> Value {
    report([fixture("coldpath/valid/cohorts.jsonl")])
}

#[test]
fn the_control_stands_first_with_its_own_metrics() {
    let report = cohorts();
    let names: Vec<_> = report["cohorts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cohort| cohort["name"].clone())
        .collect();
    assert_eq!(names, [json!("control"), json!("candidate")]);
    // Control listens after 1.0, 1.1, … 1.5 ms.
    let metric = named(&report["cohorts"][0]["metrics"], "process_to_listener");
    assert_eq!(
        (&metric["n"], &metric["p50"], &metric["p50_ci"]),
        (&json!(6), &json!(1.25), &json!([1.0, 1.5]))
    );
    assert_eq!(
        (&metric["p95"], &metric["max"]),
        (&json!(1.475), &json!(1.5))
    );
}

#[test]
fn pairs_give_the_hodges_lehmann_shift() {
    let report = cohorts();
    let comparison = report["comparisons"].as_array().unwrap();
    let listener = comparison
        .iter()
        .find(|one| one["metric"] == "process_to_listener")
        .unwrap();
    assert_eq!(
        (&listener["control"], &listener["candidate"]),
        (&json!("control"), &json!("candidate"))
    );
    assert_eq!(listener["n_pairs"], 6);
    // Differences 10, 20, 30, 40, 50, 300 µs: of their 21 Walsh averages the
    // eleventh is 35; with six pairs the interval runs from end to end.
    let shift = &listener["shift"];
    assert_eq!(
        (&shift["estimate"], &shift["low"], &shift["high"]),
        (&json!(0.035), &json!(0.01), &json!(0.3))
    );
    let memory = comparison
        .iter()
        .find(|one| one["metric"] == "rss_listener")
        .unwrap();
    assert_eq!(memory["shift"]["estimate"], 1_000_000);
    assert_eq!(
        (&memory["ratio"]["estimate"], &memory["ratio"]["low"]),
        (&json!(2.0), &json!(2.0))
    );
}

#[test]
fn one_cohort_is_compared_with_nothing() {
    let report = report([fixture("coldpath/valid/one-run")]);
    assert_eq!(
        (&report["cohorts"], &report["comparisons"]),
        (&json!([]), &json!([]))
    );
}

/// Eight pairs of traced runs whose manifest has the arms `wide` and `lean`
/// (`fixtures/findings/make.py`); figures from `goldens/cohorts.py`.
fn pairs() -> (Value, Value) {
    let expected = serde_json::from_str(include_str!("../goldens/cohorts.json")).unwrap();
    (report([fixture("findings/pairs")]), expected)
}

fn names(report: &Value) -> Vec<&str> {
    let cohorts = report["cohorts"].as_array().unwrap().iter();
    cohorts.map(|one| one["name"].as_str().unwrap()).collect()
}

#[test]
fn arms_stand_in_the_order_of_the_experiment() {
    assert_eq!(names(&pairs().0), ["wide", "lean"]);
    // The manifest is found beside a file that is named alone.
    let named_alone = report([fixture("findings/pairs/traces.jsonl")]);
    assert_eq!(names(&named_alone), ["wide", "lean"]);
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("traces.jsonl");
    std::fs::copy(fixture("findings/pairs/traces.jsonl"), &copy).unwrap();
    assert_eq!(names(&report([copy])), ["lean", "wide"]);
}

#[test]
fn each_cohort_has_its_own_windows() {
    let (report, expected) = pairs();
    for cohort in report["cohorts"].as_array().unwrap() {
        let name = cohort["name"].as_str().unwrap();
        let window = named(&cohort["windows"], "request");
        let p50 = &expected["p50"][name];
        assert_eq!(
            (&cohort["n"], &window["n"]),
            (&expected["n"][name], &expected["n"][name])
        );
        assert_eq!(window["total"]["p50"], p50["total"]);
        assert_eq!(window["unattributed"]["p50"], p50["unattributed"]);
        for stage in ["channel.wait", "session.new"] {
            assert_eq!(
                named(&window["stages"], stage)["p50"],
                p50[stage],
                "{stage}"
            );
        }
        let latency = named(&cohort["metrics"], "session_cold");
        assert_eq!(latency["p50"], p50["session_cold"]);
    }
    assert_eq!(named(&report["windows"], "request")["n"], 15);
}

#[test]
fn stages_are_shifted_by_what_the_pairs_say() {
    let (report, expected) = pairs();
    let list = report["comparisons"].as_array().unwrap();
    let find = |kind: &str, name: &str| {
        let mut list = list.iter();
        list.find(|one| one["kind"] == kind && one["metric"] == name)
            .unwrap()
    };
    let same = |found: &Value, name: &str| {
        let wanted = &expected["shift"][name];
        for key in ["estimate", "low", "high"] {
            assert_eq!(found[key].as_f64(), wanted[key].as_f64(), "{key} of {name}");
        }
    };
    let request = find("window", "request");
    assert_eq!(
        (&request["control"], &request["n_pairs"]),
        (&json!("wide"), &expected["n_pairs"])
    );
    same(&request["shift"], "total");
    for stage in ["channel.wait", "session.new", "unattributed"] {
        same(&named(&request["stages"], stage)["shift"], stage);
    }
    let latency = find("metric", "session_cold");
    same(&latency["shift"], "session_cold");
    assert_eq!(latency["stages"], json!([]));
}

#[test]
fn cohorts_stand_beside_each_other_and_nothing_is_pooled_in_the_tables() {
    let answer = analyze([fixture("findings/pairs")]);
    let rows: Vec<Vec<&str>> = answer
        .stdout
        .lines()
        .skip_while(|line| !line.starts_with("Session request, P50 by cohort (n = 8, 7)"))
        .map(|line| {
            line.split("  ")
                .map(str::trim)
                .filter(|cell| !cell.is_empty())
                .collect()
        })
        .collect();
    assert_eq!(
        rows[1..6],
        [
            vec!["stage", "wide", "lean", "lean − wide", "95 % interval"],
            vec![
                "channel.wait",
                "2.325 ms",
                "2.334 ms",
                "+16 µs",
                "0 … +33 µs"
            ],
            vec![
                "session.new",
                "639 µs",
                "592 µs",
                "-53 µs",
                "-80 µs … -30 µs"
            ],
            vec!["unattributed", "170 µs", "170 µs", "0", "0 … 0"],
            vec!["total", "3.138 ms", "3.102 ms", "-39 µs", "-70 µs … -5 µs"],
        ]
    );
    assert!(!answer.stdout.contains("(n = 15)"), "{}", answer.stdout);
}

/// A run of one cohort and pair, of which the client saw a session of so many µs.
fn run(cohort: usize, pair: usize, micros: u64) -> String {
    let trace = cohort * 100 + pair + 1;
    let start = 1_780_000_000_000_000_001 + trace as u64 * 1_000_000_000;
    let name = if cohort == 0 {
        String::new()
    } else {
        format!("arm {cohort}")
    };
    let span = |id: u32, rest: &str, end: u64| {
        format!(
            r#"{{"traceId":"{trace:032x}","spanId":"{id:016x}",{rest},"startTimeUnixNano":"{start}","endTimeUnixNano":"{end}"}}"#
        )
    };
    let attributes = format!(
        r#"[{{"key":"coldpath.run.cohort","value":{{"stringValue":"{name}"}}}},{{"key":"coldpath.run.pair.index","value":{{"intValue":"{pair}"}}}}]"#
    );
    let run = span(
        1,
        &format!(r#""name":"run","attributes":{attributes}"#),
        start + 900_000_000,
    );
    let session = r#""name":"client.session","parentSpanId":"0000000000000001""#;
    let session = span(2, session, start + micros * 1_000);
    format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{run},{session}]}}]}}]}}"#)
}

#[test]
fn of_more_than_eight_cohorts_each_is_compared_with_the_first_alone() {
    for (cohorts, compared) in [(8, 28), (9, 8)] {
        let lines: Vec<String> = (0..cohorts)
            .flat_map(|cohort| (0..3).map(move |pair| run(cohort, pair, 500 + pair as u64)))
            .collect();
        let answer = analyze_stdin(["-", "--format", "json"], lines.join("\n").as_bytes());
        let report = answer.json();
        assert_eq!(report["cohorts"].as_array().unwrap().len(), cohorts);
        let all = report["comparisons"].as_array().unwrap();
        let sessions: Vec<_> = all
            .iter()
            .filter(|one| one["metric"] == "session_cold")
            .collect();
        assert_eq!(sessions.len(), compared);
        let with_first = sessions.iter().filter(|one| one["control"] == "");
        assert_eq!(with_first.count(), cohorts - 1);
    }
}

#[test]
fn runs_without_a_cohort_among_others_are_called_so() {
    let lines: Vec<String> = (0..2)
        .flat_map(|cohort| (0..3).map(move |pair| run(cohort, pair, 500)))
        .collect();
    for format in ["table", "markdown"] {
        let answer = analyze_stdin(["-", "--format", format], lines.join("\n").as_bytes());
        let text = answer.stdout;
        assert!(text.contains("Cohort (no cohort) (n = 3)"), "{text}");
        assert!(text.contains("2 cohorts ((no cohort), arm 1)"), "{text}");
    }
}
