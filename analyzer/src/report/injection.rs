//! Injected delays: how much of what was added to a stage reached the total.
//!
//! For every two runs of a pair whose delays differ at one stage alone, the slope is
//! (total₂ − total₁) ÷ (delay₂ − delay₁); the estimate is the Hodges–Lehmann shift of
//! these slopes with its interval. 0: the stage is off the path; 1: it is on it. What
//! correlation says of the same stage, over the runs in which nothing was added to
//! it, stands beside: its share of the total, and Pearson's r. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::chain::metrics::Figure;
use crate::model::chain_rules::Injected;
use crate::model::lens::Lens;
use crate::stats::correlation::correlate;
use crate::stats::hodges_lehmann::shift;
use crate::stats::quantile::median;
use crate::units::Nanos;

use super::build::Row;
use super::comparisons::{ShiftReport, shift_report};
use super::millionth;

/// What injected delays at one stage did.
#[derive(Clone, Debug, Serialize)]
pub struct InjectionReport {
    /// The stage, as it was named to the program.
    pub stage: String,
    /// Metric that is the total.
    pub metric: String,
    /// The delays, ascending, without 0.
    pub delays: Vec<Nanos>,
    /// Pairs of runs that differ in the delay at this stage alone.
    pub n_pairs: usize,
    /// Total ÷ delay.
    pub slope: ShiftReport<f64>,
    /// What the interval says: `on_path`, `off_path`, `partly` or `undecided`.
    pub verdict: &'static str,
    /// Median of the stage ÷ total, where nothing was added to it.
    pub share_p50: Option<f64>,
    /// Pearson's r of stage and total, within the largest cohort of those runs.
    pub pearson: Option<f64>,
    /// Runs that the last two are of.
    pub n_undelayed: usize,
}

/// Verdict of an interval that holds 1 and not 0.
pub const ON_PATH: &str = "on_path";
/// Verdict of an interval that holds 0 and not 1.
pub const OFF_PATH: &str = "off_path";
/// Verdict of an interval between the two.
pub const PARTLY: &str = "partly";
/// Verdict of an interval that holds both, and of none.
pub const UNDECIDED: &str = "undecided";

/// Delays of a run by stage.
type Delays = BTreeMap<String, i64>;

/// A run with its delays and its total.
struct Dosed<'r, 'a> {
    row: &'r Row<'a>,
    delays: Delays,
    total: f64,
}

/// Every stage at which a run was held up, by name.
#[must_use]
pub(super) fn injections(lens: &Lens<'_>, rows: &[&Row<'_>]) -> Vec<InjectionReport> {
    let Some(rule) = lens
        .model
        .measured
        .as_ref()
        .and_then(|one| one.injected.as_ref())
    else {
        return Vec::new();
    };
    let metrics = &lens.model.metrics;
    let Some(column) = metrics.iter().position(|one| one.name == rule.total) else {
        return Vec::new();
    };
    let dosed: Vec<Dosed<'_, '_>> = rows
        .iter()
        .filter_map(|row| match &row.figures[column] {
            Figure::Value(total) => Some(Dosed {
                row,
                delays: delays(lens, rule, row),
                total: *total as f64,
            }),
            _ => None,
        })
        .collect();
    let stages: BTreeSet<&String> = dosed.iter().flat_map(|one| one.delays.keys()).collect();
    stages
        .into_iter()
        .map(|stage| injection(stage, &rule.total, &dosed))
        .collect()
}

fn delays(lens: &Lens<'_>, rule: &Injected, row: &Row<'_>) -> Delays {
    let measured = lens.model.measured.as_ref();
    let Some(span) = measured.and_then(|measured| row.run.first(lens, &measured.kind)) else {
        return Delays::new();
    };
    let attributes = lens.data.span(span).attributes.iter();
    let found = attributes.filter_map(|(key, value)| {
        let key = lens.data.names.text(key);
        let name = key.strip_prefix(rule.prefix.as_str())?;
        let name = name.strip_suffix(rule.suffix.as_str())?;
        let delay = value.integer()?;
        (delay != 0).then(|| (name.to_owned(), delay))
    });
    found.collect()
}

fn injection(stage: &str, metric: &str, dosed: &[Dosed<'_, '_>]) -> InjectionReport {
    let slopes = slopes(stage, dosed);
    let slope = shift_report(shift(&slopes), millionth);
    let delays: BTreeSet<i64> = dosed
        .iter()
        .filter_map(|one| one.delays.get(stage).copied())
        .collect();
    let undelayed: Vec<(f64, f64)> = largest_undelayed(stage, dosed)
        .iter()
        .filter_map(|one| Some((stage_time(one.row, stage)?, one.total)))
        .collect();
    let shares: Vec<f64> = undelayed
        .iter()
        .filter(|(_, total)| *total > 0.0)
        .map(|(time, total)| time / total)
        .collect();
    InjectionReport {
        stage: stage.to_owned(),
        metric: metric.to_owned(),
        delays: delays.into_iter().map(Nanos).collect(),
        n_pairs: slopes.len(),
        verdict: verdict(slope.low.zip(slope.high)),
        slope,
        share_p50: median(&shares).map(millionth),
        pearson: correlate(&undelayed)
            .ok()
            .map(|found| millionth(found.pearson)),
        n_undelayed: undelayed.len(),
    }
}

/// Slopes of every two runs of a pair that differ at this stage alone.
fn slopes(stage: &str, dosed: &[Dosed<'_, '_>]) -> Vec<f64> {
    let mut pairs: BTreeMap<i64, Vec<&Dosed<'_, '_>>> = BTreeMap::new();
    for one in dosed {
        if let Some(pair) = one.row.run.pair {
            pairs.entry(pair).or_default().push(one);
        }
    }
    let mut found = Vec::new();
    for members in pairs.values() {
        for (at, a) in members.iter().enumerate() {
            for b in &members[at + 1..] {
                found.extend(slope(stage, (&a.delays, a.total), (&b.delays, b.total)));
            }
        }
    }
    found
}

fn slope(stage: &str, (a, total_a): (&Delays, f64), (b, total_b): (&Delays, f64)) -> Option<f64> {
    let elsewhere = |delays: &Delays| -> Delays {
        let mut others = delays.clone();
        others.remove(stage);
        others
    };
    let at = |delays: &Delays| delays.get(stage).copied().unwrap_or(0);
    let difference = at(b) - at(a);
    (difference != 0 && elsewhere(a) == elsewhere(b))
        .then(|| (total_b - total_a) / difference as f64)
}

/// The runs of the largest cohort in which nothing was added to the stage; of equal
/// ones the first by name. Cohorts are never pooled.
fn largest_undelayed<'d, 'r, 'a>(
    stage: &str,
    dosed: &'d [Dosed<'r, 'a>],
) -> Vec<&'d Dosed<'r, 'a>> {
    let mut cohorts: BTreeMap<&str, Vec<&Dosed<'r, 'a>>> = BTreeMap::new();
    for one in dosed.iter().filter(|one| one.delays.is_empty()) {
        cohorts.entry(&one.row.run.cohort).or_default().push(one);
    }
    if cohorts.is_empty() {
        let others = dosed.iter().filter(|one| !one.delays.contains_key(stage));
        return others.collect();
    }
    let most = cohorts.values().map(Vec::len).max().unwrap_or(0);
    let found = cohorts.into_values().find(|runs| runs.len() == most);
    found.unwrap_or_default()
}

/// The stage's time in the first window that has one of that name, or of its last
/// part (`agent.phase.settings_load` is `settings_load` in its window).
fn stage_time(row: &Row<'_>, stage: &str) -> Option<f64> {
    let is_it = |name: &str| {
        stage == name
            || stage
                .strip_suffix(name)
                .is_some_and(|rest| rest.ends_with('.'))
    };
    row.windows().find_map(|window| {
        let mut stages = window.stages.iter();
        let found = stages.find(|one| is_it(one.name));
        found.map(|one| one.time.0 as f64)
    })
}

fn verdict(interval: Option<(f64, f64)>) -> &'static str {
    let Some((low, high)) = interval else {
        return UNDECIDED;
    };
    let holds = |value: f64| low <= value && value <= high;
    match (holds(0.0), holds(1.0)) {
        (false, true) => ON_PATH,
        (true, false) => OFF_PATH,
        (false, false) if low > 0.0 && high < 1.0 => PARTLY,
        _ => UNDECIDED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(pairs: &[(&str, i64)]) -> Delays {
        pairs
            .iter()
            .map(|(name, delay)| ((*name).to_owned(), *delay))
            .collect()
    }

    #[test]
    fn a_slope_is_of_two_runs_that_differ_at_the_stage_alone() {
        let none = delays(&[]);
        let five = delays(&[("a", 5)]);
        assert_eq!(slope("a", (&none, 100.0), (&five, 104.0)), Some(0.8));
        // The order of the two does not matter.
        assert_eq!(slope("a", (&five, 104.0), (&none, 100.0)), Some(0.8));
        assert_eq!(slope("a", (&five, 1.0), (&five, 2.0)), None);
        let both = delays(&[("a", 5), ("b", 5)]);
        assert_eq!(slope("a", (&none, 100.0), (&both, 110.0)), None);
        let other = delays(&[("b", 5)]);
        assert_eq!(slope("a", (&other, 100.0), (&both, 105.0)), Some(1.0));
    }

    #[test]
    fn the_interval_says_whether_the_stage_is_on_the_path() {
        for (interval, expected) in [
            (Some((0.9, 1.2)), ON_PATH),
            (Some((-0.2, 0.1)), OFF_PATH),
            (Some((0.2, 0.7)), PARTLY),
            (Some((-0.5, 1.5)), UNDECIDED),
            (Some((1.1, 1.5)), UNDECIDED),
            (None, UNDECIDED),
        ] {
            assert_eq!(verdict(interval), expected, "{interval:?}");
        }
    }
}
