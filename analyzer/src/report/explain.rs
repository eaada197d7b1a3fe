//! What explains a stage, and named sums of stages, over the complete runs.

use serde::Serialize;

use crate::breakdown::drill::{Cover, Drill, drill};
use crate::breakdown::store::WindowView;
use crate::model::window_rules::{DrillRule, GroupRule};
use crate::stats::quantile::median;
use crate::units::Nanos;

use super::build::Row;
use super::summary;

/// A stage and what explains it.
#[derive(Clone, Debug, Serialize)]
pub struct DrillReport {
    /// The stage.
    pub stage: String,
    /// Kind of the span that explains it.
    pub explained_by: String,
    /// Phases over it.
    pub phases: Vec<PhaseReport>,
    /// What no phase covers.
    pub uncovered: CoverReport,
    /// Finest difference that its times can show.
    #[serde(skip)]
    pub quantum: Nanos,
    /// Runs in it.
    #[serde(skip)]
    pub n: usize,
}

/// One phase over a stage.
#[derive(Clone, Debug, Serialize)]
pub struct PhaseReport {
    /// Name.
    pub name: String,
    /// Median of the time of the stage that it covers.
    pub p50: Option<Nanos>,
    /// Median over runs of that ÷ stage.
    pub share: Option<f64>,
    /// Medians of the least and most it can be, where its place is assumed.
    pub placed: Option<[Nanos; 2]>,
}

/// A time and its share.
#[derive(Clone, Debug, Serialize)]
pub struct CoverReport {
    /// Median.
    pub p50: Option<Nanos>,
    /// Median over runs of that ÷ stage.
    pub share: Option<f64>,
}

/// A named sum of stages.
#[derive(Clone, Debug, Serialize)]
pub struct GroupReport {
    /// Name.
    pub name: String,
    /// Name for people.
    #[serde(skip)]
    pub title: String,
    /// Its stages.
    #[serde(skip)]
    pub stages: Vec<String>,
    /// Window.
    pub of: String,
    /// Median of the sum.
    pub p50: Option<Nanos>,
    /// Median over runs of sum ÷ window.
    pub share_p50: Option<f64>,
    /// Finest difference that its times can show.
    #[serde(skip)]
    pub quantum: Nanos,
}

/// The stage of `rule` and the phases over it; `None` when no run has both, or
/// none has any phase.
pub(super) fn drill_through(rule: &DrillRule, rows: &[&Row<'_>]) -> Option<DrillReport> {
    let drills = rows.iter().flat_map(|row| {
        let windows = row.all(&rule.window);
        windows.filter_map(|window| drill_of(rule, row, &window))
    });
    let drills: Vec<(Drill, Nanos)> = drills.filter(|(drill, _)| drill.stage.0 > 0).collect();
    let quantum = drills.iter().map(|(_, quantum)| *quantum).max()?;
    let wholes: Vec<f64> = drills
        .iter()
        .map(|(drill, _)| drill.stage.0 as f64)
        .collect();
    let rest: Vec<f64> = drills
        .iter()
        .map(|(drill, _)| drill.uncovered.0 as f64)
        .collect();
    let names = phase_names(&drills);
    if names.is_empty() {
        return None;
    }
    let phases = names.into_iter().map(|name| phase(name, &drills, &wholes));
    Some(DrillReport {
        stage: rule.stage.clone(),
        explained_by: rule.explained_by.clone(),
        phases: phases.collect(),
        uncovered: CoverReport {
            p50: middle(&rest),
            share: summary::median_share(&rest, &wholes),
        },
        quantum,
        n: drills.len(),
    })
}

/// The drill of one run, with the clock quantum of its window.
fn drill_of(rule: &DrillRule, row: &Row<'_>, window: &WindowView<'_>) -> Option<(Drill, Nanos)> {
    let mut stages = window.stages.iter();
    let stage = stages.find(|stage| stage.name == rule.stage && stage.present)?;
    let phases = rule.phases.names().iter();
    let phases: Vec<_> = phases
        .filter_map(|name| row.window(name, window.request))
        .collect();
    (!phases.is_empty()).then(|| (drill(window, &stage, &phases), window.quantum))
}

/// Names of all phases, in the order in which the runs have them.
fn phase_names(drills: &[(Drill, Nanos)]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for cover in drills.iter().flat_map(|(drill, _)| &drill.phases) {
        if !names.contains(&cover.name.as_str()) {
            names.push(&cover.name);
        }
    }
    names
}

fn phase(name: &str, drills: &[(Drill, Nanos)], wholes: &[f64]) -> PhaseReport {
    let cover = |(drill, _): &'_ (Drill, Nanos)| {
        drill
            .phases
            .iter()
            .find(|cover| cover.name == name)
            .cloned()
    };
    let covers: Vec<Option<Cover>> = drills.iter().map(cover).collect();
    let times: Vec<f64> = covers
        .iter()
        .map(|cover| cover.as_ref().map_or(0.0, |cover| cover.time.0 as f64))
        .collect();
    let is_placed = covers.iter().flatten().any(|cover| cover.placed.is_some());
    // Over the same runs as the cover itself: an absent phase covers nothing, one
    // with times of its own what it covers.
    let bounds: Vec<(Nanos, Nanos)> = covers
        .iter()
        .map(|cover| {
            let known = cover.as_ref().map(|cover| (cover.time, cover.placed));
            known.map_or((Nanos(0), Nanos(0)), |(time, placed)| {
                placed.unwrap_or((time, time))
            })
        })
        .collect();
    let end = |of: fn(&(Nanos, Nanos)) -> Nanos| {
        middle(
            &bounds
                .iter()
                .map(|pair| of(pair).0 as f64)
                .collect::<Vec<_>>(),
        )
    };
    let placed = end(|(low, _)| *low).zip(end(|(_, high)| *high));
    PhaseReport {
        name: name.to_owned(),
        p50: middle(&times),
        share: summary::median_share(&times, wholes),
        placed: placed.filter(|_| is_placed).map(|(low, high)| [low, high]),
    }
}

fn middle(values: &[f64]) -> Option<Nanos> {
    median(values).map(Nanos::rounded)
}

/// The sum of the stages of `rule`; `None` when no run has the window.
pub(super) fn group(rule: &GroupRule, rows: &[&Row<'_>]) -> Option<GroupReport> {
    let windows: Vec<WindowView<'_>> = rows.iter().flat_map(|row| row.all(&rule.window)).collect();
    let sum = |window: &WindowView<'_>| {
        let members = window
            .stages
            .iter()
            .filter(|stage| rule.stages.iter().any(|name| name == stage.name));
        members.map(|stage| stage.time.0 as f64).sum()
    };
    let sums: Vec<f64> = windows.iter().map(sum).collect();
    let wholes: Vec<f64> = windows
        .iter()
        .map(|window| window.interval.length().0 as f64)
        .collect();
    (!windows.is_empty()).then(|| GroupReport {
        name: rule.name.clone(),
        title: rule.title.clone(),
        stages: rule.stages.clone(),
        of: rule.window.clone(),
        p50: middle(&sums),
        share_p50: summary::median_share(&sums, &wholes),
        quantum: windows
            .iter()
            .map(|window| window.quantum)
            .max()
            .unwrap_or(Nanos(1)),
    })
}
