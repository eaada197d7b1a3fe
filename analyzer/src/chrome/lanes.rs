//! Packs the slices of each process into lanes so that on a lane they nest.
//!
//! Greedy by start, the longest first: into the parent's lane where the slice
//! fits, else into the first lane where it does, else into a new one. It fits
//! where nothing is open, or within an ancestor: nesting on a lane always means
//! descent. Integer microseconds, because those are what a viewer compares.

use std::cmp::Reverse;

use super::slices::Slice;

/// Where each slice stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lanes {
    /// Lane of each slice within its process, from 0.
    pub of: Vec<usize>,
    /// The slice that directly encloses each on its lane.
    pub within: Vec<Option<usize>>,
    /// How deep each stands on its lane.
    pub depth: Vec<usize>,
    /// Lanes of each process.
    pub count: Vec<usize>,
}

/// Packs all slices.
#[must_use]
pub fn pack(slices: &[Slice]) -> Lanes {
    let mut order: Vec<usize> = (0..slices.len()).collect();
    let generations: Vec<usize> = (0..slices.len())
        .map(|at| ancestors(slices, at).count())
        .collect();
    order.sort_by_key(|at| {
        let slice = &slices[*at];
        (slice.start, Reverse(slice.end), generations[*at], *at)
    });
    let processes = slices
        .iter()
        .map(|slice| slice.process + 1)
        .max()
        .unwrap_or(0);
    // Open slices of each lane of each process, the innermost last.
    let mut lanes: Vec<Vec<Vec<usize>>> = vec![Vec::new(); processes];
    let mut found = Lanes {
        of: vec![0; slices.len()],
        within: vec![None; slices.len()],
        depth: vec![0; slices.len()],
        count: Vec::new(),
    };
    for at in order {
        let slice = &slices[at];
        let own = &mut lanes[slice.process];
        for lane in own.iter_mut() {
            while lane
                .last()
                .is_some_and(|open| slices[*open].end <= slice.start)
            {
                lane.pop();
            }
        }
        let fits = |lane: &Vec<usize>| {
            lane.last().is_none_or(|open| {
                slice.end <= slices[*open].end && ancestors(slices, at).any(|above| above == *open)
            })
        };
        let parent = slice
            .parent
            .filter(|parent| slices[*parent].process == slice.process);
        let preferred = parent.map(|parent| found.of[parent]);
        let preferred = preferred.filter(|lane| own.get(*lane).is_some_and(fits));
        let lane = preferred
            .or_else(|| own.iter().position(fits))
            .unwrap_or_else(|| {
                own.push(Vec::new());
                own.len() - 1
            });
        found.of[at] = lane;
        found.within[at] = own[lane].last().copied();
        found.depth[at] = own[lane].len();
        own[lane].push(at);
    }
    found.count = lanes.iter().map(Vec::len).collect();
    found
}

/// The slices above one, from its parent on. Parents come from a tree without
/// cycles.
fn ancestors(slices: &[Slice], at: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(slices[at].parent, |at| slices[*at].parent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chrome::slices::Source;
    use crate::trace::dataset::SpanIndex;

    fn lanes(slices: &[(Option<usize>, u64, u64)]) -> Vec<usize> {
        let slices: Vec<Slice> = slices
            .iter()
            .map(|(parent, start, end)| Slice {
                source: Source::Span(SpanIndex(0)),
                process: 0,
                parent: *parent,
                start: *start,
                end: *end,
            })
            .collect();
        pack(&slices).of
    }

    #[test]
    fn a_child_within_its_parent_shares_its_lane() {
        assert_eq!(
            lanes(&[(None, 0, 9), (Some(0), 1, 4), (Some(1), 2, 3)]),
            [0, 0, 0]
        );
    }

    #[test]
    fn siblings_that_overlap_and_children_that_outlive_get_lanes_of_their_own() {
        assert_eq!(
            lanes(&[(None, 0, 9), (Some(0), 1, 4), (Some(0), 3, 8)]),
            [0, 0, 1]
        );
        assert_eq!(lanes(&[(None, 0, 5), (Some(0), 3, 8)]), [0, 1]);
    }

    #[test]
    fn a_slice_never_stands_within_one_that_is_no_ancestor() {
        assert_eq!(
            lanes(&[(None, 0, 9), (None, 1, 4), (None, 9, 10)]),
            [0, 1, 0]
        );
    }

    #[test]
    fn of_equal_slices_the_parent_is_outside() {
        assert_eq!(lanes(&[(Some(1), 0, 5), (None, 0, 5)]), [0, 0]);
    }
}
