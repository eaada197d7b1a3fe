//! What the figures say, in words. Each finding has a code and its numbers.
//!
//! A finding interprets and never computes statistics of its own; thresholds
//! are constants with a reason.

mod causes;
mod client;
mod runs;
mod stages;
mod waits;

use serde_json::Value;

use crate::model::lens::Lens;

use super::build::Row;
use super::{Finding, Ordered, Report};

pub(crate) use waits::parts_of;

/// All findings, the most useful first.
pub(super) fn findings(lens: &Lens<'_>, report: &Report, complete: &[&Row<'_>]) -> Vec<Finding> {
    let main = report.windows.first();
    let mut found = Vec::new();
    found.extend(main.and_then(stages::dominant_stage));
    found.extend(
        report
            .groups
            .iter()
            .filter_map(|group| stages::group_share(report, group)),
    );
    found.extend(main.and_then(stages::variance_elsewhere));
    found.extend(main.and_then(stages::slow_elsewhere));
    found.extend(stages::startup_phase(report));
    found.extend(waits::shared_deadline(lens, complete));
    found.extend(main.and_then(waits::stage_state));
    found.extend(waits::wrapper(lens, complete));
    found.extend(main.and_then(stages::slow_runs));
    found.extend(causes::covariates(report));
    found.extend(waits::overlap(report));
    found.extend(client::client_gap(complete));
    found.extend(client::outlives_client(complete));
    found.extend(runs::chains(report));
    found.extend(runs::failures(report));
    found.extend(runs::pooled(report));
    found.extend(runs::few_runs(report));
    found.extend(runs::clock(report));
    found
}

fn finding(code: &'static str, text: String, values: Vec<(&str, Value)>) -> Finding {
    let values = values
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect();
    Finding {
        code,
        text,
        values: Ordered(values),
    }
}
