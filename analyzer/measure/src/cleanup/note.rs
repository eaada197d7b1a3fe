//! The id of the program that is run, where the watchdog finds it.
//!
//! A program that clears its own environment carries no token, and nothing above it
//! does. Its id is noted in memory that the watchdog has open and reads only when
//! `measure` is gone: a write wakes nobody. It stands there from the spawn until just
//! before the program is reaped, so that it cannot mean another process while
//! `measure` lives.

use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// Stands for no program.
const NOBODY: i32 = 0;

/// The note, as `measure` holds it.
#[derive(Debug)]
pub struct Note {
    memory: File,
}

impl Note {
    /// A new one, of nobody.
    ///
    /// # Errors
    /// The kernel gives no memory.
    pub fn new() -> io::Result<Self> {
        let memory = File::from(memfd_create(c"measure", MemfdFlags::CLOEXEC)?);
        memory.write_all_at(&NOBODY.to_le_bytes(), 0)?;
        Ok(Self { memory })
    }

    /// Where another process of this user opens it while this one lives.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        let (own, fd) = (std::process::id(), self.memory.as_raw_fd());
        PathBuf::from(format!("/proc/{own}/fd/{fd}"))
    }

    /// Notes a program that was spawned: one system call.
    pub fn begin(&self, pid: i32) {
        // Memory that exists is written; the watchdog has the token as well.
        let _ = self.memory.write_all_at(&pid.to_le_bytes(), 0);
    }

    /// Notes that there is none; before it is reaped.
    pub fn end(&self) {
        self.begin(NOBODY);
    }
}

/// Opens the note of another process.
///
/// # Errors
/// It is not there.
pub fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// The program that is noted, if any.
#[must_use]
pub fn read(memory: &File) -> Option<i32> {
    let mut pid = NOBODY.to_le_bytes();
    memory.read_exact_at(&mut pid, 0).ok()?;
    let pid = i32::from_le_bytes(pid);
    (pid > NOBODY).then_some(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_read_through_another_descriptor() {
        let note = Note::new().unwrap();
        let memory = open(&note.path()).unwrap();
        assert_eq!(read(&memory), None);
        note.begin(4711);
        assert_eq!(read(&memory), Some(4711));
        note.end();
        assert_eq!(read(&memory), None);
    }
}
