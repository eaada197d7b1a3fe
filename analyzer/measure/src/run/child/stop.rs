//! The end of a program: asked for, waited for, enforced, reaped.

use super::super::failure::{Failure, FailureCode};
use super::super::record::Exit;
use super::{Running, Wake};
use crate::cleanup::sweep::timespec;
use crate::driver::StopRule;
use coldpath_trace_format::emit::MonoNanos;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Signal, pidfd_send_signal};
use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

/// Reads of each output after the program has ended: what fits into a pipe, and
/// an end where a descendant goes on writing.
const LAST_READS: usize = 64;
/// How long a killed program is waited for where nobody will look at it again.
const DROP_GRACE: Duration = Duration::from_secs(2);

/// How a program was stopped.
#[derive(Debug)]
pub struct Stopped {
    /// From SIGTERM to the end; absent when the program had ended before.
    pub shutdown: Option<(MonoNanos, MonoNanos)>,
    /// When it had ended.
    pub ended: MonoNanos,
    /// With what.
    pub exit: Exit,
    /// Why SIGKILL was needed, if it was.
    pub killed: Option<KillReason>,
}

/// Why a program was not left to end on SIGTERM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillReason {
    /// It had not ended within this grace.
    Overdue(Duration),
    /// It had not ended and somebody waits for the end of the experiment.
    Interrupted,
}

impl Running<'_> {
    /// Whether the program has ended, or does so soon.
    pub fn ends_within(&mut self, patience: Duration) -> bool {
        self.wait_for_end(MonoNanos::now().after(patience))
    }

    /// Ends the program: by the end of its input where `rule` says so, SIGTERM,
    /// after a grace SIGKILL to its group; then reaps it. The grace is `patience`,
    /// or `hurry` from when a signal has asked for the end of the experiment.
    pub fn stop(&mut self, rule: StopRule, patience: Duration, hurry: Duration) -> Stopped {
        let before = self.has_ended(Duration::ZERO);
        let asked = MonoNanos::now();
        let mut killed = None;
        if !before && !self.ends_with_its_input(rule) {
            let _ = pidfd_send_signal(&self.pidfd, Signal::TERM);
            killed = match self.wait_for_end_or_signal(asked.after(patience)) {
                Wake::Interrupted => (!self.wait_for_end(MonoNanos::now().after(hurry)))
                    .then_some(KillReason::Interrupted),
                Wake::TimedOut => Some(KillReason::Overdue(patience)),
                Wake::Ready | Wake::Exited => None,
            };
        }
        if killed.is_some() {
            let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
            let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
            // SIGKILL cannot be refused; a process in an uninterruptible sleep
            // still keeps us no longer than this.
            self.wait_for_end(MonoNanos::now().after(patience));
        }
        let ended = MonoNanos::now();
        self.read_last_output();
        Stopped {
            shutdown: (!before).then_some((asked, ended)),
            ended,
            exit: self.reap(),
            killed,
        }
    }

    /// Whether the end of its input was enough.
    fn ends_with_its_input(&mut self, rule: StopRule) -> bool {
        let StopRule::CloseInput(grace) = rule else {
            return false;
        };
        self.close_input();
        self.wait_for_end_or_signal(MonoNanos::now().after(grace)) == Wake::Exited
    }

    fn has_ended(&mut self, longest: Duration) -> bool {
        self.poll(&[], longest, false, &mut Vec::new()).exited
    }

    fn reap(&mut self) -> Exit {
        // Not once it is reaped: then its id may be another's.
        self.note.end();
        match self.child.try_wait() {
            Ok(Some(status)) => {
                self.reaped = true;
                status
                    .code()
                    .map(Exit::Code)
                    .or_else(|| status.signal().map(Exit::Signal))
                    .unwrap_or(Exit::Unknown)
            }
            _ => Exit::Unknown,
        }
    }

    fn wait_for_end_or_signal(&mut self, deadline: MonoNanos) -> Wake {
        loop {
            let left = deadline.since(MonoNanos::now());
            let found = self.poll(&[], left, true, &mut Vec::new());
            if found.exited {
                return Wake::Exited;
            }
            if found.interrupted {
                return Wake::Interrupted;
            }
            if left.is_zero() {
                return Wake::TimedOut;
            }
        }
    }

    fn wait_for_end(&mut self, deadline: MonoNanos) -> bool {
        loop {
            let left = deadline.since(MonoNanos::now());
            if self.has_ended(left) {
                return true;
            }
            if left.is_zero() {
                return false;
            }
        }
    }

    fn read_last_output(&mut self) {
        for output in [&mut self.stdout, &mut self.stderr] {
            for _ in 0..LAST_READS {
                let Some(fd) = &output.fd else { break };
                let mut fds = [PollFd::new(fd, PollFlags::IN)];
                if poll(&mut fds, Some(&timespec(Duration::ZERO))) != Ok(1) {
                    break;
                }
                output.take();
            }
        }
    }
}

impl Stopped {
    /// Why this end is no success, for a program that was stopped when its driver
    /// was done: only 0, the SIGTERM that was sent, and 143, which a shell makes
    /// of it, are.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        match self.killed {
            Some(KillReason::Overdue(grace)) => {
                let message = format!("did not end within {} s of SIGTERM", grace.as_secs());
                return Some(Failure::new(FailureCode::StopTimeout, message));
            }
            Some(KillReason::Interrupted) => {
                let message = "ended by a signal while it was being stopped";
                return Some(Failure::new(FailureCode::Interrupted, message));
            }
            None => {}
        }
        let fine = match self.exit {
            Exit::Code(0 | 143) => true,
            Exit::Signal(signal) => signal == signal_hook::consts::SIGTERM,
            Exit::Code(_) | Exit::Unknown => false,
        };
        let how = if self.shutdown.is_some() {
            "ended when it was stopped with"
        } else {
            "ended by itself with"
        };
        (!fine).then(|| Failure::new(FailureCode::BadExit, format!("{how} {}", self.exit)))
    }
}

impl Drop for Running<'_> {
    /// A run that is left by a panic leaves nothing behind either.
    fn drop(&mut self) {
        if !self.reaped {
            let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
            let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
            self.wait_for_end(MonoNanos::now().after(DROP_GRACE));
            self.reap();
        }
    }
}

#[cfg(test)]
mod tests;
