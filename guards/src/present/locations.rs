//! Panic locations, read as the structures that they are.
//!
//! `core::panic::Location` is a pointer to a path, its length, a line and a column.
//! Only such groups count: a path in a help text has no line behind its pointer.

use super::{Folders, Owner, owner_of};
use crate::binary::{Image, Pointer};
use crate::packages::Workspace;
use std::collections::BTreeMap;

/// Longest path that is believed: the kernel's own bound.
const PATH_BYTES_MAX: u64 = 4096;

/// Shortest path to a source file, `a.rs`.
const PATH_BYTES_MIN: u64 = 4;

/// A panic location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    /// Address of the structure; code refers to it.
    pub(crate) place: u64,
    pub(crate) path: String,
    pub(crate) line: u32,
    pub(crate) owner: Owner,
}

/// Finds the panic locations among `pointers`, sorted by place.
pub(crate) fn locations(
    image: &Image<'_>,
    pointers: &[Pointer],
    workspace: Option<&Workspace>,
) -> Vec<Location> {
    let folders = workspace.map(Folders::of);
    let mut owners: BTreeMap<&str, Owner> = BTreeMap::new();
    let mut list = Vec::new();
    for pointer in pointers {
        let Some((path, line)) = read_location(image, *pointer) else {
            continue;
        };
        let owner = owners
            .entry(path)
            .or_insert_with(|| owner_of(path, folders.as_ref()))
            .clone();
        list.push(Location {
            place: pointer.place,
            path: path.to_owned(),
            line,
            owner,
        });
    }
    list
}

fn read_location<'i>(image: &'i Image<'_>, pointer: Pointer) -> Option<(&'i str, u32)> {
    let tail = image.bytes_at(pointer.place.checked_add(8)?, 16)?;
    let length = u64::from_le_bytes(tail[..8].try_into().ok()?);
    let line = u32::from_le_bytes(tail[8..12].try_into().ok()?);
    let column = u32::from_le_bytes(tail[12..].try_into().ok()?);
    if !(PATH_BYTES_MIN..=PATH_BYTES_MAX).contains(&length) || line == 0 || column == 0 {
        return None;
    }
    let bytes = image.bytes_at(pointer.target, usize::try_from(length).ok()?)?;
    let path = std::str::from_utf8(bytes).ok()?;
    (has_extension(path) && !path.contains(char::is_control)).then_some((path, line))
}

/// The compiler reads files of other names as well, but nobody has them.
fn has_extension(path: &str) -> bool {
    std::path::Path::new(path)
        .extension()
        .is_some_and(|extension| extension == "rs")
}
