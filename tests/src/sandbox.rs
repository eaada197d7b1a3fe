//! A place of its own for every test: workspace, state, traces, home, run token.

use crate::{Gate, Launch, Traces, end_processes_with_token, processes_with_token, programs};
use serde_json::Value;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use tempfile::TempDir;

/// Directories and a token that the daemons of one test share.
#[derive(Debug)]
pub struct Sandbox {
    // Dropped after `Drop` has ended what runs in it.
    dir: TempDir,
    token: String,
}

impl Sandbox {
    /// A fresh one, with a workspace and a home that are empty.
    ///
    /// # Panics
    /// The directories cannot be made.
    #[must_use]
    pub fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let dir = tempfile::Builder::new()
            .prefix("coldpath-it-")
            .tempdir()
            .unwrap();
        for name in ["workspace", "home"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        // The directory's random name makes the token unique across processes.
        let random = dir.path().file_name().unwrap().to_string_lossy();
        let token = format!("{random}-{number}");
        Self { dir, token }
    }

    /// A path in the sandbox.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The workspace by its canonical path.
    ///
    /// # Panics
    /// A test removed it.
    #[must_use]
    pub fn workspace(&self) -> PathBuf {
        self.path("workspace").canonicalize().unwrap()
    }

    /// The state directory of every daemon of this sandbox; made by the first.
    #[must_use]
    pub fn state_dir(&self) -> PathBuf {
        self.path("state")
    }

    /// The trace directory of daemons that are started `traced`.
    #[must_use]
    pub fn trace_dir(&self) -> PathBuf {
        self.path("traces")
    }

    /// Value of `COLDPATH_RUN_TOKEN` of everything that is started here.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// A daemon to be started here.
    #[must_use]
    pub fn daemon(&self) -> Launch {
        Launch::new(programs().coldpathd(), self)
    }

    /// The same of a program that stands elsewhere.
    #[must_use]
    pub fn daemon_at(&self, program: &Path) -> Launch {
        Launch::new(program, self)
    }

    /// A gate for an agent of this sandbox.
    #[must_use]
    pub fn gate(&self, name: &str) -> Gate {
        Gate::new(self.path(&format!("{name}.sock")))
    }

    /// Everything that the daemons and agents of this sandbox have traced so far.
    #[must_use]
    #[track_caller]
    pub fn traces(&self) -> Traces {
        Traces::read(&self.trace_dir())
    }

    /// What a fake agent noted with `--log`: one JSON value a message it received.
    ///
    /// # Panics
    /// A line is no JSON.
    #[must_use]
    #[track_caller]
    pub fn agent_log(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path("agent.log")).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Messages of one method in [`Self::agent_log`].
    #[must_use]
    #[track_caller]
    pub fn agent_calls(&self, method: &str) -> Vec<Value> {
        let mut log = self.agent_log();
        log.retain(|entry| entry["method"] == method);
        log
    }

    /// Nothing that was started here still runs.
    ///
    /// # Panics
    /// Something does.
    #[track_caller]
    pub fn assert_deserted(&self) {
        let left = processes_with_token(&self.token);
        assert!(left.is_empty(), "processes are left: {left:?}");
    }

    /// Paths below a directory of the sandbox, sorted; none when it does not exist.
    #[must_use]
    pub fn files_in(&self, dir: &Path) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = std::fs::read_dir(dir)
            .map(|entries| {
                entries
                    .filter_map(|entry| Some(entry.ok()?.path()))
                    .collect()
            })
            .unwrap_or_default();
        files.sort();
        files
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        end_processes_with_token(&self.token);
    }
}

/// A port on which nobody listens and which the kernel gives to nobody by itself:
/// below its ephemeral range, and not twice in one test process.
///
/// # Panics
/// Every port of the range is in use.
#[must_use]
pub fn reserve_port() -> u16 {
    const FIRST: u16 = 20_000;
    const COUNT: u16 = 10_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Test processes that run at once begin at different places.
    let start = u16::try_from(std::process::id() % u32::from(COUNT)).unwrap();
    for _ in 0..COUNT {
        let step = NEXT.fetch_add(1, Ordering::Relaxed) % COUNT;
        let port = FIRST + (start + step) % COUNT;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("no port from {FIRST} on is free");
}
