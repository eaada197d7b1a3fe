//! Formats beside OTLP (`fixtures/formats/make.py`), and `analyze check`.

use coldpath_analyzer::fuzzing::lanes;
use serde_json::{Value, json};

use crate::support::{analyze, analyze_stdin, fixture, problems, report};

fn read(name: &str) -> Value {
    report([fixture("formats").join(name)])
}

fn parts(report: &Value, run: usize) -> Value {
    let window = &report["runs"]["items"][run]["windows"][0];
    json!([
        window["total_ns"],
        window["stages"],
        window["unattributed_ns"]
    ])
}

#[test]
fn jaeger_answers_and_single_traces_are_read() {
    for name in ["jaeger.json", "jaeger-trace.json"] {
        let report = read(name);
        assert_eq!(problems(&report), [], "{name}");
        assert_eq!(
            parts(&report, 0),
            json!([100_000_000, {"load": 30_000_000, "store": 50_000_000}, 20_000_000]),
            "{name}"
        );
        let versions = &report["provenance"]["versions"];
        assert!(versions.to_string().contains("shop 2.1"), "{versions}");
    }
}

#[test]
fn chrome_events_nest_by_thread_and_pairs_become_spans() {
    for name in ["chrome-object.json", "chrome-array.json"] {
        let report = read(name);
        // `request` and `background` are roots of their threads.
        assert_eq!(
            problems(&report),
            [("several_roots".to_owned(), 1)],
            "{name}"
        );
        assert_eq!(report["runs"]["total"], 2);
        assert_eq!(
            parts(&report, 0),
            json!([100_000_000, {"load": 30_000_000, "store": 49_999_000}, 20_001_000]),
            "{name}"
        );
    }
}

#[test]
fn chrome_events_without_end_or_time_are_left_out() {
    let report = read("chrome-broken.json");
    let codes = problems(&report);
    assert_eq!(codes[0], ("invalid_time".to_owned(), 2));
    assert_eq!(report["runs"]["total"], 2);
}

#[test]
fn every_frame_of_a_zstd_file_is_read() {
    let packed = read("two-frames.jsonl.zst");
    let plain = report([fixture("coldpath/valid/curl-only.jsonl")]);
    assert_eq!(packed["runs"], plain["runs"]);
    assert_eq!(packed["input"]["problems"], json!([]));
    let cut = read("cut.jsonl.zst");
    assert_eq!(problems(&cut)[0], ("damaged_compression".to_owned(), 1));
    assert_eq!(cut["runs"]["total"], 1);
}

#[test]
fn a_manifest_beside_the_traces_gives_provenance() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("a.jsonl");
    std::fs::copy(fixture("coldpath/valid/curl-only.jsonl"), &trace).unwrap();
    let manifest = json!({"schema": "coldpath.manifest/1", "seed": 4748, "host": {
        "cpu_model": "Some CPU", "cores": 2, "kernel": "6.1", "boot_id": "b007"}});
    std::fs::write(folder.path().join("manifest.json"), manifest.to_string()).unwrap();
    for named in [&trace, &folder.path().to_path_buf()] {
        let found = &report([named])["provenance"];
        assert_eq!(
            (&found["host"], &found["boot_id"], &found["seed"]),
            (
                &json!("Some CPU, 2 cores, 6.1"),
                &json!("b007"),
                &json!("4748")
            )
        );
    }
}

#[test]
fn files_of_a_folder_that_are_no_traces_are_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(
        fixture("coldpath/valid/curl-only.jsonl"),
        folder.path().join("a.jsonl"),
    )
    .unwrap();
    std::fs::write(
        folder.path().join("rss.json"),
        "[[57.7,58092],[110.6,63992]]",
    )
    .unwrap();
    std::fs::write(folder.path().join("other.json"), "{\"x\":1}").unwrap();
    let listed = report([folder.path()]);
    assert_eq!(listed["input"]["not_traces"], 2);
    assert_eq!(listed["input"]["problems"], json!([]));
    // Named by itself the same file is a problem.
    let named = report([folder.path().join("other.json")]);
    assert_eq!(problems(&named), [("unknown_record".to_owned(), 1)]);
}

#[test]
fn check_says_what_matches_and_what_does_not() {
    let cold = fixture("qwen-serve-0.24.4/cold");
    let args = ["check".as_ref(), "--model".as_ref(), "qwen".as_ref()];
    let whole = analyze(args.into_iter().chain([cold.as_os_str()]));
    assert_eq!(whole.code, 0);
    assert!(
        whole.stdout.contains("Rules that match nothing: 0"),
        "{}",
        whole.stdout
    );
    assert!(
        whole.stdout.contains("Spans that no rule fits: 0"),
        "{}",
        whole.stdout
    );
    let args = [
        "check".as_ref(),
        "--strict".as_ref(),
        "--model".as_ref(),
        "coldpath".as_ref(),
    ];
    let other = analyze(args.into_iter().chain([cold.as_os_str()]));
    assert_eq!(other.code, 3);
    assert!(
        other.stdout.contains("Spans that no rule fits: 120"),
        "{}",
        other.stdout
    );
    assert!(
        other
            .stdout
            .contains("\n  daemon.boot, name = daemon.boot\n"),
        "{}",
        other.stdout
    );
}

#[test]
fn check_names_the_line_of_an_unknown_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let model = analyze(["model", "show", "generic"]).stdout;
    std::fs::write(&path, model.replace("fallback = true", "fallbck = true")).unwrap();
    let args = [
        "check".as_ref(),
        "--model".as_ref(),
        path.as_os_str(),
        "-".as_ref(),
    ];
    let answer = analyze(args);
    assert_eq!(answer.code, 2);
    assert!(
        answer.stderr.contains("fallbck") && answer.stderr.contains("line 7"),
        "{}",
        answer.stderr
    );
}

/// A Jaeger trace whose instants are odd microseconds.
const MICROSECONDS: &str = r#"{"data":[{"traceID":"5b8aa5a2d2c872e8321cf37308d69df2","spans":[
{"traceID":"5b8aa5a2d2c872e8321cf37308d69df2","spanID":"051581bf3cb55c13","operationName":"root","references":[],"startTime":1790000000000001,"duration":1234,"processID":"p1","tags":[]},
{"traceID":"5b8aa5a2d2c872e8321cf37308d69df2","spanID":"5fb397be34d26b51","operationName":"load","references":[{"refType":"CHILD_OF","traceID":"5b8aa5a2d2c872e8321cf37308d69df2","spanID":"051581bf3cb55c13"}],"startTime":1790000000000101,"duration":123,"processID":"p1","tags":[]}
],"processes":{"p1":{"serviceName":"shop","tags":[]}}}]}"#;

#[test]
fn a_microsecond_clock_shows_no_tenths_of_a_microsecond() {
    let args = ["-", "--model", "generic"];
    let table = analyze_stdin(args, MICROSECONDS.as_bytes()).stdout;
    let words: Vec<&str> = table.split_whitespace().collect();
    let words = words.join(" ");
    for row in [
        "load 123 µs",
        "unattributed 1.111 ms",
        "total 1.234 ms",
        "root 1 1.234 ms",
    ] {
        assert!(words.contains(row), "{row} in {table}");
    }
}

#[test]
fn keys_in_snake_case_are_read_with_a_remark() {
    let plain = std::fs::read_to_string(fixture("coldpath/valid/curl-only.jsonl")).unwrap();
    let mut snake = plain.clone();
    for (camel, other) in [
        ("resourceSpans", "resource_spans"),
        ("scopeSpans", "scope_spans"),
        ("traceId", "trace_id"),
        ("spanId", "span_id"),
        ("parentSpanId", "parent_span_id"),
        ("startTimeUnixNano", "start_time_unix_nano"),
        ("endTimeUnixNano", "end_time_unix_nano"),
        ("stringValue", "string_value"),
        ("intValue", "int_value"),
        ("boolValue", "bool_value"),
        ("doubleValue", "double_value"),
    ] {
        snake = snake.replace(&format!("\"{camel}\""), &format!("\"{other}\""));
    }
    let args = ["-", "--format", "json"];
    let camel = analyze_stdin(args, plain.as_bytes()).json();
    let found = analyze_stdin(args, snake.as_bytes()).json();
    let lines = u64::try_from(plain.lines().count()).unwrap();
    assert_eq!(problems(&camel), []);
    assert_eq!(problems(&found), [("snake_case_keys".to_owned(), lines)]);
    assert_eq!(found["runs"], camel["runs"]);
    assert_eq!(found["windows"], camel["windows"]);
}

/// Lines of real files, and lines that differ from them in one place.
#[test]
fn the_lane_of_canonical_lines_reads_what_the_general_reader_reads() {
    let mut lines = 0;
    let mut taken = 0;
    for name in ["warmup.jsonl", "curl-only.jsonl", "cohorts.jsonl"] {
        let text = std::fs::read_to_string(fixture("coldpath/valid").join(name)).unwrap();
        lines += text
            .lines()
            .filter(|line| line.starts_with("{\"resourceSpans\""))
            .count();
        taken += lanes(&text);
    }
    assert!(lines > 20, "{lines} lines");
    assert_eq!(taken, lines, "the lane is for what coldpathd writes");
}

/// The densest lists that the lane takes: what it accepts the general reader,
/// which charges each element, must have room for.
#[test]
fn the_densest_line_of_the_lane_has_room_in_the_general_reader() {
    let span = |rest: &str| {
        format!(
            r#"{{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","startTimeUnixNano":"1","endTimeUnixNano":"1"{rest}}}"#
        )
    };
    let line =
        |spans: &str| format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{spans}]}}]}}]}}"#);
    let times = |element: &str| vec![element; 100_000].join(",");
    let list =
        |name: &str, element: &str| line(&span(&format!(r#","{name}":[{}]"#, times(element))));
    let other_span =
        r#"{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331"}"#;
    for dense in [
        line(&times(&span(""))),
        list("events", r#"{"name":""}"#),
        list("links", other_span),
        list("attributes", r#"{"key":"","value":{"intValue":1}}"#),
        format!(
            r#"{{"resourceSpans":[{}]}}"#,
            times(r#"{"scopeSpans":[{"spans":[]}]}"#)
        ),
        format!(r#"{{"resourceSpans":[{}]}}"#, times("{}")),
        format!(
            r#"{{"resourceSpans":[{{"scopeSpans":[{}]}}]}}"#,
            times("{}")
        ),
    ] {
        // Empty objects, which take no room in a file, are left to the other reader.
        let expected = usize::from(!dense.contains("{},{}"));
        assert_eq!(lanes(&dense), expected, "{}", &dense[..90]);
    }
    // A longer line is left to the reader that bounds what it may take.
    let long = line(&vec![span(""); 150_000].join(","));
    assert!(long.len() > 16 * 1024 * 1024);
    assert_eq!(lanes(&long), 0);
}

#[test]
fn a_line_that_is_not_canonical_is_left_to_the_general_reader() {
    let line = |span: &str, rest: &str| {
        format!(
            r#"{{"resourceSpans":[{{"resource":{{"attributes":[]}},"scopeSpans":[{{"spans":[{{{span}}}]}}]}}]{rest}}}"#
        )
    };
    let sound = r#""traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","name":"x","startTimeUnixNano":"1780000000000000000","endTimeUnixNano":"1780000000000000001""#;
    assert_eq!(lanes(&line(sound, "")), 1);
    for (from, to) in [
        ("0af7", "0AF7"),
        (
            r#""name":"x""#,
            r#""name":"x","kind":1,"flags":257,"traceState":"a=b""#,
        ),
        (
            r#""name":"x""#,
            r#""name":"x","attributes":[{"key":"k","value":{"arrayValue":{"values":[{"intValue":"1"}]}}},{"key":"d","value":{"doubleValue":-1.5e-3}},{"key":"i","value":{"intValue":-12}},{"key":"b","value":{"boolValue":true}}]"#,
        ),
        // Doubles that a reader of limited precision rounds to a neighbour.
        (
            r#""name":"x""#,
            r#""name":"x","attributes":[{"key":"d","value":{"doubleValue":31.245270191439438}},{"key":"e","value":{"doubleValue":121.48791951161945}}]"#,
        ),
        (
            r#""name":"x""#,
            r#""name":"ü","status":{"code":2,"message":"gone"},"droppedLinksCount":3"#,
        ),
    ] {
        assert_eq!(lanes(&line(&sound.replace(from, to), "")), 1, "{to}");
    }
    for (from, to) in [
        (
            "0af7651916cd43dd8448eb211c80319c",
            "00000000000000000000000000000000",
        ),
        ("b7ad6b7169203331", "b7ad6b71692033"),
        (r#""name":"x""#, r#""name":"x\u0041""#),
        (r#""name":"x""#, r#""name":null"#),
        (r#""name":"x""#, r#""name":"x","name":"y""#),
        (r#""name":"x""#, r#""name":"x","trace_id":"y""#),
        (
            r#""name":"x""#,
            r#""name":"x","status":{"code":"STATUS_CODE_OK"}"#,
        ),
        (r#""name":"x""#, r#""name":"x","kind":01"#),
        (r#""name":"x""#, r#""name":"x","events":[{}]"#),
        (r#""name":"x""#, r#""name":"x","droppedLinksCount":-3"#),
        (
            r#""name":"x""#,
            r#""name":"x","attributes":[{"key":"k","value":{"intValue":1.5}}]"#,
        ),
        (
            r#""name":"x""#,
            r#""name":"x","attributes":[{"key":"k","value":{"doubleValue":1e999}}]"#,
        ),
        (
            r#""name":"x""#,
            r#""name":"x","attributes":[{"key":"k","value":{"stringValue":"a","intValue":"1"}}]"#,
        ),
        (r#""name":"x""#, "\"name\":\"x\u{1}\""),
        (r#""1780000000000000000""#, "1780000000000000000"),
        ("1780000000000000001", "1779999999999999999"),
        ("1780000000000000001", "99999999999999999999"),
        // More than a year.
        ("1780000000000000001", "1811622400000000001"),
    ] {
        assert_eq!(lanes(&line(&sound.replace(from, to), "")), 0, "{to}");
    }
    assert_eq!(lanes(&line(sound, r#","batches":[]"#)), 0);
    assert_eq!(lanes(&(line(sound, "") + "}")), 0);
    assert_eq!(lanes(line(sound, "").strip_suffix('}').unwrap()), 0);
}
