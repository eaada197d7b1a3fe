//! Slack: how much a stage's work could grow without moving the end.
//!
//! For a piece of work e = (u, v), `slack = latest(v) − t(u) − length(e)`, where
//! `latest(end) = t(end)` and `latest(u) = min over edges (u, v) of latest(v) −
//! length(u, v)`: the total float of the critical path method (Kelley and Walker,
//! 1959). Of a stage with several pieces the least of theirs: as long as one of
//! them is on the path it has none, and its drag says how much of it is. One that
//! nothing leads from to the end may grow for ever.

use crate::units::Nanos;

use super::change::Scope;
use super::graph::{Graph, Node};

/// How late each instant may be.
#[derive(Clone, Debug)]
pub struct Latest(Vec<i64>);

/// What an instant has that nothing leads from to the end.
const NEVER: i64 = i64::MAX;

impl Latest {
    /// The latest instants that leave `end` where it is. O(edges).
    #[must_use]
    pub fn of(graph: &Graph, end: Node) -> Self {
        let mut latest = vec![NEVER; graph.times.len()];
        if let Some(own) = latest.get_mut(end as usize) {
            *own = graph.measured(end).0;
        }
        for link in graph.links.iter().rev() {
            let behind = latest[link.to as usize];
            if behind != NEVER {
                let from = &mut latest[link.from as usize];
                *from = (*from).min(behind - link.length);
            }
        }
        Self(latest)
    }

    /// The slack of a stage; `None` where it may grow for ever, or is not there.
    #[must_use]
    pub fn slack(&self, graph: &Graph, scope: &Scope) -> Option<Nanos> {
        let pieces = scope.pieces(graph).into_iter().filter_map(|at| {
            let link = graph.links.get(at)?;
            let latest = self.0[link.to as usize];
            (latest != NEVER).then(|| Nanos(latest - graph.times[link.from as usize] - link.length))
        });
        pieces.min()
    }
}
