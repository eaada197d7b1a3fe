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
use super::{DrillReport, Finding, GroupReport, Ordered, Report, WindowReport};

pub(crate) use waits::parts_of;

/// The breakdown that a finding is about: of all runs, or of one cohort.
struct Scope<'r> {
    /// The cohort, where there are several.
    cohort: Option<&'r str>,
    windows: &'r [WindowReport],
    drills: &'r [DrillReport],
    groups: &'r [GroupReport],
}

/// All findings, the most useful first. Several cohorts are never judged by what
/// pools them: each has findings of its own.
pub(super) fn findings(lens: &Lens<'_>, report: &Report, complete: &[&Row<'_>]) -> Vec<Finding> {
    let mut found: Vec<Finding> = scopes(report).iter().flat_map(of_scope).collect();
    found.extend(report.injections.iter().filter_map(causes::injection));
    found.extend(waits::shared_deadline(lens, complete));
    found.extend(waits::wrapper(lens, complete));
    found.extend(causes::covariates(lens, report));
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

fn scopes(report: &Report) -> Vec<Scope<'_>> {
    if report.cohorts.is_empty() {
        return vec![Scope {
            cohort: None,
            windows: &report.windows,
            drills: &report.drill_through,
            groups: &report.groups,
        }];
    }
    report
        .cohorts
        .iter()
        .map(|cohort| Scope {
            cohort: Some(&cohort.name),
            windows: &cohort.windows,
            drills: &cohort.drill_through,
            groups: &cohort.groups,
        })
        .collect()
}

/// Where the time goes in one breakdown; its first window is the one that counts.
fn of_scope(scope: &Scope<'_>) -> Vec<Finding> {
    let Some(main) = scope.windows.first() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    found.extend(stages::dominant_stage(main));
    let groups = scope.groups.iter();
    found.extend(groups.filter_map(|group| stages::group_share(scope, group)));
    found.extend(stages::variance_elsewhere(main));
    found.extend(stages::slow_elsewhere(main));
    found.extend(stages::explaining_phase(main, scope.drills));
    found.extend(waits::stage_state(main));
    found.extend(stages::slow_runs(main));
    if let Some(cohort) = scope.cohort {
        for finding in &mut found {
            finding.text = format!("{cohort}: {}", finding.text);
            let value = Value::from(cohort);
            finding.values.0.insert(0, ("cohort".to_owned(), value));
        }
    }
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
