//! Tables of distances: what position independent code has instead of pointers.
//!
//! Compilers turn a choice among constants into a table of 32-bit distances from its own
//! start (LLVM's relative lookup tables). Such a table has no relocations, so its entries
//! are looked for: words, from an address that code takes on, that lead to something.
//! More may be found than there is; jump tables lead into their own function and say nothing.

use super::decode::{References, Use};
use super::functions::Functions;
use crate::binary::{Image, Pointer, Section};

/// Bytes of one entry.
const ENTRY_BYTES: u64 = 4;

/// What an entry leads to is a table of pointers, and those are aligned.
const POINTER_BYTES: u64 = 8;

/// Entries of tables of distances as if they were pointers, sorted by place.
///
/// A table begins where code takes an address in data that holds no relocations, and ends
/// before the next such address, at the end of its section, before a pointer (vtables have
/// small numbers behind one), or with the first word that leads nowhere or to the table
/// itself; so each word of the file is read once at most. Kept are entries that lead to the start of a
/// function, or to an aligned place in a section that holds `pointers` (sorted by place).
pub(super) fn entries(
    image: &Image<'_>,
    pointers: &[Pointer],
    functions: &Functions,
    references: &References,
) -> Vec<Pointer> {
    let holds_pointers: Vec<bool> = image
        .sections
        .iter()
        .map(|section| !section.executable && holds(pointers, section.address, section.size))
        .collect();
    let starts = table_starts(references);
    let mut list = Vec::new();
    for (index, start) in starts.iter().enumerate() {
        let next = starts.get(index + 1).copied().unwrap_or(u64::MAX);
        let is_plain = |place: u64| !holds(pointers, place & !(POINTER_BYTES - 1), POINTER_BYTES);
        let relocated = image
            .section_at(*start)
            .is_none_or(|section| is_relocated(image, section));
        if relocated {
            continue;
        }
        for (place, target) in table(image, *start, next).take_while(|(place, _)| is_plain(*place))
        {
            let leads_on = functions.starting_at(target).is_some()
                || (target.is_multiple_of(POINTER_BYTES)
                    && image
                        .section_index(target)
                        .is_some_and(|at| holds_pointers[at]));
            if leads_on {
                list.push(Pointer { place, target });
            }
        }
    }
    list
}

/// Whether a pointer stands in `size` bytes from `address`.
fn holds(pointers: &[Pointer], address: u64, size: u64) -> bool {
    let first = pointers.partition_point(|one| one.place < address);
    pointers
        .get(first)
        .is_some_and(|one| one.place - address < size)
}

/// Whether loading changes something in `section`.
fn is_relocated(image: &Image<'_>, section: &Section<'_>) -> bool {
    let first = image
        .dynamic
        .partition_point(|one| one.place < section.address);
    let next = image.dynamic.get(first);
    next.is_some_and(|one| one.place < section.end())
}

/// Addresses that code takes and where a table can begin, sorted.
fn table_starts(references: &References) -> Vec<u64> {
    let taken = references.of.iter().flatten();
    let mut starts: Vec<u64> = taken
        .filter(|reference| reference.how == Use::Takes)
        .map(|reference| reference.target)
        .filter(|address| address.is_multiple_of(ENTRY_BYTES))
        .collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}

/// Places and targets of the table at `start`, as far as its words lead into the program.
fn table<'i>(image: &'i Image<'_>, start: u64, next: u64) -> impl Iterator<Item = (u64, u64)> + 'i {
    let section = image.section_at(start).filter(|one| !one.executable);
    let bytes = section
        .and_then(|one| {
            let from = usize::try_from(start - one.address).ok()?;
            one.bytes.get(from..)
        })
        .unwrap_or(&[]);
    let words = bytes.as_chunks::<4>().0.iter();
    (0_u64..)
        .zip(words)
        .map(move |(index, word)| {
            let target = start.wrapping_add_signed(i64::from(i32::from_le_bytes(*word)));
            (start.saturating_add(index * ENTRY_BYTES), target)
        })
        .take_while(move |(place, target)| {
            *place < next && *target != start && image.section_at(*target).is_some()
        })
}
