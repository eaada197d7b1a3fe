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
    let mut of = 0;
    for row in complete {
        let Some(window) = client_of(row) else {
            continue;
        };
        of += 1;
        let total = window.interval.length().0 as f64;
        for stage in window
            .stages
            .iter()
            .filter(|stage| stage.name == client::BEFORE || stage.name == client::AFTER)
        {
            if total > 0.0 && stage.time.0 as f64 / total > CLIENT_GAP {
                with_gap.push((stage.time, row.run.id.as_str(), stage.name, window));
            }
        }
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
        "in {} of {} more than {} of the client's time is outside of the request span; most in {run}: {} {side} it, of {}",
        with_gap.len(),
        counted(of, "run"),
        percent(CLIENT_GAP),
        time(gap, window.quantum),
        time(window.interval.length(), window.quantum),
    );
    let values = vec![
        ("runs", json!(with_gap.len())),
        ("of", json!(of)),
        ("run", json!(run)),
        ("gap", json!(name)),
        ("gap_ms", json!(gap)),
        ("client_ms", json!(window.interval.length())),
    ];
    Some(finding("client_gap", text, values))
}

fn client_of<'a>(row: &Row<'a>) -> Option<WindowView<'a>> {
    row.all(client::WINDOW).next()
}

/// Request spans that reach out of the client's window by more than the clock explains.
pub(super) fn outlives_client(complete: &[&Row<'_>]) -> Option<Finding> {
    let windows: Vec<_> = complete.iter().filter_map(|row| client_of(row)).collect();
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
