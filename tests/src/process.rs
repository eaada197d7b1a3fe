//! Processes by pidfd and by the run token in their environment.

use crate::Deadline;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::os::fd::OwnedFd;

/// A process that can be waited for and signalled without taking another one for
/// it after its pid was given away.
#[derive(Debug)]
pub struct Watched {
    pid: u32,
    pidfd: OwnedFd,
}

impl Watched {
    /// `None` when there is no such process.
    #[must_use]
    pub fn open(pid: u32) -> Option<Self> {
        let raw = Pid::from_raw(i32::try_from(pid).ok()?)?;
        let pidfd = pidfd_open(raw, PidfdFlags::empty()).ok()?;
        Some(Self { pid, pidfd })
    }

    /// Its pid.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Sends a signal; a process that is over takes none.
    pub fn signal(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.pidfd, signal);
    }

    /// Whether it ends before the deadline.
    #[must_use]
    pub fn ends_before(&self, deadline: Deadline) -> bool {
        loop {
            let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
            match poll(&mut fds, Some(&deadline.timeout())) {
                Ok(0) => return false,
                Ok(_) => return true,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => panic!("poll: {error}"),
            }
        }
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// It still runs after [`crate::WAIT`].
    #[track_caller]
    pub fn wait(&self, what: &str) {
        assert!(
            self.ends_before(Deadline::standard()),
            "{what} (process {}) still runs: {}",
            self.pid,
            command_line(self.pid)
        );
    }
}

/// Running processes whose environment holds `COLDPATH_RUN_TOKEN=<token>`, each
/// with its command line. A process that has ended and was not reaped yet has no
/// environment and is not among them.
#[must_use]
pub fn processes_with_token(token: &str) -> Vec<(u32, String)> {
    let entries = std::fs::read_dir("/proc").expect("/proc is there");
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| has_token(*pid, token))
        .map(|pid| (pid, command_line(pid)))
        .collect()
}

/// Kills every process with the token until none is left.
///
/// # Panics
/// One of them survives SIGKILL for [`crate::WAIT`].
pub fn end_processes_with_token(token: &str) {
    loop {
        let found = processes_with_token(token);
        if found.is_empty() {
            return;
        }
        for (pid, _) in found {
            // The token is looked at again through the descriptor's process: the
            // pid may have been given away in between.
            if let Some(process) = Watched::open(pid)
                && has_token(pid, token)
            {
                process.signal(Signal::KILL);
                process.wait("a killed process");
            }
        }
    }
}

fn has_token(pid: u32, token: &str) -> bool {
    let wanted = format!("COLDPATH_RUN_TOKEN={token}");
    std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| {
        environ
            .split(|byte| *byte == 0)
            .any(|variable| variable == wanted.as_bytes())
    })
}

fn command_line(pid: u32) -> String {
    let text = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&text).replace('\0', " ")
}
