//! Children that cannot lie within their parents, and what that says.
//!
//! Within one process a child that leaves its parent was not called by it in
//! the way the trace says. Between two processes the same may only mean that
//! their clocks differ: from each pair, child clock − parent clock lies between
//! (child end − parent end) and (child start − parent start); what all pairs of
//! two processes allow is reported, and no span is moved.

use hashbrown::HashMap;

use crate::model::lens::Lens;
use crate::problems::{Code, Problems};
use crate::trace::dataset::SpanIndex;
use crate::trace::span::Status;
use crate::units::{Nanos, difference};

/// What the pairs of two processes allow for the difference of their clocks.
struct Offset {
    low: Nanos,
    high: Nanos,
    quantum: Nanos,
    example: SpanIndex,
}

impl Offset {
    /// Whether equal clocks explain all pairs.
    fn is_possible(&self) -> bool {
        self.low.0 <= self.quantum.0 && self.high.0 >= -self.quantum.0
    }

    /// Leaves what both allow.
    fn narrow(&mut self, other: &Self) {
        self.low = self.low.max(other.low);
        self.high = self.high.min(other.high);
        self.quantum = self.quantum.max(other.quantum);
    }
}

/// A child that is said to run within its parent.
struct Pair {
    child: SpanIndex,
    parent: SpanIndex,
    offset: Offset,
}

/// Looks at every child that is said to run within its parent.
pub(super) fn nesting(lens: &Lens<'_>, problems: &mut Problems) {
    let resource = |span: SpanIndex| lens.data.span(span).resource;
    let of = |pair: &Pair| (resource(pair.parent).0, resource(pair.child).0);
    // Processes of which each pair fits by itself have nothing to say.
    let mut odd: HashMap<(u32, u32), Option<Offset>> = HashMap::new();
    for pair in pairs(lens).filter(|pair| !pair.offset.is_possible()) {
        if resource(pair.child) == resource(pair.parent) {
            impossible(lens, pair.child, pair.parent, problems);
        } else {
            odd.insert(of(&pair), None);
        }
    }
    if odd.is_empty() {
        return;
    }
    for pair in pairs(lens) {
        if let Some(known) = odd.get_mut(&of(&pair)) {
            match known {
                Some(offset) => offset.narrow(&pair.offset),
                None => *known = Some(pair.offset),
            }
        }
    }
    let mut offsets: Vec<Offset> = odd.into_values().flatten().collect();
    offsets.retain(|offset| !offset.is_possible());
    // Numbers of resources are those of reading; spans have an order.
    offsets.sort_by_key(|offset| offset.example);
    for offset in &offsets {
        different_clocks(lens, offset, problems);
    }
}

/// Every child that is said to run within its parent, in canonical order.
fn pairs<'l>(lens: &'l Lens<'_>) -> impl Iterator<Item = Pair> + 'l {
    let children = lens.data.indices().filter(|child| is_within(lens, *child));
    children.filter_map(|child| {
        let parent = lens.tree.parent(child)?;
        let (inner, outer) = (lens.data.span(child), lens.data.span(parent));
        let offset = Offset {
            low: difference(inner.interval.end(), outer.interval.end()),
            high: difference(inner.start(), outer.start()),
            quantum: lens.quantum(child).max(lens.quantum(parent)),
            example: child,
        };
        Some(Pair {
            child,
            parent,
            offset,
        })
    })
}

/// Whether parent means containment for this span. A failed one may have been
/// abandoned by its parent.
fn is_within(lens: &Lens<'_>, child: SpanIndex) -> bool {
    lens.rule(child).is_some_and(|rule| !rule.asynchronous)
        && lens.data.span(child).status != Status::Error
}

fn impossible(lens: &Lens<'_>, child: SpanIndex, parent: SpanIndex, problems: &mut Problems) {
    let name = |span: SpanIndex| lens.data.names.text(lens.data.span(span).name);
    let reason = format!(
        "span `{}` leaves `{}`, its parent in the same process: it was not called by it, or a guard was held over a wait",
        name(child),
        name(parent)
    );
    problems.add(Code::ImpossibleNesting, None, reason);
}

fn different_clocks(lens: &Lens<'_>, offset: &Offset, problems: &mut Problems) {
    let (low, high) = (offset.low, offset.high);
    let name = lens.data.names.text(lens.data.span(offset.example).name);
    let reason = if low <= high {
        let (side, least, most) = if low.0 > 0 {
            ("ahead", low, high)
        } else {
            ("behind", Nanos(-high.0), Nanos(-low.0))
        };
        format!(
            "spans such as `{name}` fit into their parents of another process only if its clock is {side} by {} to {} ms; nothing is moved",
            least.as_ms(),
            most.as_ms()
        )
    } else {
        format!(
            "spans such as `{name}` fit into their parents of another process with no difference of the clocks; nothing is moved"
        )
    };
    problems.add(Code::ClockOffset, None, reason);
}
