//! Control stages: parts that the change cannot touch. If one of them moved, or
//! cannot be shown not to have, so may everything have, and nothing is proven.
//!
//! A part is equivalent when both one-sided 95 % bounds of its shift lie within
//! ±margin (two one-sided tests, Schuirmann 1987). A part that no pair has, and
//! one without bounds, is not.

use serde::Serialize;

use super::MetricChange;
use super::effect::Figured;
use super::margin::Margin;
use super::stages::WindowChange;

/// A part and how far it may seem to move.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlRule {
    /// Name of a stage, window or metric.
    pub name: String,
    /// The margin.
    pub margin: Margin,
}

/// A judged control stage.
#[derive(Clone, Debug, Serialize)]
pub struct ControlStage {
    /// Name.
    pub name: String,
    /// The margin, in the unit of the shift.
    pub margin: Option<crate::report::Amount>,
    /// Its shift.
    pub shift: Figured,
    /// Whether it is shown not to have moved by more than the margin.
    pub equivalent: bool,
}

/// Judges every rule.
#[must_use]
pub fn judge(
    rules: &[ControlRule],
    metrics: &[MetricChange],
    windows: &[WindowChange],
) -> Vec<ControlStage> {
    let judge = |rule: &ControlRule| {
        let unit = rule.margin.unit;
        let absent = || Figured::absent(unit, format!("no pair has `{}`", rule.name));
        let shift = shift_of(&rule.name, metrics, windows).unwrap_or_else(absent);
        let limit = rule.margin.value;
        let inside = |(low, high): (f64, f64)| low >= -limit && high <= limit;
        ControlStage {
            name: rule.name.clone(),
            margin: super::effect::in_unit(unit, limit),
            equivalent: shift.unit == unit && shift.bounds.is_some_and(inside),
            shift,
        }
    };
    rules.iter().map(judge).collect()
}

/// The shift of what has this name: a stage, else a window, else a metric.
fn shift_of(name: &str, metrics: &[MetricChange], windows: &[WindowChange]) -> Option<Figured> {
    let mut stages = windows.iter().flat_map(|window| &window.stages);
    let stage = stages
        .find(|stage| stage.name == name)
        .map(|stage| &stage.shift);
    let window = || {
        windows
            .iter()
            .find(|one| one.name == name)
            .map(|one| &one.total)
    };
    let metric = || {
        metrics
            .iter()
            .find(|one| one.name == name)
            .map(|one| &one.effect.shift)
    };
    stage.or_else(window).or_else(metric).cloned()
}
