//! Findings on runs in which one thing is the matter (`fixtures/findings/make.py`).

use serde_json::{Value, json};

use crate::support::{analyze, fixture, named, report};

fn read(name: &str) -> Value {
    report([fixture("findings").join(name)])
}

#[track_caller]
fn finding<'a>(report: &'a Value, code: &str) -> &'a Value {
    let mut list = report["findings"].as_array().unwrap().iter();
    list.find(|finding| finding["code"] == code)
        .unwrap_or_else(|| panic!("no {code} in {}", report["findings"]))
}

fn absent(report: &Value, code: &str) -> bool {
    let mut list = report["findings"].as_array().unwrap().iter();
    list.all(|finding| finding["code"] != code)
}

#[test]
fn what_was_there_before_may_explain_and_what_the_run_does_may_not() {
    let report = read("causes.jsonl");
    let covariate = &finding(&report, "covariate")["values"];
    assert_eq!(
        (&covariate["name"], &covariate["n"]),
        (&json!("loadavg_1m"), &json!(12))
    );
    // r of i and i ± 1.5 for i = 0 … 11, from Python's statistics.correlation.
    assert_eq!(covariate["pearson"], json!(0.908_898));
    let mediator = finding(&report, "mediator");
    assert_eq!(mediator["values"]["name"], "cpu_pressure");
    let text = mediator["text"].as_str().unwrap();
    assert!(text.contains("does not explain why"), "{text}");
    let faults = named(&report["covariates"], "tree.major_faults");
    assert_eq!(
        (&faults["pearson"], &faults["reason"]),
        (&Value::Null, &json!("zero variance"))
    );
}

#[test]
fn a_stage_without_a_processor_is_starved() {
    let report = read("causes.jsonl");
    let values = &finding(&report, "stage_starved")["values"];
    // The agent was given 0.3 of its time on a processor and 0.4 waiting for one.
    assert_eq!(
        (
            &values["of"],
            &values["cpu"],
            &values["runq"],
            &values["blocked"]
        ),
        (
            &json!("agent.startup"),
            &json!(0.3),
            &json!(0.4),
            &json!(0.3)
        )
    );
    assert!(absent(&read("deadline.jsonl"), "stage_starved"));
    assert_eq!(
        finding(&read("deadline.jsonl"), "stage_busy")["values"]["cpu"],
        json!(0.6)
    );
}

#[test]
fn a_wait_that_ends_with_the_work_has_a_slope_of_minus_one() {
    let report = read("deadline.jsonl");
    let values = &finding(&report, "shared_deadline")["values"];
    assert_eq!(
        (&values["stage"], &values["runs"], &values["slope"]),
        (&json!("channel.wait"), &json!(6), &json!(-1.0))
    );
    let text = finding(&report, "shared_deadline")["text"]
        .as_str()
        .unwrap();
    assert!(
        text.contains("one millisecond later it is 1.00 ms shorter"),
        "{text}"
    );
}

#[test]
fn a_program_between_daemon_and_agent_is_found_by_time_and_by_parent() {
    let report = read("wrapper.jsonl");
    let values = &finding(&report, "wrapper_or_relaunch")["values"];
    // The agent's 580 of the 2500 µs of channel.initialize.
    assert_eq!(values["own_part_p50"], json!(0.232));
    assert_eq!((&values["between"], &values["of"]), (&json!(3), &json!(3)));
    assert!(absent(&read("deadline.jsonl"), "wrapper_or_relaunch"));
}

#[test]
fn what_is_slow_what_varies_and_what_the_slow_runs_do_are_three_questions() {
    let report = read("tail.jsonl");
    assert_eq!(
        finding(&report, "dominant_stage")["values"]["stage"],
        "channel.wait"
    );
    assert_eq!(
        finding(&report, "dominant_variance")["values"]["stage"],
        "session.new"
    );
    let slow = &finding(&report, "dominant_p95")["values"];
    // 6000 of the 1600 … 10070 µs of a slow request.
    assert_eq!(
        (&slow["stage"], &slow["share_p95"]),
        (&json!("session.new"), &json!(0.708_383))
    );
    let runs = &finding(&report, "slow_runs")["values"]["runs"];
    assert_eq!(runs, &json!(["cold#9", "cold#4"]));
}

#[test]
fn a_stage_that_sleeps_is_blocked() {
    let report = read("blocked.jsonl");
    let values = &finding(&report, "stage_blocked")["values"];
    // 0.1 of the agent's time on a processor, 0.05 waiting for one.
    assert_eq!(
        (
            &values["stage"],
            &values["of"],
            &values["cpu"],
            &values["blocked"]
        ),
        (
            &json!("channel.wait"),
            &json!("agent.startup"),
            &json!(0.1),
            &json!(0.85)
        )
    );
    assert!(absent(&report, "stage_busy") && absent(&report, "stage_starved"));
}

#[test]
fn what_falls_with_slow_runs_explains_them_only_where_little_of_it_is_slow() {
    let report = read("opposite.jsonl");
    let all = report["findings"].as_array().unwrap().iter();
    let causes: Vec<_> = all
        .filter(|one| one["code"] == "covariate" || one["code"] == "mediator")
        .collect();
    // Load and pressure fall by as much, and less of them slows nothing down.
    assert_eq!(causes.len(), 1, "{causes:?}");
    let text = causes[0]["text"].as_str().unwrap();
    assert!(
        text.starts_with("the lower `cpu_khz`, the longer `session_cold`"),
        "{text}"
    );
    let load = named(&report["covariates"], "loadavg_1m");
    assert!(load["pearson"].as_f64().unwrap() < -0.9 && load["p"].as_f64().unwrap() < 0.05);
}

#[test]
fn one_run_makes_no_relation() {
    let report = read("outlier.jsonl");
    let load = named(&report["covariates"], "loadavg_1m");
    assert!(load["pearson"].as_f64().unwrap() > 0.99 && load["spearman"].as_f64().unwrap() < 0.0);
    assert!(absent(&report, "covariate"));
}

#[test]
fn three_runs_have_no_variance_shares_and_no_correlations() {
    let report = read("wrapper.jsonl");
    assert_eq!(
        finding(&report, "dominant_stage")["values"]["variance_share"],
        Value::Null
    );
    let few = finding(&report, "few_runs");
    assert_eq!(few["values"], json!({"n": 3, "needs": 59, "complete": 3}));
    let text = few["text"].as_str().unwrap();
    assert!(
        text.starts_with(
            "n = 3 is too few runs for variance shares, slopes and correlations (needs 5)"
        ),
        "{text}"
    );
    for code in [
        "slow_runs",
        "dominant_variance",
        "dominant_p95",
        "covariate",
        "mediator",
    ] {
        assert!(absent(&report, code), "{code}");
    }
    let table = analyze([fixture("findings/wrapper.jsonl")]).stdout;
    for word in ["variance  ", "Correlation", "slow runs  ", "placed"] {
        assert!(!table.contains(word), "{word} in {table}");
    }
}

#[test]
fn runs_that_no_client_measured_are_few_as_well() {
    let report = report([fixture("coldpath/valid/curl-only.jsonl")]);
    let values = &finding(&report, "few_runs")["values"];
    assert_eq!(values, &json!({"n": 1, "needs": 59, "complete": 1}));
}

#[test]
fn a_window_without_any_stage_has_no_dominant_one() {
    assert!(absent(
        &report([fixture("coldpath/valid/adopted.jsonl")]),
        "dominant_stage"
    ));
}

#[test]
fn without_traces_the_next_step_is_named() {
    let table = analyze([fixture("coldpath/valid/failed.jsonl")]).stdout;
    let (_, coverage) = table.split_once("Coverage\n").unwrap();
    assert!(coverage.contains("chains complete 0/0"), "{coverage}");
    assert!(
        coverage.contains("hint: no traces of the program itself"),
        "{coverage}"
    );
    let traced = analyze([fixture("findings/wrapper.jsonl")]).stdout;
    assert!(!traced.contains("hint:"), "{traced}");
}
