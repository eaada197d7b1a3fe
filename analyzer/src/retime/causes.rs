//! Which activity sets which going.
//!
//! A part of its parent starts on the parent's lane. What is only set going
//! follows, in this order: what it names (a link to the request that triggered
//! it); else the last of what ended before it under the same parent, the parent
//! itself included; else its parent's lane. What started before its parent did
//! follows the nearest ancestor that had started, there the part that was open.

use crate::units::{Nanos, Timestamp, difference};

use super::graph::{Activity, Bond, Place, Start, short};

/// Ancestors and siblings that are looked at for what set an activity going;
/// real traces need three, and looking at all of many would take their square.
const LOOK_MAX: usize = 64;

/// Who is a part of whom, and the children of each by their times.
pub(super) struct Family {
    /// Parent of each activity that is a part of it.
    pub(super) whole: Vec<Option<Place>>,
    /// Children of each, by start.
    by_start: Vec<Vec<(Timestamp, Place)>>,
    /// Children of each that are no part of it, by end.
    apart_by_end: Vec<Vec<(Timestamp, Place)>>,
    /// Parts of each, by end.
    parts_by_end: Vec<Vec<(Timestamp, Place)>>,
}

/// Tolerance between two clocks: the coarser one's quantum; nothing for clocks
/// that tell nanoseconds.
pub(super) fn tolerance(a: &Activity, b: &Activity) -> i64 {
    let quantum = a.quantum.max(b.quantum);
    if quantum > Nanos(1) { quantum.0 } else { 0 }
}

/// `at` is not later than `than` but for a clock's quantum.
fn by(at: Timestamp, than: Timestamp, tolerance: i64) -> bool {
    difference(at, than).0 <= tolerance
}

/// Parent of an activity, as far as it stands before it.
fn parent_of(activities: &[Activity], place: usize) -> Option<Place> {
    let parent = activities.get(place)?.parent?;
    ((parent as usize) < place).then_some(parent)
}

impl Family {
    pub(super) fn new(activities: &[Activity]) -> Self {
        let empty = || vec![Vec::new(); activities.len()];
        let mut family = Self {
            whole: vec![None; activities.len()],
            by_start: empty(),
            apart_by_end: empty(),
            parts_by_end: empty(),
        };
        for (place, one) in activities.iter().enumerate() {
            let Some(parent) = parent_of(activities, place) else {
                continue;
            };
            let own = (one.interval.end(), short(place));
            let of = &activities[parent as usize];
            let tolerance = tolerance(one, of);
            let within = by(of.interval.start(), one.interval.start(), tolerance)
                && by(one.interval.end(), of.interval.end(), tolerance);
            let parent = parent as usize;
            family.by_start[parent].push((one.interval.start(), short(place)));
            if one.bond == Bond::Part && within {
                family.whole[place] = Some(short(parent));
                family.parts_by_end[parent].push(own);
            } else {
                family.apart_by_end[parent].push(own);
            }
        }
        for list in family
            .by_start
            .iter_mut()
            .chain(&mut family.apart_by_end)
            .chain(&mut family.parts_by_end)
        {
            list.sort_unstable();
        }
        family
    }

    /// The parts of an activity, by end.
    pub(super) fn parts(&self, place: Place) -> impl Iterator<Item = Place> + '_ {
        self.parts_by_end[place as usize]
            .iter()
            .map(|(_, place)| *place)
    }

    /// What each activity's start follows.
    pub(super) fn starts(&self, activities: &[Activity]) -> Vec<Start> {
        (0..activities.len())
            .map(|place| match self.whole[place] {
                Some(_) => Start::Within,
                None => self.start(activities, place),
            })
            .collect()
    }

    fn start(&self, activities: &[Activity], place: usize) -> Start {
        let one = &activities[place];
        let at = one.interval.start();
        let named = one
            .set_going
            .iter()
            .filter(|other| **other as usize != place);
        let known = named.filter_map(|other| Some((*other, activities.get(*other as usize)?)));
        let begun =
            known.filter(|(_, other)| by(other.interval.start(), at, tolerance(one, other)));
        let follows = begun.map(|(place, other)| {
            if by(other.interval.end(), at, tolerance(one, other)) {
                (other.interval.end(), Start::Behind(place))
            } else {
                (other.interval.start(), Start::On(place))
            }
        });
        if let Some((_, start)) = follows.max_by_key(|(at, _)| *at) {
            return start;
        }
        let mut passed = place;
        let mut above = parent_of(activities, place);
        for _ in 0..LOOK_MAX {
            let Some(parent) = above else { break };
            let whole = &activities[parent as usize];
            if by(whole.interval.start(), at, tolerance(one, whole)) {
                return self.below(activities, place, parent, short(passed));
            }
            passed = parent as usize;
            above = parent_of(activities, passed);
        }
        Start::Unknown
    }

    /// What a start below `parent`, which had started by then, follows.
    /// `passed` is the ancestor just below it, or the activity itself.
    fn below(&self, activities: &[Activity], place: usize, parent: Place, passed: Place) -> Start {
        let one = &activities[place];
        let at = one.interval.start();
        let parent_activity = &activities[parent as usize];
        if passed as usize != place
            && let Some(open) = self.open_at(activities, parent, at, passed)
        {
            return Start::On(open);
        }
        let before = |list: &[(Timestamp, Place)]| {
            let begun = list.partition_point(|(time, _)| *time <= at);
            let mut latest = list[..begun].iter().rev().take(LOOK_MAX);
            latest.find(|(_, other)| *other != short(place)).copied()
        };
        let sibling = before(&self.apart_by_end[parent as usize]);
        let end = parent_activity.interval.end();
        if by(end, at, 0) {
            return match sibling {
                Some((time, sibling)) if time >= end => Start::Behind(sibling),
                _ => Start::Behind(parent),
            };
        }
        let part = before(&self.parts_by_end[parent as usize]).map(|(time, _)| time);
        let lane = part
            .unwrap_or_default()
            .max(parent_activity.interval.start());
        match sibling {
            Some((time, sibling)) if time >= lane => Start::Behind(sibling),
            _ => Start::On(parent),
        }
    }

    /// The child of `parent` that was open at an instant and started last.
    fn open_at(
        &self,
        activities: &[Activity],
        parent: Place,
        at: Timestamp,
        but: Place,
    ) -> Option<Place> {
        let list = &self.by_start[parent as usize];
        let begun = list.partition_point(|(time, _)| *time <= at);
        let mut latest = list[..begun].iter().rev().take(LOOK_MAX);
        let open = |place: Place| activities[place as usize].interval.end() > at;
        let found = latest.find(|(_, place)| *place != but && open(*place));
        found.map(|(_, place)| *place)
    }
}
