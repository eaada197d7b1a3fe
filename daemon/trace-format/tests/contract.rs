//! Holds `docs/trace-contract.md` and the constants to each other.

use coldpath_trace_format::{attributes, limits, spans};
use std::collections::BTreeSet;

const PAGE: &str = include_str!("../../../docs/trace-contract.md");

/// Every word in backticks outside code blocks.
fn quoted() -> BTreeSet<&'static str> {
    PAGE.split("```")
        .step_by(2)
        .flat_map(|text| text.split('`').skip(1).step_by(2))
        .collect()
}

/// Whether the page names a constant; a prefix stands with a star.
fn is_named(quoted: &BTreeSet<&str>, name: &str) -> bool {
    quoted.contains(name) || (name.ends_with('.') && quoted.contains(format!("{name}*").as_str()))
}

#[test]
fn every_span_and_attribute_is_on_the_page() {
    let quoted = quoted();
    let missing: Vec<_> = spans::ALL
        .iter()
        .chain(&attributes::ALL)
        .filter(|name| !is_named(&quoted, name))
        // Values, and keys of `_meta` that the text writes as `_meta.…` or `_meta["…"]`.
        .filter(|name| {
            !PAGE.contains(&format!("_meta.{name}"))
                && !PAGE.contains(&format!("_meta[\"{name}\"]"))
        })
        .collect();
    assert_eq!(
        missing,
        [&"tracestate", &"qwen.telemetry.tracestate"],
        "constants that the page does not name"
    );
}

#[test]
fn every_name_in_the_span_table_is_a_constant() {
    let rows = PAGE
        .lines()
        .skip_while(|line| !line.starts_with("| span |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let names: Vec<_> = rows
        .filter_map(|row| row.split('|').nth(1))
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .filter(|name| *name != "/health")
        .collect();
    assert!(names.len() >= 24, "{names:?}");
    for name in names {
        assert!(spans::ALL.contains(&name), "`{name}` is no constant");
    }
}

#[test]
fn every_coldpath_key_on_the_page_is_a_constant() {
    for name in quoted()
        .into_iter()
        .filter(|name| name.starts_with("coldpath.") && !name.contains(' '))
    {
        let key = name.trim_end_matches('*');
        assert!(
            attributes::ALL.contains(&key) || key == "coldpath.startupProfile",
            "`{name}` is no constant"
        );
    }
}

#[test]
fn the_bounds_on_the_page_are_those_of_the_code() {
    assert_eq!(limits::TRACE_FILE_MAX_BYTES, 64 << 20);
    assert_eq!(
        (limits::TRACE_FILES_KEPT, limits::TRACE_QUEUE_SPANS),
        (8, 512)
    );
    assert_eq!(
        (limits::PROFILE_PHASES_MAX, limits::PHASE_NAME_MAX_BYTES),
        (32, 48)
    );
    assert_eq!(
        (
            limits::PROFILE_RECORD_MAX_BYTES,
            limits::PROFILE_FILE_MAX_BYTES
        ),
        (4_096, 8 << 20)
    );
    assert_eq!(limits::PROFILE_FILES_KEPT, 4);
    for text in [
        "64 MiB, eight kept",
        "| 512;",
        "| 32 |",
        "1–48 bytes",
        "0–600,000 ms",
        "| 4,096 bytes |",
        "8 MiB, four kept",
        "0.01 ms a phase",
        "0 to 60 s",
    ] {
        assert!(PAGE.contains(text), "{text}");
    }
}
