//! Layer `reachable`: what can run after the start of a path.
//!
//! A call graph of the linked program: decoded calls and jumps, code whose address
//! is taken, and tables of pointers in data. The walk goes forward from the entry and
//! leaves out only the edges that the policy names. It finds more than ever runs
//! (a table is taken whole), and misses what no pointer in the file leads to:
//! libraries loaded while running, and code that is made while running.

mod decode;
mod distances;
mod emitted;
mod functions;
mod graph;
mod judge;
mod labels;
mod walk;

pub(crate) use graph::{Graph, Node, Source, build};
pub(crate) use judge::judge;
pub(crate) use labels::{Labels, labels};
pub(crate) use walk::{Cut, Walk, entry_roots, walk};
