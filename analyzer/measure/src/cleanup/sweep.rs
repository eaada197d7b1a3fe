//! Finds the processes that carry a token and ends them.
//!
//! A process is signalled through a pidfd that was opened before its start time
//! and its token were checked, so that a reused id cannot be hit. Only processes
//! of this user are looked at. Every wait is bounded.

use super::token::TokenPattern;
use crate::host::process::{self, ProcessId};
use coldpath_trace_format::emit::MonoNanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

/// Time between SIGTERM and SIGKILL: long enough to end children in an orderly
/// way, short enough to wait for.
pub const TERM_GRACE: Duration = Duration::from_secs(2);
/// Longest pause between two looks at the process table: a process that was
/// about to be created at the first look is there at the second.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Looks in a row that must find nothing.
const EMPTY_LOOKS: u32 = 2;
/// Most descriptors held for one wait; the rest is waited for by looking again.
const WAIT_MAX: usize = 256;

/// A process that carries a token, with a descriptor that cannot mean another.
#[derive(Debug)]
pub struct Marked {
    /// Which one.
    pub id: ProcessId,
    /// Its executable.
    pub program: String,
    pidfd: OwnedFd,
}

/// What a sweep did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swept {
    /// The processes that were found and signalled, with their programs.
    pub ended: Vec<(ProcessId, String)>,
    /// Whether two looks in a row found nothing before the time was up.
    pub clean: bool,
}

/// The live processes of this user that carry a token, by id.
#[must_use]
pub fn find(pattern: TokenPattern<'_>) -> Vec<Marked> {
    let user = rustix::process::geteuid().as_raw();
    let own = i32::try_from(std::process::id()).unwrap_or(-1);
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let mut found: Vec<Marked> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            (pid != own && entry.metadata().ok()?.uid() == user)
                .then(|| mark(pid, pattern))
                .flatten()
        })
        .collect();
    found.sort_by_key(|marked| marked.id);
    found
}

/// Waits until those processes have ended by themselves; gives those that have not.
#[must_use]
pub fn settle(mut processes: Vec<Marked>, patience: Duration) -> Vec<Marked> {
    let deadline = MonoNanos::now().after(patience);
    loop {
        processes.retain(Marked::is_alive);
        let left = deadline.since(MonoNanos::now());
        if processes.is_empty() || left.is_zero() {
            return processes;
        }
        wait_for_an_end(&processes, left);
    }
}

/// Ends every process that carries a token: SIGTERM at first sight, SIGKILL for
/// whatever is there [`TERM_GRACE`] after the first, until two looks in a row
/// find nothing or `bound` is over.
#[must_use]
pub fn end_all(pattern: TokenPattern<'_>, bound: Duration) -> Swept {
    let begun = MonoNanos::now();
    let deadline = begun.after(bound);
    let mut asked: BTreeMap<ProcessId, String> = BTreeMap::new();
    let mut kill_from = None;
    let mut empty = 0;
    while empty < EMPTY_LOOKS {
        let now = MonoNanos::now();
        if now >= deadline {
            return Swept {
                ended: asked.into_iter().collect(),
                clean: false,
            };
        }
        let found = find(pattern);
        if found.is_empty() {
            empty += 1;
            if empty < EMPTY_LOOKS {
                pause(LOOK_AGAIN);
            }
            continue;
        }
        empty = 0;
        let kill_from = *kill_from.get_or_insert_with(|| now.after(TERM_GRACE));
        for marked in &found {
            if now >= kill_from {
                marked.signal(Signal::KILL);
            } else if !asked.contains_key(&marked.id) {
                marked.signal(Signal::TERM);
            }
            asked
                .entry(marked.id)
                .or_insert_with(|| marked.program.clone());
        }
        wait_for_an_end(&found, LOOK_AGAIN);
    }
    Swept {
        ended: asked.into_iter().collect(),
        clean: true,
    }
}

impl Marked {
    fn signal(&self, signal: Signal) {
        // It may have ended since; nobody else can have its descriptor.
        let _ = pidfd_send_signal(&self.pidfd, signal);
    }

    /// Whether it has not ended; a zombie has.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())) == Ok(0)
    }
}

fn mark(pid: i32, pattern: TokenPattern<'_>) -> Option<Marked> {
    // A cheap look first; most processes are not ours.
    let carries = || std::fs::read(process::proc_dir(pid).join("environ")).ok();
    pattern.is_in(&carries()?).then_some(())?;
    let pidfd = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    // And again behind the descriptor: now the id cannot have changed hands.
    let stat = process::read_stat(pid)?;
    let marked = Marked {
        id: ProcessId {
            pid,
            start_ticks: stat.start_ticks,
        },
        program: process::read_program(pid, &stat),
        pidfd,
    };
    (pattern.is_in(&carries()?) && marked.is_alive()).then_some(marked)
}

fn wait_for_an_end(processes: &[Marked], longest: Duration) {
    let mut fds: Vec<PollFd<'_>> = processes
        .iter()
        .take(WAIT_MAX)
        .map(|marked| PollFd::from_borrowed_fd(marked.pidfd.as_fd(), PollFlags::IN))
        .collect();
    // An interrupted wait is a short one; the caller looks again anyway.
    let _ = poll(&mut fds, Some(&timespec(longest)));
}

fn pause(longest: Duration) {
    let _ = poll(&mut [], Some(&timespec(longest)));
}

/// A duration for the kernel; saturates.
pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cleanup::token::TokenPrefix;
    use std::io::{Read as _, Write as _};
    use std::process::{Child, Command, Stdio};

    /// A process with that token that waits for its input to end, and runs by now:
    /// right after the spawn it may not have its environment yet.
    fn cat(token: &str) -> Child {
        let mut cat = Command::new("/bin/cat")
            .env(coldpath_trace_format::env::RUN_TOKEN, token)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        cat.stdin.as_mut().unwrap().write_all(b"!").unwrap();
        cat.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        cat
    }

    #[test]
    fn a_process_with_the_token_is_found_and_ended_and_another_is_not() {
        let prefix = TokenPrefix::random().unwrap();
        let mut ours = cat(prefix.run(3).as_str());
        let mut other = cat("other");
        let pid = i32::try_from(ours.id()).unwrap();
        let found: Vec<i32> = find(prefix.pattern())
            .iter()
            .map(|one| one.id.pid)
            .collect();
        assert_eq!(found, [pid]);
        assert!(find(prefix.run(4).pattern()).is_empty());

        let swept = end_all(prefix.run(3).pattern(), Duration::from_secs(20));
        assert!(swept.clean);
        assert_eq!(swept.ended.len(), 1);
        assert_eq!(swept.ended[0].0.pid, pid);
        assert!(!ours.wait().unwrap().success());
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn processes_that_end_by_themselves_are_no_leftovers() {
        let prefix = TokenPrefix::random().unwrap();
        let mut cat = cat(prefix.run(0).as_str());
        let found = find(prefix.pattern());
        assert_eq!(found.len(), 1);
        drop(cat.stdin.take());
        assert!(settle(found, Duration::from_secs(20)).is_empty());
        cat.wait().unwrap();
    }
}
