//! The client's own window: what of its waiting the request span explains.
//!
//! Client time = gap before the span + the request's stages + its remainder +
//! gap after the span. The two clocks may differ; a request that seems to
//! outlive its client is cut to the client's window and the excess is reported.

use crate::units::{Interval, Nanos};

use super::partition::partition;
use super::windows::{Few, RunWindow, StageTime};

/// Name of the window.
pub const WINDOW: &str = "client";
/// Its name for people.
pub const TITLE: &str = "Request as the client saw it";
/// Stage from the client's start to the request's.
pub const BEFORE: &str = "client.before";
/// Stage from the request's end to the client's.
pub const AFTER: &str = "client.after";

/// Cuts the client's window by the request's.
#[must_use]
pub fn client_window<'a>(client: Interval, request: &RunWindow<'a>) -> RunWindow<'a> {
    let gap = |name: &'static str, gap: Option<Interval>| StageTime {
        name,
        time: Nanos(0),
        present: gap.is_some_and(|gap| gap.length().0 > 0),
        placed: false,
        intervals: gap.into_iter().collect(),
        spans: Few::new(),
        sched_from: None,
    };
    let before =
        Interval::new(client.start(), request.interval.start()).and_then(|gap| gap.within(client));
    let after =
        Interval::new(request.interval.end(), client.end()).and_then(|gap| gap.within(client));
    let mut stages = Vec::with_capacity(request.stages.len() + 2);
    stages.push(gap(BEFORE, before));
    let inside = request.stages.iter().cloned().map(|mut stage| {
        // Only what lies in the request's window is the request's to explain.
        stage.intervals = stage
            .intervals
            .iter()
            .filter_map(|part| part.within(request.interval))
            .collect();
        stage
    });
    stages.extend(inside);
    stages.push(gap(AFTER, after));
    let intervals: Vec<&[Interval]> = stages
        .iter()
        .map(|stage| stage.intervals.as_slice())
        .collect();
    let parts = partition(client, &intervals, request.quantum);
    for (stage, time) in stages.iter_mut().zip(&parts.stages) {
        stage.time = *time;
    }
    let shared = request
        .interval
        .within(client)
        .map_or(0, |part| part.length().0);
    RunWindow {
        name: WINDOW,
        interval: client,
        stages,
        unattributed: parts.unattributed,
        overlap: parts.overlap,
        outside: Nanos(request.interval.length().0 - shared),
        quantum: request.quantum,
        request: request.request,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Timestamp;

    fn interval(start: u64, end: u64) -> Interval {
        Interval::new(Timestamp(start), Timestamp(end)).unwrap()
    }

    fn request(start: u64, end: u64, stage: (u64, u64)) -> RunWindow<'static> {
        let stage = StageTime {
            name: "wait",
            time: Nanos(0),
            present: true,
            placed: false,
            intervals: Few::from([interval(stage.0, stage.1)]),
            spans: Few::new(),
            sched_from: None,
        };
        RunWindow {
            name: "request",
            interval: interval(start, end),
            stages: vec![stage],
            unattributed: Nanos(0),
            overlap: Nanos(0),
            outside: Nanos(0),
            quantum: Nanos(1),
            request: 1,
        }
    }

    #[track_caller]
    fn check(
        client: (u64, u64),
        request: &RunWindow<'_>,
        stages: [i64; 3],
        unattributed: i64,
        outside: i64,
    ) {
        let found = client_window(interval(client.0, client.1), request);
        let times: Vec<_> = found.stages.iter().map(|stage| stage.time.0).collect();
        assert_eq!(
            (times.as_slice(), found.unattributed.0, found.outside.0),
            (&stages[..], unattributed, outside)
        );
    }

    #[test]
    fn gaps_before_and_after_are_stages() {
        check((0, 100), &request(20, 90, (30, 80)), [20, 50, 10], 20, 0);
    }

    #[test]
    fn a_request_that_outlives_its_client_is_cut() {
        check((0, 100), &request(0, 110, (30, 105)), [0, 70, 0], 30, 10);
    }

    #[test]
    fn a_request_before_its_client_leaves_all_to_the_gap_after() {
        check((50, 100), &request(0, 40, (0, 40)), [0, 0, 50], 0, 40);
    }
}
