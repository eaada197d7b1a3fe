//! How much memory the lists of one record may take.
//!
//! `{}` is two bytes of text and hundreds in memory, so a small compressed file
//! could ask for more than any machine has. Lists are charged as they grow;
//! a record that goes beyond its room is a record that cannot be read.

use std::cell::Cell;

use super::split::RECORD_MAX_BYTES;

/// Bytes that lists may take for each byte of text. Spans take less than twice
/// their text; events of a Chrome trace with one-letter names and small numbers,
/// the densest that was met, take six times theirs.
const PER_BYTE: usize = 12;
/// Room that every record has.
const LEAST: usize = 64 * 1024;
/// Room that no record goes beyond: four times the largest record that is held.
/// Spans of that size take half of it; two records at most are read at once.
const MOST: usize = 4 * RECORD_MAX_BYTES;

thread_local! {
    static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Calls `read`, in which lists have the room of a record of `bytes` bytes.
pub(super) fn within<R>(bytes: usize, read: impl FnOnce() -> R) -> R {
    let room = bytes.saturating_mul(PER_BYTE).saturating_add(LEAST);
    let room = room.min(MOST);
    let before = LEFT.replace(room);
    let result = read();
    LEFT.set(before);
    result
}

/// Takes room for one element.
///
/// # Errors
/// The reason, in words, when there is none left.
pub(super) fn take(bytes: usize) -> Result<(), String> {
    let left = LEFT.get().checked_sub(bytes);
    left.map(|left| LEFT.set(left)).ok_or_else(|| {
        format!(
            "its lists take more than {PER_BYTE} times its own size or {} MiB: no telemetry does",
            MOST >> 20
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_grows_with_the_record_and_ends() {
        within(10, || {
            assert_eq!(take(LEAST + 10 * PER_BYTE), Ok(()));
            assert!(take(1).is_err());
        });
        within(0, || assert!(take(LEAST + 1).is_err()));
        within(RECORD_MAX_BYTES, || {
            assert_eq!(take(MOST), Ok(()));
            assert!(take(1).is_err());
        });
        assert_eq!(take(1), Ok(()));
    }
}
