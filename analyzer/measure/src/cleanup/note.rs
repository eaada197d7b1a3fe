//! The processes of a run that the watchdog would not find by itself.
//!
//! A process that clears its environment carries no token, and when its parents have
//! ended nothing above it does. The ids of the program and of what was seen below it
//! are noted in memory that the watchdog has open and reads only when `measure` is
//! gone: a write wakes nobody. The program's id stands there from the spawn until
//! just before it is reaped, so that it cannot mean another process while `measure`
//! lives; the others have their start times. From before the spawn the pipes that the
//! program writes to stand there too: it may be far on when `measure` learns its id,
//! and who holds one of them is of the run. Their numbers come round after 2^32 pipes.

use crate::host::process::ProcessId;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// Most processes that are noted beside the program: a daemon's tree has some ten.
pub const SEEN_MAX: usize = 256;
/// Stands for no program.
const NOBODY: i32 = 0;
/// Where the program's id stands, where the number of the others, where the pipes,
/// where the others.
const PROGRAM_AT: u64 = 0;
const COUNT_AT: u64 = 4;
const PIPES_AT: u64 = 8;
const SEEN_AT: u64 = 24;
/// Bytes of one process: id and start time.
const SEEN_BYTES: usize = 12;

/// The note, as `measure` holds it.
#[derive(Debug)]
pub struct Note {
    memory: File,
}

/// What is noted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Noted {
    /// The program that is run.
    pub program: Option<i32>,
    /// Processes that were seen below it.
    pub seen: Vec<ProcessId>,
    /// Inodes of the pipes that it writes to; 0 for none.
    pub pipes: [u64; 2],
}

impl Note {
    /// A new one, of nobody.
    ///
    /// # Errors
    /// The kernel gives no memory.
    pub fn new() -> io::Result<Self> {
        let memory = File::from(memfd_create(c"measure", MemfdFlags::CLOEXEC)?);
        memory.write_all_at(&[0; 24], PROGRAM_AT)?;
        Ok(Self { memory })
    }

    /// Where another process of this user opens it while this one lives.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        let (own, fd) = (std::process::id(), self.memory.as_raw_fd());
        PathBuf::from(format!("/proc/{own}/fd/{fd}"))
    }

    /// Notes the pipes of a program that is about to be spawned.
    pub fn pipes(&self, inodes: [u64; 2]) {
        let [output, errors] = inodes.map(u64::to_le_bytes);
        self.write(&[output, errors].concat(), PIPES_AT);
    }

    /// Notes a program that was spawned, and nothing else: one system call.
    pub fn begin(&self, pid: i32) {
        let [a, b, c, d] = pid.to_le_bytes();
        self.write(&[a, b, c, d, 0, 0, 0, 0], PROGRAM_AT);
    }

    /// Notes what was seen below the program, instead of what was before.
    pub fn seen(&self, ids: impl Iterator<Item = ProcessId>) {
        let mut bytes = Vec::new();
        let mut count = 0_u32;
        for id in ids.take(SEEN_MAX) {
            bytes.extend_from_slice(&id.pid.to_le_bytes());
            bytes.extend_from_slice(&id.start_ticks.to_le_bytes());
            count += 1;
        }
        // Never more said than is there.
        self.write(&0_u32.to_le_bytes(), COUNT_AT);
        self.write(&bytes, SEEN_AT);
        self.write(&count.to_le_bytes(), COUNT_AT);
    }

    /// Notes that there is no program any more; before it is reaped.
    pub fn end(&self) {
        self.write(&NOBODY.to_le_bytes(), PROGRAM_AT);
    }

    fn write(&self, bytes: &[u8], at: u64) {
        // Where memory is short the token still is there.
        let _ = self.memory.write_all_at(bytes, at);
    }
}

/// Opens the note of another process.
///
/// # Errors
/// It is not there.
pub fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// What is noted; nothing where it cannot be read.
#[must_use]
pub fn read(memory: &File) -> Noted {
    let word = |at: u64| {
        let mut bytes = [0; 4];
        let read = memory.read_exact_at(&mut bytes, at);
        read.map_or(0, |()| i32::from_le_bytes(bytes))
    };
    let program = Some(word(PROGRAM_AT)).filter(|pid| *pid > NOBODY);
    let pipe = |at: u64| {
        let mut bytes = [0; 8];
        let read = memory.read_exact_at(&mut bytes, at);
        read.map_or(0, |()| u64::from_le_bytes(bytes))
    };
    let count = usize::try_from(word(COUNT_AT)).unwrap_or(0).min(SEEN_MAX);
    let mut bytes = vec![0; count * SEEN_BYTES];
    if memory.read_exact_at(&mut bytes, SEEN_AT).is_err() {
        bytes.clear();
    }
    let seen = bytes.chunks_exact(SEEN_BYTES).filter_map(|one| {
        let (pid, start) = one.split_at_checked(4)?;
        Some(ProcessId {
            pid: i32::from_le_bytes(pid.try_into().ok()?),
            start_ticks: u64::from_le_bytes(start.try_into().ok()?),
        })
    });
    Noted {
        program,
        seen: seen.collect(),
        pipes: [pipe(PIPES_AT), pipe(PIPES_AT + 8)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_read_through_another_descriptor() {
        let note = Note::new().unwrap();
        let memory = open(&note.path()).unwrap();
        assert_eq!(read(&memory), Noted::default());
        let pipes = [u64::MAX - 3, 7];
        note.pipes(pipes);
        assert_eq!(read(&memory).pipes, pipes);
        note.begin(4711);
        let id = |pid| ProcessId {
            pid,
            start_ticks: u64::MAX - 1,
        };
        note.seen([id(1), id(2)].into_iter());
        let seen = vec![id(1), id(2)];
        let program = Some(4711);
        let all = Noted {
            program,
            seen,
            pipes,
        };
        assert_eq!(read(&memory), all);
        note.end();
        assert_eq!(read(&memory).program, None);
        assert_eq!(read(&memory).seen.len(), 2);
        note.seen((0..1000).map(id));
        assert_eq!(read(&memory).seen.len(), SEEN_MAX);
        // Another program has others below it.
        note.begin(5);
        assert_eq!(read(&memory).seen, []);
    }
}
