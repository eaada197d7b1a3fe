//! What was read, how much of it could be used, and which way the requests went.

use std::fmt::Write as _;

use super::super::Report;
use super::super::numbers::{NONE, counted, escape};
use super::super::paths::{PathReport, PathValue};
use super::{COVERAGE, Section};

/// What to do where the program left no trace.
const NO_TRACES: &str = "hint: no traces of the program itself are among these files, so there is no breakdown; name the folder that it writes them to as well (`measure` hands over COLDPATH_TRACE_DIR in scenario `cold`)";

pub(super) fn coverage(report: &Report) -> Section {
    let runs = &report.runs;
    let records = &report.input.records;
    let mut first = format!(
        "model {}; chains complete {}/{}",
        report.model, runs.complete, runs.traced
    );
    let left_out = format!("{} left out", counted(runs.warmup, "warm-up"));
    let counts = [
        (runs.failed, format!("{} failed", runs.failed)),
        (runs.not_traced, format!("{} not traced", runs.not_traced)),
        (runs.warmup, left_out),
    ];
    for (_, text) in counts.iter().filter(|(count, _)| *count > 0) {
        // Writing to a String cannot fail.
        let _ = write!(first, "; {text}");
    }
    let mut second = format!(
        "{}; {}, {}, {}, {} parsed",
        counted(report.input.files, "file"),
        counted(records.spans, "span"),
        counted(records.logs, "log"),
        counted(records.metrics, "metric"),
        counted(records.profiles, "profile"),
    );
    if runs.profile_joins.of > 0 {
        let joins = runs.profile_joins;
        let _ = write!(second, "; profile joins {}/{}", joins.joined, joins.of);
    }
    match report.input.not_traces {
        0 => {}
        1 => second.push_str("; 1 file holds no trace"),
        n => {
            let _ = write!(second, "; {n} files hold no trace");
        }
    }
    let mut lines = vec![first, second];
    lines.extend(report.paths.iter().map(path));
    lines.extend(runs.incomplete.iter().map(|one| {
        format!(
            "{} lacks {}",
            escape(&one.run),
            escape(&one.missing.join(", "))
        )
    }));
    if runs.total > 0 && runs.traced == 0 {
        lines.push(NO_TRACES.to_owned());
    }
    Section {
        title: COVERAGE.to_owned(),
        lines,
        ..Section::default()
    }
}

/// Which way the requests went, in one line.
fn path(path: &PathReport) -> String {
    let value = |value: &PathValue| {
        let mut text = format!(
            "{} {}/{}",
            value
                .value
                .as_deref()
                .map_or_else(|| NONE.to_owned(), escape),
            value.n,
            path.n
        );
        // Where a minority went another way, which it was is worth knowing.
        if value.n * 2 < path.n && !value.runs.is_empty() {
            let _ = write!(text, " ({})", escape(&value.runs.join(", ")));
        }
        text
    };
    let values: Vec<String> = path.values.iter().map(value).collect();
    format!("{}: {}", escape(&path.name), values.join(", "))
}
