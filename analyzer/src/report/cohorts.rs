//! Cohorts beside each other, and compared in pairs.
//!
//! Nothing is pooled: each cohort has its own metrics. Two cohorts are compared
//! run by run within the pairs that the experiment made; runs without a partner
//! are left out of the comparison and stay in their cohort's metrics.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::chain::Run;
use crate::chain::metrics::Figure;
use crate::model::metric_rules::MetricRule;
use crate::model::window_rules::Unit;
use crate::stats::Undefined;
use crate::stats::hodges_lehmann::{Shift, ratio, shift};
use crate::stats::quantile::Definition;
use crate::units::Nanos;

use super::summary::MetricReport;
use super::{Amount, millionth, summary};

/// One cohort.
#[derive(Clone, Debug, Serialize)]
pub struct CohortReport {
    /// Name.
    pub name: String,
    /// Its runs.
    pub n: usize,
    /// Its metrics.
    pub metrics: Vec<MetricReport>,
}

/// Two cohorts, compared in pairs.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Metric.
    pub metric: String,
    /// Unit of the shift.
    pub unit: &'static str,
    /// Cohort that is compared with.
    pub control: String,
    /// Cohort that is compared.
    pub candidate: String,
    /// Pairs of which both runs have the metric.
    pub n_pairs: usize,
    /// Hodges–Lehmann shift, candidate − control.
    pub shift: ShiftReport<Amount>,
    /// Hodges–Lehmann ratio, candidate ÷ control.
    pub ratio: ShiftReport<f64>,
}

/// An estimate with its 95 % interval.
#[derive(Clone, Debug, Serialize)]
pub struct ShiftReport<V> {
    /// Estimate.
    pub estimate: Option<V>,
    /// Lower end.
    pub low: Option<V>,
    /// Upper end.
    pub high: Option<V>,
    /// Why something is null.
    pub reason: Option<String>,
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

/// Runs with their figures, one row a run, one figure a metric.
pub struct Table<'a> {
    /// The runs that count, warm-ups excluded.
    pub runs: Vec<&'a Run<'a>>,
    /// Figures of each run, in the order of `rules`.
    pub figures: Vec<&'a [Figure<'a>]>,
    /// The metrics.
    pub rules: &'a [MetricRule],
}

/// Cohorts of the table: those named `control` first, then by name. Empty
/// when there is only one.
#[must_use]
pub fn cohorts(table: &Table<'_>, definition: Definition) -> Vec<CohortReport> {
    let mut members: BTreeMap<(bool, &str), Vec<usize>> = BTreeMap::new();
    for (index, run) in table.runs.iter().enumerate() {
        members
            .entry((!is_control(&run.cohort), &run.cohort))
            .or_default()
            .push(index);
    }
    if members.len() < 2 {
        return Vec::new();
    }
    let report = |((_, name), indices): ((bool, &str), Vec<usize>)| {
        let mut metrics: Vec<_> = table
            .rules
            .iter()
            .enumerate()
            .map(|(column, rule)| {
                let figures: Vec<_> = indices
                    .iter()
                    .map(|row| table.figures[*row][column])
                    .collect();
                summary::metric(&rule.name, rule.unit, &figures, definition)
            })
            .collect();
        let failed = indices
            .iter()
            .filter(|row| table.runs[**row].failure.is_some())
            .count();
        metrics.push(summary::failure_rate(failed, indices.len()));
        CohortReport {
            name: name.to_owned(),
            n: indices.len(),
            metrics,
        }
    };
    members.into_iter().map(report).collect()
}

/// Every two cohorts, the earlier as control, in every metric of which they have
/// pairs.
#[must_use]
pub fn comparisons(table: &Table<'_>, cohorts: &[CohortReport]) -> Vec<Comparison> {
    let mut found = Vec::new();
    for (index, control) in cohorts.iter().enumerate() {
        for candidate in &cohorts[index + 1..] {
            for (column, rule) in table.rules.iter().enumerate() {
                let pairs = pairs(table, column, &control.name, &candidate.name);
                let has = |cohort: &CohortReport| cohort.metrics[column].n > 0;
                if has(control) && has(candidate) && !pairs.is_empty() {
                    found.push(compare(rule, &control.name, &candidate.name, &pairs));
                }
            }
        }
    }
    found
}

/// (control, candidate) of every pair in which both have a value. A cohort that
/// stands in a pair twice has no partner there.
fn pairs(table: &Table<'_>, column: usize, control: &str, candidate: &str) -> Vec<(f64, f64)> {
    let mut slots: BTreeMap<i64, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for (run, figures) in table.runs.iter().zip(&table.figures) {
        let (Some(pair), Figure::Value(value)) = (run.pair, &figures[column]) else {
            continue;
        };
        let slot = slots.entry(pair).or_default();
        if run.cohort == control {
            slot.0.push(*value as f64);
        } else if run.cohort == candidate {
            slot.1.push(*value as f64);
        }
    }
    let single = slots
        .into_values()
        .filter_map(|(a, b)| match (a.as_slice(), b.as_slice()) {
            ([a], [b]) => Some((*a, *b)),
            _ => None,
        });
    single.collect()
}

fn compare(rule: &MetricRule, control: &str, candidate: &str, pairs: &[(f64, f64)]) -> Comparison {
    let differences: Vec<f64> = pairs
        .iter()
        .map(|(control, candidate)| candidate - control)
        .collect();
    let amount = |value: f64| match rule.unit {
        Unit::Ms => Amount::Time(Nanos::rounded(value)),
        Unit::Bytes => Amount::Bytes(Nanos::rounded(value).0),
    };
    let positive: Vec<_> = pairs
        .iter()
        .copied()
        .filter(|(a, b)| *a > 0.0 && *b > 0.0)
        .collect();
    let same = positive.len() == pairs.len();
    let ratio = if same {
        ratio(&positive)
    } else {
        Err(Undefined::TooFew {
            n: positive.len(),
            needs: pairs.len(),
        })
    };
    Comparison {
        metric: rule.name.clone(),
        unit: rule.unit.name(),
        control: control.to_owned(),
        candidate: candidate.to_owned(),
        n_pairs: pairs.len(),
        shift: shift_report(shift(&differences), amount),
        ratio: shift_report(ratio, millionth),
    }
}

fn shift_report<V>(found: Result<Shift, Undefined>, wrap: impl Fn(f64) -> V) -> ShiftReport<V> {
    match found {
        Err(undefined) => ShiftReport {
            estimate: None,
            low: None,
            high: None,
            reason: Some(undefined.to_string()),
        },
        Ok(Shift { estimate, interval }) => ShiftReport {
            estimate: Some(wrap(estimate)),
            low: interval.map(|(low, _)| wrap(low)),
            high: interval.map(|(_, high)| wrap(high)),
            reason: interval
                .is_none()
                .then(|| "an interval needs 6 pairs".to_owned()),
        },
    }
}
