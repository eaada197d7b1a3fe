//! Spans grouped by kind, in little memory: a report holds several of these for
//! each of thousands of runs.

use smallvec::SmallVec;

use crate::trace::dataset::SpanIndex;

use super::lens::Kind;

/// More spans than a part of a run has, but for made-up ones.
pub(super) const USUAL: usize = 16;

/// Spans by kind, the spans of each kind in the order in which they were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByKind {
    /// Each kind, and where its spans end in `spans`.
    groups: Box<[(Kind, u32)]>,
    spans: Box<[SpanIndex]>,
}

impl ByKind {
    /// Groups spans that come sorted by kind; of those of one kind the order stays.
    #[must_use]
    pub fn new(sorted: impl Iterator<Item = (Kind, SpanIndex)>) -> Self {
        let mut groups: SmallVec<[(Kind, u32); USUAL]> = SmallVec::new();
        let mut spans: SmallVec<[SpanIndex; USUAL]> = SmallVec::new();
        for (kind, span) in sorted {
            spans.push(span);
            let end = u32::try_from(spans.len()).unwrap_or(u32::MAX);
            match groups.last_mut() {
                Some((last, old)) if *last == kind => *old = end,
                _ => groups.push((kind, end)),
            }
        }
        Self {
            groups: groups.into_boxed_slice(),
            spans: spans.into_boxed_slice(),
        }
    }

    /// The spans of a kind; empty where there are none.
    #[must_use]
    pub fn get(&self, kind: Kind) -> &[SpanIndex] {
        let Ok(place) = self.groups.binary_search_by_key(&kind, |(kind, _)| *kind) else {
            return &[];
        };
        let start = place
            .checked_sub(1)
            .map_or(0, |before| self.groups[before].1);
        &self.spans[start as usize..self.groups[place].1 as usize]
    }

    /// All spans, by kind.
    #[must_use]
    pub fn spans(&self) -> &[SpanIndex] {
        &self.spans
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }
}
