//! The walk: breadth first, so that the first way found is a shortest one.

use super::graph::{Graph, Node};
use crate::binary::Image;
use std::collections::{BTreeSet, VecDeque};

/// What is not taken; functions by index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Single steps: from and to.
    pub(crate) edges: BTreeSet<(usize, usize)>,
    /// Functions that lead nowhere.
    pub(crate) sources: BTreeSet<usize>,
    /// Functions to which nothing leads.
    pub(crate) targets: BTreeSet<usize>,
}

impl Cut {
    fn holds(&self, from: Node, to: Node) -> bool {
        let is_target = matches!(to, Node::Function(to) if self.targets.contains(&to));
        match (from, to) {
            (Node::Function(from), _) if self.sources.contains(&from) => true,
            (Node::Function(from), Node::Function(to)) => {
                is_target || self.edges.contains(&(from, to))
            }
            (Node::Piece(_), _) | (_, Node::Piece(_)) => is_target,
        }
    }
}

/// What a walk reached.
pub(crate) struct Walk {
    /// By function: where it was reached from. Roots are their own parents.
    functions: Vec<Option<Node>>,
    pieces: Vec<Option<Node>>,
    /// Indirect calls and jumps in reached functions.
    pub(crate) indirect: u64,
}

/// Where a program starts: its entry, the functions that the loader or the C library
/// calls by table, and what initial thread-local data points to, which code finds by an
/// offset and not by an address.
pub(crate) fn entry_roots(image: &Image<'_>, graph: &Graph) -> Vec<Node> {
    const TABLES: [&str; 4] = [".preinit_array", ".init_array", ".fini_array", ".tdata"];
    let mut roots = Vec::new();
    graph.lead_to(image.entry, &mut roots);
    for section in &image.sections {
        if [".init", ".fini"].contains(&section.name.as_str()) {
            graph.lead_to(section.address, &mut roots);
        }
        if TABLES.contains(&section.name.as_str()) {
            graph.follow(section.address, section.end(), &mut roots);
        }
    }
    roots.sort_unstable();
    roots.dedup();
    roots
}

/// Walks from `roots` without what is in `cut`.
pub(crate) fn walk(graph: &Graph, roots: &[Node], cut: &Cut) -> Walk {
    let mut state = Walk {
        functions: vec![None; graph.functions.list.len()],
        pieces: vec![None; graph.pieces.len()],
        indirect: 0,
    };
    let mut open = VecDeque::new();
    for root in roots {
        *state.slot(*root) = Some(*root);
        open.push_back(*root);
    }
    let mut found = Vec::new();
    while let Some(node) = open.pop_front() {
        found.clear();
        match node {
            Node::Function(index) => {
                state.indirect += u64::from(graph.references.indirect[index]);
                for reference in &graph.references.of[index] {
                    graph.targets(*reference, &mut found);
                }
            }
            Node::Piece(index) => graph.piece_targets(index, &mut found),
        }
        for next in &found {
            if cut.holds(node, *next) {
                continue;
            }
            let slot = state.slot(*next);
            if slot.is_none() {
                *slot = Some(node);
                open.push_back(*next);
            }
        }
    }
    state
}

impl Walk {
    fn slot(&mut self, node: Node) -> &mut Option<Node> {
        match node {
            Node::Function(index) => &mut self.functions[index],
            Node::Piece(index) => &mut self.pieces[index],
        }
    }

    /// Whether function `index` was reached.
    pub(crate) fn reaches(&self, index: usize) -> bool {
        self.functions[index].is_some()
    }

    /// Reached functions and their bytes.
    pub(crate) fn size(&self, graph: &Graph) -> (usize, u64) {
        graph
            .functions
            .list
            .iter()
            .enumerate()
            .filter(|(index, _)| self.reaches(*index))
            .fold((0, 0), |(count, bytes), (_, function)| {
                (count + 1, bytes.saturating_add(function.bytes()))
            })
    }

    /// Nodes on the way to function `index`, both ends included; 0 when not reached.
    pub(crate) fn distance(&self, index: usize) -> usize {
        let mut nodes = 0;
        let mut at = Node::Function(index);
        while let Some(parent) = self.parent(at) {
            nodes += 1;
            if parent == at {
                break;
            }
            at = parent;
        }
        nodes
    }

    fn parent(&self, node: Node) -> Option<Node> {
        match node {
            Node::Function(index) => self.functions[index],
            Node::Piece(index) => self.pieces[index],
        }
    }

    /// The way from a root to function `index`, both included; empty when not reached.
    pub(crate) fn route(&self, index: usize) -> Vec<Node> {
        let mut route = Vec::new();
        let mut at = Node::Function(index);
        loop {
            let Some(parent) = self.parent(at) else {
                return Vec::new();
            };
            route.push(at);
            if parent == at {
                break;
            }
            at = parent;
        }
        route.reverse();
        route
    }
}
