//! Cohorts beside each other, each with its own metrics and breakdown.
//!
//! Nothing is pooled here. How two cohorts differ is said in
//! [`comparisons`](super::comparisons).

use std::collections::BTreeMap;

use serde::Serialize;

use crate::chain::metrics::Figure;
use crate::input::manifest::Manifest;
use crate::model::lens::Lens;
use crate::stats::quantile::Definition;

use super::build::Row;
use super::explain::{self, DrillReport, GroupReport};
use super::stages::WindowReport;
use super::summary::{self, MetricReport};
use super::windows;

/// One cohort.
#[derive(Clone, Debug, Serialize)]
pub struct CohortReport {
    /// Name.
    pub name: String,
    /// Its runs.
    pub n: usize,
    /// Its metrics.
    pub metrics: Vec<MetricReport>,
    /// Its windows, over its complete runs.
    pub windows: Vec<WindowReport>,
    /// Its stages that another window explains.
    pub drill_through: Vec<DrillReport>,
    /// Its named sums of stages.
    pub groups: Vec<GroupReport>,
}

/// Name by which an experiment calls its control arm.
const CONTROL: &str = "control";

/// Whether a cohort is the control: its name is the word, or has it as a part
/// (`busy-control-0.21.2`).
fn is_control(cohort: &str) -> bool {
    cohort
        .split(|char: char| !char.is_alphanumeric())
        .any(|part| part == CONTROL)
}

/// Where a cohort stands: those named `control` first, then in the order of the
/// experiment's arms, then by name. Where experiments with different arms were
/// read, the first place in any of them counts.
fn place<'n>(manifests: &[Manifest], cohort: &'n str) -> (bool, usize, &'n str) {
    let arms = manifests
        .iter()
        .filter_map(|manifest| manifest.arms.iter().position(|arm| arm == cohort));
    (
        !is_control(cohort),
        arms.min().unwrap_or(usize::MAX),
        cohort,
    )
}

/// Cohorts of the runs that count, the control first. Empty when there is only
/// one. `pooled` are the windows of all of them.
#[must_use]
pub(super) fn cohorts(
    lens: &Lens<'_>,
    rows: &[Row<'_>],
    definition: Definition,
    pooled: &[WindowReport],
) -> Vec<CohortReport> {
    let mut members: BTreeMap<_, Vec<&Row<'_>>> = BTreeMap::new();
    for row in rows {
        let place = place(&lens.data.manifests, &row.run.cohort);
        members.entry(place).or_default().push(row);
    }
    if members.len() < 2 {
        return Vec::new();
    }
    let of = members.into_iter();
    of.map(|((_, _, name), rows)| cohort(lens, name, &rows, definition, pooled))
        .collect()
}

fn cohort(
    lens: &Lens<'_>,
    name: &str,
    rows: &[&Row<'_>],
    definition: Definition,
    pooled: &[WindowReport],
) -> CohortReport {
    let complete: Vec<&Row<'_>> = rows
        .iter()
        .copied()
        .filter(|row| row.run.counts())
        .collect();
    let rules = &lens.model;
    let drills = rules.drill_through.iter();
    let groups = rules.groups.iter();
    CohortReport {
        name: name.to_owned(),
        n: rows.len(),
        metrics: metrics(lens, rows, definition),
        windows: windows::window_reports(lens, &complete, definition, pooled),
        drill_through: drills
            .filter_map(|rule| explain::drill_through(rule, &complete))
            .collect(),
        groups: groups
            .filter_map(|rule| explain::group(rule, &complete))
            .collect(),
    }
}

/// The model's metrics and the rate of failures.
pub(super) fn metrics(
    lens: &Lens<'_>,
    rows: &[&Row<'_>],
    definition: Definition,
) -> Vec<MetricReport> {
    let rules = lens.model.metrics.iter().enumerate();
    let metric = rules.map(|(column, rule)| {
        let figures: Vec<Figure<'_>> = rows.iter().map(|row| row.figures[column]).collect();
        summary::metric(
            &rule.name,
            rule.unit,
            &figures,
            &lens.data.names,
            definition,
        )
    });
    let failed = rows.iter().filter(|row| row.run.failure.is_some()).count();
    metric
        .chain([summary::failure_rate(failed, rows.len())])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(arms: &[&[&str]], cohorts: &[&str], expected: &[&str]) {
        let manifest = |arms: &&[&str]| Manifest {
            arms: arms.iter().map(|arm| (*arm).to_owned()).collect(),
            ..Manifest::default()
        };
        let manifests: Vec<_> = arms.iter().map(manifest).collect();
        let mut found = cohorts.to_vec();
        found.sort_by_key(|cohort| place(&manifests, cohort));
        assert_eq!(found, expected);
    }

    #[test]
    fn without_a_manifest_the_control_stands_first_and_the_rest_by_name() {
        check(
            &[],
            &["b", "a", "busy-control-2"],
            &["busy-control-2", "a", "b"],
        );
        check(&[], &["uncontrolled", "b"], &["b", "uncontrolled"]);
    }

    #[test]
    fn arms_stand_as_the_experiment_gave_them_and_strangers_behind() {
        check(
            &[&["old", "new"]],
            &["new", "a", "old"],
            &["old", "new", "a"],
        );
        check(
            &[&["new", "control"]],
            &["new", "control"],
            &["control", "new"],
        );
    }

    #[test]
    fn of_several_experiments_the_first_place_counts() {
        check(
            &[&["old", "b"], &["old", "a"]],
            &["a", "b", "old"],
            &["old", "a", "b"],
        );
        check(&[&["x", "y"], &["y", "x"]], &["y", "x"], &["x", "y"]);
    }
}
