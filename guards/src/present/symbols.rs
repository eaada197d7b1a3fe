//! Names of a symbol table, by the crates that they mention.

use crate::binary::{Image, Symbol, SymbolKind, code_name, paths_in};
use crate::threads;
use std::collections::{BTreeMap, HashSet};

/// The Rust names of a binary.
#[derive(Debug, Clone, Default)]
pub(crate) struct SymbolTable {
    /// By root of a path, wherever it stands in the name.
    pub(crate) roots: BTreeMap<String, RootUse>,
    /// Every path that a rule for symbols can name.
    pub(crate) paths: HashSet<String>,
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

/// Symbols that one thread reads at least; less is not worth a thread.
const CHUNK_MIN: usize = 4096;

/// Reads the names; `None` when there is no Rust name.
pub(crate) fn read(image: &Image<'_>) -> Option<SymbolTable> {
    let parts = threads::by_chunks(&image.symbols, CHUNK_MIN, |_, symbols| {
        let mut table = SymbolTable::default();
        for symbol in symbols {
            table.add(symbol);
        }
        table
    });
    let table = parts.into_iter().reduce(SymbolTable::joined)?;
    (table.count > 0).then_some(table)
}

impl SymbolTable {
    fn add(&mut self, symbol: &Symbol<'_>) {
        if symbol.kind == SymbolKind::File {
            return;
        }
        let name = code_name(symbol.name);
        if !name.is_rust {
            return;
        }
        self.count += 1;
        self.legacy += usize::from(symbol.name.starts_with("_ZN"));
        let mut roots: Vec<&str> = Vec::new();
        for path in paths_in(&name.display) {
            let root = path.split("::").next().unwrap_or(path);
            if path.len() > root.len() {
                self.keep_path(path);
                if !roots.contains(&root) {
                    roots.push(root);
                }
            }
        }
        for root in roots {
            let entry = self.roots.entry(root.to_owned()).or_default();
            entry.functions += 1;
            // Sizes are the file's word; a damaged one must not end the program.
            entry.bytes = entry.bytes.saturating_add(symbol.size);
            if entry.example.is_empty() || name.display < entry.example {
                entry.example.clone_from(&name.display);
            }
        }
        self.keep_path(&name.plain);
    }

    /// Names repeat much more often than they are new.
    fn keep_path(&mut self, path: &str) {
        if !self.paths.contains(path) {
            self.paths.insert(path.to_owned());
        }
    }

    fn joined(mut self, other: Self) -> Self {
        self.paths.extend(other.paths);
        self.count += other.count;
        self.legacy += other.legacy;
        for (root, used) in other.roots {
            let entry = self.roots.entry(root).or_default();
            entry.functions += used.functions;
            entry.bytes = entry.bytes.saturating_add(used.bytes);
            if entry.example.is_empty() || used.example < entry.example {
                entry.example = used.example;
            }
        }
        self
    }
}
