//! Whether the programs of an experiment are still those that it began with.
//!
//! Their digests are taken once, when the manifest is made; a build that replaces a
//! program afterwards would put runs of two programs under one digest. Before each
//! run the inode, size and time of change are held against those of the beginning.
//! Only files that can be executed are looked at: others that a command names may
//! be what it writes. Reads no contents.

use crate::arm::Arm;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Any bit by which a file can be executed.
const EXECUTABLE: u32 = 0o111;

/// What the programs looked like when the experiment began.
#[derive(Clone, Debug, Default)]
pub struct Stamps {
    known: BTreeMap<PathBuf, Stamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl Stamps {
    /// Reads those of all arms. A file that cannot be read is not looked at again.
    #[must_use]
    pub fn of(arms: &[Arm]) -> Self {
        let files = arms.iter().flat_map(|arm| &arm.files);
        let known = files.filter_map(|path| {
            let executable = std::fs::metadata(path).ok()?.mode() & EXECUTABLE != 0;
            executable.then(|| Some((path.clone(), stamp(path)?)))?
        });
        Self {
            known: known.collect(),
        }
    }

    /// The first file of an arm that is another one by now, or gone.
    #[must_use]
    pub fn changed<'a>(&self, arm: &'a Arm) -> Option<&'a Path> {
        let differs = |path: &&PathBuf| {
            let known = self.known.get(*path);
            known.is_some_and(|known| stamp(path) != Some(*known))
        };
        arm.files.iter().find(differs).map(PathBuf::as_path)
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let found = std::fs::metadata(path).ok()?;
    Some(Stamp {
        device: found.dev(),
        inode: found.ino(),
        bytes: found.size(),
        modified: (found.mtime(), found.mtime_nsec()),
    })
}
