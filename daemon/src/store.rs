//! The state directory: a lock, and one file of the agents this daemon started.
//!
//! The lock says that one daemon serves a workspace's state; the kernel releases
//! it when the process ends, however it ends. The file lets the next start find
//! agents that survived a killed daemon: pid and start time, so that a pid that
//! was given to somebody else is never touched.

use coldpath_trace_format::emit::file::make_private_dir;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// More than this is not a file of ours: 64 KiB are some 2,000 agents.
const SPAWNED_MAX_BYTES: u64 = 64 * 1024;

/// Why the state directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("state directory {path} cannot be used: {source}")]
    Directory { path: PathBuf, source: io::Error },
    #[error(
        "state directory {path} is in use by another daemon\nhint: stop it, or pass another --state-dir"
    )]
    Locked { path: PathBuf },
}

/// The locked state directory.
#[derive(Debug)]
pub(crate) struct Store {
    /// Held for its lock.
    _lock: File,
    spawned: File,
}

/// A process by what cannot be taken for another one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessIdentity {
    pub(crate) pid: Pid,
    /// Start time in clock ticks since boot, field 22 of `/proc/PID/stat`.
    pub(crate) start_ticks: u64,
}

impl Store {
    /// Locks the directory, making it where it is missing, and returns what an
    /// earlier daemon left running.
    pub(crate) fn open(dir: &Path) -> Result<(Self, Vec<ProcessIdentity>), StoreError> {
        let refuse = |source: io::Error| StoreError::Directory {
            path: dir.to_owned(),
            source,
        };
        make_private_dir(dir).map_err(refuse)?;
        let open = |name: &str| {
            // Appending: after it was emptied, the next line stands at its start.
            let flags =
                OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            rustix::fs::open(dir.join(name), flags, Mode::RUSR | Mode::WUSR)
                .map(File::from)
                .map_err(|error| refuse(error.into()))
        };
        let lock = open("lock")?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
            rustix::io::Errno::WOULDBLOCK => StoreError::Locked {
                path: dir.to_owned(),
            },
            error => refuse(error.into()),
        })?;
        let mut spawned = open("spawned")?;
        let mut text = String::new();
        // A file that cannot be read as text holds nothing that we wrote.
        let _ = (&mut spawned)
            .take(SPAWNED_MAX_BYTES)
            .read_to_string(&mut text);
        let boot = boot_id();
        let survivors: Vec<_> = text
            .lines()
            .filter_map(|line| parse_line(line, &boot))
            .filter(ProcessIdentity::is_running)
            .collect();
        rustix::fs::ftruncate(&spawned, 0).map_err(|error| refuse(error.into()))?;
        let store = Self {
            _lock: lock,
            spawned,
        };
        for survivor in &survivors {
            // This daemon may be killed too before they are gone.
            store.record(*survivor).map_err(refuse)?;
        }
        Ok((store, survivors))
    }

    /// Notes an agent that was started, or one that was found running.
    pub(crate) fn record(&self, process: ProcessIdentity) -> io::Result<()> {
        let line = format!(
            "{} {} {}\n",
            process.pid.as_raw_nonzero(),
            process.start_ticks,
            boot_id()
        );
        (&self.spawned).write_all(line.as_bytes())
    }

    /// Forgets every agent: all of them have ended.
    pub(crate) fn clear(&self) {
        // What stays is judged by pid and start time at the next start.
        let _ = rustix::fs::ftruncate(&self.spawned, 0);
    }
}

impl ProcessIdentity {
    /// Reads the start time of a running process, or of one that was not reaped.
    pub(crate) fn of(pid: Pid) -> Option<Self> {
        let (start_ticks, _) = stat(pid)?;
        Some(Self { pid, start_ticks })
    }

    /// Whether this very process still runs; a zombie does not.
    pub(crate) fn is_running(&self) -> bool {
        stat(self.pid).is_some_and(|(start, state)| start == self.start_ticks && state != 'Z')
    }

    /// Sends a signal to the process group that it leads, if it is still this process.
    pub(crate) fn signal_group(&self, signal: Signal) {
        if self.is_running() {
            // It may have ended in between: nothing is left to signal then.
            let _ = kill_process_group(self.pid, signal);
        }
    }
}

fn stat(pid: Pid) -> Option<(u64, char)> {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The program's name may hold spaces and parentheses; the last one ends it.
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((fields.nth(18)?.parse().ok()?, state))
}

fn parse_line(line: &str, boot: &str) -> Option<ProcessIdentity> {
    let mut fields = line.split(' ');
    let raw: i32 = fields.next()?.parse().ok().filter(|raw| *raw > 0)?;
    let pid = Pid::from_raw(raw)?;
    let start_ticks = fields.next()?.parse().ok()?;
    // Pids and ticks of an earlier boot say nothing about this one.
    (fields.next()? == boot).then_some(ProcessIdentity { pid, start_ticks })
}

fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_daemon_is_refused_until_the_first_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        let (first, survivors) = Store::open(&path).unwrap();
        assert_eq!(survivors, []);
        assert!(matches!(Store::open(&path), Err(StoreError::Locked { .. })));
        drop(first);
        assert!(Store::open(&path).is_ok());
    }

    #[test]
    fn survivors_are_those_with_the_same_start_time_in_the_same_boot() {
        let dir = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(dir.path()).unwrap();
        let own = ProcessIdentity::of(rustix::process::getpid()).unwrap();
        store.record(own).unwrap();
        store
            .record(ProcessIdentity {
                start_ticks: own.start_ticks + 1,
                ..own
            })
            .unwrap();
        (&store.spawned)
            .write_all(b"garbage\n0 1 x\n-5 1 x\n1 1 another-boot\n")
            .unwrap();
        drop(store);
        let (store, survivors) = Store::open(dir.path()).unwrap();
        assert_eq!(survivors, [own]);
        drop(store);
        let (store, survivors) = Store::open(dir.path()).unwrap();
        assert_eq!(
            survivors,
            [own],
            "named until somebody says that they ended"
        );
        store.clear();
        store.record(own).unwrap();
        drop(store);
        let text = std::fs::read_to_string(dir.path().join("spawned")).unwrap();
        assert!(text.starts_with(char::is_numeric), "{text:?}");
        let (store, _) = Store::open(dir.path()).unwrap();
        store.clear();
        drop(store);
        assert_eq!(Store::open(dir.path()).unwrap().1, []);
    }

    #[test]
    fn what_is_in_the_way_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = Store::open(&file).unwrap_err().to_string();
        assert!(
            error.contains("file") && error.contains("not a directory"),
            "{error}"
        );
    }
}
