//! Arrows from a parent in another process to its child, and from a linked span
//! to the one that links to it: from cause to effect.
//!
//! A viewer ties the ends of an arrow to the innermost slice that is open on
//! their lanes, so each end stands where its own slice is innermost, as near to
//! the start of the effect as that allows. Arrows say that, not when.

use crate::model::lens::Lens;
use crate::trace::dataset::SpanIndex;

use super::event::{Event, Kind};
use super::lanes::Lanes;
use super::numbers::Numbers;
use super::slices::{Slices, Source};

/// Draws the arrows of a run; how many cannot be.
pub fn arrows(
    lens: &Lens<'_>,
    slices: &Slices,
    lanes: &Lanes,
    numbers: &mut Numbers,
    events: &mut Vec<Event>,
) -> usize {
    let mut inner: Vec<Vec<(u64, u64)>> = vec![Vec::new(); slices.all.len()];
    for (at, slice) in slices.all.iter().enumerate() {
        if let Some(within) = lanes.within[at] {
            inner[within].push((slice.start, slice.end));
        }
    }
    for inner in &mut inner {
        inner.sort_unstable();
    }
    let mut lost = 0;
    for (effect, slice) in slices.all.iter().enumerate() {
        let Source::Span(span) = slice.source else {
            continue;
        };
        for (name, cause) in causes(lens, slices, effect, span) {
            let ends = cause.and_then(|cause| {
                let (from, to) = ends(slices, &inner, cause, effect)?;
                Some((cause, from, to))
            });
            let Some((cause, from, to)) = ends else {
                lost += 1;
                continue;
            };
            let number = numbers.arrow();
            for (kind, at, place) in [
                (Kind::ArrowStart(number), from, cause),
                (Kind::ArrowEnd(number), to, effect),
            ] {
                let (pid, tid) = slices.place(lanes, place);
                events.push(Event {
                    kind,
                    name: name.to_owned(),
                    category: "cause",
                    at,
                    pid,
                    tid,
                    args: serde_json::Map::new(),
                });
            }
        }
    }
    lost
}

/// The parent, where it is in another process, and linked spans; `None` for one
/// that is not shown.
fn causes(
    lens: &Lens<'_>,
    slices: &Slices,
    effect: usize,
    span: SpanIndex,
) -> Vec<(&'static str, Option<usize>)> {
    let slice = &slices.all[effect];
    let parent = slice
        .parent
        .filter(|parent| slices.all[*parent].process != slice.process);
    let mut found: Vec<_> = parent
        .map(|parent| ("parent", Some(parent)))
        .into_iter()
        .collect();
    for link in lens.data.span(span).links() {
        let linked = lens.data.find(link.trace, link.span);
        let linked = linked.and_then(|linked| slices.of_span.get(&linked));
        found.push(("link", linked.copied()));
    }
    found
}

/// Where an arrow begins and ends; `None` where it would go back in time.
fn ends(
    slices: &Slices,
    inner: &[Vec<(u64, u64)>],
    cause: usize,
    effect: usize,
) -> Option<(u64, u64)> {
    let (from, to) = (&slices.all[cause], &slices.all[effect]);
    let last = |start: u64, end: u64| end.saturating_sub(1).max(start);
    let wanted = to.start.clamp(from.start, last(from.start, from.end));
    let start = free_before(&inner[cause], from.start, wanted).unwrap_or(wanted);
    let latest = last(to.start, to.end);
    let earliest = to.start.max(start);
    if earliest > latest {
        return None;
    }
    let end = free_after(&inner[effect], earliest, latest).unwrap_or(earliest);
    Some((start, end))
}

/// The latest instant in `from..=at` at which no inner slice is open.
fn free_before(inner: &[(u64, u64)], from: u64, mut at: u64) -> Option<u64> {
    for (start, end) in inner.iter().rev() {
        if (*start..*end).contains(&at) {
            at = start.checked_sub(1).filter(|at| *at >= from)?;
        }
    }
    Some(at)
}

/// The earliest instant in `at..=to` at which no inner slice is open.
fn free_after(inner: &[(u64, u64)], mut at: u64, to: u64) -> Option<u64> {
    for (start, end) in inner {
        if (*start..*end).contains(&at) {
            at = *end;
        }
    }
    (at <= to).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_stands_where_its_slice_is_innermost() {
        let inner = [(10, 20), (20, 30), (40, 50)];
        assert_eq!(free_before(&inner, 5, 25), Some(9));
        assert_eq!(free_before(&inner, 10, 25), None);
        assert_eq!(free_before(&inner, 5, 35), Some(35));
        assert_eq!(free_after(&inner, 12, 60), Some(30));
        assert_eq!(free_after(&inner, 45, 49), None);
    }
}
