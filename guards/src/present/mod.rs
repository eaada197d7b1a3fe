//! Layer `present`: whose code is in the binary.
//!
//! Two signals: names of symbols, which die with stripping, and the file paths in
//! panic locations, which survive it. Both are read structurally; the text of the
//! file is never searched, because help texts and names of source files lie.

mod judge;
mod locations;
mod origins;
mod symbols;

pub(crate) use judge::{Judge, Names};
pub(crate) use locations::{Location, locations};
pub(crate) use origins::{Folders, Owner, PathClass, owner_of};
pub(crate) use symbols::{SymbolTable, paths_matching, read as read_symbols};

use crate::binary::{Image, Pointer};
use crate::packages::Workspace;
use std::collections::BTreeMap;

/// Everything that one binary says about whose code it holds.
pub(crate) struct Presence {
    /// By name of the crate at the root of a path; `None` when there are no Rust names.
    pub(crate) symbols: Option<SymbolTable>,
    /// Panic locations, sorted by place.
    pub(crate) locations: Vec<Location>,
    /// Locations by owner.
    pub(crate) owners: BTreeMap<Owner, OwnerUse>,
    /// Whether the binary carries a list of packages for auditing; a hint only.
    pub(crate) has_audit_list: bool,
}

/// How often an owner's paths occur.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OwnerUse {
    pub(crate) count: usize,
    /// The first path by order.
    pub(crate) example: String,
}

impl Presence {
    /// Whether anything says that this is Rust code.
    pub(crate) fn is_rust(&self) -> bool {
        self.symbols.is_some() || !self.locations.is_empty()
    }
}

/// Reads the panic locations and puts them beside the symbols, which need no workspace
/// to be read; `workspace` says whose folders paths are in.
pub(crate) fn look(
    image: &Image<'_>,
    pointers: &[Pointer],
    workspace: Option<&Workspace>,
    symbols: Option<SymbolTable>,
) -> Presence {
    let locations = locations(image, pointers, workspace);
    let mut owners: BTreeMap<Owner, OwnerUse> = BTreeMap::new();
    for location in &locations {
        let entry = owners.entry(location.owner.clone()).or_default();
        entry.count += 1;
        if entry.example.is_empty() || location.path < entry.example {
            entry.example.clone_from(&location.path);
        }
    }
    Presence {
        symbols,
        locations,
        owners,
        has_audit_list: image.sections.iter().any(|s| s.name == ".dep-v0"),
    }
}
