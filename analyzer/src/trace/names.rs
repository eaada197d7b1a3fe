//! Interned text: every name, key and text value is stored once, one behind the
//! other in one buffer. Lookup is by a hash that is seeded anew in each process,
//! so that no trace can be made to collide.

use std::hash::BuildHasher as _;
use std::num::NonZeroU32;

use hashbrown::{DefaultHashBuilder, HashTable};

/// A text of a [`Names`]; comparable only within the same one, and by identity:
/// the order of symbols is the order of reading and must never be printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Symbol(NonZeroU32);

impl Symbol {
    /// Its place among the texts of its collection.
    #[must_use]
    pub fn place(self) -> usize {
        self.0.get() as usize - 1
    }

    /// Its number, never 0.
    #[must_use]
    pub(super) fn number(self) -> u32 {
        self.0.get()
    }

    /// The symbol with this number.
    #[must_use]
    pub(super) fn numbered(number: u32) -> Option<Self> {
        NonZeroU32::new(number).map(Self)
    }

    /// The symbol at a place. 2^32 different texts do not fit into memory with
    /// their spans.
    fn at(place: usize) -> Self {
        let number = u32::try_from(place).unwrap_or(u32::MAX).saturating_add(1);
        Self(NonZeroU32::new(number).unwrap_or(NonZeroU32::MAX))
    }
}

/// The texts.
#[derive(Clone, Debug, Default)]
pub struct Names {
    buffer: String,
    /// Where each text ends in `buffer`; it starts where the one before ends.
    ends: Vec<usize>,
    /// Each with half of its hash, so that growing looks at no text again.
    index: HashTable<(u32, Symbol)>,
    hasher: DefaultHashBuilder,
}

impl Names {
    /// The symbol of `text`, new where it was not met before.
    pub fn intern(&mut self, text: &str) -> Symbol {
        let hash = self.hash(text);
        if let Some(symbol) = self.find_hashed(text, hash) {
            return symbol;
        }
        let symbol = Symbol::at(self.ends.len());
        self.buffer.push_str(text);
        self.ends.push(self.buffer.len());
        let spread = |(hash, _): &(u32, Symbol)| whole(*hash);
        self.index
            .insert_unique(whole(hash), (hash, symbol), spread);
        symbol
    }

    /// Makes room for so many more texts of so many bytes.
    pub fn reserve(&mut self, texts: usize, bytes: usize) {
        self.buffer.reserve_exact(bytes);
        self.ends.reserve_exact(texts);
        self.index.reserve(texts, |(hash, _)| whole(*hash));
    }

    /// Gives back what finds a text; nothing more is looked up or added.
    pub fn close(&mut self) {
        self.index = HashTable::new();
    }

    /// How many texts there are, and of how many bytes.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        (self.ends.len(), self.buffer.len())
    }

    /// The symbol of `text` where it was met.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<Symbol> {
        self.find_hashed(text, self.hash(text))
    }

    fn find_hashed(&self, text: &str, hash: u32) -> Option<Symbol> {
        let same = |(own, symbol): &(u32, Symbol)| {
            *own == hash && text_at(&self.buffer, &self.ends, *symbol) == text
        };
        let found = self.index.find(whole(hash), same);
        found.map(|(_, symbol)| *symbol)
    }

    /// Half of the hash of a text.
    fn hash(&self, text: &str) -> u32 {
        let half = self.hasher.hash_one(text) & u64::from(u32::MAX);
        u32::try_from(half).unwrap_or(0)
    }

    /// The text of a symbol of this collection; empty for one of another.
    #[must_use]
    pub fn text(&self, symbol: Symbol) -> &str {
        text_at(&self.buffer, &self.ends, symbol)
    }

    /// All texts, in the order of their symbols.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len()).map(|place| self.text(Symbol::at(place)))
    }
}

/// A whole hash from half of one: the table takes bits of both ends.
fn whole(half: u32) -> u64 {
    u64::from(half) << 32 | u64::from(half)
}

fn text_at<'a>(buffer: &'a str, ends: &[usize], symbol: Symbol) -> &'a str {
    let place = symbol.place();
    let start = place
        .checked_sub(1)
        .map_or(Some(0), |before| ends.get(before).copied());
    let range = start.zip(ends.get(place).copied());
    range
        .and_then(|(start, end)| buffer.get(start..end))
        .unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_symbol_and_a_symbol_its_text() {
        let mut names = Names::default();
        let symbols: Vec<Symbol> = (0..1000)
            .map(|n| names.intern(&format!("text {n}")))
            .collect();
        assert_eq!(names.intern("text 7"), symbols[7]);
        assert_eq!(names.find("text 999"), Some(symbols[999]));
        assert_eq!(names.find("text 1000"), None);
        assert_eq!(names.text(symbols[0]), "text 0");
        assert_eq!(names.texts().count(), 1000);
        let empty = names.intern("");
        assert_eq!(names.text(empty), "");
    }
}
