//! Runs the guard's program on fixtures, each time with a folder of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A file of the guard's fixtures.
pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fixtures/guards")
        .join(name)
}

/// The program and a folder that is removed in the end.
pub(crate) struct Guard {
    folder: tempfile::TempDir,
}

impl Guard {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A command for `verb` with policy and evidence set.
    pub(crate) fn verb(&self, verb: &str, policy: &Path) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_guard"));
        command
            .arg(verb)
            .arg("--policy")
            .arg(policy)
            .arg("--evidence")
            .arg(self.folder().join("evidence"));
        command
    }

    /// Exit code and everything that was written.
    pub(crate) fn check(&self, policy: &Path, arguments: &[&str]) -> (i32, String) {
        let done = self.verb("check", policy).args(arguments).output().unwrap();
        let text = [done.stdout, done.stderr].concat();
        (
            done.status.code().unwrap(),
            String::from_utf8(text).unwrap(),
        )
    }
}
