//! The journal of an experiment: one line for each run, written when it is over.
//!
//! The manifest holds the same at the end; the journal is what a killed `measure`
//! leaves of it, and goes when the manifest has it all. A line that was cut off is
//! a run that was not finished.

use crate::manifest::result::RunResult;
use crate::schedule::Slot;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Name of the file; not one that a folder of traces is read for.
pub const FILE_NAME: &str = "manifest.journal";

/// A journal that is written.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
}

/// A line.
#[derive(Debug, Deserialize, Serialize)]
struct Entry {
    index: usize,
    result: RunResult,
}

impl Journal {
    /// Opens the journal of a directory anew: the manifest beside it has what an
    /// earlier one said.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn open(dir: &Path) -> io::Result<Self> {
        let path = dir.join(FILE_NAME);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)?;
        Ok(Self { file, path })
    }

    /// Notes the result of a run, in one write.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn note(&mut self, slot: Slot, result: &RunResult) -> io::Result<()> {
        let entry = Entry {
            index: slot.index,
            result: result.clone(),
        };
        let mut line = serde_json::to_vec(&entry)?;
        line.push(b'\n');
        self.file.write_all(&line)
    }

    /// Removes it: the manifest has it all.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn close(self) -> io::Result<()> {
        std::fs::remove_file(self.path)
    }
}

/// Results by position in the schedule; none where there is no journal.
///
/// # Errors
/// It is there and cannot be read.
pub fn read(dir: &Path) -> io::Result<Vec<(usize, RunResult)>> {
    let text = match std::fs::read_to_string(dir.join(FILE_NAME)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    let entries = text.lines().map_while(|line| {
        serde_json::from_str::<Entry>(line)
            .ok()
            .map(|entry| (entry.index, entry.result))
    });
    Ok(entries.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Size, lay_out};

    #[test]
    fn what_was_noted_is_read_again_up_to_a_line_that_was_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let size = Size {
            arms: 1,
            warmups: 0,
            runs: 2,
        };
        let slots = lay_out(&[size], 1);
        let mut journal = Journal::open(dir.path()).unwrap();
        let result = RunResult::default();
        journal.note(slots[0], &result).unwrap();
        journal.note(slots[1], &result).unwrap();
        assert_eq!(read(dir.path()).unwrap().len(), 2);
        let path = dir.path().join(FILE_NAME);
        let text = std::fs::read(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 9]).unwrap();
        let read_again = read(dir.path()).unwrap();
        assert_eq!(read_again.len(), 1);
        assert_eq!(read_again[0].0, 0);
        journal.close().unwrap();
        assert!(read(dir.path()).unwrap().is_empty());
    }
}
