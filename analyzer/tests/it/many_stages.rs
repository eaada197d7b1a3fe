//! More kinds of stages than anyone reads: the report stays small and exact.

use std::fmt::Write as _;

use crate::support::analyze_stdin;

/// A root of 1 s with `children` one behind the other, the n-th of n µs, all of
/// different names.
fn trace(children: u64) -> String {
    let start = 1_780_000_000_000_000_001;
    let span = |id: u64, rest: &str, from: u64, length: u64| {
        let (from, to) = (start + from, start + from + length);
        format!(
            r#"{{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"{id:016x}",{rest},"startTimeUnixNano":"{from}","endTimeUnixNano":"{to}"}}"#
        )
    };
    let mut spans = span(1_000_000, r#""name":"root""#, 0, 1_000_000_000);
    let parent = format!(r#""parentSpanId":"{:016x}""#, 1_000_000);
    let mut at = 0;
    for child in 1..=children {
        let rest = format!(r#"{parent},"name":"child {child}""#);
        let _ = write!(spans, ",{}", span(child, &rest, at, child * 1_000));
        at += child * 1_000;
    }
    format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{spans}]}}]}}]}}"#)
}

#[test]
fn beyond_256_kinds_of_stages_the_shortest_stand_together() {
    let args = ["-", "--model", "generic", "--format", "json"];
    for (children, others, stages) in [(256, 0, 256), (257, 2, 256), (1000, 745, 256)] {
        let report = analyze_stdin(args, trace(children).as_bytes()).json();
        let window = &report["windows"][0];
        let found = window["stages"].as_array().unwrap();
        assert_eq!(window["other_stages"], others, "{children}");
        assert_eq!(found.len(), stages, "{children}");
        // All children add up to n(n + 1)/2 µs whether they stand alone or together.
        let sum: f64 = found
            .iter()
            .map(|stage| stage["p50"].as_f64().unwrap())
            .sum();
        let expected = (children * (children + 1) / 2) as f64 / 1e3;
        assert!((sum - expected).abs() < 1e-6, "{sum} {expected}");
        let last = &found[stages - 1];
        if others > 0 {
            assert_eq!(last["name"], "other stages");
            let together = f64::from(others * (others + 1) / 2) / 1e3;
            assert!((last["p50"].as_f64().unwrap() - together).abs() < 1e-6);
            assert_eq!(last["n_present"], 1);
        }
    }
}
