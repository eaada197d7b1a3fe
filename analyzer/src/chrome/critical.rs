//! The critical path: spans whose end the run's end waited for.
//!
//! From a span and an instant `cut`, its end at first: of its causes that ended
//! by `cut`, the one that ended last is on the path; the walk goes on inside it
//! from its end, and in the span from the start of that cause. Causes are the
//! children and the spans it links to, which a waiting span waits for.
//! Source: last-finishing-child walk of CRISP (Zhang et al., USENIX ATC 2022),
//! extended by links. A clock's quantum is tolerated at the span's own end.
//!
//! Degenerate: no causes give the root alone; a cause that outlives the cut is
//! passed over; of equal ends the longest counts; each span is entered once, so
//! links in a circle end. Pure; cost n log n over the spans entered.

use std::collections::BTreeSet;

use crate::model::lens::Lens;
use crate::trace::dataset::SpanIndex;
use crate::units::{Nanos, Timestamp, difference};

/// The spans on the path that ends with `root`, itself included.
#[must_use]
pub fn path(lens: &Lens<'_>, root: SpanIndex) -> BTreeSet<SpanIndex> {
    let mut found = BTreeSet::from([root]);
    let mut open = vec![root];
    while let Some(span) = open.pop() {
        let end = lens.data.span(span).interval.end();
        let (mut cut, mut slack) = (end, lens.quantum(span));
        for (end, start, cause) in causes(lens, span) {
            if difference(end, cut) > slack {
                continue;
            }
            if found.insert(cause) {
                open.push(cause);
            }
            (cut, slack) = (start, Nanos(0));
        }
    }
    found
}

/// Causes of a span: the last to end first, then the longest.
fn causes(lens: &Lens<'_>, span: SpanIndex) -> Vec<(Timestamp, Timestamp, SpanIndex)> {
    let links = lens.data.span(span).links().iter();
    let linked = links.filter_map(|link| lens.data.find(link.trace, link.span));
    let children = lens.tree.children(span).iter().copied();
    let with_times = |cause: SpanIndex| {
        let interval = lens.data.span(cause).interval;
        (interval.end(), interval.start(), cause)
    };
    let mut found: Vec<_> = children.chain(linked).map(with_times).collect();
    found.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
    found
}
