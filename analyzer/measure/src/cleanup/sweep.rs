//! Finds the processes that a run has started and ends them.
//!
//! A process is of a run when its environment holds the run's token, or when one
//! that does is above it: a program may clear the environment of what it starts,
//! and cannot choose its parent. A process is signalled through a pidfd that was
//! opened before its start time and what marks it were checked, so that a reused id
//! cannot be hit. Only processes of this user are looked at. Every wait is bounded.

use super::heirs::Heirs;
use super::note::Noted;
use super::token::TokenPattern;
use crate::host::process::{self, ProcessId, Stat, own_pid};
use coldpath_trace_format::emit::MonoNanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::Duration;

/// Time between SIGTERM and SIGKILL: long enough to end children in an orderly
/// way, short enough to wait for.
pub const TERM_GRACE: Duration = Duration::from_secs(2);
/// Longest pause between two looks at the process table: a process that was
/// about to be created at the first look is there at the second.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Most descriptors held for one wait; the rest is waited for by looking again.
const WAIT_MAX: usize = 256;

/// What marks the processes that are looked for.
#[derive(Clone, Copy, Debug)]
pub struct Marks<'a> {
    /// The token in their environment.
    pub token: TokenPattern<'a>,
    /// Whose children they may be as well, beside those of marked processes.
    pub heirs: &'a Heirs,
}

/// A process that is marked, with a descriptor that cannot mean another.
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
    /// Whether looks found nothing for long enough before the time was up.
    pub clean: bool,
}

/// How long and how thoroughly a sweep looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Longest time.
    pub bound: Duration,
    /// How long nothing must be found. At least two looks find nothing.
    pub quiet: Duration,
}

/// A process of this user, as one look at the table has it.
struct Seen {
    start_ticks: u64,
    ppid: i32,
    group: i32,
    carries: bool,
}

/// The live marked processes of this user, by id.
#[must_use]
pub fn find(marks: Marks<'_>) -> Vec<Marked> {
    find_below(marks, &BTreeSet::new())
}

/// What is left of noted processes: the program with the group that it leads, whose
/// id the caller knows to be still the program's, and those that were seen.
#[must_use]
pub fn of_note(noted: &Noted, token: TokenPattern<'_>) -> Vec<Marked> {
    let table = look(token);
    let is_it = |pid: i32, seen: &Seen| {
        let of_program = |program: i32| pid == program || seen.group == program;
        let start_ticks = seen.start_ticks;
        noted.program.is_some_and(of_program)
            || noted.seen.contains(&ProcessId { pid, start_ticks })
            || holds_pipe(pid, noted.pipes)
    };
    let own = table.iter().filter(|(pid, seen)| is_it(**pid, seen));
    own.filter_map(|(id, seen)| Some(hold(*id, seen)?.0))
        .collect()
}

/// As [`find`], with those below `known`, which are alive.
fn find_below(marks: Marks<'_>, known: &BTreeSet<i32>) -> Vec<Marked> {
    let table = look(marks.token);
    let mut below: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for (pid, seen) in &table {
        below.entry(seen.ppid).or_default().push(*pid);
    }
    let carrying = table.iter().filter(|(_, seen)| seen.carries);
    let mut pending: Vec<i32> = carrying
        .map(|(pid, _)| *pid)
        .chain(known.iter().copied())
        .collect();
    let children = below.get(&own_pid()).into_iter().flatten();
    pending.extend(children.filter(|pid| marks.heirs.were_left(**pid)));
    let mut marked = BTreeSet::new();
    while let Some(pid) = pending.pop() {
        if pid != own_pid() && marked.insert(pid) {
            pending.extend(below.get(&pid).into_iter().flatten());
        }
    }
    let seen = marked
        .into_iter()
        .filter_map(|pid| Some((pid, table.get(&pid)?)));
    let mut found: Vec<Marked> = seen
        .filter_map(|(pid, seen)| mark(pid, seen, marks.token))
        .collect();
    found.sort_by_key(|marked| marked.id);
    found
}

/// Every process of this user but this one.
fn look(token: TokenPattern<'_>) -> BTreeMap<i32, Seen> {
    let user = rustix::process::geteuid().as_raw();
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return BTreeMap::new();
    };
    let seen = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        if pid == own_pid() || entry.metadata().ok()?.uid() != user {
            return None;
        }
        let stat = process::read_stat(pid)?;
        let seen = Seen {
            start_ticks: stat.start_ticks,
            ppid: stat.ppid,
            group: stat.group,
            carries: carries(pid, token),
        };
        Some((pid, seen))
    });
    seen.collect()
}

/// Whether a process has one of these pipes open; 0 is none.
fn holds_pipe(pid: i32, inodes: [u64; 2]) -> bool {
    let wanted = inodes.map(|inode| (inode != 0).then(|| PathBuf::from(format!("pipe:[{inode}]"))));
    let Ok(open) = std::fs::read_dir(process::proc_dir(pid).join("fd")) else {
        return false;
    };
    open.flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .any(|target| wanted.iter().flatten().any(|pipe| *pipe == target))
}

fn carries(pid: i32, token: TokenPattern<'_>) -> bool {
    let environ = std::fs::read(process::proc_dir(pid).join("environ"));
    environ.is_ok_and(|environ| token.is_in(&environ))
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

/// Ends `known` and every other marked process: SIGTERM at first sight, SIGKILL for
/// whatever is there [`TERM_GRACE`] after the first, until looks have found nothing
/// for long enough or the time is up. What was marked once stays so: an orphan has
/// nobody above it that tells.
#[must_use]
pub fn end_all(marks: Marks<'_>, mut known: Vec<Marked>, effort: Effort) -> Swept {
    let begun = MonoNanos::now();
    let deadline = begun.after(effort.bound);
    let mut asked: BTreeMap<ProcessId, String> = BTreeMap::new();
    let mut kill_from = None;
    let mut empty_since = None;
    loop {
        known.retain(Marked::is_alive);
        let ids: BTreeSet<i32> = known.iter().map(|marked| marked.id.pid).collect();
        let found = find_below(marks, &ids);
        known.extend(
            found
                .into_iter()
                .filter(|marked| !ids.contains(&marked.id.pid)),
        );
        let now = MonoNanos::now();
        let clean = match (known.is_empty(), empty_since) {
            (false, _) => {
                empty_since = None;
                false
            }
            (true, None) => {
                empty_since = Some(now);
                false
            }
            (true, Some(since)) => now.since(since) >= effort.quiet,
        };
        if clean || now >= deadline {
            let ended = asked.into_iter().collect();
            return Swept { ended, clean };
        }
        if known.is_empty() {
            pause(LOOK_AGAIN);
            continue;
        }
        let kill_from = *kill_from.get_or_insert_with(|| now.after(TERM_GRACE));
        for marked in &known {
            if now >= kill_from {
                marked.signal(Signal::KILL);
            } else if !asked.contains_key(&marked.id) {
                marked.signal(Signal::TERM);
            }
            let program = || marked.program.clone();
            asked.entry(marked.id).or_insert_with(program);
        }
        wait_for_an_end(&known, LOOK_AGAIN);
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

/// The process behind a descriptor, if it is still the one that was seen, and still
/// of those that are looked for.
fn mark(pid: i32, seen: &Seen, token: TokenPattern<'_>) -> Option<Marked> {
    let (marked, stat) = hold(pid, seen)?;
    // One that has executed something else meanwhile has its parent still.
    (stat.ppid == seen.ppid || carries(pid, token)).then_some(marked)
}

/// A process behind a descriptor, if it is still the one that was seen. Whose child
/// it is does not count: as `measure` dies, the kernel hands its children on between
/// one look and the next.
fn hold(pid: i32, seen: &Seen) -> Option<(Marked, Stat)> {
    let pidfd = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    // Read again behind the descriptor: now the id cannot change hands any more.
    let stat = process::read_stat(pid)?;
    let marked = Marked {
        id: ProcessId {
            pid,
            start_ticks: stat.start_ticks,
        },
        program: process::read_program(pid, &stat),
        pidfd,
    };
    let same = stat.start_ticks == seen.start_ticks;
    (same && marked.is_alive()).then_some((marked, stat))
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

    const EFFORT: Effort = Effort {
        bound: Duration::from_secs(20),
        quiet: Duration::from_millis(50),
    };

    fn marks(token: TokenPattern<'_>) -> Marks<'_> {
        let heirs = &Heirs::Nobody;
        Marks { token, heirs }
    }

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
        let found: Vec<i32> = find(marks(prefix.pattern()))
            .iter()
            .map(|one| one.id.pid)
            .collect();
        assert_eq!(found, [pid]);
        assert!(find(marks(prefix.run(4).pattern())).is_empty());

        let swept = end_all(marks(prefix.run(3).pattern()), Vec::new(), EFFORT);
        assert!(swept.clean);
        assert_eq!(swept.ended.len(), 1);
        assert_eq!(swept.ended[0].0.pid, pid);
        assert!(!ours.wait().unwrap().success());
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn a_noted_process_is_held_though_its_parent_went_between_two_looks() {
        let prefix = TokenPrefix::random().unwrap();
        let mut cat = cat("other");
        let pid = i32::try_from(cat.id()).unwrap();
        let mut table = look(prefix.pattern());
        let mut seen = table.remove(&pid).unwrap();
        seen.ppid += 1;
        assert_eq!(hold(pid, &seen).unwrap().0.id.pid, pid);
        assert!(mark(pid, &seen, prefix.pattern()).is_none());
        seen.start_ticks += 1;
        assert!(hold(pid, &seen).is_none());
        cat.kill().unwrap();
        cat.wait().unwrap();
    }

    #[test]
    fn who_holds_a_noted_pipe_is_of_the_run_without_any_other_mark() {
        let prefix = TokenPrefix::random().unwrap();
        let mut cat = cat("other");
        let inode = |output: &std::process::ChildStdout| rustix::fs::fstat(output).unwrap().st_ino;
        let pipes = [0, inode(cat.stdout.as_ref().unwrap())];
        let found = |pipes| {
            let noted = Noted {
                pipes,
                ..Noted::default()
            };
            let found = of_note(&noted, prefix.pattern());
            found.iter().map(|one| one.id.pid).collect::<Vec<_>>()
        };
        // A process that another test spawns right now has all that this one has open.
        assert!(found(pipes).contains(&i32::try_from(cat.id()).unwrap()));
        assert!(found([0, 0]).is_empty());
        cat.kill().unwrap();
        cat.wait().unwrap();
    }

    #[test]
    fn processes_that_end_by_themselves_are_no_leftovers() {
        let prefix = TokenPrefix::random().unwrap();
        let mut cat = cat(prefix.run(0).as_str());
        let found = find(marks(prefix.pattern()));
        assert_eq!(found.len(), 1);
        drop(cat.stdin.take());
        assert!(settle(found, Duration::from_secs(20)).is_empty());
        cat.wait().unwrap();
    }

    #[test]
    fn a_process_that_cleared_its_environment_is_found_below_one_that_did_not() {
        let prefix = TokenPrefix::random().unwrap();
        // The shell says the id of its child, then waits for it; the child ignores SIGTERM.
        let script = "exec 3<&0; env -i sh -c 'trap \"\" TERM; echo $$; exec cat' <&3 & wait";
        let mut shell = Command::new("/bin/sh")
            .args(["-c", script])
            .env(
                coldpath_trace_format::env::RUN_TOKEN,
                prefix.run(0).as_str(),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = std::io::BufReader::new(shell.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
        let child: i32 = line.trim().parse().unwrap();
        let swept = end_all(marks(prefix.pattern()), Vec::new(), EFFORT);
        assert!(swept.clean);
        let ended: Vec<i32> = swept.ended.iter().map(|(id, _)| id.pid).collect();
        assert!(ended.contains(&child), "{ended:?} has no {child}");
        // Nobody holds the pipe any more.
        assert_eq!(std::io::Read::read(&mut stdout, &mut [0]).unwrap(), 0);
        shell.wait().unwrap();
    }
}
