//! Where functions are: symbols, unwind tables, and whatever is left between them.
//!
//! Every byte of code but fill belongs to exactly one function, so that no jump leads
//! nowhere.

use crate::binary::{CodeName, Image, SymbolKind, code_name};
use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindSection};
use std::collections::BTreeMap;

/// `int3`, with which linkers fill.
const TRAP: u8 = 0xcc;

/// Longest fill between two functions: functions are aligned to a line of the cache
/// at most.
const PADDING_MAX: usize = 64;

/// A run of code with one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Function {
    /// First address.
    pub(crate) start: u64,
    /// First address behind it.
    pub(crate) end: u64,
    /// Indices of the symbols that name it; several when equal code was folded.
    pub(crate) symbols: Vec<u32>,
    /// Whether neither a symbol nor an unwind table says that it is one.
    pub(crate) is_gap: bool,
}

impl Function {
    /// Length of its code.
    pub(crate) fn bytes(&self) -> u64 {
        self.end - self.start
    }
}

/// All functions of a program, sorted, with nothing but fill between them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Functions {
    pub(crate) list: Vec<Function>,
    /// Named by symbols.
    pub(crate) from_symbols: usize,
    /// Found in the unwind tables only.
    pub(crate) from_unwind: usize,
}

impl Functions {
    /// Finds the functions of `image`.
    pub(crate) fn of(image: &Image<'_>) -> Self {
        let mut starts: BTreeMap<u64, Start> = BTreeMap::new();
        for (index, symbol) in image.symbols.iter().enumerate() {
            let is_code = image
                .section_at(symbol.address)
                .is_some_and(|s| s.executable);
            let names_code = matches!(symbol.kind, SymbolKind::Function | SymbolKind::Label);
            if is_code && names_code {
                let start = starts.entry(symbol.address).or_default();
                start.size = start.size.max(symbol.size);
                start.symbols.extend(u32::try_from(index));
            }
        }
        let from_symbols = starts.len();
        for (address, size) in unwind_ranges(image) {
            if image.section_at(address).is_some_and(|s| s.executable) {
                let start = starts.entry(address).or_default();
                start.size = start.size.max(size);
            }
        }
        let from_unwind = starts.len() - from_symbols;
        Self {
            list: cover(image, starts),
            from_symbols,
            from_unwind,
        }
    }

    /// Index of the function that holds `address`.
    pub(crate) fn at(&self, address: u64) -> Option<usize> {
        let after = self
            .list
            .partition_point(|function| function.start <= address);
        let index = after.checked_sub(1)?;
        (address < self.list[index].end).then_some(index)
    }

    /// Index of the function that begins at `address`.
    pub(crate) fn starting_at(&self, address: u64) -> Option<usize> {
        self.list
            .binary_search_by_key(&address, |function| function.start)
            .ok()
    }
}

#[derive(Debug, Default)]
struct Start {
    size: u64,
    symbols: Vec<u32>,
}

/// Cuts each section of code at the starts and ends. A start without a size goes on
/// to the next; what lies between two functions becomes a nameless one.
fn cover(image: &Image<'_>, starts: BTreeMap<u64, Start>) -> Vec<Function> {
    let mut list: Vec<Function> = Vec::with_capacity(starts.len());
    let mut starts = starts.into_iter().peekable();
    let mut covered = 0;
    for section in image.sections.iter().filter(|section| section.executable) {
        let mut at = section.address.max(covered);
        while starts.next_if(|(address, _)| *address < at).is_some() {}
        while let Some((address, start)) = starts.next_if(|(a, _)| *a < section.end()) {
            push_gap(image, &mut list, at, address);
            let next = starts
                .peek()
                .map_or(section.end(), |(next, _)| *next)
                .min(section.end());
            let end = match start.size {
                0 => next,
                size => address.saturating_add(size).min(next),
            };
            list.push(Function {
                start: address,
                end,
                symbols: start.symbols,
                is_gap: false,
            });
            at = end;
        }
        push_gap(image, &mut list, at, section.end());
        covered = covered.max(section.end());
    }
    list
}

/// Code that nothing names. Traps that fill up to the next function are left out: they
/// lead nowhere, and there would be as many of them as functions.
fn push_gap(image: &Image<'_>, list: &mut Vec<Function>, from: u64, to: u64) {
    let length = usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX);
    let is_padding = length <= PADDING_MAX
        && image
            .bytes_at(from, length)
            .is_some_and(|bytes| bytes.iter().all(|byte| *byte == TRAP));
    if from < to && !is_padding {
        list.push(Function {
            start: from,
            end: to,
            symbols: Vec::new(),
            is_gap: true,
        });
    }
}

/// Start and length of each range that the unwind tables describe. A damaged table
/// gives what stands before the damage.
fn unwind_ranges(image: &Image<'_>) -> Vec<(u64, u64)> {
    let Some(section) = image.sections.iter().find(|s| s.name == ".eh_frame") else {
        return Vec::new();
    };
    let mut bases = BaseAddresses::default().set_eh_frame(section.address);
    if let Some(text) = image.sections.iter().find(|s| s.name == ".text") {
        bases = bases.set_text(text.address);
    }
    let frame = EhFrame::new(section.bytes, LittleEndian);
    let mut entries = frame.entries(&bases);
    let mut ranges = Vec::new();
    while let Ok(Some(entry)) = entries.next() {
        if let CieOrFde::Fde(partial) = entry
            && let Ok(fde) = partial.parse(EhFrame::cie_from_offset)
        {
            ranges.push((fde.initial_address(), fde.len()));
        }
    }
    ranges
}

/// Names of a function, in the order of its symbols; empty without symbols.
pub(crate) fn names_of(function: &Function, image: &Image<'_>) -> Vec<CodeName> {
    function
        .symbols
        .iter()
        .filter_map(|index| image.symbols.get(usize::try_from(*index).ok()?))
        .map(|symbol| code_name(symbol.name))
        .collect()
}
