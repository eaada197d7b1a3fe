//! The runtime while it starts, as the bootstrap loop sees it: ready, failed, given
//! up or abandoned.

use super::{HandOver, children, server};
use crate::channel::{EOF_GRACE, KILL_GRACE, TERM_GRACE};
use crate::exit;
use crate::signals::StopSignal;
use coldpath_trace_format::emit::{MonoNanos, Telemetry};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// Longest wait for the thread when the daemon stops while it starts: an agent's
/// graces one after the other, its orphans' (less than those of a kill), those of
/// answers, and for the trace, which is closed within two seconds, a little more.
const ABANDON_TIMEOUT: Duration = EOF_GRACE
    .saturating_add(TERM_GRACE)
    .saturating_add(KILL_GRACE)
    .saturating_add(KILL_GRACE)
    .saturating_add(server::ANSWER_GRACE)
    .saturating_add(Duration::from_millis(2_500));

/// The runtime while it is being built, as the bootstrap loop sees it.
#[derive(Debug)]
pub(crate) struct Starting {
    /// Readable when the outcome is there; at its end when the thread has ended.
    pub(super) ready: OwnedFd,
    pub(super) shared: Arc<Shared>,
    pub(super) hand_over: oneshot::Sender<HandOver>,
    pub(super) thread: JoinHandle<ExitCode>,
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    progress: Mutex<Progress>,
    /// For a stop that does not wait for the thread.
    telemetry: Mutex<Telemetry>,
}

/// How far the thread is. It leaves `Building` once, by whoever is first: the
/// thread with its outcome, or the loop that does not wait for it any more.
#[derive(Debug, Default)]
pub(super) enum Progress {
    #[default]
    Building,
    Ready,
    Failed(String),
    GivenUp(Why),
}

/// Why nobody waits for the thread any more.
#[derive(Clone, Copy, Debug)]
pub(super) enum Why {
    /// The loop goes on and has answered those who waited.
    Late,
    /// The daemon stops; nobody was answered.
    Stopping,
}

impl Shared {
    pub(super) fn telemetry(&self) -> MutexGuard<'_, Telemetry> {
        self.telemetry
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives up what is still building. `false` when its outcome came first.
    fn give_up(&self, why: Why) -> bool {
        let mut progress = self.progress();
        let building = matches!(*progress, Progress::Building);
        if building {
            *progress = Progress::GivenUp(why);
        }
        building
    }
}

impl AsFd for Starting {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}

impl Starting {
    /// Ready or failed, once the pipe is readable; a thread that ended without a
    /// word has failed.
    pub(crate) fn outcome(&self) -> Option<Result<(), String>> {
        match &*self.shared.progress() {
            Progress::Ready => Some(Ok(())),
            Progress::Failed(message) => Some(Err(message.clone())),
            Progress::Building | Progress::GivenUp(_) => self
                .thread
                .is_finished()
                .then(|| Err("its thread ended unexpectedly".to_owned())),
        }
    }

    /// Hands everything over and waits until the daemon stops.
    pub(crate) fn hand_over(self, everything: HandOver) -> ExitCode {
        // A thread that is gone drops it; the join says so.
        let _ = self.hand_over.send(everything);
        self.thread.join().unwrap_or_else(|_| {
            crate::log::error("the runtime's thread panicked");
            ExitCode::from(exit::REFUSED)
        })
    }

    /// Gives the runtime up while it starts; the loop goes on without it. `false`
    /// when its outcome came first.
    pub(crate) fn give_up(&self) -> bool {
        self.shared.give_up(Why::Late)
    }

    /// Ends what a runtime that was given up may have started, at once, and closes
    /// its trace: its thread may hang for ever, or come to an end of its own.
    pub(crate) fn end_given_up(self) {
        children::kill();
        self.shared.telemetry().close();
    }

    /// Stops the daemon while the runtime starts: it ends what it began, in bounded
    /// time. When the time is over, or a second signal comes, its agents are killed.
    /// The trace is closed in any case.
    pub(crate) fn abandon(self, stop: &StopSignal) -> ExitCode {
        crate::log::info("stopping");
        // With an outcome it waits for the hand-over, which is not to come.
        self.shared.give_up(Why::Stopping);
        drop(self.hand_over);
        let ended = wait_for_end(&self.ready, stop, MonoNanos::now().after(ABANDON_TIMEOUT));
        if !ended {
            children::kill();
        }
        self.shared.telemetry().close();
        ExitCode::from(if ended { exit::CLEAN } else { exit::REFUSED })
    }
}

/// Waits for the end of the thread that holds the other end of `ready`. `false`
/// when a stop signal or the deadline comes first.
fn wait_for_end(ready: &OwnedFd, stop: &StopSignal, deadline: MonoNanos) -> bool {
    let mut byte = [0_u8; 1];
    loop {
        // A nanosecond more, so that the deadline has passed when poll returns.
        let left = deadline.since(MonoNanos::now());
        let Ok(wait) = Timespec::try_from(left + Duration::from_nanos(1)) else {
            return false;
        };
        let mut fds = [
            PollFd::new(ready, PollFlags::IN),
            PollFd::new(stop, PollFlags::IN),
        ];
        match poll(&mut fds, Some(&wait)) {
            Ok(0) => return false,
            Ok(_) => {
                let (thread, signal) = (!fds[0].revents().is_empty(), !fds[1].revents().is_empty());
                // The end of the pipe: the thread is over.
                if thread && rustix::io::read(ready, &mut byte[..]) == Ok(0) {
                    return true;
                }
                if signal && stop.take() {
                    return false;
                }
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}
