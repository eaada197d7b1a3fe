//! Lines for people on stderr, each with one write so that they never interleave.
//!
//! Nothing here fails and nothing waits: how much is written depends on agents,
//! and a stderr that nobody reads must not stop the daemon. What does not fit is
//! dropped, and counted once there is room again.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicU64, Ordering};

/// A pipe that is ready takes this much without waiting (`PIPE_BUF` of Linux).
const READY_BYTES: usize = 4096;

/// Lines that found no room, not told yet.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Says that something happened.
pub(crate) fn info(text: &str) {
    line("", text);
}

/// Says that something is wrong and the daemon goes on.
pub(crate) fn warn(text: &str) {
    line("warning: ", text);
}

/// Says why the daemon stops or a part of it failed.
pub(crate) fn error(text: &str) {
    line("error: ", text);
}

fn line(level: &str, text: &str) {
    let dropped = DROPPED.swap(0, Ordering::Relaxed);
    if dropped > 0
        && !write(&format!(
            "coldpathd: {dropped} lines dropped: nobody read them\n"
        ))
    {
        DROPPED.fetch_add(dropped + 1, Ordering::Relaxed);
        return;
    }
    if !write(&format!("coldpathd: {level}{text}\n")) {
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Writes as much as there is room for; `false` when nothing of it was written.
/// Asking first is what keeps this from waiting: the file description is shared
/// with whoever started the daemon, so it must not be made non-blocking.
fn write(text: &str) -> bool {
    let stderr = std::io::stderr();
    for (index, part) in text.as_bytes().chunks(READY_BYTES).enumerate() {
        let mut fds = [PollFd::from_borrowed_fd(stderr.as_fd(), PollFlags::OUT)];
        let ready = poll(
            &mut fds,
            Some(&Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            }),
        );
        let room = ready.is_ok_and(|ready| ready > 0) && fds[0].revents().contains(PollFlags::OUT);
        if !room || (&stderr).write_all(part).is_err() {
            return index > 0;
        }
    }
    true
}
