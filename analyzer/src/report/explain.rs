//! What explains a stage, and named sums of stages, over the complete runs.

use hashbrown::{HashMap, HashSet};
use serde::Serialize;

use crate::breakdown::drill::{Drill, drill};
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
    let found = phases_of(&drills);
    if found.is_empty() {
        return None;
    }
    let phases = found.into_iter().map(|phase| phase.report(&wholes));
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

/// More phases than this are not told apart; those that cover the least stand
/// together. Agents have some tens.
const PHASES_MAX: usize = 256;
/// Name of the phase in which the others stand together.
const OTHERS: &str = "other phases";

/// What one phase covers in one drill.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    /// Place of the drill.
    drill: usize,
    time: Nanos,
    /// Least and most it can be; the time itself where its place is known.
    least: Nanos,
    most: Nanos,
}

/// One phase over the drills that have it.
struct Phase<'d> {
    name: &'d str,
    parts: Vec<Part>,
    is_placed: bool,
}

impl<'d> Phase<'d> {
    fn new(name: &'d str) -> Self {
        Self {
            name,
            parts: Vec::new(),
            is_placed: false,
        }
    }

    /// Adds a part; several of one drill are one.
    fn add(&mut self, part: Part) {
        match self.parts.last_mut() {
            Some(before) if before.drill == part.drill => {
                before.time.0 += part.time.0;
                before.least.0 += part.least.0;
                before.most.0 += part.most.0;
            }
            _ => self.parts.push(part),
        }
    }

    fn whole(&self) -> i64 {
        self.parts.iter().map(|part| part.time.0).sum()
    }

    /// Over all drills, of which `wholes` are the stages; an absent phase covers
    /// nothing.
    fn report(&self, wholes: &[f64]) -> PhaseReport {
        let dense = |of: fn(&Part) -> Nanos| {
            let mut values = vec![0.0; wholes.len()];
            for part in &self.parts {
                values[part.drill] = of(part).0 as f64;
            }
            values
        };
        let times = dense(|part| part.time);
        let least = middle(&dense(|part| part.least));
        let most = middle(&dense(|part| part.most));
        PhaseReport {
            name: self.name.to_owned(),
            p50: middle(&times),
            share: summary::median_share(&times, wholes),
            placed: least
                .zip(most)
                .filter(|_| self.is_placed)
                .map(|(least, most)| [least, most]),
        }
    }
}

/// All phases, in the order in which the runs have them.
fn phases_of(drills: &[(Drill, Nanos)]) -> Vec<Phase<'_>> {
    let mut found: Vec<Phase<'_>> = Vec::new();
    let mut of_name: HashMap<&str, usize> = HashMap::new();
    for (place, (drill, _)) in drills.iter().enumerate() {
        for cover in &drill.phases {
            let name = cover.name.as_str();
            let index = *of_name.entry(name).or_insert_with(|| {
                found.push(Phase::new(name));
                found.len() - 1
            });
            let phase = &mut found[index];
            phase.is_placed |= cover.placed.is_some();
            let (least, most) = cover.placed.unwrap_or((cover.time, cover.time));
            phase.add(Part {
                drill: place,
                time: cover.time,
                least,
                most,
            });
        }
    }
    if found.len() > PHASES_MAX {
        fold(&mut found);
    }
    found
}

/// Puts the phases that cover the least together behind the others.
fn fold(found: &mut Vec<Phase<'_>>) {
    let mut by_length: Vec<(i64, &str)> = found
        .iter()
        .map(|phase| (phase.whole(), phase.name))
        .collect();
    by_length.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    let kept: HashSet<&str> = by_length
        .iter()
        .take(PHASES_MAX - 1)
        .map(|(_, name)| *name)
        .collect();
    let mut others = Phase::new(OTHERS);
    let mut parts = Vec::new();
    found.retain(|phase| {
        let stays = kept.contains(phase.name);
        if !stays {
            parts.extend_from_slice(&phase.parts);
            others.is_placed |= phase.is_placed;
        }
        stays
    });
    parts.sort_unstable();
    for part in parts {
        others.add(part);
    }
    found.push(others);
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

#[cfg(test)]
mod tests {
    use super::super::super::breakdown::drill::Cover;
    use super::*;

    type Told<'n> = (&'n str, i64, Option<(i64, i64)>);

    fn drill(phases: &[Told<'_>]) -> (Drill, Nanos) {
        let cover = |(name, time, placed): &Told<'_>| Cover {
            name: (*name).to_owned(),
            time: Nanos(*time),
            placed: placed.map(|(least, most)| (Nanos(least), Nanos(most))),
        };
        let drill = Drill {
            stage: Nanos(100),
            phases: phases.iter().map(cover).collect(),
            uncovered: Nanos(0),
        };
        (drill, Nanos(1))
    }

    #[test]
    fn an_absent_phase_covers_nothing_in_its_interval_too() {
        // Placed in one of three runs: the medians are those of 0, 0 and the one.
        let drills = [
            drill(&[("a", 40, None), ("b", 9, Some((8, 10)))]),
            drill(&[("a", 50, None)]),
            drill(&[("a", 60, Some((50, 70)))]),
        ];
        let found = phases_of(&drills);
        let reports: Vec<_> = found
            .iter()
            .map(|phase| phase.report(&[100.0; 3]))
            .map(|phase| (phase.name, phase.p50, phase.placed))
            .collect();
        let nanos = |value| Some(Nanos(value));
        let interval = |low, high| Some([Nanos(low), Nanos(high)]);
        assert_eq!(reports[0], ("a".to_owned(), nanos(50), interval(50, 50)));
        assert_eq!(reports[1], ("b".to_owned(), nanos(0), interval(0, 0)));
    }

    #[test]
    fn beyond_256_phases_those_that_cover_the_least_stand_together() {
        let names: Vec<String> = (0..300).map(|n| format!("phase {n:03}")).collect();
        let phases: Vec<_> = names
            .iter()
            .zip(1..)
            .map(|(name, time)| (name.as_str(), time, None))
            .collect();
        let drills = [drill(&phases.clone()), drill(&phases)];
        let found = phases_of(&drills);
        assert_eq!(found.len(), 256);
        // The 45 shortest are 1 to 45 ns.
        assert_eq!(
            (found[0].name, found[255].name),
            ("phase 045", "other phases")
        );
        let last = found[255].report(&[100.0; 2]);
        assert_eq!((last.p50, last.placed), (Some(Nanos(45 * 46 / 2)), None));
    }
}
