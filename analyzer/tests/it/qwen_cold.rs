//! The twelve real cold captures against figures that a separate Python script
//! computed (`goldens/qwen_cold.py`, which shares no code with this crate).

use serde_json::Value;

use crate::support::{fixture, named, report};

/// Figures are compared to 0.01 ms.
const TOLERANCE_MS: f64 = 0.01;

fn analyze(extra: &[&str]) -> Value {
    let folder = fixture("qwen-serve-0.24.4/cold").into_os_string();
    report(extra.iter().map(Into::into).chain([folder]))
}

fn goldens() -> Value {
    serde_json::from_str(include_str!("../goldens/qwen_cold.json")).unwrap()
}

#[track_caller]
fn close(found: &Value, expected: f64, what: &str) {
    let found = found
        .as_f64()
        .unwrap_or_else(|| panic!("{what} is {found}"));
    assert!(
        (found - expected).abs() <= TOLERANCE_MS,
        "{what}: {found} is not {expected}"
    );
}

fn ns(value: &Value) -> Value {
    Value::from(value.as_i64().unwrap() as f64 / 1e6)
}

#[test]
fn every_stage_of_every_run_is_what_the_script_says() {
    let (report, goldens) = (analyze(&[]), goldens());
    let (items, runs) = (
        report["runs"]["items"].as_array().unwrap(),
        goldens["runs"].as_array().unwrap(),
    );
    assert_eq!((items.len(), runs.len()), (12, 12));
    for (item, golden) in items.iter().zip(runs) {
        assert_eq!(item["run"], golden["run"]);
        let run = golden["run"].as_str().unwrap();
        let request = named(&item["windows"], "request");
        close(
            &ns(&request["total_ns"]),
            golden["total"].as_f64().unwrap(),
            run,
        );
        for (stage, expected) in golden["stages"].as_object().unwrap() {
            let found = if stage == "unattributed" {
                &request["unattributed_ns"]
            } else {
                &request["stages"][stage]
            };
            close(
                &ns(found),
                expected.as_f64().unwrap(),
                &format!("{run} {stage}"),
            );
        }
        let startup = named(&item["windows"], "agent.startup");
        close(
            &ns(&startup["total_ns"]),
            golden["agent"].as_f64().unwrap(),
            run,
        );
        close(
            &ns(&startup["unattributed_ns"]),
            golden["agent_unattributed"].as_f64().unwrap(),
            run,
        );
        for (phase, expected) in golden["phases"].as_object().unwrap() {
            close(
                &ns(&startup["stages"][phase]),
                expected.as_f64().unwrap(),
                &format!("{run} {phase}"),
            );
        }
        let session = named(&item["windows"], "agent.session_start");
        close(
            &ns(&session["total_ns"]),
            golden["session_start"].as_f64().unwrap(),
            run,
        );
        for (stage, expected) in golden["session_stages"].as_object().unwrap() {
            close(
                &ns(&session["stages"][stage]),
                expected.as_f64().unwrap(),
                &format!("{run} {stage}"),
            );
        }
        let channel = named(&item["windows"], "channel");
        close(
            &ns(&channel["stages"]["channel.spawn"]),
            golden["spawn"].as_f64().unwrap(),
            run,
        );
        close(
            &ns(&channel["stages"]["channel.initialize"]),
            golden["initialize"].as_f64().unwrap(),
            run,
        );
    }
}

#[test]
fn run_01_is_the_sum_of_its_published_parts() {
    let report = analyze(&["--model", "qwen"]);
    let request = named(&report["runs"]["items"][0]["windows"], "request");
    close(&ns(&request["total_ns"]), 985.0, "total");
    close(
        &ns(&request["stages"]["runtime.wait"]),
        247.97,
        "runtime.wait",
    );
    close(
        &ns(&request["stages"]["channel.wait"]),
        605.74,
        "channel.wait",
    );
    close(
        &ns(&request["stages"]["session.new"]),
        117.46,
        "session.new",
    );
    close(&ns(&request["unattributed_ns"]), 13.83, "unattributed");
}

#[test]
fn medians_shares_and_module_loading_are_the_published_ones() {
    let report = analyze(&[]);
    assert_eq!(report["model"], "qwen");
    assert_eq!(
        (&report["runs"]["total"], &report["runs"]["complete"]),
        (&12.into(), &12.into())
    );
    let window = named(&report["windows"], "request");
    close(&window["total"]["p50"], 1034.5, "total");
    close(
        &named(&window["stages"], "runtime.wait")["p50"],
        270.13,
        "runtime.wait",
    );
    close(
        &named(&window["stages"], "channel.wait")["p50"],
        607.16,
        "channel.wait",
    );
    close(
        &named(&window["stages"], "session.new")["p50"],
        130.33,
        "session.new",
    );
    let loading = named(&report["groups"], "module_loading")["share_p50"]
        .as_f64()
        .unwrap();
    assert_eq!(format!("{:.1}", loading * 100.0), "58.2");
}

#[test]
fn statistics_over_the_runs_are_what_the_script_says() {
    let (report, goldens) = (analyze(&[]), goldens());
    let summary = &goldens["summary"];
    let window = named(&report["windows"], "request");
    for statistic in ["p50", "max", "mean"] {
        close(
            &window["total"][statistic],
            summary[statistic]["total"].as_f64().unwrap(),
            statistic,
        );
    }
    let mut variance = 0.0;
    let rows = window["stages"]
        .as_array()
        .unwrap()
        .iter()
        .chain([&window["unattributed"]]);
    for stage in rows {
        let name = stage["name"].as_str().unwrap();
        let near = |found: &Value, golden: &str| {
            let (found, expected) = (
                found.as_f64().unwrap(),
                summary[golden][name].as_f64().unwrap(),
            );
            assert!(
                (found - expected).abs() < 2e-6,
                "{golden} of {name}: {found} is not {expected}"
            );
        };
        for statistic in ["p50", "max", "mean"] {
            close(
                &stage[statistic],
                summary[statistic][name].as_f64().unwrap(),
                name,
            );
        }
        near(&stage["share_p50"], "share_p50");
        near(&stage["variance_share"], "variance_share");
        near(&stage["correlation"]["pearson"], "pearson_with_client");
        variance += stage["variance_share"].as_f64().unwrap();
    }
    assert!(
        (variance - 1.0).abs() < 1e-5,
        "shares of the variance sum to {variance}"
    );
}

#[test]
fn client_figures_and_profiles_are_joined_to_their_runs() {
    let (report, goldens) = (analyze(&[]), goldens());
    for (item, golden) in report["runs"]["items"]
        .as_array()
        .unwrap()
        .iter()
        .zip(goldens["runs"].as_array().unwrap())
    {
        for (metric, expected) in golden["metrics"].as_object().unwrap() {
            match metric.strip_suffix("_kib") {
                None => close(&item["metrics"][metric], expected.as_f64().unwrap(), metric),
                Some(name) => assert_eq!(
                    item["metrics"][name].as_i64(),
                    expected.as_i64().map(|kib| kib * 1024)
                ),
            }
        }
        let before = named(&item["windows"], "client")["stages"]["client.before"]
            .as_i64()
            .unwrap();
        let expected = golden["gap_before"].as_f64().unwrap().max(0.0);
        close(&Value::from(before as f64 / 1e6), expected, "gap before");
    }
    let joins = &report["runs"]["profile_joins"];
    assert_eq!((&joins["joined"], &joins["of"]), (&24.into(), &24.into()));
}
