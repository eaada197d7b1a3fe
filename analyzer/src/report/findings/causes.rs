//! What goes along with slow runs: covariates may explain, mediators may not.

use serde_json::json;

use super::super::covariates::{Covariate, is_mediator};
use super::super::numbers::coefficient;
use super::super::{Finding, Report};
use super::finding;

/// Adjusted p-value below which a relation is worth a word.
const ALPHA: f64 = 0.05;

/// One finding for each covariate that goes along with the latency.
pub(super) fn covariates(report: &Report) -> Vec<Finding> {
    let related = |covariate: &&Covariate| covariate.p.is_some_and(|p| p < ALPHA);
    let found = report.covariates.iter().filter(related);
    found.filter_map(describe).collect()
}

fn describe(covariate: &Covariate) -> Option<Finding> {
    let r = covariate.pearson?;
    // Less of what the runs bring about themselves does not make them slow.
    if is_mediator(covariate) && r <= 0.0 {
        return None;
    }
    let relation = format!(
        "`{}` goes along with `{}` (r = {} within cohorts, n = {})",
        covariate.name,
        covariate.with,
        coefficient(r),
        covariate.n
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
