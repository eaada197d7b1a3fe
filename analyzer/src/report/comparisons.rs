//! Two cohorts compared in pairs: their metrics, their windows and the stages
//! of these.
//!
//! Runs are compared within the pairs that the experiment made; one without a
//! partner is left out of the comparison and stays in its cohort's figures.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use serde::Serialize;

use crate::breakdown::store::WindowView;
use crate::chain::metrics::Figure;
use crate::model::lens::Lens;
use crate::model::metric_rules::MetricRule;
use crate::model::window_rules::Unit;
use crate::stats::Undefined;
use crate::stats::hodges_lehmann::{Shift, ratio, shift};
use crate::units::Nanos;

use super::build::Row;
use super::cohorts::CohortReport;
use super::stages::WindowReport;
use super::summary::grain;
use super::{Amount, millionth};

/// Two cohorts, compared in pairs.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// `metric` for an end-to-end figure, `window` for the length of a window.
    pub kind: &'static str,
    /// Name of the metric or window.
    pub metric: String,
    /// Unit of the shift.
    pub unit: &'static str,
    /// Cohort that is compared with.
    pub control: String,
    /// Cohort that is compared.
    pub candidate: String,
    /// Pairs of which both runs have it.
    pub n_pairs: usize,
    /// Hodges–Lehmann shift, candidate − control.
    pub shift: ShiftReport<Amount>,
    /// Hodges–Lehmann ratio, candidate ÷ control.
    pub ratio: ShiftReport<f64>,
    /// Finest difference that its values show.
    #[serde(skip)]
    pub quantum: Nanos,
    /// Stages of a window that any of the pairs has, and its unattributed time,
    /// over the same pairs; a stage that a run does not have counts as 0. Empty
    /// for a metric.
    pub stages: Vec<StageShift>,
}

/// One stage, compared in pairs.
#[derive(Clone, Debug, Serialize)]
pub struct StageShift {
    /// Name.
    pub name: String,
    /// Hodges–Lehmann shift, candidate − control. The shifts of the stages need
    /// not add up to the shift of the window.
    pub shift: ShiftReport<Amount>,
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

/// Value of [`Comparison::kind`] for an end-to-end figure.
pub const METRIC: &str = "metric";
/// Value of [`Comparison::kind`] for a window.
pub const WINDOW: &str = "window";

/// The runs of two cohorts in pairs, control first.
type Pairs<'r, 'a> = Vec<(&'r Row<'a>, &'r Row<'a>)>;

/// A time of a window.
type Part<'p> = &'p dyn Fn(&WindowView<'_>) -> Nanos;

/// More cohorts than this are compared with one other alone: what every two of
/// hundreds differ by is nobody's question, and grows with their square.
const ALL_PAIRS_MAX: usize = 8;

/// Every two cohorts, the earlier as control, or each with the first that it has a
/// pair with where there are more than [`ALL_PAIRS_MAX`]: metrics in the model's
/// order, then `reports` in theirs, as far as there are pairs that have them.
#[must_use]
pub(super) fn comparisons(
    lens: &Lens<'_>,
    rows: &[Row<'_>],
    cohorts: &[CohortReport],
    reports: &[WindowReport],
) -> Vec<Comparison> {
    let members = members(rows);
    let mut chosen = Vec::new();
    for (index, candidate) in cohorts.iter().enumerate() {
        let controls = cohorts[..index].iter().enumerate();
        let paired = controls.filter_map(|(place, control)| {
            let names = (control.name.as_str(), candidate.name.as_str());
            let pairs = pairs(&members, names);
            (!pairs.is_empty()).then_some((place, index, names, pairs))
        });
        if cohorts.len() > ALL_PAIRS_MAX {
            chosen.extend(paired.take(1));
        } else {
            chosen.extend(paired);
        }
    }
    // By control, then by candidate.
    chosen.sort_by_key(|(control, candidate, _, _)| (*control, *candidate));
    let mut found = Vec::new();
    for (_, _, names, pairs) in chosen {
        let rules = lens.model.metrics.iter().enumerate();
        found.extend(rules.filter_map(|(column, rule)| metric(rule, column, names, &pairs)));
        let reports = reports.iter();
        found.extend(reports.filter_map(|one| window(one, names, &pairs)));
    }
    found
}

/// The runs of each cohort by their pair.
type Members<'r, 'a> = BTreeMap<&'r str, BTreeMap<i64, Vec<&'r Row<'a>>>>;

fn members<'r, 'a>(rows: &'r [Row<'a>]) -> Members<'r, 'a> {
    let mut members = Members::new();
    for row in rows {
        if let Some(pair) = row.run.pair {
            let cohort = members.entry(&row.run.cohort).or_default();
            cohort.entry(pair).or_default().push(row);
        }
    }
    members
}

/// A cohort that stands in a pair twice has no partner there.
fn pairs<'r, 'a>(members: &Members<'r, 'a>, (control, candidate): (&str, &str)) -> Pairs<'r, 'a> {
    let (Some(controls), Some(candidates)) = (members.get(control), members.get(candidate)) else {
        return Vec::new();
    };
    let both = controls.iter().filter_map(|(pair, control)| {
        let candidate = candidates.get(pair)?;
        match (control.as_slice(), candidate.as_slice()) {
            ([control], [candidate]) => Some((*control, *candidate)),
            _ => None,
        }
    });
    both.collect()
}

/// (control, candidate) of every pair of which both have a value.
fn values(pairs: &Pairs<'_, '_>, value: impl Fn(&Row<'_>) -> Option<f64>) -> Vec<(f64, f64)> {
    let both = pairs.iter().map(|(a, b)| value(a).zip(value(b)));
    both.flatten().collect()
}

fn metric(
    rule: &MetricRule,
    column: usize,
    names: (&str, &str),
    pairs: &Pairs<'_, '_>,
) -> Option<Comparison> {
    let value = |row: &Row<'_>| match &row.figures[column] {
        Figure::Value(value) => Some(*value as f64),
        _ => None,
    };
    compare(METRIC, &rule.name, rule.unit, names, &values(pairs, value))
}

fn window(one: &WindowReport, names: (&str, &str), pairs: &Pairs<'_, '_>) -> Option<Comparison> {
    let of = |row: &Row<'_>, part: Part<'_>| {
        let window = windows_of(row, &one.name)?;
        Some(part(&window).0 as f64)
    };
    let totals = values(pairs, |row| of(row, &|window| window.interval.length()));
    let compared = compare(WINDOW, &one.name, Unit::Ms, names, &totals)?;
    let stage = |name: &str, differences: &[f64]| StageShift {
        name: name.to_owned(),
        shift: shift_report(shift(differences), |value| {
            Amount::Time(Nanos::rounded(value))
        }),
    };
    let mut stages: Vec<StageShift> = stage_differences(one, pairs, totals.len())
        .into_iter()
        .map(|(place, differences)| stage(&one.stages[place].name, &differences))
        .collect();
    if !one.stages.is_empty() {
        let rest = values(pairs, |row| of(row, &|window| window.unattributed));
        stages.push(stage(&one.unattributed.name, &differences(&rest)));
    }
    Some(Comparison { stages, ..compared })
}

/// Candidate − control of each stage that any of the pairs has, by its place in
/// the window's report. `n` pairs have the window; the others say nothing.
fn stage_differences(
    one: &WindowReport,
    pairs: &Pairs<'_, '_>,
    n: usize,
) -> BTreeMap<usize, Vec<f64>> {
    let apart = one.stages.len() - usize::from(one.others > 0);
    let others = (one.others > 0).then_some(apart);
    let names = one.stages[..apart].iter().enumerate();
    let places: HashMap<&str, usize> = names
        .map(|(place, stage)| (stage.name.as_str(), place))
        .collect();
    let of = |row| windows_of(row, &one.name);
    let both = pairs.iter().filter_map(|(a, b)| of(a).zip(of(b)));
    let mut found: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (pair, (control, candidate)) in both.enumerate() {
        for (window, sign) in [(control, -1.0), (candidate, 1.0)] {
            for stage in window.stages.iter().filter(|stage| stage.present) {
                let Some(place) = places.get(stage.name).copied().or(others) else {
                    continue;
                };
                let differences = found.entry(place).or_insert_with(|| vec![0.0; n]);
                differences[pair] += sign * stage.time.0 as f64;
            }
        }
    }
    found
}

/// Of several cold requests of a run the first is compared.
fn windows_of<'r>(row: &'r Row<'_>, name: &str) -> Option<WindowView<'r>> {
    row.window(name, 1).filter(|_| row.run.counts())
}

/// `None` where no pair has values.
fn compare(
    kind: &'static str,
    name: &str,
    unit: Unit,
    (control, candidate): (&str, &str),
    pairs: &[(f64, f64)],
) -> Option<Comparison> {
    let amount = |value: f64| match unit {
        Unit::Ms => Amount::Time(Nanos::rounded(value)),
        Unit::Bytes => Amount::Bytes(Nanos::rounded(value).0),
    };
    let positive = pairs.iter().filter(|(a, b)| *a > 0.0 && *b > 0.0).count();
    let ratio = if positive == pairs.len() {
        ratio(pairs)
    } else {
        Err(Undefined::TooFew {
            n: positive,
            needs: pairs.len(),
        })
    };
    (!pairs.is_empty()).then(|| Comparison {
        kind,
        metric: name.to_owned(),
        unit: unit.name(),
        control: control.to_owned(),
        candidate: candidate.to_owned(),
        n_pairs: pairs.len(),
        shift: shift_report(shift(&differences(pairs)), amount),
        ratio: shift_report(ratio, millionth),
        quantum: grain(pairs.iter().flat_map(|(a, b)| [*a, *b])),
        stages: Vec::new(),
    })
}

fn differences(pairs: &[(f64, f64)]) -> Vec<f64> {
    let candidate_less_control = |(control, candidate): &(f64, f64)| candidate - control;
    pairs.iter().map(candidate_less_control).collect()
}

pub(super) fn shift_report<V>(
    found: Result<Shift, Undefined>,
    wrap: impl Fn(f64) -> V,
) -> ShiftReport<V> {
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
