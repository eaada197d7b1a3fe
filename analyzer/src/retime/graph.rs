//! The dependency graph of one run: instants as nodes, what lies between two
//! instants as edges.
//!
//! Each activity is a lane of control from its start to its end. On it lie, in
//! the order of time, the starts and ends of the activities that it contains,
//! the starts of what it sets going, and the ends of what it waits for
//! ([`lane`](super::lane)). Between two of them the lane works by itself (a
//! *piece*, which has a length that can be changed) or waits (no length). So an
//! instant is the latest of what leads to it:
//!
//! `t(v) = max over edges (u, v) of t(u) + length(u, v)`,
//!
//! and with the measured lengths every `t` is the measured instant, exactly.
//! Source of the idea: the critical path of CRISP (Zhang et al., USENIX ATC
//! 2022), read forwards as an activity network.
//!
//! A graph has no cycles: instants on one lane are ordered, lanes are nested, and
//! of edges between lanes those are left out that would close a circle within
//! one instant. No recursion; O(n log n) for n activities with a bounded number of causes each.

use smallvec::SmallVec;

use crate::units::{Interval, Nanos, Timestamp, difference};

use super::causes::Family;
use super::lane::Lane;

/// Place of an activity in the list that a graph is built from.
pub type Place = u32;

/// One stretch of work or waiting.
#[derive(Clone, Debug)]
pub struct Activity {
    /// When it was.
    pub interval: Interval,
    /// What began it; stands before it in the list.
    pub parent: Option<Place>,
    /// How it stands to its parent.
    pub bond: Bond,
    /// What it cannot end without.
    pub waits: SmallVec<[Wait; 2]>,
    /// What set it going, where something else than its parent did.
    pub set_going: SmallVec<[Place; 1]>,
    /// Finest difference that its times can show.
    pub quantum: Nanos,
}

/// How an activity stands to its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bond {
    /// Part of it: the parent goes on when it has ended. One that is not within
    /// its parent by more than the clock's quantum is taken as [`Bond::Cause`].
    Part,
    /// The parent only set it going.
    Cause,
}

/// An end of an activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// Its first instant.
    Start,
    /// Its last instant.
    End,
}

/// What an activity waits for. An instant later than the waiter's own end was
/// not waited for, and is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The other activity.
    pub activity: Place,
    /// Which of its ends.
    pub edge: Edge,
}

/// Place of an instant.
pub type Node = u32;

/// What leads from one instant to another.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Earlier instant.
    pub from: Node,
    /// Later instant.
    pub to: Node,
    /// Least time between them, nanoseconds; negative by less than a clock's
    /// quantum where a coarse clock has things end after what follows them.
    pub length: i64,
    /// The activity whose own work this is; `None` for waiting and for time that
    /// no span covers, which nothing changes.
    pub work_of: Option<Place>,
    /// Whether it ties two lanes together, and may be left out to break a circle.
    pub(super) ties: bool,
}

/// The graph of one run.
#[derive(Clone, Debug)]
pub struct Graph {
    /// Measured instants, nanoseconds since the run's first.
    pub(super) times: Vec<i64>,
    /// Sorted by the order of the instants they lead to.
    pub(super) links: Vec<Link>,
    /// Instants that nothing leads to; they stay where they are.
    pub(super) sources: Vec<Node>,
    /// First edge of each activity's lane, by its place among `links`.
    pub(super) first_link: Vec<u32>,
    /// Parent of each activity that is a part of it.
    pub(super) whole: Vec<Option<Place>>,
}

/// The instant at which an activity starts.
#[must_use]
pub fn start_of(activity: Place) -> Node {
    activity * 2
}

/// The instant at which an activity ends.
#[must_use]
pub fn end_of(activity: Place) -> Node {
    activity * 2 + 1
}

impl Graph {
    /// Builds the graph of `activities`, parents before their children.
    ///
    /// Degenerate: no activities give a graph without instants; places that are
    /// not in the list, and parents that do not stand before their children, are
    /// taken as not there.
    #[must_use]
    pub fn new(activities: &[Activity]) -> Self {
        let mut draft = Draft::new(activities);
        let family = Family::new(activities);
        let mut set_going: Vec<Vec<Place>> = vec![Vec::new(); activities.len()];
        for (place, start) in family.starts(activities).into_iter().enumerate() {
            match start {
                Start::Unknown | Start::Within => {}
                Start::On(lane) => set_going[lane as usize].push(short(place)),
                Start::Behind(before) => draft.follows(before, short(place)),
            }
        }
        let mut first = vec![0; activities.len()];
        for (place, set_going) in set_going.iter().enumerate() {
            first[place] = draft.links.len();
            Lane::of(activities, &family, set_going, short(place)).lay(&mut draft);
        }
        draft.finish(&first, family.whole)
    }

    /// Measured instant of a node, since the run's first.
    #[must_use]
    pub fn measured(&self, node: Node) -> Nanos {
        Nanos(self.times.get(node as usize).copied().unwrap_or(0))
    }

    /// The measured lengths, to be changed and given to [`replay`](super::replay).
    #[must_use]
    pub fn lengths(&self) -> Vec<i64> {
        self.links.iter().map(|link| link.length).collect()
    }

    /// Number of activities.
    #[must_use]
    pub fn activities(&self) -> usize {
        self.whole.len()
    }
}

/// A graph that is being built.
pub(super) struct Draft {
    pub(super) times: Vec<i64>,
    pub(super) links: Vec<Link>,
}

/// What an activity's start follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// Nothing that is known.
    Unknown,
    /// Its whole, of whose lane it is a part.
    Within,
    /// The lane of this activity, at that instant, without being a part of it.
    On(Place),
    /// The end of this activity.
    Behind(Place),
}

impl Draft {
    fn new(activities: &[Activity]) -> Self {
        let starts = activities.iter().map(|one| one.interval.start());
        let origin = starts.min().unwrap_or_default();
        let since = |at: Timestamp| difference(at, origin).0;
        let both = |one: &Activity| [since(one.interval.start()), since(one.interval.end())];
        Self {
            times: activities.iter().flat_map(both).collect(),
            links: Vec::with_capacity(activities.len() * 3),
        }
    }

    /// An instant of its own.
    pub(super) fn node(&mut self, at: i64) -> Node {
        self.times.push(at);
        short(self.times.len() - 1)
    }

    pub(super) fn at(&self, node: Node) -> i64 {
        self.times[node as usize]
    }

    /// Time that passes between two instants, whatever else happens.
    pub(super) fn passes(&mut self, from: Node, to: Node, work_of: Option<Place>) {
        let length = self.at(to) - self.at(from);
        self.links.push(Link {
            from,
            to,
            length,
            work_of,
            ties: false,
        });
    }

    /// The later instant cannot be before the earlier one.
    pub(super) fn waits(&mut self, from: Node, to: Node, tie: Tie) {
        let length = (self.at(to) - self.at(from)).min(0);
        self.links.push(Link {
            from,
            to,
            length,
            work_of: None,
            ties: tie == Tie::BetweenLanes,
        });
    }

    /// A start that follows an end, by a fixed time.
    fn follows(&mut self, before: Place, place: Place) {
        self.passes(end_of(before), start_of(place), None);
        if let Some(link) = self.links.last_mut() {
            link.ties = true;
        }
    }

    /// Orders the instants, breaks circles within one of them, and makes sure
    /// that the measured lengths give the measured instants.
    fn finish(mut self, first: &[usize], whole: Vec<Option<Place>>) -> Graph {
        let mut kept = vec![true; self.links.len()];
        let mut order = topological(&self.links, &kept, self.times.len());
        // At first only what ties lanes within an instant, then, where a coarse
        // clock has made time run backwards, all that does.
        for strict in [true, false] {
            if order.iter().all(Option::is_some) {
                break;
            }
            for (link, kept) in self.links.iter().zip(&mut kept) {
                let stuck = |node: Node| order[node as usize].is_none();
                let backwards = self.times[link.from as usize] >= self.times[link.to as usize];
                if link.ties && stuck(link.from) && stuck(link.to) && (backwards || !strict) {
                    *kept = false;
                }
            }
            order = topological(&self.links, &kept, self.times.len());
        }
        let rank = |node: Node| order[node as usize].unwrap_or(u32::MAX);
        let mut places: Vec<usize> = (0..self.links.len()).filter(|at| kept[*at]).collect();
        places.sort_by_key(|at| (rank(self.links[*at].to), *at));
        let mut now = vec![u32::MAX; self.links.len()];
        for (new, old) in places.iter().enumerate() {
            now[*old] = short(new);
        }
        self.links = places.iter().map(|at| self.links[*at]).collect();
        let sources = self.tighten();
        Graph {
            sources,
            first_link: first
                .iter()
                .map(|at| now.get(*at).copied().unwrap_or(u32::MAX))
                .collect(),
            links: self.links,
            times: self.times,
            whole,
        }
    }

    /// Where nothing leads to an instant in time, the first that leads to it
    /// takes all the time between. Gives the instants to which nothing leads at all.
    fn tighten(&mut self) -> Vec<Node> {
        let mut reached = vec![false; self.times.len()];
        let mut at = 0;
        while at < self.links.len() {
            let to = self.links[at].to;
            let group = self.links[at..].iter().take_while(|link| link.to == to);
            let behind = at + group.count();
            let arrives = |link: &Link| self.times[link.from as usize] + link.length;
            let latest = self.links[at..behind].iter().map(arrives).max();
            if latest.is_some_and(|latest| latest < self.times[to as usize]) {
                let from = self.links[at].from;
                self.links[at].length = self.times[to as usize] - self.times[from as usize];
            }
            reached[to as usize] = true;
            at = behind;
        }
        let nodes = (0..self.times.len()).filter(|node| !reached[*node]);
        nodes.map(short).collect()
    }
}

/// Whether an edge may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tie {
    /// It orders one lane.
    WithinLane,
    /// It ties two.
    BetweenLanes,
}

/// Position of each node in an order in which every edge leads onwards; `None`
/// for nodes on a circle and behind one. Kahn's algorithm, O(nodes + links).
fn topological(links: &[Link], kept: &[bool], nodes: usize) -> Vec<Option<u32>> {
    let used = || links.iter().zip(kept).filter(|(_, kept)| **kept);
    let mut open = vec![0u32; nodes];
    let mut first = vec![0usize; nodes + 1];
    for (link, _) in used() {
        open[link.to as usize] += 1;
        first[link.from as usize + 1] += 1;
    }
    for node in 0..nodes {
        first[node + 1] += first[node];
    }
    let mut next = first.clone();
    let mut targets: Vec<Node> = vec![0; first[nodes]];
    for (link, _) in used() {
        let slot = &mut next[link.from as usize];
        targets[*slot] = link.to;
        *slot += 1;
    }
    let mut order = vec![None; nodes];
    let mut ready: Vec<Node> = (0..nodes)
        .filter(|node| open[*node] == 0)
        .map(short)
        .collect();
    let mut count = 0;
    while let Some(node) = ready.pop() {
        order[node as usize] = Some(count);
        count += 1;
        for to in &targets[first[node as usize]..first[node as usize + 1]] {
            open[*to as usize] -= 1;
            if open[*to as usize] == 0 {
                ready.push(*to);
            }
        }
    }
    order
}

/// Memory bounds what is counted far below 2^32.
pub(super) fn short(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}
