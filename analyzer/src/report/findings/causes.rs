//! What goes along with slow runs: covariates may explain, mediators may not.

use serde_json::json;

use crate::model::lens::Lens;
use crate::model::metric_rules::SlowWhen;

use super::super::covariates::{Covariate, is_mediator};
use super::super::injection::{InjectionReport, OFF_PATH, ON_PATH, PARTLY};
use super::super::numbers::{coefficient, counted, percent};
use super::super::stages::FEW_RUNS;
use super::super::{Finding, Report};
use super::finding;

/// Adjusted p-value below which a relation is worth a word.
const ALPHA: f64 = 0.05;

/// Spearman's ρ below this part of Pearson's r: one or two runs make the
/// relation, and the others know nothing of it.
const RANKS_AGREE: f64 = 0.5;

/// One finding for each covariate that goes along with the latency, in the
/// direction in which it can make a run slow: less load with the slow runs
/// explains nothing, and neither does less of what the runs bring about.
pub(super) fn covariates(lens: &Lens<'_>, report: &Report) -> Vec<Finding> {
    let slow_when = |covariate: &Covariate| {
        let mut rules = lens.model.covariates.iter();
        let rule = rules.find(|rule| rule.name == covariate.name);
        rule.map_or(SlowWhen::High, |rule| rule.slow_when)
    };
    let related = |covariate: &&Covariate| {
        let ranks = covariate.spearman.zip(covariate.pearson);
        covariate.n >= FEW_RUNS
            && covariate.p.is_some_and(|p| p < ALPHA)
            && ranks.is_some_and(|(rho, r)| rho / r >= RANKS_AGREE)
    };
    let found = report.covariates.iter().filter(related);
    found
        .filter_map(|covariate| describe(covariate, slow_when(covariate)))
        .collect()
}

fn describe(covariate: &Covariate, slow_when: SlowWhen) -> Option<Finding> {
    let r = covariate.pearson?;
    let (direction, explains) = match slow_when {
        SlowWhen::High => ("higher", r > 0.0),
        SlowWhen::Low => ("lower", r < 0.0),
    };
    if !explains {
        return None;
    }
    let relation = format!(
        "the {direction} `{}`, the longer `{}` (r = {} within cohorts, n = {}: {} of the variance)",
        covariate.name,
        covariate.with,
        coefficient(r),
        covariate.n,
        percent(r * r),
    );
    let (code, text) = if is_mediator(covariate) {
        let text = format!(
            "{relation}; the runs themselves bring it about, so it says how they are slow and does not explain why"
        );
        ("mediator", text)
    } else {
        let text =
            format!("{relation}; it comes from outside of the runs and may explain the slow ones");
        ("covariate", text)
    };
    let values = vec![
        ("name", json!(covariate.name)),
        ("with", json!(covariate.with)),
        ("n", json!(covariate.n)),
        ("pearson", json!(covariate.pearson)),
        ("p", json!(covariate.p)),
    ];
    Some(finding(code, text, values))
}

/// Whether a stage is on the path, where injected delays say so; what they do not
/// decide stands in its table alone.
pub(super) fn injection(one: &InjectionReport) -> Option<Finding> {
    let ((estimate, low), high) = one.slope.estimate.zip(one.slope.low).zip(one.slope.high)?;
    let (stage, metric) = (&one.stage, &one.metric);
    let says = match one.verdict {
        ON_PATH => "it is on the path",
        OFF_PATH => "it is off the path, however long it is",
        PARTLY => "it is on the path in part",
        _ => return None,
    };
    let share = one.share_p50.map_or_else(String::new, |share| {
        format!("; its share of that time is {}", percent(share))
    });
    let text = format!(
        "of each millisecond injected at `{stage}`, {estimate:.2} ms reached `{metric}` (95 % interval {low:.2} … {high:.2}, {}): {says}{share}",
        counted(one.n_pairs, "pair"),
    );
    let values = vec![
        ("stage", json!(stage)),
        ("metric", json!(metric)),
        ("n_pairs", json!(one.n_pairs)),
        ("slope", json!(estimate)),
        ("low", json!(low)),
        ("high", json!(high)),
        ("share", json!(one.share_p50)),
    ];
    Some(finding("injection", text, values))
}
