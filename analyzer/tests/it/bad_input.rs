//! Bad input: named, counted, and nothing else lost.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};

use crate::support::{analyze, analyze_stdin, fixture, problems, report};

/// Checks the problems of `fixtures/coldpath/invalid/NAME` and that the run is
/// still there, complete or not.
#[track_caller]
fn check(name: &str, expected: &[(&str, u64)], complete: u64) -> Value {
    let report = report([fixture("coldpath/invalid").join(name)]);
    let expected: Vec<_> = expected
        .iter()
        .map(|(code, count)| ((*code).to_owned(), *count))
        .collect();
    assert_eq!(problems(&report), expected, "{name}");
    assert_eq!(report["runs"]["complete"], complete, "{name}");
    report
}

#[track_caller]
fn first(report: &Value, code: &str) -> (u64, u64) {
    let list = report["input"]["problems"].as_array().unwrap();
    let found = list.iter().find(|problem| problem["code"] == code).unwrap();
    (
        found["first"]["line"].as_u64().unwrap(),
        found["first"]["byte"].as_u64().unwrap(),
    )
}

#[test]
fn files_without_a_record_give_no_runs_and_a_valid_report() {
    for name in ["empty.jsonl", "blank.jsonl"] {
        check(name, &[("empty_file", 1)], 0);
        let answer = analyze([fixture("coldpath/invalid").join(name)]);
        assert_eq!(answer.code, 3);
        assert!(
            answer.stdout.contains("chains complete 0/0"),
            "{}",
            answer.stdout
        );
    }
    check("unknown.json", &[("unknown_record", 1)], 0);
}

#[test]
fn cut_records_cost_themselves_only() {
    let tail = check(
        "truncated-tail.jsonl",
        &[("truncated_record", 1), ("trace_not_closed", 1)],
        1,
    );
    assert_eq!(first(&tail, "truncated_record").0, 37);
    // The cut line held client.action, the parent of the cold client.session.
    let middle = check(
        "truncated-middle.jsonl",
        &[("truncated_record", 1), ("orphan_span", 1)],
        1,
    );
    assert_eq!(first(&middle, "truncated_record").0, 4);
}

#[test]
fn bytes_that_are_no_records_are_named_with_their_place() {
    let garbage = check("garbage.jsonl", &[("garbage", 1)], 1);
    assert_eq!(first(&garbage, "garbage"), (1, 0));
    let nul = check("nul-tail.jsonl", &[("nul_bytes", 1)], 1);
    assert_eq!(first(&nul, "nul_bytes").0, 38);
    check("nul-record.jsonl", &[("nul_bytes", 1)], 1);
    check("byte-order-mark.jsonl", &[("byte_order_mark", 1)], 1);
    check(
        "not-json.jsonl",
        &[("garbage", 1), ("invalid_record", 1)],
        1,
    );
    check("empty-record.jsonl", &[("empty_record", 1)], 1);
}

#[test]
fn cut_gzip_keeps_what_came_out_of_it() {
    let report = report([fixture("coldpath/invalid/cut.jsonl.gz")]);
    let codes: Vec<_> = problems(&report)
        .into_iter()
        .map(|(code, _)| code)
        .collect();
    assert!(
        codes.contains(&"damaged_compression".to_owned()),
        "{codes:?}"
    );
    assert_eq!(report["runs"]["total"], 1);
}

#[test]
fn spans_that_cannot_be_believed_are_left_out() {
    check("end-before-start.jsonl", &[("end_before_start", 1)], 1);
    check("no-start.jsonl", &[("invalid_time", 1)], 1);
    check("bad-id.jsonl", &[("invalid_id", 1)], 1);
    check("bad-attribute.jsonl", &[("invalid_attribute", 1)], 1);
}

#[test]
fn repeated_spans_count_once_and_conflicts_are_named() {
    check("duplicate.jsonl", &[("duplicate_span", 1)], 1);
    let report = check("conflicting.jsonl", &[("conflicting_span", 1)], 1);
    // Of the two client.listener spans the one that ended first is kept.
    assert_eq!(
        report["runs"]["items"][0]["metrics"]["process_to_listener"],
        json!(1.0)
    );
}

#[test]
fn orphans_and_cycles_end_and_are_reported() {
    let report = check("agent-only.jsonl", &[("orphan_span", 3)], 0);
    let missing = &report["runs"]["incomplete"][0]["missing"];
    assert!(
        missing
            .as_array()
            .unwrap()
            .contains(&json!("channel.initialize")),
        "{missing}"
    );
    check("cycle.jsonl", &[("parent_cycle", 2)], 1);
}

#[test]
fn what_processes_say_about_their_traces_is_passed_on() {
    check("not-closed.jsonl", &[("trace_not_closed", 1)], 1);
    check("dropped.jsonl", &[("dropped_spans", 1)], 1);
    check("forged-context.jsonl", &[("context_rejected", 1)], 1);
    check("foreign-version.jsonl", &[("foreign_version", 3)], 1);
}

#[test]
fn a_stage_outside_of_its_window_is_cut_and_reported() {
    let report = check(
        "stage-outside.jsonl",
        &[("stage_outside_window", 1), ("impossible_nesting", 1)],
        1,
    );
    // session.new runs from 3520 to 4950 µs, the request ends at 4900.
    let request = &report["runs"]["items"][0]["windows"][0];
    assert_eq!(request["stages"]["session.new"], 1_380_000);
    assert_eq!(request["unattributed_ns"], 30_000);
}

#[test]
fn an_incomplete_chain_says_what_is_missing() {
    let report = check("no-spawn.jsonl", &[], 0);
    assert_eq!(
        report["runs"]["incomplete"],
        json!([{"run": "cold#0", "missing": ["channel.spawn"]}])
    );
    assert_eq!(report["windows"], json!([]));
}

#[test]
fn a_failed_session_makes_the_run_failed() {
    let report = check("session-failed.jsonl", &[], 1);
    assert_eq!(report["runs"]["failed"], 1);
    assert_eq!(report["windows"], json!([]));
}

#[test]
fn a_profile_out_of_bounds_is_left_out_whole() {
    check("profile.profile.jsonl", &[("invalid_profile", 1)], 0);
}

#[test]
fn text_from_traces_cannot_steer_the_terminal() {
    let file = fixture("coldpath/invalid/steering-text.jsonl");
    for format in ["table", "markdown", "json"] {
        let answer = analyze([file.as_os_str(), "--format".as_ref(), format.as_ref()]);
        assert!(
            !answer.stdout.contains(['\u{1b}', '\u{202e}']),
            "{format}: {}",
            answer.stdout
        );
    }
    let report = report([file]);
    assert_eq!(
        report["runs"]["items"][0]["cohort"],
        "\u{1b}[31mcold\u{202e}"
    );
}

#[test]
fn strict_makes_problems_and_incomplete_chains_a_refusal_to_judge() {
    for name in ["garbage.jsonl", "no-spawn.jsonl"] {
        let file = fixture("coldpath/invalid").join(name);
        assert_eq!(analyze([file.as_os_str()]).code, 0, "{name}");
        assert_eq!(
            analyze([file.as_os_str(), "--strict".as_ref()]).code,
            3,
            "{name}"
        );
    }
    let good = fixture("coldpath/valid/one-run");
    assert_eq!(analyze([good.as_os_str(), "--strict".as_ref()]).code, 0);
}

#[test]
fn deep_nesting_is_refused_and_the_rest_kept() {
    let mut text = format!("{{\"resourceSpans\":{}", "[".repeat(100_000));
    text.push_str(&"]".repeat(100_000));
    text.push_str("}\n");
    text.push_str(&std::fs::read_to_string(fixture("coldpath/valid/curl-only.jsonl")).unwrap());
    let answer = analyze_stdin(["-", "--format", "json"], text.as_bytes());
    let report = answer.json();
    assert_eq!(problems(&report), [("invalid_record".to_owned(), 1)]);
    assert_eq!(report["runs"]["complete"], 1);
}

#[test]
fn standard_input_may_be_gzip() {
    let text = std::fs::read(fixture("coldpath/valid/curl-only.jsonl")).unwrap();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&text).unwrap();
    let answer = analyze_stdin(["-", "--format", "json"], &encoder.finish().unwrap());
    assert_eq!(answer.json()["runs"]["complete"], 1);
}

#[test]
fn a_small_file_cannot_ask_for_all_memory() {
    // A million empty spans: 3 KB compressed, 3 MB of text, hundreds in memory.
    let mut text = br#"{"resourceSpans":[{"scopeSpans":[{"spans":["#.to_vec();
    text.extend(b"{},".repeat(1_000_000));
    text.extend(b"{}]}]}]}\n");
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&text).unwrap();
    let answer = analyze_stdin(["-", "--format", "json"], &packed.finish().unwrap());
    let report = answer.json();
    assert_eq!(problems(&report), [("invalid_record".to_owned(), 1)]);
    let message = report["input"]["problems"][0]["message"].as_str().unwrap();
    assert!(message.contains("times its own size"), "{message}");
}

#[test]
fn a_span_of_more_than_a_year_is_none() {
    let line = |end: u64| {
        format!(
            r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","name":"x","startTimeUnixNano":"1","endTimeUnixNano":"{end}"}}]}}]}}]}}"#
        )
    };
    let args = ["-", "--model", "generic", "--format", "json"];
    let year = 366 * 24 * 3600 * 1_000_000_000;
    let report = analyze_stdin(args, line(year + 1).as_bytes()).json();
    assert_eq!(report["windows"][0]["total"]["p50"], 31_622_400_000.0);
    for end in [year + 2, u64::MAX] {
        let report = analyze_stdin(args, line(end).as_bytes()).json();
        assert_eq!(problems(&report), [("invalid_time".to_owned(), 1)]);
        assert_eq!(report["runs"]["total"], 0);
    }
}
