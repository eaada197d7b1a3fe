//! One agent process and everything it leaves behind.
//!
//! Spawned with `posix_spawn` (no `pre_exec`, an absolute program, variables
//! changed one by one), in a process group of its own. Watched by pidfd; its exit
//! is read without reaping, so that the group can still be signalled safely, then
//! its orphans, which this subreaper adopts, are ended, and it is reaped last.

use crate::store::ProcessIdentity;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process_group, pidfd_open,
    waitid, waitpid,
};
use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// Time for an agent to end by itself after its stdin is closed. Real ones take
/// 10 to 1,000 ms, some never do it.
pub(crate) const EOF_GRACE: Duration = Duration::from_millis(1_500);
/// Time between SIGTERM and SIGKILL.
pub(crate) const TERM_GRACE: Duration = Duration::from_secs(2);
/// Time for a killed process to be gone; only the kernel can be slow here.
pub(crate) const KILL_GRACE: Duration = Duration::from_secs(1);
/// Time for orphans of an agent to end after SIGTERM.
const ORPHAN_GRACE: Duration = Duration::from_millis(500);
/// Pause between two looks at what is still there.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// How an agent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Code(i32),
    Signal(i32),
    /// The kernel did not say.
    Unknown,
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::Unknown => f.write_str("unknown exit"),
        }
    }
}

/// The agent's ends of the pipes.
#[derive(Debug)]
pub(crate) struct Pipes {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
}

/// Pids of the agents that were started and not reaped yet: this process's own
/// children, as opposed to orphans that it adopts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Family(Rc<RefCell<Vec<Pid>>>);

/// A started agent.
#[derive(Debug)]
pub(crate) struct AgentProcess {
    pid: Pid,
    family: Family,
    child: RefCell<Option<Child>>,
    pidfd: AsyncFd<OwnedFd>,
    exit: watch::Sender<Option<Exit>>,
    watched: Cell<bool>,
    /// Whether this daemon sent it a signal while it ran.
    signalled: Cell<bool>,
}

/// What to start.
#[derive(Debug)]
pub(crate) struct SpawnOrder<'a> {
    pub(crate) program: &'a Path,
    pub(crate) arguments: &'a [OsString],
    pub(crate) workspace: &'a Path,
    /// Variables to set, or with `None` to remove.
    pub(crate) variables: &'a [(&'static str, Option<OsString>)],
}

impl AgentProcess {
    /// Starts the program. About 0.1 ms whatever this process's size.
    pub(crate) fn spawn(order: &SpawnOrder<'_>, family: &Family) -> io::Result<(Rc<Self>, Pipes)> {
        let mut command = Command::new(order.program);
        command
            .args(order.arguments)
            .current_dir(order.workspace)
            .process_group(0);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for (name, value) in order.variables {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let mut child = command.spawn()?;
        let process = Self::adopt(&mut child);
        let (pid, pidfd) = match process {
            Ok(parts) => parts,
            Err(error) => {
                // Without a pidfd it cannot be watched: end it rather than lose it.
                let _ = child.kill();
                let _ = child.wait();
                return Err(error);
            }
        };
        let lost = || io::Error::other("a pipe of the agent is missing");
        let pipes = Pipes {
            stdin: child.stdin.take().ok_or_else(lost)?,
            stdout: child.stdout.take().ok_or_else(lost)?,
            stderr: child.stderr.take().ok_or_else(lost)?,
        };
        let (exit, _) = watch::channel(None);
        family.0.borrow_mut().push(pid);
        Ok((
            Rc::new(Self {
                pid,
                family: family.clone(),
                child: RefCell::new(Some(child)),
                pidfd,
                exit,
                watched: Cell::new(false),
                signalled: Cell::new(false),
            }),
            pipes,
        ))
    }

    fn adopt(child: &mut Child) -> io::Result<(Pid, AsyncFd<OwnedFd>)> {
        let raw = i32::try_from(child.id()).map_err(io::Error::other)?;
        let pid = Pid::from_raw(raw).ok_or_else(|| io::Error::other("pid 0"))?;
        // Not reaped yet, so the pid is still its own.
        let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
        #[expect(
            deprecated,
            reason = "its successor is unsafe; an OwnedFd keeps what that asks for"
        )]
        let watched = AsyncFd::with_interest(pidfd, tokio::io::Interest::READABLE)?;
        Ok((pid, watched))
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Its identity for the state file.
    pub(crate) fn identity(&self) -> Option<ProcessIdentity> {
        ProcessIdentity::of(self.pid)
    }

    /// How it ended, once it and what it left are gone.
    pub(crate) async fn ended(&self) -> Exit {
        let mut exit = self.exit.subscribe();
        match exit.wait_for(Option::is_some).await {
            Ok(exit) => (*exit).unwrap_or(Exit::Unknown),
            Err(_) => Exit::Unknown,
        }
    }

    /// Waits for its end, then ends what it left and reaps it. Runs once, as a task.
    pub(crate) async fn watch(&self) {
        if self.watched.replace(true) {
            return;
        }
        let exit = match self.pidfd.readable().await {
            Ok(_) => self.read_exit(),
            Err(_) => Exit::Unknown,
        };
        // The leader is a zombie now and keeps the group's number from being reused.
        let _ = kill_process_group(self.pid, Signal::TERM);
        self.family.end_orphans().await;
        let _ = kill_process_group(self.pid, Signal::KILL);
        if let Some(mut child) = self.child.borrow_mut().take() {
            // It has ended: this does not wait.
            let _ = child.wait();
        }
        self.family.0.borrow_mut().retain(|pid| *pid != self.pid);
        self.exit.send_replace(Some(exit));
    }

    fn read_exit(&self) -> Exit {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        match waitid(WaitId::Pid(self.pid), options) {
            Ok(Some(status)) => match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => Exit::Code(code),
                (_, Some(signal)) => Exit::Signal(signal),
                _ => Exit::Unknown,
            },
            _ => Exit::Unknown,
        }
    }

    /// Ends it, gently first. Its stdin must be closed already. Bounded by the graces.
    pub(crate) async fn stop(&self) {
        if timeout(EOF_GRACE, self.ended()).await.is_ok() {
            return;
        }
        self.signal(Signal::TERM);
        if timeout(TERM_GRACE, self.ended()).await.is_ok() {
            return;
        }
        self.kill();
        let _ = timeout(KILL_GRACE + ORPHAN_GRACE, self.ended()).await;
    }

    /// Kills its whole group at once.
    pub(crate) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        if self.exit.borrow().is_none() {
            self.signalled.set(true);
            let _ = kill_process_group(self.pid, signal);
        }
    }

    /// Whether a signal that ended it may have been this daemon's own.
    pub(crate) fn was_signalled(&self) -> bool {
        self.signalled.get()
    }
}

impl Family {
    /// Ends every process whose parent this one has become: SIGTERM, then SIGKILL
    /// after a grace.
    async fn end_orphans(&self) {
        let ended = timeout(ORPHAN_GRACE, self.end_orphans_by(Signal::TERM)).await;
        if ended.is_err() {
            self.kill_orphans().await;
        }
    }

    /// Ends every orphan without asking. Bounded.
    pub(crate) async fn kill_orphans(&self) {
        let _ = timeout(KILL_GRACE, self.end_orphans_by(Signal::KILL)).await;
    }

    /// Signals each orphan once until none is left. An orphan that ends leaves its
    /// own children to this process, so they are looked for again each time.
    async fn end_orphans_by(&self, signal: Signal) {
        let mut signalled: Vec<Pid> = Vec::new();
        loop {
            let mut orphans = self.orphans();
            if orphans.is_empty() {
                return;
            }
            reap(&mut orphans);
            signalled.retain(|pid| orphans.contains(pid));
            orphans.retain(|pid| !signalled.contains(pid));
            signal_all(&orphans, signal);
            signalled.append(&mut orphans);
            if !signalled.is_empty() {
                sleep(LOOK_AGAIN).await;
            }
        }
    }

    /// Reaps orphans that have ended by themselves; a subreaper that does not
    /// collects zombies for as long as its agent lives.
    pub(crate) fn reap_zombies(&self) {
        reap(&mut self.orphans());
    }

    /// Children that this process did not start: it is their subreaper.
    fn orphans(&self) -> Vec<Pid> {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let Ok(entries) = std::fs::read_dir("/proc") else {
            return Vec::new();
        };
        entries
            .filter_map(|entry| Pid::from_raw(entry.ok()?.file_name().to_str()?.parse().ok()?))
            .filter(|pid| parent_of(*pid) == Some(own) && !self.0.borrow().contains(pid))
            .collect()
    }
}

fn parent_of(pid: Pid) -> Option<i32> {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    text.rsplit_once(')')?
        .1
        .split_ascii_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

fn signal_all(processes: &[Pid], signal: Signal) {
    for process in processes {
        // Not reaped yet, so the pid is still its own.
        let _ = rustix::process::kill_process(*process, signal);
    }
}

/// Reaps those that have ended, each by its pid.
fn reap(orphans: &mut Vec<Pid>) {
    orphans.retain(|orphan| matches!(waitpid(Some(*orphan), WaitOptions::NOHANG), Ok(None)));
}

/// Ends agents that a killed daemon left: SIGTERM to their groups, SIGKILL after
/// the grace. Bounded.
pub(super) async fn end_survivors(survivors: &[ProcessIdentity]) {
    for survivor in survivors {
        crate::log::warn(&format!(
            "agent {} (started at tick {}) survived an earlier daemon; ending it",
            survivor.pid.as_raw_nonzero(),
            survivor.start_ticks
        ));
        survivor.signal(Signal::TERM);
    }
    if timeout(TERM_GRACE, until_gone(survivors)).await.is_err() {
        kill_survivors(survivors).await;
    }
}

/// The same without asking first.
pub(super) async fn kill_survivors(survivors: &[ProcessIdentity]) {
    for survivor in survivors {
        survivor.signal(Signal::KILL);
    }
    let _ = timeout(KILL_GRACE, until_gone(survivors)).await;
}

/// They are nobody's children here: all that can be done is to look.
async fn until_gone(survivors: &[ProcessIdentity]) {
    while survivors.iter().any(ProcessIdentity::is_running) {
        sleep(LOOK_AGAIN).await;
    }
}
