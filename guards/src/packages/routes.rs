//! Routes through the closure: why a package is there.

use super::openers::opener;
use super::{Closure, Edge, Workspace};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Most routes that are written for one package; more say nothing new.
const ROUTES_MAX: usize = 50;

/// One shortest route from the program to package `id`, both included, one line a
/// package; empty when there is none. Of equal routes the first by id.
pub(crate) fn shortest_route(workspace: &Workspace, closure: &Closure, id: &str) -> Vec<String> {
    let mut parents: BTreeMap<&str, &Edge> = BTreeMap::new();
    let mut open = VecDeque::from([closure.program.as_str()]);
    while let Some(at) = open.pop_front() {
        for edge in edges_from(closure, at) {
            if edge.to != closure.program && !parents.contains_key(edge.to.as_str()) {
                parents.insert(&edge.to, edge);
                open.push_back(&edge.to);
            }
        }
    }
    let mut edges = Vec::new();
    let mut at = id;
    while at != closure.program {
        let Some(edge) = parents.get(at) else {
            return Vec::new();
        };
        edges.push(*edge);
        at = &edge.from;
    }
    edges.reverse();
    write_route(workspace, closure, &edges)
}

/// Every route without a repeated package, at most fifty, shortest first.
pub(crate) fn all_routes(workspace: &Workspace, closure: &Closure, id: &str) -> Vec<Vec<String>> {
    let leads: BTreeSet<&str> = ancestors(closure, id);
    let mut found: Vec<Vec<&Edge>> = Vec::new();
    let mut open: VecDeque<Vec<&Edge>> = VecDeque::from([Vec::new()]);
    while let Some(route) = open.pop_front() {
        let at = route
            .last()
            .map_or(closure.program.as_str(), |edge| &edge.to);
        if at == id {
            found.push(route);
            if found.len() == ROUTES_MAX {
                break;
            }
            continue;
        }
        for edge in edges_from(closure, at) {
            let seen = edge.to == closure.program || route.iter().any(|e| e.to == edge.to);
            // The queue is bounded as well: routes multiply before they arrive.
            if !seen && leads.contains(edge.to.as_str()) && open.len() < ROUTES_MAX * 100 {
                let mut longer = route.clone();
                longer.push(edge);
                open.push_back(longer);
            }
        }
    }
    found
        .iter()
        .map(|edges| write_route(workspace, closure, edges))
        .collect()
}

fn ancestors<'c>(closure: &'c Closure, id: &'c str) -> BTreeSet<&'c str> {
    let mut found = BTreeSet::from([id]);
    let mut open = vec![id];
    while let Some(at) = open.pop() {
        for edge in closure.edges.iter().filter(|edge| edge.to == at) {
            if found.insert(&edge.from) {
                open.push(&edge.from);
            }
        }
    }
    found
}

fn edges_from<'c>(closure: &'c Closure, id: &str) -> impl Iterator<Item = &'c Edge> {
    let first = closure
        .edges
        .partition_point(|edge| edge.from.as_str() < id);
    let last = closure
        .edges
        .partition_point(|edge| edge.from.as_str() <= id);
    closure.edges[first..last].iter()
}

fn write_route(workspace: &Workspace, closure: &Closure, edges: &[&Edge]) -> Vec<String> {
    let label = |id: &str| {
        workspace
            .known
            .get(id)
            .map_or_else(|| id.to_owned(), super::Package::label)
    };
    let mut lines = vec![label(&closure.program)];
    for edge in edges {
        let mut parts = vec![label(&edge.to)];
        parts.extend(
            edge.rename
                .as_ref()
                .map(|name| format!("there named `{name}`")),
        );
        parts.extend(opener(workspace, closure, edge).map(|how| format!("opened by {how}")));
        lines.push(parts.join(", "));
    }
    lines
}
