//! How the stages of a window changed, pair by pair.
//!
//! A stage that one run of a pair lacks, or that took no time in it, counts as 0
//! there; one that no run of an
//! arm has is added or removed, shown with its median and kept out of the
//! family. The p-values of all stages of all windows are adjusted together
//! (Holm), for nobody declared beforehand which stage matters.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::window_rules::Unit;
use crate::stats::quantile::median;
use crate::stats::signed_rank_test::p_value;
use crate::stats::within::holm;

use super::effect::{Figured, shift};
use super::facts::{Facts, RunFacts, UNATTRIBUTED, WindowFacts, WindowName};
use super::pairing::Pair;

/// Level of the adjusted p-value at which a stage is said to have moved.
pub const LEVEL: f64 = 0.05;

/// One window in two arms.
#[derive(Clone, Debug, Serialize)]
pub struct WindowChange {
    /// Name.
    pub name: String,
    /// Name for people.
    #[serde(skip)]
    pub title: String,
    /// Pairs of which both runs are whole and have it.
    pub n_pairs: usize,
    /// Shift of its length.
    pub total: Figured,
    /// Its stages, by first appearance, the unattributed rest last.
    pub stages: Vec<StageChange>,
}

/// In which arms a stage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Presence {
    /// In both.
    Both,
    /// In the candidate only.
    Added,
    /// In the control only.
    Removed,
}

/// One stage in two arms.
#[derive(Clone, Debug, Serialize)]
pub struct StageChange {
    /// Name.
    pub name: String,
    /// In which arms it is.
    pub presence: Presence,
    /// Runs of the control that have it.
    pub n_control: usize,
    /// Runs of the candidate that have it.
    pub n_candidate: usize,
    /// Shift, candidate − control.
    pub shift: Figured,
    /// p-value by itself; null for one that was added or removed.
    pub p: Option<f64>,
    /// p-value among all stages (Holm).
    pub p_holm: Option<f64>,
}

impl StageChange {
    /// Whether it moved beyond what looking at many stages explains.
    #[must_use]
    pub fn moved(&self) -> bool {
        self.p_holm.is_some_and(|p| p < LEVEL)
    }
}

/// Changes of all windows, in the model's order.
#[must_use]
pub fn windows(facts: &Facts, pairs: &[Pair]) -> Vec<WindowChange> {
    let changes = facts.windows.iter();
    let mut changes: Vec<WindowChange> = changes
        .filter_map(|rule| window(facts, pairs, rule))
        .collect();
    adjust(&mut changes);
    changes
}

fn window(facts: &Facts, pairs: &[Pair], rule: &WindowName) -> Option<WindowChange> {
    let of = |place: usize| whole(&facts.runs[place]).find(|window| window.name == rule.name);
    let both = pairs
        .iter()
        .filter_map(|pair| Some((of(pair.control)?, of(pair.candidate)?)));
    let both: Vec<(&WindowFacts, &WindowFacts)> = both.collect();
    if both.is_empty() {
        return None;
    }
    let totals: Vec<f64> = both.iter().map(|(a, b)| b.total - a.total).collect();
    let names = stage_names(&both);
    let coarse = |shift: Figured| Figured {
        quantum: rule.quantum,
        ..shift
    };
    let stage = |name: &&str| {
        let found = stage(&both, name);
        StageChange {
            shift: coarse(found.shift),
            ..found
        }
    };
    Some(WindowChange {
        name: rule.name.clone(),
        title: rule.title.clone(),
        n_pairs: both.len(),
        total: coarse(shift(Unit::Ms, &totals)),
        stages: match names.as_slice() {
            // A window without stages is all rest.
            [_] => Vec::new(),
            names => {
                let stages = names.iter().map(stage);
                stages
                    .filter(|stage| stage.n_control + stage.n_candidate > 0)
                    .collect()
            }
        },
    })
}

/// Windows of a run whose stages count.
fn whole(run: &RunFacts) -> impl Iterator<Item = &WindowFacts> {
    let counts = run.failure.is_none() && run.complete == Some(true);
    run.windows.iter().filter(move |_| counts)
}

/// Names by first appearance, the rest of the window last.
fn stage_names<'f>(both: &[(&'f WindowFacts, &'f WindowFacts)]) -> Vec<&'f str> {
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let windows = both
        .iter()
        .flat_map(|(control, candidate)| [control, candidate]);
    for (name, _) in windows.flat_map(|window| &window.stages) {
        let next = places.len();
        places.entry(name).or_insert(next);
    }
    places.remove(UNATTRIBUTED);
    let mut names: Vec<(usize, &str)> = places.into_iter().map(|(name, at)| (at, name)).collect();
    names.sort_unstable();
    let names = names.into_iter().map(|(_, name)| name);
    names.chain([UNATTRIBUTED]).collect()
}

fn stage(both: &[(&WindowFacts, &WindowFacts)], name: &str) -> StageChange {
    let time = |window: &WindowFacts| {
        let mut stages = window.stages.iter();
        let found = stages
            .find(|(stage, _)| stage == name)
            .map(|(_, time)| *time);
        // A stage that the model names and the run lacks stands there with no time.
        found.filter(|time| *time != 0.0 || name == UNATTRIBUTED)
    };
    let controls: Vec<Option<f64>> = both.iter().map(|(control, _)| time(control)).collect();
    let candidates: Vec<Option<f64>> = both.iter().map(|(_, candidate)| time(candidate)).collect();
    let count = |times: &[Option<f64>]| times.iter().flatten().count();
    let (n_control, n_candidate) = (count(&controls), count(&candidates));
    let presence = match (n_control, n_candidate) {
        (0, _) => Presence::Added,
        (_, 0) => Presence::Removed,
        _ => Presence::Both,
    };
    let pairs = controls.iter().zip(&candidates);
    let differences: Vec<f64> = pairs
        .map(|(a, b)| b.unwrap_or(0.0) - a.unwrap_or(0.0))
        .collect();
    let p = (presence == Presence::Both).then(|| p_value(&differences));
    let mut shift = shift(Unit::Ms, &differences);
    if presence != Presence::Both {
        let present: Vec<f64> = controls
            .iter()
            .chain(&candidates)
            .flatten()
            .copied()
            .collect();
        let sign = if presence == Presence::Added {
            1.0
        } else {
            -1.0
        };
        shift = Figured::absent(Unit::Ms, "one arm does not have it; its median".to_owned());
        shift.estimate = median(&present).map(|time| sign * time);
    }
    StageChange {
        name: name.to_owned(),
        presence,
        n_control,
        n_candidate,
        shift,
        p,
        p_holm: None,
    }
}

/// Adjusts the p-values of all stages together.
fn adjust(changes: &mut [WindowChange]) {
    let stages = || changes.iter().flat_map(|window| &window.stages);
    let family: Vec<f64> = stages().filter_map(|stage| stage.p).collect();
    let mut adjusted = holm(&family).into_iter();
    for stage in changes.iter_mut().flat_map(|window| &mut window.stages) {
        if stage.p.is_some() {
            stage.p_holm = adjusted.next();
        }
    }
}
