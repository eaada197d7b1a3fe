//! Functions, pieces of data, and what each of them refers to.
//!
//! Data is cut into pieces at every address that is taken or pointed to; a piece
//! stands for the table or vtable that begins there. Inside an object that a symbol
//! names nothing is cut: whoever takes any address in it may use all of it.

use super::decode::{self, Reference, References, Use};
use super::distances;
use super::emitted;
use super::functions::Functions;
use crate::binary::{Image, Link, Pointer, SymbolKind};

/// Where references of code come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// Decoded instructions.
    Decoded,
    /// Relocations kept by the linker.
    Relocations,
}

impl Source {
    /// In words, for reports.
    pub(crate) const fn describe(self) -> &'static str {
        match self {
            Self::Decoded => "decoded instructions",
            Self::Relocations => "relocations kept by the linker",
        }
    }
}

/// A node: a function or a piece of data, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Node {
    Function(usize),
    Piece(usize),
}

/// The call graph of one program.
pub(crate) struct Graph {
    pub(crate) functions: Functions,
    pub(crate) references: References,
    /// Pointers in data and entries of tables of distances, sorted by place.
    pub(crate) pointers: Vec<Pointer>,
    /// First addresses of the pieces of data, sorted.
    pub(crate) pieces: Vec<u64>,
    pub(crate) source: Source,
    /// Whether a word in data may be a number that looks like an address.
    fixed: bool,
}

/// Builds the graph of `image`. `None` when `source` asks for
/// relocations that the linker did not keep.
pub(crate) fn build(image: &Image<'_>, pointers: &[Pointer], source: Source) -> Option<Graph> {
    let functions = Functions::of(image);
    let references = match source {
        Source::Decoded => decode::decode(image, &functions),
        Source::Relocations => emitted::references(image, &functions)?,
    };
    // Where distances lead nothing is cut: one that is none would take the end of a
    // vtable off, and whole pieces only show more than there is.
    let pieces = cut_data(image, pointers, &references);
    let mut pointers = pointers.to_vec();
    let distances = distances::entries(image, &pointers, &functions, &references);
    pointers.extend(distances);
    pointers.sort_unstable();
    Some(Graph {
        pieces,
        pointers,
        fixed: image.link == Link::Fixed,
        functions,
        references,
        source,
    })
}

/// First addresses of all pieces.
fn cut_data(image: &Image<'_>, pointers: &[Pointer], references: &References) -> Vec<u64> {
    let is_data = |address: &u64| image.section_at(*address).is_some_and(|s| !s.executable);
    let taken = references
        .of
        .iter()
        .flatten()
        .filter(|reference| reference.how == Use::Takes)
        .map(|reference| reference.target);
    let pointed = pointers.iter().map(|pointer| pointer.target);
    let mut cuts: Vec<u64> = taken.chain(pointed).filter(is_data).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let objects = objects(image);
    cuts.retain(|cut| {
        let before = objects.partition_point(|(start, _)| start <= cut);
        before
            .checked_sub(1)
            .is_none_or(|index| *cut == objects[index].0 || *cut >= objects[index].1)
    });
    cuts.extend(objects.iter().flat_map(|(start, end)| [*start, *end]));
    cuts.extend(
        image
            .sections
            .iter()
            .filter(|s| !s.executable)
            .map(|s| s.address),
    );
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

/// Start and end of named objects, sorted, made disjoint.
fn objects(image: &Image<'_>) -> Vec<(u64, u64)> {
    let mut list: Vec<(u64, u64)> = Vec::new();
    for symbol in &image.symbols {
        let is_object = symbol.kind == SymbolKind::Object && symbol.size > 0;
        let is_data = image
            .section_at(symbol.address)
            .is_some_and(|s| !s.executable);
        if !is_object || !is_data {
            continue;
        }
        let end = symbol.address.saturating_add(symbol.size);
        match list.last_mut() {
            Some((_, until)) if symbol.address < *until => *until = (*until).max(end),
            _ => list.push((symbol.address, end)),
        }
    }
    list
}

impl Graph {
    /// Nodes that a reference leads to.
    pub(crate) fn targets(&self, reference: Reference, found: &mut Vec<Node>) {
        match reference.how {
            Use::Reads(size) => {
                let end = reference.target.saturating_add(u64::from(size));
                self.follow(reference.target, end, found);
            }
            Use::Goes | Use::Takes => self.lead_to(reference.target, found),
        }
    }

    /// Nodes that the pointers in piece `index` lead to.
    pub(crate) fn piece_targets(&self, index: usize, found: &mut Vec<Node>) {
        let end = self.pieces.get(index + 1).copied().unwrap_or(u64::MAX);
        self.follow(self.pieces[index], end, found);
    }

    /// Nodes that the pointers in a range of addresses lead to.
    pub(super) fn follow(&self, from: u64, to: u64, found: &mut Vec<Node>) {
        let first = self
            .pointers
            .partition_point(|pointer| pointer.place < from);
        for pointer in &self.pointers[first..] {
            if pointer.place >= to {
                break;
            }
            if self.fixed {
                self.lead_to_start(pointer.target, found);
            } else {
                self.lead_to(pointer.target, found);
            }
        }
    }

    /// The node that holds `address`.
    pub(super) fn lead_to(&self, address: u64, found: &mut Vec<Node>) {
        if let Some(index) = self.functions.at(address) {
            found.push(Node::Function(index));
        } else {
            found.extend(self.piece_at(address).map(Node::Piece));
        }
    }

    /// A word that looks like an address inside of a function is a number or a jump
    /// table of that function, so only its start counts. Code that nothing names may be
    /// several functions, so there each address does.
    fn lead_to_start(&self, address: u64, found: &mut Vec<Node>) {
        match self.functions.at(address) {
            None => found.extend(self.piece_at(address).map(Node::Piece)),
            Some(index) => {
                let function = &self.functions.list[index];
                if function.start == address || function.is_gap {
                    found.push(Node::Function(index));
                }
            }
        }
    }

    fn piece_at(&self, address: u64) -> Option<usize> {
        self.pieces
            .partition_point(|start| *start <= address)
            .checked_sub(1)
    }
}
