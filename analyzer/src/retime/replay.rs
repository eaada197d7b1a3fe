//! Runs a graph forwards.
//!
//! `t(v) = max over edges (u, v) of t(u) + length(u, v)`; instants that nothing
//! leads to stay where they were measured. With [`Graph::lengths`] every instant
//! is the measured one. O(edges).

use crate::units::Nanos;

use super::graph::{Graph, Node};

/// The instants of a graph under some lengths, since the run's first instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instants(Vec<i64>);

impl Instants {
    /// When a node is.
    #[must_use]
    pub fn at(&self, node: Node) -> Nanos {
        Nanos(self.0.get(node as usize).copied().unwrap_or(0))
    }
}

/// The instants of `graph` with `lengths`, one for each of its edges; edges
/// beyond the list keep their measured length.
#[must_use]
pub fn replay(graph: &Graph, lengths: &[i64]) -> Instants {
    let mut times = vec![i64::MIN; graph.times.len()];
    for node in &graph.sources {
        times[*node as usize] = graph.times[*node as usize];
    }
    for (place, link) in graph.links.iter().enumerate() {
        let length = lengths.get(place).copied().unwrap_or(link.length);
        let arrives = times[link.from as usize].saturating_add(length);
        let to = &mut times[link.to as usize];
        *to = (*to).max(arrives);
    }
    Instants(times)
}
