//! The hand-made Coldpath runs. `fixtures/coldpath/make.py` states the instants;
//! the sums below were done by hand from them.

use serde_json::{Value, json};

use crate::support::{analyze_stdin, fixture, named, problems, report};

fn one_run() -> Value {
    report([fixture("coldpath/valid/one-run")])
}

fn valid(name: &str) -> Value {
    report([fixture("coldpath/valid").join(name)])
}

#[track_caller]
fn check_window(report: &Value, name: &str, total: i64, stages: &[(&str, i64)], unattributed: i64) {
    let window = named(&report["runs"]["items"][0]["windows"], name);
    let expected: serde_json::Map<String, Value> = stages
        .iter()
        .map(|(name, us)| ((*name).to_owned(), json!(us * 1000)))
        .collect();
    assert_eq!(window["total_ns"], json!(total * 1000), "{name}");
    assert_eq!(window["stages"], Value::Object(expected), "{name}");
    assert_eq!(
        window["unattributed_ns"],
        json!(unattributed * 1000),
        "{name}"
    );
}

#[test]
fn every_window_is_cut_as_the_instants_say() {
    let report = one_run();
    check_window(
        &report,
        "request",
        3500,
        &[
            ("runtime.wait", 590),
            ("channel.wait", 1500),
            ("session.new", 1280),
        ],
        130,
    );
    check_window(
        &report,
        "daemon.boot",
        900,
        &[("boot.exec", 600), ("boot.args", 100), ("boot.bind", 190)],
        10,
    );
    check_window(&report, "health.first", 100, &[], 100);
    check_window(
        &report,
        "runtime.start",
        740,
        &[
            ("runtime.telemetry", 130),
            ("runtime.store", 300),
            ("runtime.router", 250),
        ],
        60,
    );
    check_window(
        &report,
        "channel",
        1490,
        &[("channel.spawn", 190), ("channel.initialize", 1300)],
        0,
    );
    check_window(
        &report,
        "agent.startup",
        1440,
        &[("exec", 850), ("settings", 100), ("tools", 400)],
        90,
    );
    check_window(
        &report,
        "agent.session_start",
        1100,
        &[("parse", 100), ("git_head", 800)],
        200,
    );
    check_window(
        &report,
        "client",
        3670,
        &[
            ("client.before", 80),
            ("runtime.wait", 590),
            ("channel.wait", 1500),
            ("session.new", 1280),
            ("client.after", 90),
        ],
        130,
    );
}

#[test]
fn the_run_is_complete_and_named_by_its_cohort_and_index() {
    let report = one_run();
    assert_eq!(report["model"], "coldpath");
    let runs = &report["runs"];
    assert_eq!(
        (&runs["total"], &runs["complete"], &runs["failed"]),
        (&json!(1), &json!(1), &json!(0))
    );
    assert_eq!(runs["items"][0]["run"], "cold#0");
    assert_eq!(problems(&report), []);
}

#[test]
fn metrics_count_from_the_spawn_instant() {
    let report = one_run();
    let expected = json!({
        "process_to_listener": 1.0, "health": 0.2, "process_to_health": 1.3, "health_to_session": 3.7,
        "action_to_session": 3.7, "session_cold": 3.67, "session_warm": 0.2, "session_preheated": null,
        "process_to_session": 5.0, "shutdown": 1.0, "rss_listener": 3_000_000, "rss_session": 7_000_000,
        "rss_session_process": null, "rss_peak": null, "rss_sampled_peak": null,
        "initialize": null, "request": null, "process_to_exit": null,
    });
    assert_eq!(report["runs"]["items"][0]["metrics"], expected);
    let absent = named(&report["metrics"], "rss_peak");
    assert_eq!((&absent["n"], &absent["p50"]), (&json!(0), &json!(null)));
    assert_eq!(absent["reason"], "`run` has no coldpath.rss.peak_bytes");
}

#[track_caller]
fn drill<'a>(report: &'a Value, stage: &str) -> &'a Value {
    let mut all = report["drill_through"].as_array().unwrap().iter();
    all.find(|drill| drill["stage"] == stage).unwrap()
}

#[test]
fn the_wait_for_the_runtime_is_covered_by_its_start_and_by_what_blocks_its_thread() {
    let report = one_run();
    // runtime.wait is 1410–2000 µs: of runtime.store (1400–1700) 290 and of
    // runtime.router (1700–1950) 250 lie in it; the channel begins behind it.
    let drill = drill(&report, "runtime.wait");
    assert_eq!(drill["explained_by"], "runtime.start");
    for (phase, ms) in [
        ("runtime.telemetry", 0.0),
        ("runtime.store", 0.29),
        ("runtime.router", 0.25),
        ("channel.spawn", 0.0),
    ] {
        assert_eq!(named(&drill["phases"], phase)["p50"], json!(ms), "{phase}");
    }
    assert_eq!(drill["uncovered"]["p50"], json!(0.05));
}

#[test]
fn a_stage_that_waits_is_explained_by_what_it_waits_for() {
    let report = one_run();
    // channel.wait is 2010–3510 µs; exec 2050–2900, settings –3000, tools –3400.
    let drill = drill(&report, "channel.wait");
    assert_eq!(drill["explained_by"], "channel.initialize");
    for (phase, ms) in [("exec", 0.85), ("settings", 0.1), ("tools", 0.4)] {
        assert_eq!(named(&drill["phases"], phase)["p50"], json!(ms));
        assert_eq!(named(&drill["phases"], phase)["placed"], json!(null));
    }
    assert_eq!(drill["uncovered"]["p50"], json!(0.15));
}

#[test]
fn scheduler_figures_of_a_waiting_stage_are_the_agents() {
    let report = one_run();
    let request = named(&report["windows"], "request");
    let wait = named(&request["stages"], "channel.wait");
    // agent.startup: 1.44 ms, of it 0.9 on a processor and 0.04 waiting for one.
    assert_eq!(
        wait["sched"],
        json!({"from": "agent.startup", "cpu": 0.9, "runq": 0.04, "blocked": 0.5})
    );
    assert_eq!(
        named(&request["stages"], "runtime.wait")["sched"],
        json!(null)
    );
}

#[test]
fn a_daemon_driven_by_curl_alone_has_a_complete_chain() {
    let report = valid("curl-only.jsonl");
    assert_eq!(report["runs"]["complete"], 1);
    assert_eq!(report["runs"]["incomplete"], json!([]));
    assert_eq!(problems(&report), []);
    let listener = named(&report["metrics"], "process_to_listener");
    assert_eq!(
        listener["reason"],
        "coldpath.process_start is main, not spawn: the time before main is unknown"
    );
    assert!(
        report["windows"]
            .as_array()
            .unwrap()
            .iter()
            .all(|window| window["name"] != "client")
    );
}

#[test]
fn a_foreign_agent_owes_no_spans_and_its_profile_stands_for_them() {
    let report = valid("foreign-agent.jsonl");
    assert_eq!(report["runs"]["complete"], 1);
    // Attributes of channel.initialize: 1.4 ms, of it exec 0.8 and tools 0.5.
    check_window(
        &report,
        "agent.startup",
        1400,
        &[("exec", 800), ("tools", 500)],
        100,
    );
    // Laid out from the end at 3450 µs: tools 2950–3450, exec 2150–2950; the
    // 100 µs in no phase may stand behind them instead.
    let drill = drill(&report, "channel.wait");
    let exec = named(&drill["phases"], "exec");
    assert_eq!(
        (&exec["p50"], &exec["placed"]),
        (&json!(0.8), &json!([0.8, 0.8]))
    );
    assert_eq!(drill["uncovered"]["p50"], json!(0.2));
}

#[test]
fn a_profile_record_stands_for_an_agent_without_spans_and_attributes() {
    let read = |name: &str| std::fs::read_to_string(fixture("coldpath/valid").join(name)).unwrap();
    let bare = read("foreign-agent.jsonl").replace("coldpath.startup.", "other.startup.");
    let profile = read("one-run/coldpath-agent.profile.jsonl").replace("channel-r1", "channel-x1");
    let answer = analyze_stdin(["-", "--format", "json"], (bare + &profile).as_bytes());
    check_window(
        &answer.json(),
        "agent.startup",
        1440,
        &[("exec", 850), ("settings", 100), ("tools", 400)],
        90,
    );
}

#[test]
fn a_request_that_names_no_channel_belongs_to_the_one_it_waited_beside() {
    let report = valid("joined-by-time.jsonl");
    let items = report["runs"]["items"].as_array().unwrap();
    let failures: Vec<_> = items
        .iter()
        .map(|item| (&item["run"], &item["failure"]))
        .collect();
    assert_eq!(
        failures,
        [
            (
                &json!("coldpathd-t1/first"),
                &json!("the session request failed: gone")
            ),
            (&json!("coldpathd-t1/second"), &json!(null)),
        ]
    );
}

#[test]
fn a_warm_up_is_counted_and_in_no_statistic() {
    let report = valid("warmup.jsonl");
    let runs = &report["runs"];
    assert_eq!((&runs["total"], &runs["warmup"]), (&json!(1), &json!(1)));
    assert_eq!(named(&report["windows"], "request")["n"], 1);
    assert_eq!(named(&report["metrics"], "session_cold")["n"], 1);
}

#[test]
fn a_failed_run_is_slower_than_all_others() {
    let report = valid("failed.jsonl");
    // 2, 3 and more than 3 ms: the median is 3, the tail is beyond measure.
    let metric = named(&report["metrics"], "session_cold");
    assert_eq!((&metric["n"], &metric["n_failed"]), (&json!(3), &json!(1)));
    assert_eq!(
        (&metric["p50"], &metric["p95"]),
        (&json!(3.0), &json!(null))
    );
    assert_eq!(
        (&metric["max"], &metric["mean"]),
        (&json!(null), &json!(null))
    );
    assert_eq!(metric["above"], json!(3.0));
    assert_eq!(
        named(&report["metrics"], "failed")["mean"],
        json!(0.333_333)
    );
    let runs = &report["runs"];
    assert_eq!(
        (&runs["not_traced"], &runs["traced"], &runs["failed"]),
        (&json!(3), &json!(0), &json!(1))
    );
    assert_eq!(runs["items"][2]["failure"], "timed out");
    assert_eq!(runs["items"][2]["complete"], json!(null));
}

#[test]
fn every_spelling_of_the_same_trace_gives_the_same_report() {
    let whole = |report: Value| {
        let mut map = report.as_object().unwrap().clone();
        map.remove("input");
        map.remove("provenance");
        // The profile is in one of the folders only.
        map["runs"].as_object_mut().unwrap().remove("profile_joins");
        Value::Object(map)
    };
    let expected = whole(one_run());
    for name in [
        "whole-file.json",
        "array.json",
        "two-members.jsonl.gz",
        "upper-case-ids.jsonl",
    ] {
        assert_eq!(whole(valid(name)), expected, "{name}");
    }
}

#[test]
fn a_request_without_a_channel_belongs_to_the_attempt_that_started_last_before_its_end() {
    let report = report([fixture("coldpath/valid/adopted.jsonl")]);
    let items = report["runs"]["items"].as_array().unwrap();
    assert_eq!(items.len(), 2);
    assert_eq!(items[0]["failure"], Value::Null);
    let failure = items[1]["failure"].as_str().unwrap();
    assert!(
        failure.contains("the session request failed: gone"),
        "{failure}"
    );
}
