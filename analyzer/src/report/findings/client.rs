//! What the client saw and the request span does not show.

use serde_json::json;

use crate::breakdown::client;
use crate::breakdown::store::WindowView;

use super::super::Finding;
use super::super::build::Row;
use super::super::numbers::{counted, percent, time};
use super::finding;

/// A gap that is a larger part of the client's time than this is worth a word.
const CLIENT_GAP: f64 = 0.05;

/// Runs in which the client waited noticeably before or after the request span.
pub(super) fn client_gap(complete: &[&Row<'_>]) -> Option<Finding> {
    let mut with_gap = Vec::new();
    let (mut runs, mut of) = (0, 0);
    for row in complete {
        let before = with_gap.len();
        let mut windows = row.all(client::WINDOW).peekable();
        of += usize::from(windows.peek().is_some());
        for window in windows {
            let total = window.interval.length().0 as f64;
            let stages = window.stages.iter();
            let gaps = stages.filter(|stage| {
                [client::BEFORE, client::AFTER].contains(&stage.name)
                    && total > 0.0
                    && stage.time.0 as f64 / total > CLIENT_GAP
            });
            let run = row.run.id.as_str();
            with_gap.extend(gaps.map(|stage| (stage.time, run, stage.name, window)));
        }
        runs += usize::from(with_gap.len() > before);
    }
    let (gap, run, name, window) = with_gap
        .iter()
        .copied()
        .max_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(a.1)))?;
    let side = if name == client::BEFORE {
        "before"
    } else {
        "after"
    };
    let text = format!(
        "in {runs} of {} more than {} of the client's time is outside of the request span; most in {run}: {} {side} it, of {}",
        counted(of, "run"),
        percent(CLIENT_GAP),
        time(gap, window.quantum),
        time(window.interval.length(), window.quantum),
    );
    let values = vec![
        ("runs", json!(runs)),
        ("of", json!(of)),
        ("run", json!(run)),
        ("gap", json!(name)),
        ("gap_ms", json!(gap)),
        ("client_ms", json!(window.interval.length())),
    ];
    Some(finding("client_gap", text, values))
}

/// Request spans that reach out of the client's window by more than the clock explains.
pub(super) fn outlives_client(complete: &[&Row<'_>]) -> Option<Finding> {
    // The worst window of each run.
    let windows: Vec<WindowView<'_>> = complete
        .iter()
        .filter_map(|row| {
            let windows = row.all(client::WINDOW);
            windows.max_by_key(|window| window.outside.0 - window.quantum.0)
        })
        .collect();
    let outside: Vec<_> = windows
        .iter()
        .filter(|window| window.outside > window.quantum)
        .collect();
    let worst = outside.iter().max_by_key(|window| window.outside)?;
    let text = format!(
        "in {} of {} the request span reaches out of the client's window, by up to {}; their clocks differ, or the span ends after the answer was sent",
        outside.len(),
        counted(windows.len(), "run"),
        time(worst.outside, worst.quantum),
    );
    let values = vec![
        ("runs", json!(outside.len())),
        ("of", json!(windows.len())),
        ("most_ms", json!(worst.outside)),
    ];
    Some(finding("request_outlives_client", text, values))
}
