//! A directory for results that no other `measure` writes to at the same time.
//!
//! Held by a lock on the directory itself, which ends with this process however it
//! ends and leaves nothing behind. Programs that are run do not inherit it.

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::Path;

/// The lock on a directory, for as long as it lives.
#[derive(Debug)]
pub struct Claim {
    _lock: Option<OwnedFd>,
}

/// Another `measure` has the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken;

impl Claim {
    /// Claims an existing directory. Where the file system knows no locks, nobody
    /// is kept away.
    ///
    /// # Errors
    /// Somebody has it.
    pub fn take(dir: &Path) -> Result<Self, Taken> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(lock) = open(dir, flags, Mode::empty()) else {
            return Ok(Self { _lock: None });
        };
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => Err(Taken),
            _ => Ok(Self { _lock: Some(lock) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_claimed_once_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let first = Claim::take(dir.path()).unwrap();
        assert_eq!(Claim::take(dir.path()).err(), Some(Taken));
        drop(first);
        Claim::take(dir.path()).unwrap();
    }
}
