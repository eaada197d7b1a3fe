//! SIGTERM and SIGINT as bytes on a socket pair, so that both loops can wait for
//! them beside everything else.

use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// A file grew beyond the process's limit; Linux on x86-64 and most others.
const SIGXFSZ: i32 = 25;

/// The end of a socket pair that a stop signal makes readable.
#[derive(Debug)]
pub(crate) struct StopSignal {
    stream: UnixStream,
}

impl StopSignal {
    /// Registers both signals; from here on they no longer end the process by themselves.
    pub(crate) fn register() -> io::Result<Self> {
        let (stream, write) = UnixStream::pair()?;
        stream.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(SIGTERM, write.try_clone()?)?;
        signal_hook::low_level::pipe::register(SIGINT, write)?;
        // Caught and ignored: a trace file at the process's size limit then gives a
        // write error, which loses spans, instead of the end of the daemon.
        signal_hook::flag::register(SIGXFSZ, Arc::default())?;
        Ok(Self { stream })
    }

    /// Whether a signal came since the last call.
    pub(crate) fn take(&self) -> bool {
        let mut bytes = [0_u8; 16];
        matches!((&self.stream).read(&mut bytes), Ok(read) if read > 0)
    }

    /// The stream itself, for an async loop.
    pub(crate) fn into_stream(self) -> UnixStream {
        self.stream
    }
}

impl AsFd for StopSignal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
