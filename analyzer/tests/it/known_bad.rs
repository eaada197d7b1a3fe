//! Kinds of bad input that real exporters and viewers were reported for
//! (`fixtures/known-bad/make.py`): each gives what its name calls for.

use serde_json::{Value, json};

use crate::support::{fixture, problems, report};

/// Stages of a window in milliseconds, and the rest.
type Parts<'a> = (&'a [(&'a str, i64)], i64);

/// What the untouched story gives: 20 of 100 ms in no stage.
const STORY: Parts<'_> = (&[("load", 30), ("store", 50)], 20);

fn read(name: &str) -> Value {
    report([fixture("known-bad").join(name)])
}

#[track_caller]
fn has(report: &Value, expected: &[(&str, u64)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(code, count)| ((*code).to_owned(), *count))
        .collect();
    assert_eq!(problems(report), expected);
}

/// Checks problems and the first run's parts.
#[track_caller]
fn check(name: &str, expected: &[(&str, u64)], (stages, rest): Parts<'_>) -> Value {
    let report = read(name);
    has(&report, expected);
    let window = &report["runs"]["items"][0]["windows"][0];
    let ns = |ms: i64| json!(ms * 1_000_000);
    let wanted: serde_json::Map<String, Value> = stages
        .iter()
        .map(|(stage, ms)| ((*stage).to_owned(), ns(*ms)))
        .collect();
    assert_eq!(window["stages"], Value::Object(wanted), "{name}");
    assert_eq!(window["unattributed_ns"], ns(rest), "{name}");
    report
}

#[track_caller]
fn message(report: &Value, code: &str) -> String {
    let mut list = report["input"]["problems"].as_array().unwrap().iter();
    let found = list.find(|problem| problem["code"] == code).unwrap();
    found["message"].as_str().unwrap().to_owned()
}

#[track_caller]
fn runs(report: &Value, total: u64, complete: u64) {
    let found = (&report["runs"]["total"], &report["runs"]["complete"]);
    assert_eq!(found, (&json!(total), &json!(complete)));
}

#[test]
fn row_01_ids_in_base64_are_decoded_and_counted() {
    check("01-base64-ids.jsonl", &[("base64_id", 3)], STORY);
    check("01-batches.json", &[], STORY);
}

#[test]
fn row_02_ids_of_either_case_are_one_trace() {
    runs(&check("02-mixed-case-ids.jsonl", &[], STORY), 1, 1);
}

#[test]
fn row_03_empty_ids_cost_the_span_and_name_the_line() {
    let parts: Parts<'_> = (&[("load", 30)], 70);
    let report = check("03-empty-ids.jsonl", &[("invalid_id", 1)], parts);
    assert_eq!(report["input"]["problems"][0]["first"]["line"], 3);
}

#[test]
fn row_04_absent_empty_and_zero_parents_are_roots() {
    let report = read("04-roots.jsonl");
    has(&report, &[]);
    runs(&report, 3, 3);
}

#[test]
fn row_05_times_as_numbers_are_read_exactly_and_doubted() {
    let report = check("05-times-as-numbers.jsonl", &[("time_as_number", 1)], STORY);
    assert!(message(&report, "time_as_number").contains("256 ns"));
}

#[test]
fn row_06_long_objects_are_64_bit_integers() {
    check("06-long-objects.jsonl", &[], STORY);
}

#[test]
fn row_07_integers_are_text_or_number_and_never_fractions() {
    check("07-int-as-text.jsonl", &[], STORY);
    check("07-int-as-number.jsonl", &[], STORY);
    check(
        "07-int-as-fraction.jsonl",
        &[("invalid_attribute", 1)],
        STORY,
    );
}

#[test]
fn row_08_nan_and_infinity_are_parsed_and_never_written() {
    for name in ["08-nan.jsonl", "08-infinity.jsonl"] {
        // The report parses as JSON, which has neither.
        check(name, &[], STORY);
    }
}

#[test]
fn row_09_a_negative_count_is_ignored_with_a_word() {
    check("09-negative-count.jsonl", &[("invalid_count", 1)], STORY);
}

#[test]
fn row_10_a_root_that_ends_before_it_starts_leaves_no_complete_run() {
    let report = read("10-end-before-start.jsonl");
    has(
        &report,
        &[
            ("end_before_start", 1),
            ("orphan_span", 2),
            ("several_roots", 1),
        ],
    );
    assert_eq!(report["runs"]["complete"], 0);
    assert!(message(&report, "end_before_start").contains(" 5001234 ns"));
}

#[test]
fn row_11_a_start_that_was_never_set_is_no_time() {
    let parts: Parts<'_> = (&[("store", 50)], 50);
    check("11-start-zero.jsonl", &[("invalid_time", 1)], parts);
    check("11-start-missing.jsonl", &[("invalid_time", 1)], parts);
}

#[test]
fn row_12_clocks_that_differ_are_told_and_nothing_moves() {
    // 43 of the 50 ms of `load` lie within the request where they stand.
    let parts: Parts<'_> = (&[("load", 43)], 7);
    let codes = [("stage_outside_window", 1), ("clock_offset", 1)];
    let report = check("12-clock-offset.jsonl", &codes, parts);
    let text = message(&report, "clock_offset");
    assert!(text.contains("behind by 7 to 7 ms"), "{text}");
}

#[test]
fn row_13_children_that_overflow_are_cut_whatever_their_order() {
    // `load` 60–100, from 95 on `store`'s: 35 and 5.
    let parts: Parts<'_> = (&[("load", 35), ("store", 5)], 60);
    let codes = [("stage_outside_window", 2), ("impossible_nesting", 3)];
    let report = check("13-overflow.jsonl", &codes, parts);
    let text = std::fs::read_to_string(fixture("known-bad/13-overflow.jsonl")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let reversed = folder.path().join("reversed.jsonl");
    let lines: Vec<&str> = text.lines().rev().collect();
    std::fs::write(&reversed, lines.join("\n")).unwrap();
    let other = crate::support::report([&reversed]);
    assert_eq!(report["runs"], other["runs"]);
}

#[test]
fn row_14_siblings_back_to_back_all_count() {
    let parts: Parts<'_> = (&[("a", 30), ("b", 30), ("c", 30)], 0);
    check("14-back-to-back.jsonl", &[], parts);
}

#[test]
fn row_15_parallel_siblings_are_said_to_be_inferred_from_times() {
    // 10–60 and 20–80: the overlap goes to the later start.
    let parts: Parts<'_> = (&[("left", 10), ("right", 60)], 30);
    let report = check("15-parallel.jsonl", &[], parts);
    let findings = report["findings"].to_string();
    assert!(findings.contains("inferred from times alone"), "{findings}");
}

#[test]
fn row_16_a_missing_root_makes_its_run_incomplete_by_name() {
    let report = read("16-root-missing.jsonl");
    has(&report, &[("orphan_span", 1)]);
    runs(&report, 30, 29);
    let incomplete = &report["runs"]["incomplete"];
    assert_eq!(incomplete[0]["missing"], json!(["the parent of its root"]));
    // Run 7 of 30, whose trace id ends in 8.
    assert_eq!(report["runs"]["items"][7]["complete"], false);
}

#[test]
fn row_17_half_a_trace_id_is_matched_in_words_and_not_merged() {
    let report = read("17-half-trace-id.jsonl");
    runs(&report, 2, 2);
    let text = message(&report, "short_trace_id");
    assert!(
        text.contains("lower half of 0af7651916cd43dd8448eb211c80319c"),
        "{text}"
    );
}

#[test]
fn row_18_two_runs_in_one_trace_are_two_runs() {
    let report = check("18-two-roots.jsonl", &[("several_roots", 1)], STORY);
    runs(&report, 2, 2);
    assert_eq!(
        report["runs"]["items"][1]["windows"][0]["total_ns"],
        60_000_000
    );
}

#[test]
fn row_19_cycles_end_and_are_reported() {
    let codes = [("parent_cycle", 1), ("several_roots", 1)];
    check("19-self-parent.jsonl", &codes, (&[("store", 50)], 50));
    let codes = [("parent_cycle", 2), ("several_roots", 1)];
    check("19-cycle.jsonl", &codes, (&[], 100));
}

#[test]
fn row_20_a_link_is_never_a_parent() {
    runs(&check("20-root-with-link.jsonl", &[], STORY), 1, 1);
}

#[test]
fn row_21_the_same_span_counts_once_and_another_is_named() {
    check("21-same-twice.jsonl", &[("duplicate_span", 1)], STORY);
    check(
        "21-same-id-other-span.jsonl",
        &[("conflicting_span", 1)],
        STORY,
    );
}

#[test]
fn rows_22_and_23_no_order_of_lines_shows() {
    let first = check("22-root-last.jsonl", &[], STORY);
    let second = check("23-out-of-order.jsonl", &[], STORY);
    assert_eq!(first["runs"], second["runs"]);
    assert_eq!(first["windows"], second["windows"]);
}

#[test]
fn row_24_what_was_cut_costs_itself_and_has_a_place() {
    let report = check("24-cut-tail.jsonl", &[("truncated_record", 1)], STORY);
    assert_eq!(report["input"]["problems"][0]["first"]["line"], 4);
    check("24-nul-tail.jsonl", &[("nul_bytes", 1)], STORY);
    let report = check("24-rotated.jsonl", &[("garbage", 1)], STORY);
    assert_eq!(report["input"]["problems"][0]["first"]["byte"], 0);
}

#[test]
fn row_25_all_members_of_a_gzip_file_are_read_as_far_as_they_go() {
    check("25-three-members.jsonl.gz", &[], STORY);
    check("25-growing.jsonl.gz", &[("damaged_compression", 1)], STORY);
}

#[test]
fn row_26_pretty_printed_records_stand_one_behind_the_other() {
    check("26-pretty.json", &[("empty_record", 2)], STORY);
}

#[test]
fn row_27_other_signals_are_counted_and_bare_groups_read() {
    let report = check("27-other-signals.jsonl", &[], STORY);
    let records = &report["input"]["records"];
    assert_eq!(
        (&records["logs"], &records["metrics"]),
        (&json!(2), &json!(1))
    );
}

#[test]
fn row_28_long_lines_and_deep_nesting_cost_no_stack() {
    check("28-long-line.jsonl.gz", &[], STORY);
    check("28-deep.jsonl.gz", &[("invalid_record", 1)], STORY);
}

#[test]
fn row_29_files_without_spans_are_no_runs_and_a_valid_report() {
    for (name, codes) in [
        ("29-zero-bytes.json", &[("empty_file", 1)][..]),
        ("29-blank.jsonl", &[("empty_file", 1)]),
        ("29-no-spans.jsonl", &[]),
    ] {
        let report = read(name);
        has(&report, codes);
        runs(&report, 0, 0);
        let answer = crate::support::analyze([fixture("known-bad").join(name)]);
        assert_eq!(answer.code, 3, "{name}");
    }
    check("29-byte-order-mark.jsonl", &[("byte_order_mark", 1)], STORY);
    check("29-crlf.jsonl", &[], STORY);
}

#[test]
fn row_40_the_overlap_factor_is_printed() {
    let report = read("40-overlap.jsonl");
    // Eight times 1000 ms in 1200.
    assert_eq!(report["windows"][0]["overlap_factor"], json!(6.666_667));
    let findings = report["findings"].to_string();
    assert!(findings.contains("6.67 times the window"), "{findings}");
}

#[test]
fn row_41_what_no_stage_covers_is_the_remainder() {
    let report = check(
        "41-outside-of-the-chain.jsonl",
        &[],
        (&[("unit", 100)], 900),
    );
    let first = &report["findings"][0]["values"];
    assert_eq!(first["stage"], "unattributed");
}

#[test]
fn row_43_overlapping_slices_never_give_negative_time() {
    // 0–10 bind, 10–20 inflate, 20–100 draw.
    let parts: Parts<'_> = (&[("bind", 10), ("inflate", 10), ("draw", 80)], 0);
    let codes = [("stage_outside_window", 1), ("impossible_nesting", 1)];
    check("43-overlapping-slices.jsonl", &codes, parts);
}

#[test]
fn row_45_one_resolver_serves_every_view() {
    // `inner` is below `store` in the breakdown, in coverage and in problems.
    let report = check("45-parent-in-two-views.jsonl", &[], STORY);
    runs(&report, 1, 1);
}

#[test]
fn row_47_a_guard_held_over_a_wait_is_recognised() {
    let codes = [("impossible_nesting", 1)];
    let report = check("47-guard-over-await.jsonl", &codes, (&[("handle", 40)], 60));
    let text = message(&report, "impossible_nesting");
    assert!(text.contains("`poll` leaves `handle`"), "{text}");
}
