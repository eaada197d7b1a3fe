//! The profile file: bounded JSON lines beside the spans.
//!
//! Created with the first record; a record that cannot be written is counted
//! and otherwise ignored, because a profile never fails a session.

use super::clock::WallNanos;
use super::file::RotatingFile;
use crate::limits;
use crate::profile::ProfileRecord;
use std::path::PathBuf;

/// Writer of one process's profile records.
#[derive(Debug)]
pub struct ProfileFile {
    dir: PathBuf,
    stem: String,
    file: Option<RotatingFile>,
    dropped: u64,
}

impl ProfileFile {
    /// Names the file `<service>-<unix nano>-<pid>.profile.jsonl`; nothing is created yet.
    #[must_use]
    pub fn new(dir: PathBuf, service: &str, now: WallNanos) -> Self {
        let stem = format!("{service}-{}-{}", now.as_unix_nanos(), std::process::id());
        Self {
            dir,
            stem,
            file: None,
            dropped: 0,
        }
    }

    /// Appends a record as one line, rotating first where it would not fit.
    pub fn append(&mut self, record: &ProfileRecord) {
        if self.try_append(&record.to_line()).is_err() {
            self.dropped += 1;
        }
    }

    /// Records that could not be written.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    fn try_append(&mut self, line: &str) -> std::io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(RotatingFile::create(
                &self.dir,
                &self.stem,
                ".profile.jsonl",
                limits::PROFILE_FILE_MAX_BYTES,
                limits::PROFILE_FILES_KEPT,
            )?),
        };
        if file.is_full(line.len()) {
            file.rotate()?;
        }
        file.append(line.as_bytes())
    }
}
