//! Parents and children, resolved once for all views.
//!
//! Links are never parents. A parent that is not in the data leaves its child a
//! root; spans that are each other's ancestors are cut loose and reported. No
//! recursion: depth is bounded by memory alone.

use smallvec::SmallVec;

use crate::problems::{Code, Problems};

use super::dataset::{Dataset, SpanIndex};
use super::slots::Slots;

/// Parent of each span and the children of each, in canonical order.
#[derive(Debug, Default)]
pub struct Tree {
    parents: Slots,
    /// Children of span `i` are `children[first[i]..first[i + 1]]`.
    first: Vec<u32>,
    children: Vec<SpanIndex>,
    orphans: Vec<SpanIndex>,
}

impl Tree {
    /// Resolves all parents of `dataset`; cycles become problems.
    #[must_use]
    pub fn new(dataset: &Dataset) -> (Self, Problems) {
        let mut problems = Problems::default();
        let mut orphans = Vec::new();
        let mut parents = Slots::empty(dataset.spans.len());
        let mut own = 0..0;
        for index in dataset.indices() {
            let span = dataset.span(index);
            if !own.contains(&(index.0 as usize)) {
                own = dataset.trace_from(index.0 as usize);
            }
            let parent = span.parent.and_then(|id| dataset.find_in(&own, id));
            if span.parent.is_some() && parent.is_none() {
                orphans.push(index);
            }
            parents.set(index.0 as usize, parent);
        }
        for index in cyclic(&parents) {
            let name = dataset.names.text(dataset.span(index).name);
            problems.add(
                Code::ParentCycle,
                None,
                format!("span `{name}` is its own ancestor; it is read as a root"),
            );
            parents.set(index.0 as usize, None);
        }
        let (first, children) = group_by_parent(&parents);
        (
            Self {
                parents,
                first,
                children,
                orphans,
            },
            problems,
        )
    }

    /// The parent, where it is in the data.
    #[must_use]
    pub fn parent(&self, span: SpanIndex) -> Option<SpanIndex> {
        self.parents.get(span.0 as usize)
    }

    /// Spans that name a parent that is not in the data.
    #[must_use]
    pub fn orphans(&self) -> &[SpanIndex] {
        &self.orphans
    }

    /// Whether a span names a parent that is not in the data.
    #[must_use]
    pub fn is_orphan(&self, span: SpanIndex) -> bool {
        self.orphans.binary_search(&span).is_ok()
    }

    /// The children, in canonical order.
    #[must_use]
    pub fn children(&self, span: SpanIndex) -> &[SpanIndex] {
        let index = span.0 as usize;
        &self.children[self.first[index] as usize..self.first[index + 1] as usize]
    }

    /// Ancestors from the parent up.
    pub fn ancestors(&self, span: SpanIndex) -> impl Iterator<Item = SpanIndex> + '_ {
        std::iter::successors(self.parent(span), |span| self.parent(*span))
    }

    /// The nearest ancestor of each span that is `wanted`, by place. Each span is
    /// looked at twice, however deep it lies.
    #[must_use]
    pub fn nearest_above(&self, wanted: impl Fn(SpanIndex) -> bool) -> Slots {
        let mut known = vec![false; self.parents.len()];
        let mut found = Slots::empty(self.parents.len());
        let mut path = Vec::new();
        for start in 0..self.parents.len() {
            let mut at = start;
            while !known[at] {
                known[at] = true;
                path.push(at);
                match self.parents.get(at) {
                    Some(parent) => at = parent.0 as usize,
                    None => break,
                }
            }
            while let Some(at) = path.pop() {
                let nearest = self.parents.get(at).and_then(|parent| {
                    if wanted(parent) {
                        Some(parent)
                    } else {
                        found.get(parent.0 as usize)
                    }
                });
                found.set(at, nearest);
            }
        }
        found
    }

    /// All spans below `span`, without itself; `enter` says whether to look
    /// below a span that was found.
    #[must_use]
    pub fn descendants(
        &self,
        span: SpanIndex,
        enter: impl Fn(SpanIndex) -> bool,
    ) -> Vec<SpanIndex> {
        let mut found = Vec::new();
        let mut open: SmallVec<[SpanIndex; 16]> = SmallVec::from([span].as_slice());
        while let Some(at) = open.pop() {
            for child in self.children(at) {
                found.push(*child);
                if enter(*child) {
                    open.push(*child);
                }
            }
        }
        found.sort_unstable();
        found
    }
}

/// Members of parent cycles. Each span is walked over once.
fn cyclic(parents: &Slots) -> Vec<SpanIndex> {
    const NEW: u32 = 0;
    let mut walk_of = vec![NEW; parents.len()];
    let mut members = Vec::new();
    for start in 0..parents.len() {
        let walk = u32::try_from(start).unwrap_or(u32::MAX).saturating_add(1);
        let mut at = start;
        while walk_of[at] == NEW {
            walk_of[at] = walk;
            match parents.get(at) {
                Some(parent) => at = parent.0 as usize,
                None => break,
            }
        }
        // The walk came back to itself, and not merely to the root it marked.
        if walk_of[at] == walk && parents.get(at).is_some() {
            let first = at;
            while let Some(parent) = parents.get(at) {
                members.push(SpanIndex(u32::try_from(at).unwrap_or(u32::MAX)));
                at = parent.0 as usize;
                if at == first {
                    break;
                }
            }
        }
    }
    members.sort_unstable();
    members
}

fn group_by_parent(parents: &Slots) -> (Vec<u32>, Vec<SpanIndex>) {
    let mut first = vec![0u32; parents.len() + 1];
    for parent in parents.iter().flatten() {
        first[parent.0 as usize + 1] += 1;
    }
    for index in 1..first.len() {
        first[index] += first[index - 1];
    }
    let total = first.last().copied().unwrap_or(0) as usize;
    let mut next = first.clone();
    let mut children = vec![SpanIndex(0); total];
    for (index, parent) in parents.iter().enumerate() {
        if let Some(parent) = parent {
            let slot = &mut next[parent.0 as usize];
            children[*slot as usize] = SpanIndex(u32::try_from(index).unwrap_or(u32::MAX));
            *slot += 1;
        }
    }
    (first, children)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles(parents: &[Option<u32>]) -> Vec<u32> {
        let parents: Slots = parents.iter().map(|parent| parent.map(SpanIndex)).collect();
        cyclic(&parents).into_iter().map(|index| index.0).collect()
    }

    #[test]
    fn a_chain_has_no_cycle_and_a_ring_names_its_members_only() {
        assert_eq!(cycles(&[None, Some(0), Some(1)]), [] as [u32; 0]);
        assert_eq!(cycles(&[Some(0)]), [0]);
        assert_eq!(cycles(&[Some(1), Some(2), Some(1), Some(0)]), [1, 2]);
        assert_eq!(cycles(&[Some(2), None, Some(1)]), [] as [u32; 0]);
    }

    #[test]
    fn children_stand_under_their_parent_in_order() {
        let parents = Slots::from_iter([
            None,
            Some(SpanIndex(0)),
            Some(SpanIndex(3)),
            Some(SpanIndex(0)),
        ]);
        let (first, children) = group_by_parent(&parents);
        assert_eq!(first, [0, 2, 2, 2, 3]);
        assert_eq!(children, [SpanIndex(1), SpanIndex(3), SpanIndex(2)]);
    }
}
