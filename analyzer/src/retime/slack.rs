//! Slack: how much a stage could begin with a delay without moving the end.
//!
//! For the edge e = (u, v) that a stage begins with,
//! `slack = latest(v) − t(u) − length(e)`, where `latest(end) = t(end)` and
//! `latest(u) = min over edges (u, v) of latest(v) − length(u, v)`: the total
//! float of the critical path method (Kelley and Walker, 1959). Of a stage that a
//! run has several times the least of theirs. A stage on the path has none; one
//! that nothing leads from to the end may grow for ever.

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
        let first = scope.tops().filter_map(|top| {
            let at = *graph.first_link.get(top as usize)?;
            let link = graph.links.get(at as usize)?;
            let latest = self.0[link.to as usize];
            (latest != NEVER)
                .then(|| Nanos(latest - graph.times[link.from as usize] - link.length))
        });
        first.min()
    }
}
