//! Graphs drawn by hand, their replays computed by hand, and laws that hold for
//! all of them.

use proptest::prelude::*;
use smallvec::{SmallVec, smallvec};

use crate::units::{Interval, Nanos, Timestamp};

use super::change::{Amount, Change, Scope};
use super::drag::drag;
use super::graph::{Activity, Bond, Edge, Graph, Place, Wait, end_of, start_of};
use super::replay::replay;
use super::slack::Latest;

const MS: i64 = 1_000_000;

fn span(start: u64, end: u64) -> Activity {
    Activity {
        interval: Interval::new(Timestamp(start), Timestamp(end)).unwrap(),
        parent: None,
        bond: Bond::Part,
        waits: SmallVec::new(),
        set_going: SmallVec::new(),
        quantum: Nanos(1),
    }
}

fn part(of: Place, start: u64, end: u64) -> Activity {
    Activity {
        parent: Some(of),
        ..span(start, end)
    }
}

fn apart(from: Place, start: u64, end: u64) -> Activity {
    Activity {
        bond: Bond::Cause,
        ..part(from, start, end)
    }
}

fn waiting(activity: Activity, other: Place) -> Activity {
    Activity {
        waits: smallvec![Wait {
            activity: other,
            edge: Edge::End,
        }],
        ..activity
    }
}

/// End of activity 0 when `stage` is changed.
fn end_with(activities: &[Activity], stage: Place, amount: Amount) -> i64 {
    let graph = Graph::new(activities);
    let scope = Scope::of(&graph, |place| place == stage);
    let mut lengths = graph.lengths();
    scope.apply(&graph, amount, &mut lengths);
    replay(&graph, &lengths).at(end_of(0)).0
}

/// Work, drag and slack of an activity on the end of activity 0.
#[track_caller]
fn check(activities: &[Activity], stage: Place, work: i64, drags: i64, slack: Option<i64>) {
    let graph = Graph::new(activities);
    let scope = Scope::of(&graph, |place| place == stage);
    let end = end_of(0);
    let found = (
        scope.work(&graph).0,
        drag(&graph, &scope, end).0,
        Latest::of(&graph, end)
            .slack(&graph, &scope)
            .map(|slack| slack.0),
    );
    assert_eq!(found, (work, drags, slack));
}

#[test]
fn on_a_chain_every_stage_counts_in_full() {
    // 0–100: 10 own, 30, 5 own, 40, 15 own.
    let chain = [span(0, 100), part(0, 10, 40), part(0, 45, 85)];
    check(&chain, 1, 30, 30, Some(0));
    check(&chain, 2, 40, 40, Some(0));
    assert_eq!(end_with(&chain, 1, Amount::Times(0.5)), 85);
    assert_eq!(end_with(&chain, 2, Amount::Less(Nanos(10))), 90);
    assert_eq!(end_with(&chain, 2, Amount::More(Nanos(7))), 107);
}

#[test]
fn unattributed_time_stays() {
    let chain = [span(0, 100), part(0, 10, 40), part(0, 45, 85)];
    let graph = Graph::new(&chain);
    let mut lengths = graph.lengths();
    for stage in [1, 2] {
        Scope::of(&graph, |place| place == stage).apply(&graph, Amount::Times(0.0), &mut lengths);
    }
    // 10 + 5 + 15 of its own are left.
    assert_eq!(replay(&graph, &lengths).at(end_of(0)), Nanos(30));
}

#[test]
fn of_a_fork_the_shorter_side_limits_the_longer_one() {
    // Both start at 10; the join is at 70, and 20 follow.
    let fork = [span(0, 90), part(0, 10, 70), part(0, 10, 50)];
    check(&fork, 1, 60, 20, Some(0));
    check(&fork, 2, 40, 0, Some(20));
    assert_eq!(end_with(&fork, 1, Amount::Times(0.5)), 70);
    assert_eq!(end_with(&fork, 2, Amount::More(Nanos(25))), 95);
}

#[test]
fn what_is_set_going_and_not_waited_for_gains_nothing() {
    let apart_one = [span(0, 100), apart(0, 20, 80), part(0, 30, 60)];
    check(&apart_one, 1, 60, 0, None);
    // Nor when it outlives its cause.
    let outlives = [span(0, 100), apart(0, 20, 180)];
    check(&outlives, 1, 160, 0, None);
}

#[test]
fn a_wait_is_no_work_and_shrinks_with_what_it_waits_for() {
    // 1 is set going at 5 and takes 60; 2 waits for it from 20 to 65, 5 behind it.
    let wait = [span(0, 100), apart(0, 5, 65), waiting(part(0, 20, 70), 1)];
    check(&wait, 2, 5, 5, Some(0));
    // 45 of it the wait takes; then the wait's own 5 and the 30 behind stay.
    check(&wait, 1, 60, 45, Some(0));
    assert_eq!(end_with(&wait, 1, Amount::Less(Nanos(10))), 90);
    assert_eq!(end_with(&wait, 1, Amount::Less(Nanos(50))), 55);
}

#[test]
fn when_one_cause_of_a_wait_is_gone_the_other_limits() {
    let mut last = waiting(part(0, 10, 80), 1);
    last.waits.push(Wait {
        activity: 2,
        edge: Edge::End,
    });
    // The wait ends with the later of 1 (at 80) and 2 (at 55).
    let both = [span(0, 80), apart(0, 0, 80), apart(0, 0, 55), last];
    check(&both, 1, 80, 25, Some(0));
    check(&both, 2, 55, 0, Some(25));
    assert_eq!(end_with(&both, 1, Amount::Times(0.0)), 55);
}

#[test]
fn a_shared_deadline_hides_a_gain_before_it() {
    // A request that comes earlier waits longer: 2 ends when 1 does, at 60.
    let deadline = [
        span(0, 70),
        apart(0, 0, 60),
        part(0, 0, 30),
        waiting(part(0, 30, 60), 1),
    ];
    check(&deadline, 2, 30, 0, Some(30));
    assert_eq!(end_with(&deadline, 2, Amount::Times(0.0)), 70);
    // What follows the wait is gained in full.
    assert_eq!(end_with(&deadline, 0, Amount::Times(0.0)), 60);
}

#[test]
fn a_wait_that_came_too_late_to_wait_limits_when_it_comes_earlier() {
    // 1 was ready at 40, 2 asked at 50; without the 50 before, it would wait.
    let late = [
        span(0, 60),
        apart(0, 0, 40),
        part(0, 0, 50),
        waiting(part(0, 50, 60), 1),
    ];
    check(&late, 2, 50, 10, Some(0));
}

#[test]
fn what_is_later_than_the_waiter_was_not_waited_for() {
    let later = [span(0, 100), apart(0, 0, 90), waiting(part(0, 20, 80), 1)];
    check(&later, 1, 90, 0, None);
    check(&later, 2, 60, 60, Some(0));
}

#[test]
fn a_start_follows_what_ended_last_under_its_parent() {
    // 1 is set going; below it 2 and, when that has ended, 3, which 4 waits for.
    let start = [
        span(0, 100),
        apart(0, 0, 90),
        apart(1, 2, 50),
        apart(1, 55, 88),
        waiting(part(0, 20, 95), 3),
    ];
    check(&start, 2, 48, 48, Some(0));
    check(&start, 3, 33, 33, Some(0));
    // Before the parent's own start: on the lane of what was open then.
    let child_first = [
        span(0, 100),
        apart(0, 0, 90),
        apart(1, 2, 50),
        apart(1, 55, 88),
        apart(3, 10, 80),
        waiting(part(0, 20, 95), 4),
    ];
    // The agent starts 8 into the spawn; the rest of the spawn does not matter.
    check(&child_first, 2, 48, 8, Some(0));
    // Without the agent's 70 the wait would end where it starts, at 20.
    check(&child_first, 4, 70, 60, Some(0));
}

#[test]
fn a_link_is_what_sets_going() {
    let linked = Activity {
        set_going: smallvec![1],
        ..apart(0, 32, 60)
    };
    let trigger = [
        span(0, 80),
        part(0, 10, 30),
        linked,
        waiting(part(0, 40, 65), 2),
    ];
    // 2 begins 2 behind 1; the wait loses its 20 until 0 itself is the limit.
    assert_eq!(end_with(&trigger, 1, Amount::Times(0.0)), 60);
    let graph = Graph::new(&trigger);
    let mut lengths = graph.lengths();
    Scope::of(&graph, |place| place == 1).apply(&graph, Amount::Times(0.0), &mut lengths);
    assert_eq!(replay(&graph, &lengths).at(start_of(2)), Nanos(12));
}

#[test]
fn a_coarse_clock_does_not_make_neighbours_run_side_by_side() {
    // The second is stamped at the whole millisecond before the first one's end.
    let millisecond = |activity: Activity| Activity {
        quantum: Nanos(MS),
        ..activity
    };
    let ms = |tenths: u64| tenths * 100_000;
    let coarse = [
        millisecond(span(0, ms(120))),
        millisecond(part(0, 0, ms(53))),
        millisecond(part(0, ms(50), ms(122))),
    ];
    // The first shrinks by 5.3 ms and the second moves with it; its end stays
    // 0.2 ms behind its parent's, as measured.
    let end = end_with(&coarse, 1, Amount::Times(0.0));
    assert_eq!(end, 12 * MS - 53 * MS / 10);
}

#[test]
fn a_stage_takes_its_parts_with_it() {
    let nested = [
        span(0, 100),
        part(0, 10, 90),
        part(1, 20, 50),
        part(1, 50, 80),
    ];
    check(&nested, 1, 80, 80, Some(0));
    assert_eq!(end_with(&nested, 1, Amount::Less(Nanos(40))), 60);
    assert_eq!(end_with(&nested, 1, Amount::Less(Nanos(400))), 20);
}

#[test]
fn circles_within_an_instant_are_broken() {
    let circle = [
        span(0, 10),
        waiting(part(0, 0, 5), 2),
        waiting(part(0, 0, 5), 1),
        waiting(part(0, 5, 5), 3),
    ];
    let graph = Graph::new(&circle);
    assert_eq!(replay(&graph, &graph.lengths()).at(end_of(0)), Nanos(10));
}

#[test]
fn changes_are_read_and_others_refused() {
    let amount = |text: &str| text.parse::<Change>().map(|change| change.amount).ok();
    assert_eq!(amount("a.b=-50%"), Some(Amount::Times(0.5)));
    assert_eq!(amount("a=+25%"), Some(Amount::Times(1.25)));
    assert_eq!(amount("a=-12.5ms"), Some(Amount::Less(Nanos(12_500_000))));
    assert_eq!(amount("a=+10us"), Some(Amount::More(Nanos(10_000))));
    assert_eq!(amount("w:a=+1s"), Some(Amount::More(Nanos(1_000_000_000))));
    assert_eq!(amount("a=0"), Some(Amount::Times(0.0)));
    for bad in [
        "",
        "a",
        "=0",
        "a=",
        "a=5",
        "a=10ms",
        "a=-101%",
        "a=-ms",
        "a=-1e3ms",
        "a=--5ms",
        "a=-infms",
        "a=-5m",
        "a=+100000s",
        "a=+.%",
    ] {
        assert_eq!(amount(bad), None, "{bad}");
    }
}

/// Start and length, parent, whether a part, waits, link, quantum.
type Drawn = ((u64, u64), u32, bool, Vec<(u32, bool)>, Option<u32>, i64);

/// Any activities at all: times, parents, waits and links as they come.
fn any_activities() -> impl Strategy<Value = Vec<Activity>> {
    let one = (
        (0u64..60, 0u64..40),
        any::<u32>(),
        any::<bool>(),
        prop::collection::vec((any::<u32>(), any::<bool>()), 0..3),
        prop::option::of(any::<u32>()),
        prop::sample::select(vec![1i64, 1, 1, 5]),
    );
    prop::collection::vec(one, 1..14).prop_map(|drawn| {
        let count = u32::try_from(drawn.len()).unwrap();
        let make = |(place, one): (usize, _)| {
            let ((start, length), parent, is_part, waits, link, quantum): Drawn = one;
            let place = u32::try_from(place).unwrap();
            let wait = |(other, start): (u32, bool)| Wait {
                activity: other % count,
                edge: if start { Edge::Start } else { Edge::End },
            };
            Activity {
                parent: (place > 0 && parent % 5 > 0).then(|| parent % place.max(1)),
                bond: if is_part { Bond::Part } else { Bond::Cause },
                waits: waits.into_iter().map(wait).collect(),
                set_going: link.into_iter().map(|other| other % count).collect(),
                quantum: Nanos(quantum),
                ..span(start, start + length)
            }
        };
        drawn.into_iter().enumerate().map(make).collect()
    })
}

/// The longest way to `node` in a graph, by trying them all; the second way of
/// computing what the replay computes. `without` is an edge that has no length.
fn longest(graph: &Graph, node: u32, without: Option<usize>) -> i64 {
    let own = graph
        .links
        .iter()
        .enumerate()
        .filter(|(_, link)| link.to == node);
    let ways = own.map(|(at, link)| {
        let length = if without == Some(at) { 0 } else { link.length };
        longest(graph, link.from, without) + length
    });
    ways.max().unwrap_or(graph.times[node as usize])
}

/// The longest way to `node` that does not use the edge `but`.
fn avoiding(graph: &Graph, node: u32, but: usize) -> Option<i64> {
    if graph.sources.contains(&node) {
        return Some(graph.times[node as usize]);
    }
    let own = graph.links.iter().enumerate();
    own.filter(|(at, link)| link.to == node && *at != but)
        .filter_map(|(_, link)| Some(avoiding(graph, link.from, but)? + link.length))
        .max()
}

proptest! {
    #[test]
    fn nothing_changed_replays_the_measured_times(activities in any_activities()) {
        let graph = Graph::new(&activities);
        let instants = replay(&graph, &graph.lengths());
        let origin = activities.iter().map(|one| one.interval.start().0).min().unwrap();
        for (place, one) in activities.iter().enumerate() {
            let place = u32::try_from(place).unwrap();
            let at = |at: Timestamp| i64::try_from(at.0 - origin).unwrap();
            prop_assert_eq!(instants.at(start_of(place)).0, at(one.interval.start()));
            prop_assert_eq!(instants.at(end_of(place)).0, at(one.interval.end()));
        }
        for node in 0..graph.times.len() {
            let node = u32::try_from(node).unwrap();
            prop_assert_eq!(instants.at(node), graph.measured(node));
        }
    }

    #[test]
    fn a_replay_is_the_longest_way(activities in any_activities().prop_filter("few", |all| all.len() < 7), at in any::<u32>()) {
        let graph = Graph::new(&activities);
        let node = at % u32::try_from(graph.times.len()).unwrap();
        prop_assert_eq!(longest(&graph, node, None), graph.measured(node).0);
    }

    #[test]
    fn drag_of_one_piece_is_bounded_by_the_longest_way_around_it(
        activities in any_activities().prop_filter("few", |all| all.len() < 7),
        chosen in any::<u32>(),
    ) {
        let graph = Graph::new(&activities);
        let stage = chosen % u32::try_from(activities.len()).unwrap();
        let scope = Scope::of(&graph, |place| place == stage);
        let pieces: Vec<usize> = (0..graph.links.len())
            .filter(|at| graph.links[*at].length > 0 && graph.links[*at].work_of.is_some())
            .filter(|at| {
                let mut of = graph.links[*at].work_of;
                while let Some(place) = of {
                    if place == stage { return true; }
                    of = graph.whole[place as usize];
                }
                false
            })
            .collect();
        let end = end_of(0);
        let found = drag(&graph, &scope, end).0;
        prop_assert!(found >= 0 && found <= scope.work(&graph).0);
        if let [piece] = pieces[..] {
            let whole = graph.measured(end).0;
            let around = avoiding(&graph, end, piece).unwrap_or(i64::MIN / 2);
            let expected = graph.links[piece].length.min(whole - around).max(0);
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn slack_is_exactly_what_does_not_move_the_end(activities in any_activities(), chosen in any::<u32>()) {
        let graph = Graph::new(&activities);
        let stage = chosen % u32::try_from(activities.len()).unwrap();
        let scope = Scope::of(&graph, |place| place == stage);
        let end = end_of(0);
        let moved = |piece: usize, more: i64| {
            let mut lengths = graph.lengths();
            lengths[piece] += more;
            replay(&graph, &lengths).at(end).0 - graph.measured(end).0
        };
        let pieces = scope.pieces(&graph);
        match Latest::of(&graph, end).slack(&graph, &scope) {
            None => prop_assert!(pieces.iter().all(|piece| moved(*piece, 1_000_000) == 0)),
            Some(slack) => {
                prop_assert!(pieces.iter().all(|piece| moved(*piece, slack.0) == 0));
                prop_assert!(pieces.iter().any(|piece| moved(*piece, slack.0 + 3) == 3));
            }
        }
    }

    #[test]
    fn less_work_never_ends_later(activities in any_activities(), chosen in any::<u32>(), less in 1i64..50) {
        let stage = chosen % u32::try_from(activities.len()).unwrap();
        let graph = Graph::new(&activities);
        let measured = graph.measured(end_of(0)).0;
        let by_less = end_with(&activities, stage, Amount::Less(Nanos(less)));
        let halved = end_with(&activities, stage, Amount::Times(0.5));
        prop_assert!(by_less <= measured && by_less >= measured - less.saturating_mul(14));
        prop_assert!(halved <= measured);
    }
}
