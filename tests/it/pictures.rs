//! A drawn trace in a real viewer: speedscope, in headless Chromium.

use coldpath_tests::{Sandbox, in_browser, programs};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Name, start and length of each slice in microseconds, by lane.
type Lanes = BTreeMap<String, Vec<(String, u64, u64)>>;

fn analyze(words: &[&str], out: Option<&Path>) -> Vec<u8> {
    let mut command = Command::new(programs().path("analyze"));
    command
        .args(words)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    if let Some(out) = out {
        command.arg("-o").arg(out);
    }
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    output.stdout
}

/// Lanes of a trace under the names that the viewer gives them, and like there each
/// from its first slice.
fn of_trace(trace: &Value) -> Lanes {
    let events = trace["traceEvents"].as_array().unwrap();
    let named = |what: &str, event: &Value, lane: bool| {
        let found = events.iter().find(|other| {
            other["name"] == what
                && other["pid"] == event["pid"]
                && (!lane || other["tid"] == event["tid"])
        });
        found.unwrap()["args"]["name"].as_str().unwrap().to_owned()
    };
    let mut found = Lanes::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let lane = format!(
            "{} (pid {}), {} (tid {})",
            named("process_name", event, false),
            event["pid"],
            named("thread_name", event, true),
            event["tid"]
        );
        found.entry(lane).or_default().push((
            event["name"].as_str().unwrap().to_owned(),
            event["ts"].as_u64().unwrap(),
            event["dur"].as_u64().unwrap(),
        ));
    }
    for slices in found.values_mut() {
        let first = slices.iter().map(|slice| slice.1).min().unwrap_or(0);
        for slice in slices {
            slice.1 -= first;
        }
    }
    sorted(found)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "microseconds of one run, rounded"
)]
fn of_viewer(printed: &str) -> Lanes {
    let lanes: Vec<Value> = serde_json::from_str(printed).unwrap();
    let whole = |value: &Value| value.as_f64().unwrap().round() as u64;
    let slice = |slice: &Value| {
        let name = slice["name"].as_str().unwrap();
        // The viewer puts the arguments behind the name.
        let name = name.split_once(" {").map_or(name, |(name, _)| name);
        (name.to_owned(), whole(&slice["ts"]), whole(&slice["dur"]))
    };
    let lanes = lanes.iter().map(|lane| {
        let slices = lane["slices"].as_array().unwrap();
        let name = lane["lane"].as_str().unwrap().to_owned();
        (name, slices.iter().map(slice).collect())
    });
    sorted(lanes.collect())
}

fn sorted(mut lanes: Lanes) -> Lanes {
    for slices in lanes.values_mut() {
        slices.sort();
    }
    lanes
}

#[test]
fn speedscope_holds_the_processes_and_slices_of_the_shown_run() {
    let sandbox = Sandbox::new();
    for (input, window) in [
        ("fixtures/qwen-serve-0.24.4/cold", "request"),
        ("fixtures/coldpath/valid/one-run", "request"),
    ] {
        let path = sandbox.path("trace.json");
        analyze(&["chrome", input, "--run", "1"], Some(&path));
        let trace: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let Some(printed) = in_browser("speedscope.py", &[&path]) else {
            return;
        };
        let seen = of_viewer(&printed);
        assert_eq!(seen, of_trace(&trace), "{input}");
        // And what the report says of that run, to the microsecond.
        let report: Value =
            serde_json::from_slice(&analyze(&[input, "--format", "json"], None)).unwrap();
        let windows = report["runs"]["items"][0]["windows"].as_array().unwrap();
        let of_run = windows
            .iter()
            .find(|found| found["name"] == window)
            .unwrap();
        let nanos = of_run["total_ns"].as_u64().unwrap();
        let lengths: Vec<u64> = seen.values().flatten().map(|slice| slice.2).collect();
        assert!(
            lengths
                .iter()
                .any(|length| length.abs_diff(nanos / 1_000) <= 1),
            "{input}: {nanos} ns"
        );
    }
}
