//! What else varied between the runs, and whether it goes along with the slow ones.
//!
//! Correlations are taken within cohorts, so that a difference between arms is
//! not explained by something that merely differs between them as well, and
//! their p-values are adjusted for the number of covariates (Holm). A mediator,
//! which the run itself brings about, is shown and never called an explanation.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::chain::metrics::Figure;
use crate::model::lens::Lens;
use crate::model::metric_rules::{CovariateRule, Role};
use crate::stats::within::{Within, holm, within};
use crate::trace::span::Value;

use super::build::Row;
use super::millionth;

/// Something else that varied between the runs.
#[derive(Clone, Debug, Serialize)]
pub struct Covariate {
    /// Name.
    pub name: String,
    /// `covariate` or `mediator`.
    pub role: &'static str,
    /// Metric that it is held against.
    pub with: String,
    /// Runs that have both.
    pub n: usize,
    /// Pearson's r within cohorts.
    pub pearson: Option<f64>,
    /// Spearman's ρ within cohorts.
    pub spearman: Option<f64>,
    /// Two-sided p-value of r, adjusted for the number of covariates.
    pub p: Option<f64>,
    /// Why it is null.
    pub reason: Option<String>,
}

/// All covariates that any counted run has.
pub(super) fn covariates(
    lens: &Lens<'_>,
    rows: &[&Row<'_>],
    latency: Option<usize>,
) -> Vec<Covariate> {
    let Some(column) = latency else {
        return Vec::new();
    };
    let mut cohorts: BTreeMap<&str, usize> = BTreeMap::new();
    for row in rows {
        let next = cohorts.len();
        cohorts.entry(&row.run.cohort).or_insert(next);
    }
    let mut found = Vec::new();
    let mut results: Vec<Option<Within>> = Vec::new();
    for rule in &lens.model.covariates {
        let values = rows.iter().filter_map(|row| {
            let Figure::Value(latency) = row.figures[column] else {
                return None;
            };
            let group = cohorts.get(row.run.cohort.as_str())?;
            Some((*group, value(lens, row, rule)?, latency as f64))
        });
        let values: Vec<_> = values.collect();
        if values.is_empty() {
            continue;
        }
        let result = within(&values);
        found.push(Covariate {
            name: rule.name.clone(),
            role: rule.role.name(),
            with: lens.model.client.latency.clone(),
            n: values.len(),
            pearson: result.ok().map(|found| millionth(found.pearson)),
            spearman: result.ok().map(|found| millionth(found.spearman)),
            p: None,
            reason: result.err().map(|undefined| undefined.to_string()),
        });
        results.push(result.ok());
    }
    let raw: Vec<f64> = results.iter().flatten().map(|found| found.p).collect();
    let mut adjusted = holm(&raw).into_iter();
    for (covariate, result) in found.iter_mut().zip(&results) {
        covariate.p = result.and_then(|_| adjusted.next()).map(millionth);
    }
    found
}

fn value(lens: &Lens<'_>, row: &Row<'_>, rule: &CovariateRule) -> Option<f64> {
    let number = |path: &String| row.run.record?.get(path)?.parse::<f64>().ok();
    let found = match (&rule.attribute, &rule.on, &rule.record) {
        (Some(key), Some(kind), _) => {
            let span = row.run.first(lens, kind)?;
            lens.attribute(span, key).and_then(Value::number)?
        }
        (_, _, Some(path)) => number(path)?,
        _ => return None,
    };
    let divisor = rule.per.as_ref().map_or(Some(1.0), number)?;
    Some(found / divisor).filter(|value| value.is_finite())
}

/// Whether a covariate is a mediator.
pub(super) fn is_mediator(covariate: &Covariate) -> bool {
    covariate.role == Role::Mediator.name()
}
