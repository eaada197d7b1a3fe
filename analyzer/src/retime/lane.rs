//! One activity's lane: what happens on it, in order, and the edges between.
//!
//! Starts lie a piece of the lane's own work behind what was before them. Ends,
//! of parts and of what is waited for, are joins: the lane goes on when the last
//! of them is there. A coarse clock may stamp a start before the end that it
//! follows; within the quantum the end counts as the earlier one.

use crate::units::{Timestamp, difference};

use super::causes::{Family, tolerance};
use super::graph::{Activity, Draft, Edge, Node, Place, Tie, end_of, start_of};

/// What happens on a lane. Of one instant: what ends, then what takes no time,
/// then what starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    /// A part has ended.
    Ends(Place),
    /// Something else that the lane waits for is there.
    Arrives(Node),
    /// A part starts and ends.
    Passes(Place),
    /// A part starts.
    Starts(Place),
    /// Something that is no part of it is set going.
    SetsGoing(Place),
}

/// One lane and what happens on it, in order.
pub(super) struct Lane {
    place: Place,
    events: Vec<(Timestamp, Happens)>,
}

impl Lane {
    /// `sets_going` are the activities that start on this lane and are no part of it.
    pub(super) fn of(
        activities: &[Activity],
        family: &Family,
        sets_going: &[Place],
        place: Place,
    ) -> Self {
        let one = &activities[place as usize];
        let mut events = Vec::new();
        for part in family.parts(place) {
            let activity = &activities[part as usize];
            let (start, end) = (activity.interval.start(), activity.interval.end());
            let late = tolerance(one, activity).unsigned_abs();
            let start = Timestamp(start.0.saturating_add(late)).min(end);
            if start == end {
                events.push((end, Happens::Passes(part)));
            } else {
                events.push((start, Happens::Starts(part)));
                events.push((end, Happens::Ends(part)));
            }
        }
        for other in sets_going {
            let start = activities[*other as usize].interval.start();
            events.push((start, Happens::SetsGoing(*other)));
        }
        for wait in &one.waits {
            let Some(other) = activities.get(wait.activity as usize) else {
                continue;
            };
            let (at, node) = match wait.edge {
                Edge::Start => (other.interval.start(), start_of(wait.activity)),
                Edge::End => (other.interval.end(), end_of(wait.activity)),
            };
            let in_time = difference(at, one.interval.end()).0 <= tolerance(one, other);
            if in_time && wait.activity != place {
                let at = at.max(one.interval.start());
                events.push((at, Happens::Arrives(node)));
            }
        }
        events.sort_unstable();
        events.dedup();
        Self { place, events }
    }

    /// Adds the lane's instants and edges.
    pub(super) fn lay(self, draft: &mut Draft) {
        let own = Some(self.place);
        let mut last = start_of(self.place);
        for (_, happens) in &self.events {
            match *happens {
                Happens::Starts(part) => {
                    draft.passes(last, start_of(part), own);
                    last = start_of(part);
                }
                Happens::Ends(part) => {
                    last = self.join(draft, last, end_of(part), Tie::WithinLane);
                }
                Happens::Passes(part) => {
                    draft.passes(last, start_of(part), own);
                    last = self.join(draft, start_of(part), end_of(part), Tie::WithinLane);
                }
                Happens::Arrives(node) => {
                    last = self.join(draft, last, node, Tie::BetweenLanes);
                }
                Happens::SetsGoing(other) => {
                    let fork = draft.node(draft.at(start_of(other)));
                    draft.passes(last, fork, own);
                    draft.waits(fork, start_of(other), Tie::BetweenLanes);
                    last = fork;
                }
            }
        }
        draft.passes(last, end_of(self.place), own);
    }

    /// The instant at which the lane has come to `last` and `other` is there,
    /// within the lane.
    fn join(&self, draft: &mut Draft, last: Node, other: Node, tie: Tie) -> Node {
        let (start, end) = (draft.at(start_of(self.place)), draft.at(end_of(self.place)));
        let joined = draft.node(draft.at(other).max(start).min(end));
        draft.waits(last, joined, Tie::WithinLane);
        draft.waits(other, joined, tie);
        joined
    }
}
