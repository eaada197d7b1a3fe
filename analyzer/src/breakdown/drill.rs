//! Drill-through: which part of a stage each phase of another window covers.
//!
//! A stage that waits is explained by what it waits for: for each phase, the
//! length of stage ∩ phase. Phases may come from several windows; an instant that
//! several cover counts once, as in [`partition`](mod@super::partition), so phases and what none covers
//! add up to the stage. Phases without times of their own were laid from
//! the end of their window, one behind the other; how early they may have been is
//! bounded by the window's unattributed time, so their share is an interval:
//! from what they cover alone, with all of what other windows cover taken off,
//! to what they cover at all.

use crate::units::{Interval, Nanos, Timestamp, difference};

use super::partition::partition;
use super::store::{StageView, WindowView};

/// Cover of one phase, in one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cover {
    /// The phase.
    pub name: String,
    /// Time of the stage that it covers.
    pub time: Nanos,
    /// Least and most it can be, where its place is assumed.
    pub placed: Option<(Nanos, Nanos)>,
}

/// Cover of a stage, in one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drill {
    /// The stage's own time.
    pub stage: Nanos,
    /// Phases, window by window, in the order of each.
    pub phases: Vec<Cover>,
    /// Time of the stage that no phase covers.
    pub uncovered: Nanos,
}

/// Lays the stages of the windows `phases` over `stage`, which is cut to its own
/// window.
#[must_use]
pub fn drill(window: &WindowView<'_>, stage: &StageView<'_>, phases: &[WindowView<'_>]) -> Drill {
    let parts: Vec<Interval> = stage
        .intervals
        .iter()
        .filter_map(|part| part.within(window.interval))
        .collect();
    let total: i64 = parts.iter().map(|part| part.length().0).sum();
    let present = phases.iter().enumerate().flat_map(|(window, phases)| {
        let stages = phases.stages.iter().filter(|phase| phase.present);
        stages.map(move |phase| (window, phase, phases.unattributed))
    });
    let present: Vec<(usize, StageView<'_>, Nanos)> = present.collect();
    let mut times = vec![Nanos(0); present.len()];
    let intervals: Vec<&[Interval]> = present
        .iter()
        .map(|(_, phase, _)| phase.intervals)
        .collect();
    for part in &parts {
        let cut = partition(*part, &intervals, Nanos(0));
        for (time, more) in times.iter_mut().zip(cut.stages) {
            time.0 += more.0;
        }
    }
    // What the phases of the other windows leave of the stage, for each window.
    let mut free: Vec<Option<Vec<Interval>>> = vec![None; phases.len()];
    let covers = present.iter().zip(times);
    let covers: Vec<Cover> = covers
        .map(|((window, phase, slack), time)| Cover {
            name: phase.name.to_owned(),
            time,
            placed: phase.placed.then(|| {
                let free = free[*window].get_or_insert_with(|| {
                    let others = present.iter().filter(|(other, ..)| other != window);
                    let others = others.flat_map(|(_, phase, _)| phase.intervals);
                    without(&parts, others.copied().collect())
                });
                let (least, _) = bounds(free, phase.intervals, *slack);
                let (_, most) = bounds(&parts, phase.intervals, *slack);
                // Phases of one window may overlap, and then have less than they cover.
                (least.min(time), most)
            }),
        })
        .collect();
    let sum: i64 = covers.iter().map(|cover| cover.time.0).sum();
    Drill {
        stage: Nanos(total),
        phases: covers,
        uncovered: Nanos((total - sum).max(0)),
    }
}

/// What is left of disjoint `parts` without `others`.
fn without(parts: &[Interval], mut others: Vec<Interval>) -> Vec<Interval> {
    others.sort_unstable_by_key(|other| other.start());
    let mut left = Vec::new();
    for part in parts {
        let mut from = part.start();
        for other in &others {
            let until = other.start().min(part.end());
            left.extend(Interval::new(from, until).filter(|gap| gap.length().0 > 0));
            from = from.max(other.end());
        }
        left.extend(Interval::new(from, part.end()).filter(|gap| gap.length().0 > 0));
    }
    left
}

fn covered(parts: &[Interval], phase: &[Interval]) -> Nanos {
    let pairs = parts
        .iter()
        .flat_map(|part| phase.iter().filter_map(|phase| phase.within(*part)));
    Nanos(pairs.map(|shared| shared.length().0).sum())
}

/// Least and most that a phase can cover when it stands up to `slack` earlier.
/// The cover is piecewise linear in the shift, so its extremes are at the ends
/// and where an edge of the phase meets an edge of the stage.
fn bounds(parts: &[Interval], phase: &[Interval], slack: Nanos) -> (Nanos, Nanos) {
    let edges = |of: &[Interval]| {
        of.iter()
            .flat_map(|part| [part.start(), part.end()])
            .collect::<Vec<_>>()
    };
    let stage_edges = edges(parts);
    let meets = edges(phase).into_iter().flat_map(|edge| {
        stage_edges
            .iter()
            .map(move |other| difference(edge, *other))
    });
    let shifts = meets
        .filter(|shift| (Nanos(0)..=slack).contains(shift))
        .chain([Nanos(0), slack]);
    let covers: Vec<Nanos> = shifts
        .map(|shift| covered(parts, &earlier(phase, shift)))
        .collect();
    (
        covers.iter().copied().min().unwrap_or_default(),
        covers.iter().copied().max().unwrap_or_default(),
    )
}

fn earlier(intervals: &[Interval], by: Nanos) -> Vec<Interval> {
    let moved = |at: Timestamp| Timestamp(at.0.saturating_sub(by.0.unsigned_abs()));
    intervals
        .iter()
        .filter_map(|part| Interval::new(moved(part.start()), moved(part.end())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::store::WindowStore;
    use super::super::windows::{Few, RunWindow, StageTime};
    use super::*;

    fn interval(start: u64, end: u64) -> Interval {
        Interval::new(Timestamp(start), Timestamp(end)).unwrap()
    }

    fn stage(name: &str, start: u64, end: u64, placed: bool) -> StageTime<'_> {
        StageTime {
            name,
            time: Nanos(0),
            present: true,
            placed,
            intervals: Few::from([interval(start, end)]),
            spans: Few::new(),
            sched_from: None,
        }
    }

    fn window(
        start: u64,
        end: u64,
        stages: Vec<StageTime<'_>>,
        unattributed: i64,
    ) -> RunWindow<'_> {
        RunWindow {
            name: "w",
            interval: interval(start, end),
            stages,
            unattributed: Nanos(unattributed),
            overlap: Nanos(0),
            outside: Nanos(0),
            quantum: Nanos(1),
            request: 1,
        }
    }

    /// The drill of the first stage of `window` by the windows `phases`.
    fn drilled(window: RunWindow<'_>, phases: Vec<RunWindow<'_>>) -> Drill {
        let mut store = WindowStore::default();
        let _ = store.take(vec![window]);
        let phases = store.take(phases);
        let phases: Vec<_> = phases.map(|place| store.window(place)).collect();
        let window = store.window(0);
        let stage = window.stages.iter().next().unwrap();
        drill(&window, &stage, &phases)
    }

    #[test]
    fn phases_before_the_stage_explain_nothing_of_it() {
        let wait = stage("wait", 100, 200, false);
        let phases = vec![
            stage("early", 50, 90, false),
            stage("across", 90, 150, false),
            stage("inside", 150, 190, false),
        ];
        let found = drilled(
            window(0, 300, vec![wait], 0),
            vec![window(40, 190, phases, 10)],
        );
        let times: Vec<_> = found
            .phases
            .iter()
            .map(|cover| (cover.time.0, cover.placed))
            .collect();
        assert_eq!(times, [(0, None), (50, None), (40, None)]);
        assert_eq!((found.stage, found.uncovered), (Nanos(100), Nanos(10)));
    }

    #[test]
    fn phases_of_several_windows_count_each_instant_once() {
        let wait = stage("wait", 100, 200, false);
        // 110–150 and 140–190: the ten they share belong to the later one.
        let start = window(90, 150, vec![stage("start", 110, 150, false)], 20);
        let spawn = window(140, 190, vec![stage("spawn", 140, 190, false)], 0);
        let found = drilled(window(0, 300, vec![wait], 0), vec![start, spawn]);
        let times: Vec<_> = found.phases.iter().map(|cover| cover.time.0).collect();
        assert_eq!((times, found.uncovered), (vec![30, 50], Nanos(20)));
    }

    #[test]
    fn what_another_window_may_cover_lowers_the_least_of_a_placed_phase() {
        // 120–180 placed, up to 40 earlier; 130–150 is another window's, and later
        // begun: 40 are its own. Earlier, 80–140, it covers 40, 30 of them alone.
        let wait = stage("wait", 100, 200, false);
        let placed = window(60, 180, vec![stage("import", 120, 180, true)], 40);
        let other = window(130, 150, vec![stage("spawn", 130, 150, false)], 0);
        let found = drilled(window(0, 300, vec![wait], 0), vec![placed, other]);
        assert_eq!(found.phases[0].time, Nanos(40));
        assert_eq!(found.phases[0].placed, Some((Nanos(30), Nanos(60))));
    }

    #[test]
    fn parts_without_others_are_what_is_left() {
        let left = without(
            &[interval(0, 10), interval(20, 30)],
            vec![interval(25, 40), interval(2, 4), interval(3, 5)],
        );
        assert_eq!(left, [interval(0, 2), interval(5, 10), interval(20, 25)]);
        assert_eq!(without(&[interval(5, 6)], vec![interval(0, 9)]), []);
    }

    #[test]
    fn a_placed_phase_has_an_interval() {
        let wait = stage("wait", 100, 200, false);
        let phases = vec![stage("import", 100, 180, true)];
        let found = drilled(
            window(0, 300, vec![wait], 0),
            vec![window(60, 180, phases, 40)],
        );
        assert_eq!(found.phases[0].placed, Some((Nanos(40), Nanos(80))));
    }
}
