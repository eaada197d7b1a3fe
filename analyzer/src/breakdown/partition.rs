//! Exact partition of a window into stages and an unattributed remainder.
//!
//! Every instant of the window belongs to the stage that covers it; where
//! several do, to the one that started last (of equal starts, the one that ends
//! first, then the later in the list). So Σ stages + unattributed = window, in
//! integer nanoseconds. What a stage has outside of the window is counted apart.
//!
//! A clock that stamps starts in whole quanta and measures lengths finely lets
//! neighbours seem to overlap, and a last stage seem to leave its window, by up
//! to one quantum. Up to that tolerance a stage keeps its measured length and
//! the remainder gives the time, as far as it has some; the sum stays exact.
//! A sweep over the sorted edges, O(m log m) for m intervals.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use smallvec::{SmallVec, smallvec};

use crate::units::{Interval, Nanos, Timestamp, difference};

/// More stages than windows have, but for made-up ones.
const USUAL: usize = 16;

/// One for each stage: a report cuts thousands of windows, and memory for each
/// would take longer than the cutting.
pub type Each<T> = SmallVec<[T; USUAL]>;

/// A window cut into its stages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Time of each stage within the window, in the order given.
    pub stages: Each<Nanos>,
    /// Time of each stage outside of the window.
    pub outside: Each<Nanos>,
    /// Time of the window in no stage.
    pub unattributed: Nanos,
    /// Time that more than one stage covered; counted once, in the later-starting.
    pub overlap: Nanos,
}

/// Who covers an instant, the owner last.
type Key = (Timestamp, Reverse<Timestamp>, usize, usize);

/// Intervals at one instant that are looked at for a loss to a coarse clock:
/// neighbours that only seem to overlap are two, and looking at each of many at
/// every edge would take the square of their number.
const LOSERS_MAX: usize = 64;

/// Cuts `window` into `stages`, each the intervals of one stage. `tolerance` is
/// the clock quantum; 0 or 1 ns for a fine clock.
#[must_use]
pub fn partition<S: AsRef<[Interval]>>(
    window: Interval,
    stages: &[S],
    tolerance: Nanos,
) -> Partition {
    let mut result = Partition {
        stages: smallvec![Nanos(0); stages.len()],
        outside: smallvec![Nanos(0); stages.len()],
        unattributed: Nanos(0),
        overlap: Nanos(0),
    };
    // An edge: instant, whether it opens, who.
    let mut edges: SmallVec<[(Timestamp, bool, Key); 2 * USUAL]> = SmallVec::new();
    for (stage, intervals) in stages.iter().enumerate() {
        for (piece, interval) in intervals.as_ref().iter().enumerate() {
            let inside = interval.within(window).filter(|part| part.length().0 > 0);
            let kept = inside.map_or(0, |part| part.length().0);
            result.outside[stage].0 += interval.length().0 - kept;
            if let Some(part) = inside {
                // The whole interval says who started later, not what is left of it.
                let key = (interval.start(), Reverse(interval.end()), stage, piece);
                edges.push((part.start(), true, key));
                edges.push((part.end(), false, key));
            }
        }
    }
    edges.sort_unstable();
    let coarse = tolerance > Nanos(1);
    let mut open = Open::new(stages.len());
    let mut losses: Each<Nanos> = smallvec![Nanos(0); if coarse { stages.len() } else { 0 }];
    let mut at = window.start();
    for (instant, opens, key) in edges {
        let length = difference(instant, at);
        if length.0 > 0 {
            give(&mut result, &open, length);
            lose(&mut losses, &open, length, tolerance);
        }
        at = instant;
        open.change(key, opens);
    }
    let length = difference(window.end(), at);
    give(&mut result, &open, length);
    if coarse {
        restore(&mut result, &losses, tolerance);
    }
    result
}

/// What covers an instant.
struct Open {
    /// The intervals, the owner's last.
    keys: BTreeSet<Key>,
    /// How many intervals of each stage.
    of_stage: Each<u32>,
    /// How many stages have any.
    stages: usize,
}

impl Open {
    fn new(stages: usize) -> Self {
        Self {
            keys: BTreeSet::new(),
            of_stage: smallvec![0; stages],
            stages: 0,
        }
    }

    fn change(&mut self, key: Key, opens: bool) {
        let count = &mut self.of_stage[key.2];
        if opens {
            self.stages += usize::from(*count == 0);
            *count += 1;
            self.keys.insert(key);
        } else {
            *count -= 1;
            self.stages -= usize::from(*count == 0);
            self.keys.remove(&key);
        }
    }
}

/// Gives a stretch of the window to the stage that started last.
fn give(result: &mut Partition, open: &Open, length: Nanos) {
    let Some((_, _, owner, _)) = open.keys.last() else {
        result.unattributed.0 += length.0;
        return;
    };
    result.stages[*owner].0 += length.0;
    if open.stages > 1 {
        result.overlap.0 += length.0;
    }
}

/// Notes what stages lose to the owner of a stretch because of a coarse clock:
/// those that end within the tolerance behind its start and before it does. One
/// that goes on behind the owner holds it, and loses nothing that was its own.
/// Of one interval no more than the tolerance can be lost so.
fn lose(losses: &mut [Nanos], open: &Open, length: Nanos, tolerance: Nanos) {
    if losses.is_empty() || open.stages < 2 {
        return;
    }
    let mut latest = open.keys.iter().rev();
    let Some((start, Reverse(end), owner, _)) = latest.next() else {
        return;
    };
    let neighbours = latest
        .take(LOSERS_MAX)
        .filter(|(_, Reverse(other), stage, _)| {
            stage != owner && other < end && difference(*other, *start) <= tolerance
        });
    let stages: BTreeSet<usize> = neighbours.map(|(_, _, stage, _)| *stage).collect();
    for stage in stages {
        losses[stage].0 += length.0;
    }
}

/// Gives stages back what a coarse clock seems to have taken from them, as far
/// as the window has time in no stage.
fn restore(result: &mut Partition, losses: &[Nanos], tolerance: Nanos) {
    let cut = result.outside.clone();
    for (stage, (lost, cut)) in losses.iter().zip(cut).enumerate() {
        let cut = Nanos(if cut <= tolerance { cut.0 } else { 0 });
        for (back, is_overlap) in [(*lost, true), (cut, false)] {
            if back > result.unattributed {
                continue;
            }
            result.stages[stage].0 += back.0;
            result.unattributed.0 -= back.0;
            if is_overlap {
                // Of three stages at once, the same instant was lost twice.
                result.overlap.0 = (result.overlap.0 - back.0).max(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn interval(start: u64, end: u64) -> Interval {
        Interval::new(Timestamp(start), Timestamp(end)).unwrap()
    }

    #[track_caller]
    fn check(
        window: (u64, u64),
        stages: &[&[(u64, u64)]],
        expected: &[i64],
        unattributed: i64,
        overlap: i64,
    ) {
        let stages: Vec<Vec<_>> = stages
            .iter()
            .map(|stage| {
                stage
                    .iter()
                    .map(|(start, end)| interval(*start, *end))
                    .collect()
            })
            .collect();
        let found = partition(interval(window.0, window.1), &stages, Nanos(1));
        let times: Vec<_> = found.stages.iter().map(|time| time.0).collect();
        assert_eq!(
            (times.as_slice(), found.unattributed.0, found.overlap.0),
            (expected, unattributed, overlap)
        );
    }

    #[test]
    fn gaps_are_unattributed_and_neighbours_touch() {
        check((0, 100), &[&[(10, 30)], &[(30, 60)]], &[20, 30], 50, 0);
    }

    #[test]
    fn an_overlap_goes_to_the_later_start() {
        check((0, 100), &[&[(0, 50)], &[(30, 60)]], &[30, 30], 40, 20);
        check((0, 100), &[&[(0, 100)], &[(30, 60)]], &[70, 30], 0, 30);
    }

    #[test]
    fn of_two_that_began_before_the_window_the_later_started_has_the_time() {
        // −10…20 and −5…50 of a window 0…100.
        check((10, 110), &[&[(0, 30)], &[(5, 60)]], &[0, 50], 50, 20);
    }

    #[test]
    fn of_equal_starts_the_inner_one_has_the_time() {
        check((0, 100), &[&[(0, 20)], &[(0, 50)]], &[20, 30], 50, 20);
    }

    #[test]
    fn a_stage_outside_is_cut_and_its_rest_counted() {
        let found = partition(
            interval(10, 20),
            &[vec![interval(5, 15)], vec![interval(30, 40)]],
            Nanos(1),
        );
        assert_eq!(found.stages[..], [Nanos(5), Nanos(0)]);
        assert_eq!(found.outside[..], [Nanos(5), Nanos(10)]);
        assert_eq!(found.unattributed, Nanos(5));
    }

    #[test]
    fn an_empty_window_and_no_stages_are_fine() {
        check((5, 5), &[&[(0, 10)]], &[0], 0, 0);
        check((0, 7), &[], &[], 7, 0);
    }

    #[test]
    fn within_the_clock_quantum_a_stage_keeps_its_length() {
        let stages = [vec![interval(0, 53)], vec![interval(50, 104)]];
        let found = partition(interval(0, 110), &stages, Nanos(5));
        assert_eq!(found.stages[..], [Nanos(53), Nanos(54)]);
        assert_eq!((found.unattributed, found.overlap), (Nanos(3), Nanos(0)));
        // Over the end of the window as well, and only as far as the rest lasts.
        let found = partition(interval(0, 100), &stages, Nanos(5));
        assert_eq!(found.stages[..], [Nanos(50), Nanos(50)]);
        assert_eq!((found.unattributed, found.overlap), (Nanos(0), Nanos(3)));
        let found = partition(interval(0, 110), &stages, Nanos(2));
        assert_eq!(found.stages[..], [Nanos(50), Nanos(54)]);
    }

    #[test]
    fn what_short_stages_within_a_long_one_cover_is_theirs_on_a_coarse_clock_too() {
        // Forty of one quantum within 0–50, which keeps ten and gets nothing back.
        let mut stages = vec![vec![interval(0, 50_000_000)]];
        stages.extend((0..40).map(|k| vec![interval((5 + k) * 1_000_000, (6 + k) * 1_000_000)]));
        let found = partition(interval(0, 100_000_000), &stages, Nanos(1_000_000));
        assert_eq!(found.stages[0], Nanos(10_000_000));
        assert!(
            found.stages[1..]
                .iter()
                .all(|time| *time == Nanos(1_000_000))
        );
        assert_eq!(found.unattributed, Nanos(50_000_000));
        assert_eq!(found.overlap, Nanos(40_000_000));
    }

    #[test]
    fn of_more_neighbours_at_once_than_are_looked_at_the_latest_keep_their_length() {
        // All end at 53, each a step after the one before; the last owner starts at 50.
        let many = LOSERS_MAX + 6;
        let mut stages: Vec<_> = (1000..)
            .take(many)
            .map(|start| vec![interval(start, 1500)])
            .collect();
        stages.push(vec![interval(1497, 1600)]);
        let found = partition(interval(0, 2000), &stages, Nanos(5));
        // All but the last of them are without 1497–1500 and what later ones cover;
        // those that are looked at get the three back.
        let times: Vec<_> = found.stages.iter().map(|time| time.0).collect();
        let mut expected = vec![1; many - 1];
        expected.push(1497 - 1000 - 69);
        for time in &mut expected[6..] {
            *time += 3;
        }
        expected.push(103);
        assert_eq!(times, expected);
    }

    proptest! {
        #[test]
        fn parts_sum_to_the_window(
            window in (0u64..200, 0u64..200),
            raw in prop::collection::vec(prop::collection::vec((0u64..300, 0u64..100), 0..4), 0..6),
        ) {
            let window = interval(window.0, window.0 + window.1);
            let stages: Vec<Vec<_>> = raw.iter()
                .map(|stage| stage.iter().map(|(start, length)| interval(*start, start + length)).collect())
                .collect();
            for tolerance in [2, 10, 1000] {
                let found = partition(window, &stages, Nanos(tolerance));
                let sum: i64 = found.stages.iter().map(|time| time.0).sum();
                prop_assert_eq!(sum + found.unattributed.0, window.length().0);
                prop_assert!(found.unattributed.0 >= 0 && found.overlap.0 >= 0);
            }
            let found = partition(window, &stages, Nanos(1));
            let sum: i64 = found.stages.iter().map(|time| time.0).sum();
            prop_assert_eq!(sum + found.unattributed.0, window.length().0);
            prop_assert!(found.stages.iter().chain([&found.unattributed]).all(|time| time.0 >= 0));
            // An instant is counted for the stage that an independent look at it names.
            let mut expected = vec![0i64; stages.len()];
            for instant in window.start().0..window.end().0 {
                let mut owner: Option<(u64, std::cmp::Reverse<u64>, usize)> = None;
                for (index, stage) in stages.iter().enumerate() {
                    for part in stage {
                        if part.start().0 <= instant && instant < part.end().0 {
                            let key = (part.start().0, std::cmp::Reverse(part.end().0), index);
                            owner = owner.max(Some(key));
                        }
                    }
                }
                if let Some((_, _, index)) = owner {
                    expected[index] += 1;
                }
            }
            let times: Vec<_> = found.stages.iter().map(|time| time.0).collect();
            prop_assert_eq!(times, expected);
        }
    }
}
