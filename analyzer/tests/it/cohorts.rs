//! Several cohorts: their own metrics, and comparisons in pairs.

use serde_json::{Value, json};

use crate::support::{fixture, named, report};

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
