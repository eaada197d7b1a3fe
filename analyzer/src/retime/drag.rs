//! Drag: how much a stage adds to the end of the run.
//!
//! `drag(S) = t(end) − t(end | work of S = 0)`: what would be gained if the stage
//! took no time, the most that any change of it can gain. For a single piece of
//! work of length w this is `min(w, t(end) − longest path to the end that avoids
//! the piece)`, the drag of activity networks (Devaux, 1999); with several pieces
//! the replay is the definition. 0 ≤ drag ≤ work of the stage. O(edges) a stage.

use crate::units::Nanos;

use super::change::{Amount, Scope};
use super::graph::{Graph, Node};
use super::replay::replay;

/// The drag of a stage on the instant `end`.
#[must_use]
pub fn drag(graph: &Graph, scope: &Scope, end: Node) -> Nanos {
    let mut lengths = graph.lengths();
    scope.apply(graph, Amount::Times(0.0), &mut lengths);
    Nanos(graph.measured(end).0 - replay(graph, &lengths).at(end).0)
}
