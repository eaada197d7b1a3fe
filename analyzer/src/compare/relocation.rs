//! Relocation: time that left one part and came up in another, so that the whole
//! did not gain.
//!
//! A part is said to be relocated within a whole when it moved beyond what looking
//! at many parts explains (Holm), the 95 % interval of the whole holds zero, and
//! that interval leaves out half of the part's shift: the whole is shown not to
//! have followed, instead of being merely too noisy to tell. Which figure is a
//! part of which is data of the model.

use serde::Serialize;

use crate::report::Amount;

use super::effect::{Figured, in_unit};
use super::stages::{LEVEL, WindowChange};
use super::{MetricChange, is_time};

/// Part of a shift that must be shown not to have reached the whole.
const REACHED: f64 = 0.5;

/// A part that moved within a whole that did not.
#[derive(Clone, Debug, Serialize)]
pub struct Relocation {
    /// The part: a metric or a stage.
    pub part: String,
    /// The whole: a metric or a window.
    pub whole: String,
    /// Shift of the part.
    pub part_shift: Option<Amount>,
    /// Shift of the whole.
    pub whole_shift: Figured,
}

/// Every relocation: metrics within metrics, then stages within their window.
#[must_use]
pub fn find(metrics: &[MetricChange], windows: &[WindowChange]) -> Vec<Relocation> {
    let mut found = Vec::new();
    for part in metrics.iter().filter(|metric| is_time(metric)) {
        let moved = part.p_holm.is_some_and(|p| p < LEVEL);
        for name in part.within.iter().filter(|_| moved) {
            if let Some(whole) = metrics.iter().find(|metric| metric.name == *name) {
                let of = (&part.effect.shift, &whole.effect.shift);
                found.extend(relocation((&part.name, name), of));
            }
        }
    }
    for window in windows {
        for stage in window.stages.iter().filter(|stage| stage.moved()) {
            let of = (&stage.shift, &window.total);
            found.extend(relocation((&stage.name, &window.name), of));
        }
    }
    found
}

fn relocation(
    (part, whole): (&str, &str),
    (moved, stayed): (&Figured, &Figured),
) -> Option<Relocation> {
    let shift = moved.estimate?;
    let (low, high) = stayed.interval?;
    let holds = |value: f64| low <= value && value <= high;
    let reached = shift * REACHED;
    let beyond = if reached < 0.0 {
        low > reached
    } else {
        high < reached
    };
    (holds(0.0) && beyond).then(|| Relocation {
        part: part.to_owned(),
        whole: whole.to_owned(),
        part_shift: in_unit(moved.unit, shift),
        whole_shift: stayed.clone(),
    })
}
