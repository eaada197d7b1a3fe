//! A span or none for each of many, in four bytes where an `Option` takes eight.

use super::dataset::SpanIndex;

/// Stands for no span; memory bounds real places far below.
const NONE: u32 = u32::MAX;

/// Spans by place, some of them none.
#[derive(Debug, Default)]
pub struct Slots(Vec<u32>);

impl Slots {
    /// So many without a span.
    #[must_use]
    pub fn empty(count: usize) -> Self {
        Self(vec![NONE; count])
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The span at a place; places below [`Slots::len`] only.
    #[must_use]
    pub fn get(&self, place: usize) -> Option<SpanIndex> {
        let slot = self.0[place];
        (slot != NONE).then_some(SpanIndex(slot))
    }

    /// Puts a span or none at a place; places below [`Slots::len`] only.
    pub fn set(&mut self, place: usize, span: Option<SpanIndex>) {
        self.0[place] = span.map_or(NONE, |span| span.0);
    }

    /// All, by place.
    pub fn iter(&self) -> impl Iterator<Item = Option<SpanIndex>> + '_ {
        (0..self.len()).map(|place| self.get(place))
    }
}

impl FromIterator<Option<SpanIndex>> for Slots {
    fn from_iter<I: IntoIterator<Item = Option<SpanIndex>>>(spans: I) -> Self {
        let slots = spans
            .into_iter()
            .map(|span| span.map_or(NONE, |span| span.0));
        Self(slots.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_holds_a_span_or_none() {
        let mut slots: Slots = [Some(SpanIndex(0)), None].into_iter().collect();
        slots.set(1, Some(SpanIndex(7)));
        slots.set(0, None);
        assert_eq!(slots.iter().collect::<Vec<_>>(), [None, Some(SpanIndex(7))]);
        assert_eq!(Slots::empty(2).iter().flatten().count(), 0);
        assert_eq!((slots.len(), Slots::default().is_empty()), (2, true));
    }
}
