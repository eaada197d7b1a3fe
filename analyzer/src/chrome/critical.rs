//! The critical path: spans and phases whose end the run's end waited for.
//!
//! From a span and an instant `cut`, its end at first: of its causes that ended
//! by `cut`, the one that ended last is on the path; the walk goes on inside it
//! from its end, and in the span from the start of that cause. Causes are the
//! children, the phases that stand beside the span, and what a waiting span waits
//! for: the spans it links to, and the one that the model says explains it.
//! Source: last-finishing-child walk of CRISP (Zhang et al., USENIX ATC 2022),
//! extended by links. A clock's quantum is tolerated at the span's own end.
//!
//! Degenerate: no causes give the root alone; a cause that outlives the cut, or was
//! over before the wait for it began, is passed over; of equal ends the longest
//! counts; each span is entered once, so links in a circle end. Pure; cost n log n
//! over the spans entered.

use std::collections::BTreeSet;

use crate::chain::Run;
use crate::model::lens::Lens;
use crate::trace::dataset::SpanIndex;
use crate::units::{Interval, Nanos, Timestamp, difference};

use super::phases::Phases;

/// What a span may have waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    Span(SpanIndex),
    /// The window of a group of phases.
    Window(usize),
    /// A phase of a group.
    Part(usize, usize),
}

/// A cause with the first instant at which it can have been waited for.
struct Waited {
    cause: Cause,
    interval: Interval,
    floor: Timestamp,
}

/// The spans on the path that ends with `root`, itself included; phases on it are
/// marked.
#[must_use]
pub fn path(
    lens: &Lens<'_>,
    run: &Run<'_>,
    root: SpanIndex,
    phases: &mut [Phases],
) -> BTreeSet<SpanIndex> {
    let mut found = BTreeSet::from([root]);
    let mut open = vec![(root, lens.data.span(root).start())];
    while let Some((span, floor)) = open.pop() {
        let end = lens.data.span(span).interval.end();
        let causes = causes(lens, run, phases, span, floor);
        for waited in chain(causes, end, lens.quantum(span)) {
            match waited.cause {
                Cause::Span(cause) => {
                    if found.insert(cause) {
                        open.push((cause, waited.floor));
                    }
                }
                Cause::Part(group, part) => phases[group].parts[part].critical = true,
                Cause::Window(group) => mark(&mut phases[group], waited.interval.end(), floor),
            }
        }
    }
    found
}

/// Marks a window and those of its phases that it waited for.
fn mark(group: &mut Phases, cut: Timestamp, floor: Timestamp) {
    if let Some(window) = &mut group.window {
        window.critical = true;
    }
    let parts = parts(0, group, floor);
    for waited in chain(parts, cut, Nanos(0)) {
        if let Cause::Part(_, part) = waited.cause {
            group.parts[part].critical = true;
        }
    }
}

/// The causes that follow each other up to `cut`, the last first.
fn chain(mut causes: Vec<Waited>, mut cut: Timestamp, mut slack: Nanos) -> Vec<Waited> {
    causes.sort_by_key(|waited| {
        let interval = waited.interval;
        (
            std::cmp::Reverse(interval.end()),
            interval.start(),
            waited.cause,
        )
    });
    causes.retain(|waited| {
        let fits =
            difference(waited.interval.end(), cut) <= slack && waited.interval.end() > waited.floor;
        if fits {
            (cut, slack) = (waited.interval.start(), Nanos(0));
        }
        fits
    });
    causes
}

fn causes(
    lens: &Lens<'_>,
    run: &Run<'_>,
    phases: &[Phases],
    span: SpanIndex,
    floor: Timestamp,
) -> Vec<Waited> {
    let of = |cause: SpanIndex, floor: Timestamp| Waited {
        cause: Cause::Span(cause),
        interval: lens.data.span(cause).interval,
        floor,
    };
    let children = lens.tree.children(span).iter();
    let mut found: Vec<Waited> = children.map(|child| of(*child, floor)).collect();
    let start = lens.data.span(span).start().max(floor);
    let links = lens.data.span(span).links().iter();
    let linked = links.filter_map(|link| lens.data.find(link.trace, link.span));
    found.extend(
        linked
            .chain(explains(lens, run, span))
            .map(|cause| of(cause, start)),
    );
    for (place, group) in phases.iter().enumerate() {
        if group.host != span {
            continue;
        }
        match &group.window {
            Some(window) => found.push(Waited {
                cause: Cause::Window(place),
                interval: window.interval,
                floor,
            }),
            None => found.extend(parts(place, group, floor)),
        }
    }
    found
}

fn parts(place: usize, group: &Phases, floor: Timestamp) -> Vec<Waited> {
    let parts = group.parts.iter().enumerate();
    parts
        .map(|(part, phase)| Waited {
            cause: Cause::Part(place, part),
            interval: phase.interval,
            floor,
        })
        .collect()
}

/// The span that the model says a waiting span waits for, where traces do not link
/// them.
fn explains(lens: &Lens<'_>, run: &Run<'_>, span: SpanIndex) -> Option<SpanIndex> {
    let kind = lens.kind_of(span)?;
    let mut drills = lens.model.drill_through.iter();
    let drill = drills.find(|drill| lens.kind(&drill.stage) == Some(kind))?;
    run.first(lens, &drill.explained_by)
        .filter(|cause| *cause != span)
}
