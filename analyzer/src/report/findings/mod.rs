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
use super::numbers::NO_COHORT;
use super::{DrillReport, Finding, GroupReport, Ordered, Report, WindowReport};

pub(crate) use waits::parts_of;

/// The breakdown that a finding is about: of all runs, or of one cohort.
struct Scope<'r, 'a> {
    /// The cohort, where there are several.
    cohort: Option<&'r str>,
    /// Its complete runs.
    rows: Vec<&'r Row<'a>>,
    windows: &'r [WindowReport],
    drills: &'r [DrillReport],
    groups: &'r [GroupReport],
}

/// All findings, the most useful first. Several cohorts are never judged by what
/// pools them: each has findings of its own, but for covariates, which are
/// correlated within cohorts, and for what is said of all runs together.
pub(super) fn findings(lens: &Lens<'_>, report: &Report, complete: &[&Row<'_>]) -> Vec<Finding> {
    let scopes = scopes(report, complete);
    let of_each = |find: &dyn Fn(&Scope<'_, '_>) -> Vec<Finding>| {
        let scopes = scopes.iter();
        let found = scopes.flat_map(|scope| named(scope.cohort, find(scope)));
        found.collect::<Vec<Finding>>()
    };
    let mut found = of_each(&of_scope);
    found.extend(report.injections.iter().filter_map(causes::injection));
    found.extend(of_each(&|scope| waits::shared_deadline(lens, &scope.rows)));
    found.extend(of_each(&|scope| {
        waits::wrapper(lens, &scope.rows).into_iter().collect()
    }));
    found.extend(causes::covariates(lens, report));
    found.extend(of_each(&|scope| {
        waits::overlap(scope.windows).into_iter().collect()
    }));
    found.extend(of_each(&|scope| {
        let outlives = client::outlives_client(&scope.rows);
        client::client_gap(&scope.rows)
            .into_iter()
            .chain(outlives)
            .collect()
    }));
    found.extend(runs::chains(report));
    found.extend(runs::failures(report));
    found.extend(runs::pooled(report));
    found.extend(runs::few_runs(report));
    found.extend(clock(&scopes));
    found
}

/// The clock's step, said once where all cohorts share it.
fn clock(scopes: &[Scope<'_, '_>]) -> Vec<Finding> {
    let of = |scope: &Scope<'_, '_>| scope.windows.first().map(|window| window.quantum);
    let same = scopes.windows(2).all(|two| of(&two[0]) == of(&two[1]));
    let shown = if same { &scopes[..1] } else { scopes };
    let each = shown.iter().flat_map(|scope| {
        let found = of(scope).and_then(runs::clock);
        named(scope.cohort.filter(|_| !same), found.into_iter().collect())
    });
    each.collect()
}

/// One scope for each cohort, or one of everything.
fn scopes<'r, 'a>(report: &'r Report, complete: &[&'r Row<'a>]) -> Vec<Scope<'r, 'a>> {
    if report.cohorts.is_empty() {
        return vec![Scope {
            cohort: None,
            rows: complete.to_vec(),
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
            rows: complete
                .iter()
                .copied()
                .filter(|row| row.run.cohort == cohort.name)
                .collect(),
            windows: &cohort.windows,
            drills: &cohort.drill_through,
            groups: &cohort.groups,
        })
        .collect()
}

/// Where the time goes in one breakdown; its first window is the one that counts.
fn of_scope(scope: &Scope<'_, '_>) -> Vec<Finding> {
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
    found
}

/// Findings that begin with the name of their cohort, where they have one.
fn named(cohort: Option<&str>, mut found: Vec<Finding>) -> Vec<Finding> {
    if let Some(cohort) = cohort {
        for finding in &mut found {
            finding.text = format!("{}: {}", or_unnamed(cohort), finding.text);
            let value = Value::from(cohort);
            finding.values.0.insert(0, ("cohort".to_owned(), value));
        }
    }
    found
}

/// A cohort's name in a sentence, which is made harmless when it is printed.
fn or_unnamed(cohort: &str) -> &str {
    if cohort.is_empty() { NO_COHORT } else { cohort }
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
