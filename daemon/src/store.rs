//! The state directory: a lock, and one file of the agents this daemon started.
//!
//! The lock says that one daemon serves a workspace's state; the kernel releases
//! it when the process ends, however it ends. The file lets the next start find
//! agents that survived a killed daemon: pid and start time, so that a pid that
//! was given to somebody else is never touched.

use coldpath_trace_format::emit::file::make_private_dir;
use coldpath_trace_format::env as vars;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
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
    /// The kernel's name of this boot.
    boot: String,
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
        let entries: Vec<_> = text
            .lines()
            .filter_map(|line| parse_line(line, &boot))
            .collect();
        let survivors = survivors(&entries);
        rustix::fs::ftruncate(&spawned, 0).map_err(|error| refuse(error.into()))?;
        let store = Self {
            _lock: lock,
            spawned,
            boot: boot.clone(),
        };
        for entry in entries.iter().filter(|_| !survivors.is_empty()) {
            // This daemon may be killed too before they are gone.
            store.record(entry.leader, entry.channel).map_err(refuse)?;
        }
        Ok((store, survivors))
    }

    /// Notes an agent that was started, and the channel that its environment names.
    pub(crate) fn record(&self, leader: ProcessIdentity, channel: &str) -> io::Result<()> {
        let line = format!(
            "{} {} {} {channel}\n",
            leader.pid.as_raw_nonzero(),
            leader.start_ticks,
            self.boot
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

    /// Sends a signal to it and to the process group that it leads, if it leads one
    /// and is still this process. A pid is not given away while a group has its number.
    pub(crate) fn signal(&self, signal: Signal) {
        if self.is_running() {
            // It may have ended in between: nothing is left to signal then.
            let _ = kill_process_group(self.pid, signal);
            let _ = kill_process(self.pid, signal);
        }
    }
}

/// One line of the file.
#[derive(Debug)]
struct Entry<'a> {
    leader: ProcessIdentity,
    channel: &'a str,
}

/// Agents that still run, and processes whose environment names their channel: an
/// agent that is gone may have left some, in its group or out of it.
fn survivors(entries: &[Entry<'_>]) -> Vec<ProcessIdentity> {
    let mut found: Vec<_> = entries
        .iter()
        .map(|entry| entry.leader)
        .filter(ProcessIdentity::is_running)
        .collect();
    if entries.is_empty() {
        // The usual start: nothing was left, and /proc is not walked.
        return found;
    }
    let marks: Vec<_> = entries
        .iter()
        .map(|entry| format!("{}={}", vars::CHANNEL, entry.channel).into_bytes())
        .collect();
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return found;
    };
    for name in processes.filter_map(|entry| entry.ok()?.file_name().into_string().ok()) {
        let Some(pid) = name
            .parse()
            .ok()
            .filter(|raw| *raw > 0)
            .and_then(Pid::from_raw)
        else {
            continue;
        };
        // What belongs to somebody else cannot be read, and is none of ours.
        let Ok(environment) = std::fs::read(format!("/proc/{name}/environ")) else {
            continue;
        };
        if environment
            .split(|byte| *byte == 0)
            .any(|variable| marks.iter().any(|mark| mark == variable))
        {
            found.extend(
                ProcessIdentity::of(pid)
                    .filter(|process| process.is_running() && !found.contains(process)),
            );
        }
    }
    found
}

fn stat(pid: Pid) -> Option<(u64, char)> {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The program's name may hold spaces and parentheses; the last one ends it.
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((fields.nth(18)?.parse().ok()?, state))
}

fn parse_line<'a>(line: &'a str, boot: &str) -> Option<Entry<'a>> {
    let mut fields = line.split(' ');
    let raw: i32 = fields.next()?.parse().ok().filter(|raw| *raw > 0)?;
    let pid = Pid::from_raw(raw)?;
    let start_ticks = fields.next()?.parse().ok()?;
    // Pids and ticks of an earlier boot say nothing about this one.
    let same_boot = fields.next()? == boot;
    let channel = fields.next().filter(|channel| !channel.is_empty())?;
    same_boot.then_some(Entry {
        leader: ProcessIdentity { pid, start_ticks },
        channel,
    })
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
        store.record(own, "channel").unwrap();
        store
            .record(
                ProcessIdentity {
                    start_ticks: own.start_ticks + 1,
                    ..own
                },
                "channel",
            )
            .unwrap();
        (&store.spawned)
            .write_all(b"garbage\n0 1 x y\n-5 1 x y\n1 1 another-boot y\n1 1\n")
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
        store.record(own, "channel").unwrap();
        drop(store);
        let text = std::fs::read_to_string(dir.path().join("spawned")).unwrap();
        assert!(text.starts_with(char::is_numeric), "{text:?}");
        let (store, _) = Store::open(dir.path()).unwrap();
        store.clear();
        drop(store);
        assert_eq!(Store::open(dir.path()).unwrap().1, []);
    }

    #[test]
    fn a_process_that_an_agent_left_is_found_by_its_channel() {
        let dir = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(dir.path()).unwrap();
        let gone = ProcessIdentity {
            start_ticks: u64::MAX,
            pid: rustix::process::getpid(),
        };
        let channel = coldpath_trace_format::emit::uuid::random();
        store.record(gone, &channel).unwrap();
        drop(store);
        let mut left = std::process::Command::new("cat")
            .env(vars::CHANNEL, &channel)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // It runs: right after the spawn it may not have its environment yet.
        left.stdin.as_mut().unwrap().write_all(b"!").unwrap();
        left.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let pid = Pid::from_raw(left.id().cast_signed()).unwrap();
        let (store, survivors) = Store::open(dir.path()).unwrap();
        let found: Vec<_> = survivors.iter().map(|process| process.pid).collect();
        survivors[0].signal(Signal::KILL);
        left.wait().unwrap();
        assert_eq!(found, [pid]);
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
