//! Delays that an experiment injected, and what the report says they did.

use serde_json::{Value, json};

use crate::support::{analyze, report};

/// One run as only its client saw it: the total, and the delays at their stages.
fn run(index: u64, cohort: &str, total_us: u64, delays: &[(&str, u64)]) -> Value {
    let trace = format!("{:032x}", index + 1);
    let total = total_us * 1000;
    let start = 1_800_000_000_000_000_000 + index * 1_000_000_000;
    let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let int = |key: &str, value: u64| json!({"key": key, "value": {"intValue": value.to_string()}});
    let mut attributes = vec![
        text("coldpath.run.cohort", cohort),
        text("coldpath.run.scenario", "cold"),
        int("coldpath.run.index", index),
        int("coldpath.run.pair.index", index / 2),
    ];
    for (stage, delay) in delays {
        attributes.push(int(&format!("coldpath.run.inject.{stage}_ns"), *delay));
    }
    let span = |name: &str, id: u64, parent: &str, attributes: Vec<Value>| {
        json!({"traceId": trace, "spanId": format!("{id:016x}"), "parentSpanId": parent,
            "name": name, "startTimeUnixNano": start.to_string(),
            "endTimeUnixNano": (start + total).to_string(), "attributes": attributes})
    };
    let root = format!("{:016x}", index * 2 + 1);
    let spans = [
        span("run", index * 2 + 1, "", attributes),
        span("client.action", index * 2 + 2, &root, Vec::new()),
    ];
    json!({"resourceSpans": [{"resource": {"attributes": [text("service.name", "measure")]},
        "scopeSpans": [{"spans": spans}]}]})
}

/// Six pairs: 10 ms, and a candidate that is longer by `gain_us` of a delay of 4 ms,
/// and by a tenth of a millisecond of noise in turn.
fn experiment(stage: &str, gain_us: u64) -> (tempfile::TempDir, std::path::PathBuf) {
    let mut lines = Vec::new();
    for pair in 0..6 {
        let candidate = 9_900 + gain_us + 100 * (pair % 3);
        let delays = [(stage, 4_000_000)];
        lines.push(run(pair * 2, "control", 10_000, &[]).to_string());
        lines.push(run(pair * 2 + 1, "candidate", candidate, &delays).to_string());
    }
    let lines = lines.join("\n");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("traces.jsonl");
    std::fs::write(&path, lines).unwrap();
    (folder, path)
}

#[track_caller]
fn check(gain_us: u64, expected: [f64; 3], verdict: &str) {
    let (_folder, path) = experiment("session.new", gain_us);
    let report = report([path]);
    let injection = &report["injections"][0];
    assert_eq!(injection["stage"], "session.new");
    assert_eq!(injection["metric"], "process_to_session");
    assert_eq!(
        (&injection["n_pairs"], &injection["delays"]),
        (&json!(6), &json!([4.0]))
    );
    let slope = ["estimate", "low", "high"].map(|key| injection["slope"][key].clone());
    // Slopes are gain − 0.025, gain and gain + 0.025, twice each; their Walsh averages
    // are symmetric about the gain, and with six pairs the interval is from end to end.
    assert_eq!(slope, expected.map(|value| json!(value)));
    assert_eq!(injection["verdict"], verdict);
}

#[test]
fn a_delay_that_reaches_the_total_has_slope_one_and_one_that_does_not_has_none() {
    check(4_000, [1.0, 0.975, 1.025], "on_path");
    check(0, [0.0, -0.025, 0.025], "off_path");
    check(2_000, [0.5, 0.475, 0.525], "partly");
}

#[test]
fn the_table_and_a_finding_say_it_in_words() {
    let (_folder, path) = experiment("session.new", 4_000);
    let text = analyze([path]).stdout;
    let finding = "of each millisecond injected at `session.new`, 1.00 ms reached `process_to_session` (95 % interval 0.97 … 1.02, 6 pairs): it is on the path";
    assert!(text.contains(finding), "{text}");
    assert!(text.contains("Injected delays: how much of them reached process_to_session"));
}

#[test]
fn without_a_delay_nothing_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("traces.jsonl");
    std::fs::write(&path, format!("{}\n", run(0, "control", 10_000, &[]))).unwrap();
    assert_eq!(report([path])["injections"], json!([]));
}
