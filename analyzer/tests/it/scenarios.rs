//! Captures of one daemon in unusual states, and of two versions side by side.

use serde_json::{Value, json};

use crate::support::{analyze, fixture, named, report};

fn scenario(name: &str) -> Value {
    report([fixture("qwen-serve-0.24.4/scenarios").join(name)])
}

/// The windows of this name of one run.
fn windows<'a>(run: &'a Value, name: &str) -> Vec<&'a Value> {
    let list = run["windows"].as_array().unwrap().iter();
    list.filter(|window| window["name"] == name).collect()
}

#[track_caller]
fn finding<'a>(report: &'a Value, code: &str) -> &'a Value {
    let mut list = report["findings"].as_array().unwrap().iter();
    list.find(|finding| finding["code"] == code)
        .unwrap_or_else(|| panic!("no {code} in {}", report["findings"]))
}

fn path<'a>(report: &'a Value, name: &str) -> Vec<(&'a str, u64)> {
    let values = named(&report["paths"], name)["values"].as_array().unwrap();
    values
        .iter()
        .map(|value| {
            (
                value["value"].as_str().unwrap_or("–"),
                value["n"].as_u64().unwrap(),
            )
        })
        .collect()
}

#[test]
fn two_concurrent_sessions_are_two_windows_of_one_run() {
    let report = scenario("concurrent-01");
    assert_eq!(
        (&report["runs"]["total"], &report["runs"]["complete"]),
        (&json!(1), &json!(1))
    );
    let run = &report["runs"]["items"][0];
    let requests = windows(run, "request");
    assert_eq!(
        requests
            .iter()
            .map(|window| &window["request"])
            .collect::<Vec<_>>(),
        [&json!(1), &json!(2)]
    );
    // runtime.wait_ms of the two request spans, read off the capture.
    let waits: Vec<_> = requests
        .iter()
        .map(|window| window["stages"]["runtime.wait"].as_i64().unwrap() / 1_000_000)
        .collect();
    assert_eq!(waits, [504, 304]);
    // What the client saw of each: 1496.11 and 1707.56 ms.
    let client = windows(run, "client");
    let seen: Vec<_> = client
        .iter()
        .map(|window| window["total_ns"].as_i64().unwrap() / 1_000_000)
        .collect();
    assert_eq!(seen, [1496, 1707]);
    // They share one channel, so its startup is there once.
    assert_eq!(windows(run, "channel").len(), 1);
    assert_eq!(path(&report, "channel.path"), [("joined", 2)]);
    assert_eq!(
        path(&report, "runtime.path"),
        [("joined", 1), ("started_on_request", 1)]
    );
}

#[test]
fn a_killed_daemon_leaves_an_incomplete_run_that_names_what_is_missing() {
    let report = scenario("fail-daemon-sigkill-01");
    assert_eq!(
        report["runs"]["incomplete"],
        json!([{"run": "fail-daemon-sigkill-01", "missing": ["channel.spawn", "channel.initialize", "request"]}])
    );
    assert_eq!(report["runs"]["complete"], 0);
    assert_eq!(report["windows"], json!([]));
    // What the client saw before the kill stays.
    assert_eq!(named(&report["metrics"], "session_cold")["n"], 1);
}

#[test]
fn an_initialize_timeout_is_shown_and_counts_as_failed() {
    let report = scenario("fail-init-timeout-01");
    assert_eq!(report["runs"]["failed"], report["runs"]["total"]);
    let run = &report["runs"]["items"][0];
    let failure = run["failure"].as_str().unwrap();
    assert!(
        failure.contains("initialize timed out after 137ms"),
        "{failure}"
    );
    assert_eq!(named(&report["metrics"], "failed")["mean"], json!(1.0));
    let text = finding(&report, "failed_runs")["text"].as_str().unwrap();
    assert!(text.contains("timed out"), "{text}");
}

#[test]
fn otlp_bodies_give_the_same_shape_of_breakdown() {
    let shape = |report: &Value| -> Vec<(String, Vec<String>)> {
        let windows = report["windows"].as_array().unwrap().iter();
        windows
            .map(|window| {
                let stages = window["stages"].as_array().unwrap().iter();
                let stages = stages.map(|stage| stage["name"].as_str().unwrap().to_owned());
                (
                    window["name"].as_str().unwrap().to_owned(),
                    stages.collect(),
                )
            })
            .collect()
    };
    let dumped = shape(&report([fixture("qwen-serve-0.24.4/cold/run-01")]));
    for name in ["otlp-01", "otlp-02"] {
        let report = scenario(name);
        assert_eq!(report["runs"]["complete"], 1, "{name}");
        assert_eq!(shape(&report), dumped, "{name}");
    }
}

#[test]
fn an_inbound_traceparent_is_followed() {
    let report = scenario("traceparent-01");
    // The request has a parent that is in no file; that is no orphan of ours.
    assert_eq!(report["input"]["problems"], json!([]));
    assert_eq!(report["runs"]["complete"], 1);
    assert_eq!(windows(&report["runs"]["items"][0], "request").len(), 1);
}

#[test]
fn a_respawned_channel_is_a_second_cold_start() {
    let report = scenario("fail-child-kill-01");
    let items = report["runs"]["items"].as_array().unwrap();
    assert_eq!(items.len(), 2);
    // The killed child never sent its session spans.
    assert_eq!(
        report["runs"]["incomplete"][0]["missing"][0],
        "agent.session_start"
    );
    assert_eq!(items[1]["complete"], true);
    let request = windows(&items[1], "request")[0];
    // No runtime to wait for; the request itself spawned the channel.
    assert_eq!(request["stages"]["runtime.wait"], 0);
    assert_eq!(path(&report, "channel.path"), [("spawned_on_request", 1)]);
}

#[test]
fn without_telemetry_only_the_clients_figures_are_there() {
    let report = scenario("notelemetry-01");
    assert_eq!(report["runs"]["not_traced"], 1);
    assert_eq!(named(&report["metrics"], "session_cold")["n"], 1);
}

fn versions() -> Value {
    report([fixture("qwen-serve-ab")])
}

#[test]
fn a_gap_before_the_span_is_found_with_its_run() {
    let report = versions();
    let gap = &finding(&report, "client_gap")["values"];
    assert_eq!(
        (&gap["run"], &gap["gap"]),
        (&json!("abbusy-0.24.4-04"), &json!("client.before"))
    );
    assert_eq!(
        format!("{:.1}", gap["client_ms"].as_f64().unwrap()),
        "1840.5"
    );
    let run = report["runs"]["items"].as_array().unwrap().iter();
    let run = run
        .into_iter()
        .find(|run| run["run"] == "abbusy-0.24.4-04")
        .unwrap();
    assert_eq!(windows(run, "request")[0]["total_ns"], 1_480_000_000);
    let text = finding(&report, "client_gap")["text"].as_str().unwrap();
    assert!(text.contains("before it"), "{text}");
}

/// What is said of one version is said of its six runs, never of all twelve.
#[test]
fn each_version_has_findings_of_its_own() {
    let report = versions();
    let found = report["findings"].as_array().unwrap();
    let of = |code: &str, key: &str| -> Vec<Value> {
        let mine = found.iter().filter(|finding| finding["code"] == code);
        let values =
            mine.map(|finding| json!([finding["values"]["cohort"], finding["values"][key]]));
        values.collect()
    };
    let (old, new) = ("abbusy-control-0.21.2", "abbusy-candidate-0.24.4");
    assert_eq!(
        of("shared_deadline", "runs"),
        [json!([old, 6]), json!([new, 6])]
    );
    assert_eq!(of("client_gap", "of"), [json!([new, 6])]);
    assert_eq!(
        of("request_outlives_client", "runs"),
        [json!([old, 2]), json!([new, 1])]
    );
    // The clock is the same everywhere, which is said once.
    assert_eq!(of("clock_quantum", "quantum_ms"), [json!([null, 1.0])]);
    for finding in found {
        let text = finding["text"].as_str().unwrap();
        let cohort = finding["values"]["cohort"].as_str();
        assert!(
            cohort.is_none_or(|cohort| text.starts_with(&format!("{cohort}: "))),
            "{text}"
        );
    }
}

#[test]
fn the_joined_runtime_path_is_shown_with_its_run() {
    let report = versions();
    assert_eq!(
        path(&report, "runtime.path"),
        [("started_on_request", 11), ("joined", 1)]
    );
    assert_eq!(
        named(&report["paths"], "runtime.path")["values"][1]["runs"],
        json!(["abbusy-0.24.4-04"])
    );
}

#[test]
fn pressure_is_not_called_the_cause_of_the_slower_version() {
    let report = versions();
    let pressure = named(&report["covariates"], "cpu_pressure");
    assert_eq!(pressure["role"], "mediator");
    let explains = report["findings"].as_array().unwrap().iter();
    let explains: Vec<_> = explains
        .filter(|finding| finding["code"] == "covariate" || finding["code"] == "mediator")
        .collect();
    assert!(explains.is_empty(), "{explains:?}");
    let names: Vec<_> = report["cohorts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["name"])
        .collect();
    assert_eq!(
        names,
        [
            &json!("abbusy-control-0.21.2"),
            &json!("abbusy-candidate-0.24.4")
        ]
    );
}

/// The agent's process made one span, the daemon's many: both stamp milliseconds.
#[test]
fn a_process_of_one_span_is_printed_with_its_clock() {
    let path = fixture("qwen-serve-0.24.4/scenarios/default-single-01/telemetry.json.gz");
    let text = analyze([path]).stdout;
    let start = text.find("Session start in the agent").unwrap();
    let section = text[start..].split("\n\n").next().unwrap();
    assert!(section.contains("135 ms"), "{section}");
    assert!(!section.contains("µs"), "{section}");
}
