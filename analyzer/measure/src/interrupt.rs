//! SIGINT, SIGTERM and SIGHUP as something that a wait can be woken by.
//!
//! The handler writes one byte to a socket pair and notes the signal; what to do
//! about it is decided where something is awaited. A signal that was ignored when
//! this process started stays ignored (`nohup`, background jobs of a script).

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The signals that end an experiment early, with their names.
const SIGNALS: [(i32, &str); 3] = [
    (signal_hook::consts::SIGINT, "SIGINT"),
    (signal_hook::consts::SIGTERM, "SIGTERM"),
    (signal_hook::consts::SIGHUP, "SIGHUP"),
];

/// A signal that asked for the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caught {
    /// Its number.
    pub number: i32,
    /// Its name, `SIGINT` and the like.
    pub name: &'static str,
}

/// The installed handlers.
#[derive(Debug)]
pub struct Interrupts {
    wake: UnixStream,
    seen: Arc<AtomicUsize>,
}

impl Interrupts {
    /// Installs the handlers; once in a process.
    ///
    /// # Errors
    /// The system refuses a descriptor or a handler.
    pub fn install() -> io::Result<Self> {
        let (wake, writer) = UnixStream::pair()?;
        let seen = Arc::new(AtomicUsize::new(0));
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = ignored_signals(&status);
        for (number, _) in SIGNALS {
            if ignored >> (number - 1) & 1 == 1 {
                continue;
            }
            // The note first: whoever is woken must find it.
            let note = usize::try_from(number).unwrap_or_default();
            signal_hook::flag::register_usize(number, Arc::clone(&seen), note)?;
            signal_hook::low_level::pipe::register(number, writer.try_clone()?)?;
        }
        Ok(Self { wake, seen })
    }

    /// Readable, for ever, once a signal has come.
    #[must_use]
    pub fn wake_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// The latest signal that has come, if any.
    #[must_use]
    pub fn caught(&self) -> Option<Caught> {
        let seen = self.seen.load(Ordering::SeqCst);
        SIGNALS
            .iter()
            .find(|(number, _)| usize::try_from(*number) == Ok(seen))
            .map(|&(number, name)| Caught { number, name })
    }
}

/// `SigIgn` of a `/proc/PID/status`: bit n − 1 stands for signal n.
fn ignored_signals(status: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::ignored_signals;

    #[test]
    fn ignored_signals_are_read_from_the_status_file() {
        // SIGPIPE is 13: what a Rust program starts with.
        let status = "Name:\tx\nSigBlk:\t0000000000000003\nSigIgn:\t0000000000001000\n";
        assert_eq!(ignored_signals(status), 1 << 12);
        assert_eq!(ignored_signals(""), 0);
    }
}
