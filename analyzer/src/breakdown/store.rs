//! The windows of all runs in little memory: one list of windows, one of stages,
//! one of intervals, one of spans, each behind the other.
//!
//! A report holds several windows for each of thousands of runs. A
//! [`RunWindow`] is how one is computed, a [`WindowView`] how it is read.

use std::ops::Range;

use hashbrown::HashMap;

use crate::trace::dataset::SpanIndex;
use crate::units::{Interval, Nanos};

use super::windows::RunWindow;

/// A window without its stages.
#[derive(Clone, Copy, Debug)]
struct Cell {
    interval: Interval,
    unattributed: Nanos,
    overlap: Nanos,
    outside: Nanos,
    /// Below 2^32: the coarsest is a millisecond.
    quantum: u32,
    request: u32,
    /// Place among the names of windows.
    name: u32,
    /// Where its stages end; they begin where those of the window before end.
    end: u32,
}

/// A stage without its name, intervals and spans.
#[derive(Clone, Copy, Debug)]
struct StageCell {
    time: Nanos,
    /// Place among the names.
    name: u32,
    /// Where its intervals and spans end.
    intervals: u32,
    spans: u32,
    present: bool,
    placed: bool,
}

/// Name of a stage and the kind whose scheduler figures stand for it.
type StageName<'a> = (&'a str, Option<&'a str>);

/// Windows of many runs.
#[derive(Debug, Default)]
pub struct WindowStore<'a> {
    windows: Vec<Cell>,
    titles: Vec<&'a str>,
    stages: Vec<StageCell>,
    intervals: Vec<Interval>,
    spans: Vec<SpanIndex>,
    names: Vec<StageName<'a>>,
    places: HashMap<StageName<'a>, u32>,
}

impl<'a> WindowStore<'a> {
    /// Takes over the windows of a run; their places.
    ///
    /// Memory bounds what is stored far below 2^32 of anything.
    pub fn take(&mut self, windows: Vec<RunWindow<'a>>) -> Range<usize> {
        let first = self.windows.len();
        for window in windows {
            for stage in window.stages {
                let name = self.place_of((stage.name, stage.sched_from));
                self.intervals.extend(stage.intervals);
                self.spans.extend(stage.spans);
                self.stages.push(StageCell {
                    time: stage.time,
                    name,
                    intervals: short(self.intervals.len()),
                    spans: short(self.spans.len()),
                    present: stage.present,
                    placed: stage.placed,
                });
            }
            let title = self.titles.iter().position(|name| *name == window.name);
            let title = title.unwrap_or_else(|| {
                self.titles.push(window.name);
                self.titles.len() - 1
            });
            self.windows.push(Cell {
                name: short(title),
                interval: window.interval,
                unattributed: window.unattributed,
                overlap: window.overlap,
                outside: window.outside,
                quantum: u32::try_from(window.quantum.0).unwrap_or(u32::MAX),
                request: short(window.request),
                end: short(self.stages.len()),
            });
        }
        first..self.windows.len()
    }

    /// Gives back the room that lists have beyond what they hold: growing, they
    /// double it.
    pub fn close(&mut self) {
        self.windows.shrink_to_fit();
        self.stages.shrink_to_fit();
        self.intervals.shrink_to_fit();
        self.spans.shrink_to_fit();
    }

    fn place_of(&mut self, name: StageName<'a>) -> u32 {
        *self.places.entry(name).or_insert_with(|| {
            self.names.push(name);
            short(self.names.len() - 1)
        })
    }

    /// The window at a place that [`WindowStore::take`] gave.
    #[must_use]
    pub fn window(&self, place: usize) -> WindowView<'_> {
        let cell = self.windows[place];
        let start = before(place, |at| self.windows[at].end);
        WindowView {
            name: self.titles[cell.name as usize],
            interval: cell.interval,
            unattributed: cell.unattributed,
            overlap: cell.overlap,
            outside: cell.outside,
            quantum: Nanos(cell.quantum.into()),
            request: cell.request as usize,
            stages: Stages {
                store: self,
                from: start,
                to: cell.end as usize,
            },
        }
    }

    fn stage(&self, place: usize) -> StageView<'_> {
        let cell = self.stages[place];
        let intervals = before(place, |at| self.stages[at].intervals)..cell.intervals as usize;
        let spans = before(place, |at| self.stages[at].spans)..cell.spans as usize;
        let (name, sched_from) = self.names[cell.name as usize];
        StageView {
            name,
            time: cell.time,
            present: cell.present,
            placed: cell.placed,
            intervals: &self.intervals[intervals],
            spans: &self.spans[spans],
            sched_from,
        }
    }
}

/// Where the part at `place` begins: where the one before ends.
fn before(place: usize, end: impl Fn(usize) -> u32) -> usize {
    place.checked_sub(1).map_or(0, |at| end(at) as usize)
}

fn short(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// A window of one run.
#[derive(Clone, Copy, Debug)]
pub struct WindowView<'s> {
    /// Name in reports.
    pub name: &'s str,
    /// When it was.
    pub interval: Interval,
    /// Its stages, in the order of rules and data.
    pub stages: Stages<'s>,
    /// The rest.
    pub unattributed: Nanos,
    /// Time that several stages covered.
    pub overlap: Nanos,
    /// Time of its stages outside of it.
    pub outside: Nanos,
    /// Finest difference that its times can show.
    pub quantum: Nanos,
    /// Which of the run's cold requests it belongs to, from 1; 1 for what all share.
    pub request: usize,
}

impl WindowView<'_> {
    /// Σ durations of its stages ÷ its own; `None` for an empty window. Above 1
    /// stages run beside each other, and their durations must not be added up.
    #[must_use]
    pub fn overlap_factor(&self) -> Option<f64> {
        let whole = self.interval.length().0;
        let parts = self.stages.iter().flat_map(|stage| stage.intervals);
        let sum: i64 = parts
            .filter_map(|part| part.within(self.interval))
            .map(|part| part.length().0)
            .sum();
        (whole > 0).then(|| sum as f64 / whole as f64)
    }
}

/// The stages of one window.
#[derive(Clone, Copy, Debug)]
pub struct Stages<'s> {
    store: &'s WindowStore<'s>,
    from: usize,
    to: usize,
}

impl<'s> Stages<'s> {
    /// All of them, in their order.
    pub fn iter(self) -> impl Iterator<Item = StageView<'s>> {
        (self.from..self.to).map(move |place| self.store.stage(place))
    }
}

/// A stage of one window of one run.
#[derive(Clone, Copy, Debug)]
pub struct StageView<'s> {
    /// Name in reports.
    pub name: &'s str,
    /// Its exclusive time within the window.
    pub time: Nanos,
    /// Whether it was there at all; an absent stage has no time.
    pub present: bool,
    /// Whether its place in time is assumed.
    pub placed: bool,
    /// Where it stands, not cut to the window.
    pub intervals: &'s [Interval],
    /// Its spans, where it has some.
    pub spans: &'s [SpanIndex],
    /// Kind of the span whose scheduler figures stand for it.
    pub sched_from: Option<&'s str>,
}

#[cfg(test)]
mod tests {
    use super::super::windows::StageTime;
    use super::*;
    use crate::units::Timestamp;

    fn interval(start: u64, end: u64) -> Interval {
        Interval::new(Timestamp(start), Timestamp(end)).unwrap()
    }

    fn window<'a>(name: &'a str, stages: Vec<(&'a str, Vec<Interval>, Vec<u32>)>) -> RunWindow<'a> {
        let stage = |(name, intervals, spans): (&'a str, Vec<Interval>, Vec<u32>)| StageTime {
            name,
            time: Nanos(intervals.iter().map(|part| part.length().0).sum()),
            present: true,
            placed: false,
            intervals: intervals.into(),
            spans: spans.into_iter().map(SpanIndex).collect(),
            sched_from: None,
        };
        RunWindow {
            name,
            interval: interval(0, 100),
            stages: stages.into_iter().map(stage).collect(),
            unattributed: Nanos(7),
            overlap: Nanos(0),
            outside: Nanos(0),
            quantum: Nanos(1),
            request: 1,
        }
    }

    #[test]
    fn each_window_has_its_own_stages_intervals_and_spans() {
        let mut store = WindowStore::default();
        let one = window(
            "w",
            vec![("a", vec![interval(0, 5), interval(7, 9)], vec![1, 2])],
        );
        let two = window("v", Vec::new());
        let stages = vec![
            ("b", Vec::new(), vec![3]),
            ("a", vec![interval(1, 2)], Vec::new()),
            ("c", vec![interval(4, 8)], vec![4, 5, 6]),
        ];
        assert_eq!(store.take(vec![one, two]), 0..2);
        assert_eq!(store.take(vec![window("w", stages)]), 2..3);
        let told = |place: usize| {
            let window = store.window(place);
            let stages = window.stages.iter().map(|stage| {
                let spans: Vec<u32> = stage.spans.iter().map(|span| span.0).collect();
                (stage.name, stage.time.0, stage.intervals.to_vec(), spans)
            });
            (window.name, stages.collect::<Vec<_>>())
        };
        let parts = vec![interval(0, 5), interval(7, 9)];
        assert_eq!(told(0), ("w", vec![("a", 7, parts, vec![1, 2])]));
        assert_eq!(told(1), ("v", Vec::new()));
        let expected = vec![
            ("b", 0, Vec::new(), vec![3]),
            ("a", 1, vec![interval(1, 2)], Vec::new()),
            ("c", 4, vec![interval(4, 8)], vec![4, 5, 6]),
        ];
        assert_eq!(told(2), ("w", expected));
    }
}
