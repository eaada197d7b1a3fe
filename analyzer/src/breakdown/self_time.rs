//! Self time: a span's duration less the union of its children within it.
//!
//! self = |span| − |∪ (child ∩ span)|. The union, not the sum: children may
//! overlap. 0 ≤ self ≤ duration always; no children means all of it.

use crate::units::{Interval, Nanos, difference};

/// The self time of `span` with these children, in any order.
#[must_use]
pub fn self_time(span: Interval, children: &[Interval]) -> Nanos {
    let mut inside: Vec<Interval> = children
        .iter()
        .filter_map(|child| child.within(span))
        .collect();
    inside.sort_unstable();
    let mut covered = 0;
    let mut reached = span.start();
    for child in inside {
        let from = child.start().max(reached);
        covered += difference(child.end(), from).0.max(0);
        reached = reached.max(child.end());
    }
    Nanos(span.length().0 - covered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Timestamp;
    use proptest::prelude::*;

    fn interval(start: u64, end: u64) -> Interval {
        Interval::new(Timestamp(start), Timestamp(end)).unwrap()
    }

    #[test]
    fn overlapping_children_count_once() {
        assert_eq!(
            self_time(interval(0, 100), &[interval(10, 40), interval(30, 60)]),
            Nanos(50)
        );
    }

    #[test]
    fn a_child_outside_its_parent_is_cut() {
        assert_eq!(
            self_time(interval(10, 20), &[interval(0, 15), interval(30, 40)]),
            Nanos(5)
        );
    }

    #[test]
    fn no_children_means_all_own() {
        assert_eq!(self_time(interval(3, 10), &[]), Nanos(7));
    }

    proptest! {
        #[test]
        fn self_time_is_between_zero_and_the_duration_in_any_order(
            mut raw in prop::collection::vec((0u64..150, 0u64..80), 0..8), length in 0u64..120,
        ) {
            let span = interval(20, 20 + length);
            let children = |raw: &[(u64, u64)]| raw.iter().map(|(s, l)| interval(*s, s + l)).collect::<Vec<_>>();
            let found = self_time(span, &children(&raw));
            let own = (span.start().0..span.end().0)
                .filter(|at| !children(&raw).iter().any(|child| child.start().0 <= *at && *at < child.end().0))
                .count();
            prop_assert_eq!(found.0, i64::try_from(own).unwrap());
            raw.reverse();
            prop_assert_eq!(self_time(span, &children(&raw)), found);
        }
    }
}
