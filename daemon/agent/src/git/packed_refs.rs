//! `packed-refs`: one line a ref, sorted by name since git 1.8.
//!
//! A repository with 100,000 branches has a file of 7 MB; a sorted one is
//! searched by halves with small reads, any other is read through up to a bound.

use super::head::is_object_id;
use crate::regular_file::RegularFile;
use std::path::Path;

/// Bytes of one reading: the longest name that is accepted, its id, and the line
/// that a reading in the middle of the file begins with.
const WINDOW_BYTES: usize = 16 * 1024;
/// Bytes of an unsorted file that are read through.
const UNSORTED_MAX_BYTES: u64 = 8 * 1024 * 1024;

/// The id of a ref, from the file at `path`; `None` when it is not there.
pub(super) fn find(path: &Path, name: &str) -> Option<String> {
    let file = RegularFile::open(path).ok()?;
    let mut window = vec![0; WINDOW_BYTES];
    let length = file.read_at(&mut window, 0).ok()?;
    let header = window[..length].split(|byte| *byte == b'\n').next()?;
    let sorted = header.starts_with(b"# pack-refs with:")
        && header
            .split(|byte| *byte == b' ')
            .any(|word| word == b"sorted");
    if sorted {
        search(&file, name, &mut window)
    } else if file.size() <= UNSORTED_MAX_BYTES {
        scan(&file, name)
    } else {
        None
    }
}

/// Looks for the line between two offsets, halving their distance: a line that
/// is the one begins at or after `low` and before `high`.
fn search(file: &RegularFile, name: &str, window: &mut [u8]) -> Option<String> {
    let (mut low, mut high) = (0, file.size());
    while low < high {
        let middle = low + (high - low) / 2;
        let Some(line) = line_from(file, middle, window)? else {
            high = middle;
            continue;
        };
        match line.name.cmp(name.as_bytes()) {
            std::cmp::Ordering::Equal => return line.id(),
            std::cmp::Ordering::Less => low = line.end,
            std::cmp::Ordering::Greater => high = middle,
        }
    }
    None
}

struct Line<'a> {
    id: &'a [u8],
    name: &'a [u8],
    end: u64,
}

impl Line<'_> {
    fn id(&self) -> Option<String> {
        let id = std::str::from_utf8(self.id).ok()?;
        is_object_id(id).then(|| id.to_owned())
    }
}

/// The first ref line that begins at `offset` or later; `Some(None)` when there
/// is none, `None` when the file cannot be read or a line is too long.
#[expect(clippy::option_option, reason = "no line and no answer are two things")]
fn line_from<'a>(
    file: &RegularFile,
    offset: u64,
    window: &'a mut [u8],
) -> Option<Option<Line<'a>>> {
    // The byte before the offset tells whether a line begins there.
    let from = offset.saturating_sub(1);
    let length = file.read_at(window, from).ok()?;
    let window = &window[..length];
    let complete = length < WINDOW_BYTES;
    let mut begin = match offset {
        0 => 0,
        _ => match newline(window) {
            Some(newline) => newline + 1,
            None => return complete.then_some(None),
        },
    };
    while begin < length {
        let end = match newline(&window[begin..]) {
            Some(newline) => begin + newline,
            None if complete => length,
            None => return None,
        };
        if let Some((id, name)) = parse(&window[begin..end]) {
            let end = from + end as u64 + 1;
            return Some(Some(Line { id, name, end }));
        }
        begin = end + 1;
    }
    complete.then_some(None)
}

fn scan(file: &RegularFile, name: &str) -> Option<String> {
    let (bytes, _) = file.read(usize::try_from(UNSORTED_MAX_BYTES).ok()?).ok()?;
    bytes
        .split(|byte| *byte == b'\n')
        .filter_map(parse)
        .find(|(_, found)| *found == name.as_bytes())
        .and_then(|(id, name)| Line { id, name, end: 0 }.id())
}

/// `ID NAME`; not the header, nor the `^ID` that belongs to the line before.
fn parse(line: &[u8]) -> Option<(&[u8], &[u8])> {
    if matches!(line.first(), None | Some(b'#' | b'^')) {
        return None;
    }
    let space = line.iter().position(|byte| *byte == b' ')?;
    Some((&line[..space], &line[space + 1..]))
}

fn newline(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    fn id(number: usize) -> String {
        format!("{number:040x}")
    }

    /// A file of `count` branches and tags with peeled lines between them.
    fn packed(header: &str, count: usize) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("packed-refs");
        let mut text = header.to_owned();
        for number in 0..count {
            let _ = writeln!(text, "{} refs/heads/b{number:05}", id(number));
        }
        for number in 0..count {
            let _ = write!(text, "{} refs/tags/v{number:05}\n^{}\n", id(number), id(0));
        }
        std::fs::write(&path, text).unwrap();
        (dir, path)
    }

    #[track_caller]
    fn check_all(header: &str, count: usize) {
        let (_dir, path) = packed(header, count);
        for number in 0..count {
            let expected = Some(id(number));
            assert_eq!(find(&path, &format!("refs/heads/b{number:05}")), expected);
            assert_eq!(find(&path, &format!("refs/tags/v{number:05}")), expected);
        }
        for absent in [
            "refs/heads/a",
            "refs/heads/b00000x",
            "refs/zzz",
            "refs/heads/b",
        ] {
            assert_eq!(find(&path, absent), None, "{absent}");
        }
    }

    const SORTED: &str = "# pack-refs with: peeled fully-peeled sorted \n";

    #[test]
    fn every_ref_of_a_sorted_file_is_found_by_halves() {
        for count in [0, 1, 2, 3, 700] {
            check_all(SORTED, count);
        }
    }

    #[test]
    fn a_file_without_the_sorted_word_is_read_through() {
        check_all("# pack-refs with: peeled fully-peeled \n", 50);
        check_all("", 50);
    }

    #[test]
    fn an_unsorted_file_beyond_the_bound_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("packed-refs");
        std::fs::write(&path, format!("{} refs/heads/a\n", id(7))).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_len(UNSORTED_MAX_BYTES).unwrap();
        assert_eq!(find(&path, "refs/heads/a"), Some(id(7)));
        file.set_len(UNSORTED_MAX_BYTES + 1).unwrap();
        assert_eq!(find(&path, "refs/heads/a"), None);
    }

    #[test]
    fn a_last_line_without_newline_counts() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("packed-refs");
        std::fs::write(&path, format!("{SORTED}{} refs/heads/a", id(7))).unwrap();
        assert_eq!(find(&path, "refs/heads/a"), Some(id(7)));
    }

    #[test]
    fn garbage_is_no_ref() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("packed-refs");
        for text in [
            String::new(),
            "\n\n\n".to_owned(),
            format!("{SORTED}xyz refs/heads/a\n"),
            format!("{SORTED}refs/heads/a\n"),
            format!("{SORTED}{}", "x".repeat(100_000)),
        ] {
            std::fs::write(&path, &text).unwrap();
            assert_eq!(find(&path, "refs/heads/a"), None);
        }
        assert_eq!(find(&dir.path().join("none"), "refs/heads/a"), None);
    }
}
