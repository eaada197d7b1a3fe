//! References of code, by the relocations that `-Wl,--emit-relocs` keeps.
//!
//! Needs no disassembler: the linker wrote down every place in code that holds an
//! address. How the address is used is not known, so data is taken whole.

use super::decode::{Reference, References, Use};
use super::functions::Functions;
use crate::binary::Image;

/// Types of the x86-64 psABI whose field is relative to its own place, so that
/// symbol plus addend is four bytes less than what is meant.
const PC_RELATIVE: [u32; 6] = [2, 4, 9, 41, 42, 43];

/// Types that are absolute addresses: `64`, `32`, `32S`.
const ABSOLUTE: [u32; 3] = [1, 10, 11];

/// Reads the references; `None` when the linker kept no relocations.
pub(crate) fn references(image: &Image<'_>, functions: &Functions) -> Option<References> {
    if image.emitted.is_empty() {
        return None;
    }
    let mut lists: Vec<Vec<Reference>> = vec![Vec::new(); functions.list.len()];
    for relocation in &image.emitted {
        let Some(index) = functions.at(relocation.place) else {
            continue;
        };
        let target = if PC_RELATIVE.contains(&relocation.kind) {
            relocation.target.wrapping_add(4)
        } else if ABSOLUTE.contains(&relocation.kind) {
            relocation.target
        } else {
            continue;
        };
        let function = &functions.list[index];
        if !(function.start..function.end).contains(&target) {
            lists[index].push(Reference {
                target,
                how: Use::Takes,
            });
        }
    }
    let sorted = lists.into_iter().map(|mut list| {
        list.sort_unstable();
        list.dedup();
        list.into_boxed_slice()
    });
    Some(References {
        of: sorted.collect(),
        indirect: vec![0; functions.list.len()],
    })
}
