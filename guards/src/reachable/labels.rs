//! What is known about each function: its names, and whose panic locations it uses.
//!
//! Only what rules are matched with is kept; the long names for people are made again
//! for the few functions that a report writes.

use super::decode::Reference;
use super::functions::{Function, names_of};
use super::graph::{Graph, Node};
use crate::binary::{Image, TextLists, owning_paths, plain_path};
use crate::policy::{SymbolPattern, fold_name};
use crate::present::{Owner, PathClass, Presence};
use crate::threads;
use std::collections::{BTreeMap, BTreeSet};

/// Functions that one thread labels at least; less is not worth a thread.
const CHUNK_MIN: usize = 4096;

/// Labels of all functions of one graph.
pub(crate) struct Labels<'i> {
    image: &'i Image<'i>,
    /// By function: names for exact matches.
    plain: TextLists,
    /// By function: paths whose code it is.
    paths: TextLists,
    /// Owners of panic locations, each once.
    pub(super) known_owners: Vec<Owner>,
    /// By function: owners of the locations that it refers to, by index.
    owners: Vec<Box<[u32]>>,
    /// Whether there are names at all.
    pub(crate) has_names: bool,
}

/// Labels every function of `graph`.
pub(crate) fn labels<'i>(graph: &Graph, image: &'i Image<'i>, presence: &Presence) -> Labels<'i> {
    let mut numbers: BTreeMap<&Owner, u32> = BTreeMap::new();
    let mut known_owners = Vec::new();
    let mut places: BTreeMap<u64, u32> = BTreeMap::new();
    for location in &presence.locations {
        if location.owner.class == PathClass::Other {
            continue;
        }
        let next = u32::try_from(known_owners.len()).unwrap_or(u32::MAX);
        let number = *numbers.entry(&location.owner).or_insert_with(|| {
            known_owners.push(location.owner.clone());
            next
        });
        places.insert(location.place, number);
    }
    let mut labels = Labels {
        image,
        plain: TextLists::default(),
        paths: TextLists::default(),
        known_owners,
        owners: Vec::with_capacity(graph.functions.list.len()),
        has_names: presence.symbols.is_some(),
    };
    let parts = threads::by_chunks(&graph.functions.list, CHUNK_MIN, |first, functions| {
        let references = &graph.references.of[first..first + functions.len()];
        label_part(functions, references, image, &places)
    });
    for (plain, paths, owners) in parts {
        labels.plain.append(&plain);
        labels.paths.append(&paths);
        labels.owners.extend(owners);
    }
    labels
}

type Part = (TextLists, TextLists, Vec<Box<[u32]>>);

fn label_part(
    functions: &[Function],
    references: &[Box<[Reference]>],
    image: &Image<'_>,
    places: &BTreeMap<u64, u32>,
) -> Part {
    let (mut plain, mut paths) = (TextLists::default(), TextLists::default());
    let mut owners = Vec::with_capacity(functions.len());
    for (function, references) in functions.iter().zip(references) {
        let known = names_of(function, image);
        plain.push_list(known.iter().map(|name| name.plain.as_str()));
        let owned: BTreeSet<&str> = known
            .iter()
            .filter(|name| name.is_rust)
            .flat_map(|name| owning_paths(&name.display))
            .collect();
        paths.push_list(owned);
        let used: BTreeSet<u32> = references
            .iter()
            .filter_map(|reference| places.get(&reference.target).copied())
            .collect();
        owners.push(used.into_iter().collect());
    }
    (plain, paths, owners)
}

impl Labels<'_> {
    /// Demangled name for people; the address without symbols.
    pub(super) fn display(&self, graph: &Graph, index: usize) -> String {
        let function = &graph.functions.list[index];
        let known = names_of(function, self.image);
        let first = known.into_iter().map(|name| name.display).min();
        first.unwrap_or_else(|| format!("code at {:#x}", function.start))
    }

    /// Owners of the panic locations that function `index` uses.
    pub(super) fn owners_of(&self, index: usize) -> impl Iterator<Item = usize> {
        let owners = self.owners[index].iter();
        owners.filter_map(|owner| usize::try_from(*owner).ok())
    }

    /// Functions whose exact path is `name`, or whose whole name it is: drop glue has no
    /// other (`core::ptr::drop_in_place<a::T>`).
    pub(crate) fn find(&self, graph: &Graph, name: &str) -> Vec<usize> {
        // Names are demangled again only where their plain form fits.
        let wanted = plain_path(name).replace("::<", "<");
        let has_arguments = name.contains('<');
        let is_named = |index: &usize| {
            self.plain.list(*index).any(|plain| {
                plain == name
                    || (has_arguments
                        && plain.replace("::<", "<") == wanted
                        && self.display(graph, *index).replace("::<", "<") == name)
            })
        };
        (0..self.plain.len()).filter(is_named).collect()
    }

    /// Functions that are `name`, or whose paths begin with it when it ends in `*`.
    pub(crate) fn find_sources(&self, graph: &Graph, name: &str) -> Vec<usize> {
        let Some(prefix) = name.strip_suffix('*') else {
            return self.find(graph, name);
        };
        let begins = |index: &usize| {
            self.plain
                .list(*index)
                .any(|plain| plain.starts_with(prefix))
        };
        (0..self.plain.len()).filter(begins).collect()
    }

    /// Whether any function answers to `pattern`.
    pub(crate) fn any_matches(&self, pattern: &SymbolPattern) -> bool {
        (0..self.plain.len()).any(|index| self.matches(index, pattern))
    }

    pub(super) fn matches(&self, index: usize, pattern: &SymbolPattern) -> bool {
        let mut names = self.plain.list(index).chain(self.paths.list(index));
        names.any(|name| pattern.matches(name))
    }

    pub(super) fn mentions(&self, index: usize, crates: &BTreeSet<String>) -> bool {
        self.paths.list(index).any(|path| {
            path.split_once("::")
                .is_some_and(|(root, _)| crates.contains(&fold_name(root)))
        })
    }

    /// A route in words; pieces of data say that a table is on the way.
    pub(crate) fn words(&self, graph: &Graph, route: &[Node]) -> Vec<String> {
        route
            .iter()
            .map(|node| match node {
                Node::Function(index) => self.display(graph, *index),
                Node::Piece(index) => format!("(data at {:#x})", graph.pieces[*index]),
            })
            .collect()
    }
}
