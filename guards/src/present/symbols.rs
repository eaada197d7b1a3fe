//! Names of a symbol table, by the crates that they mention.

use crate::binary::{Image, SymbolKind, code_name, paths_in};
use std::collections::{BTreeMap, BTreeSet};

/// The Rust names of a binary.
#[derive(Debug, Clone, Default)]
pub(crate) struct SymbolTable {
    /// By root of a path, wherever it stands in the name.
    pub(crate) roots: BTreeMap<String, RootUse>,
    /// Every path that a rule for symbols can name, sorted.
    pub(crate) paths: BTreeSet<String>,
    /// How many Rust symbols there are.
    pub(crate) count: usize,
    /// Legacy names among them.
    pub(crate) legacy: usize,
}

/// How often a crate is mentioned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RootUse {
    pub(crate) functions: usize,
    pub(crate) bytes: u64,
    /// The first name by order.
    pub(crate) example: String,
}

/// Reads the names; `None` when there is no Rust name.
pub(super) fn read(image: &Image<'_>) -> Option<SymbolTable> {
    let mut table = SymbolTable::default();
    for symbol in &image.symbols {
        if symbol.kind == SymbolKind::File {
            continue;
        }
        let name = code_name(symbol.name);
        if !name.is_rust {
            continue;
        }
        table.count += 1;
        table.legacy += usize::from(symbol.name.starts_with("_ZN"));
        let mut roots: Vec<&str> = Vec::new();
        for path in paths_in(&name.display) {
            let root = path.split("::").next().unwrap_or(path);
            if path.len() > root.len() {
                table.paths.insert(path.to_owned());
                if !roots.contains(&root) {
                    roots.push(root);
                }
            }
        }
        for root in roots {
            let entry = table.roots.entry(root.to_owned()).or_default();
            entry.functions += 1;
            // Sizes are the file's word; a damaged one must not end the program.
            entry.bytes = entry.bytes.saturating_add(symbol.size);
            if entry.example.is_empty() || name.display < entry.example {
                entry.example.clone_from(&name.display);
            }
        }
        table.paths.insert(name.plain);
    }
    (table.count > 0).then_some(table)
}
