//! Interned text: every name, key and text value is stored once.

use std::collections::HashMap;

/// A text of a [`Names`]; comparable only within the same one, and by identity:
/// the order of symbols is the order of reading and must never be printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Symbol(u32);

/// The texts.
#[derive(Clone, Debug, Default)]
pub struct Names {
    texts: Vec<Box<str>>,
    index: HashMap<Box<str>, Symbol>,
}

impl Names {
    /// The symbol of `text`, new where it was not met before.
    pub fn intern(&mut self, text: &str) -> Symbol {
        if let Some(symbol) = self.index.get(text) {
            return *symbol;
        }
        // 2^32 different texts do not fit into memory with their spans.
        let symbol = Symbol(u32::try_from(self.texts.len()).unwrap_or(u32::MAX));
        self.texts.push(text.into());
        self.index.insert(text.into(), symbol);
        symbol
    }

    /// The symbol of `text` where it was met.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<Symbol> {
        self.index.get(text).copied()
    }

    /// The text of a symbol of this collection; empty for one of another.
    #[must_use]
    pub fn text(&self, symbol: Symbol) -> &str {
        self.texts.get(symbol.0 as usize).map_or("", |text| text)
    }
}
