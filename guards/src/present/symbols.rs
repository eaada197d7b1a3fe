//! Names of a symbol table, by the crates that they mention.

use crate::binary::{Image, Symbol, SymbolKind, code_name, display_name, paths_in};
use crate::policy::SymbolPattern;
use crate::threads;
use std::collections::{BTreeMap, BTreeSet};

/// The Rust names of a binary.
#[derive(Debug, Clone, Default)]
pub(crate) struct SymbolTable {
    /// By root of a path, wherever it stands in the name.
    pub(crate) roots: BTreeMap<String, RootUse>,
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
        let Some(display) = display_name(symbol.name) else {
            return;
        };
        self.count += 1;
        self.legacy += usize::from(symbol.name.starts_with("_ZN"));
        let mut roots: Vec<&str> = Vec::new();
        for path in paths_in(&display) {
            let root = path.split("::").next().unwrap_or(path);
            if path.len() > root.len() && !roots.contains(&root) {
                roots.push(root);
            }
        }
        for root in roots {
            let entry = self.roots.entry(root.to_owned()).or_default();
            entry.functions += 1;
            // Sizes are the file's word; a damaged one must not end the program.
            entry.bytes = entry.bytes.saturating_add(symbol.size);
            if entry.example.is_empty() || display < entry.example {
                entry.example.clone_from(&display);
            }
        }
    }

    fn joined(mut self, other: Self) -> Self {
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

/// Paths in the names of `image` that each pattern names: parts of a name, or its plain
/// form. One pass for all patterns, sorted and each once.
pub(crate) fn paths_matching(
    image: &Image<'_>,
    patterns: &[&SymbolPattern],
) -> Vec<BTreeSet<String>> {
    let none = || vec![BTreeSet::new(); patterns.len()];
    if patterns.is_empty() {
        return none();
    }
    let parts = threads::by_chunks(&image.symbols, CHUNK_MIN, |_, symbols| {
        let mut found = none();
        let names = symbols.iter().filter(|one| one.kind != SymbolKind::File);
        for name in names.map(|one| code_name(one.name)).filter(|n| n.is_rust) {
            let paths = paths_in(&name.display);
            let parts = paths.into_iter().filter(|path| path.contains("::"));
            for path in parts.chain([name.plain.as_str()]) {
                for (pattern, found) in patterns.iter().zip(&mut found) {
                    if pattern.matches(path) && !found.contains(path) {
                        found.insert(path.to_owned());
                    }
                }
            }
        }
        found
    });
    parts.into_iter().fold(none(), |mut all, part| {
        for (all, part) in all.iter_mut().zip(part) {
            all.extend(part);
        }
        all
    })
}
