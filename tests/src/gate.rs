//! A place where an agent stops until the test lets it go on.
//!
//! The agent connects to a socket, which tells the test that it got there, and
//! reads one byte, which it waits for.

use crate::Deadline;
use rustix::event::{PollFd, PollFlags, poll};
use std::io::Write as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The test's side of the place.
#[derive(Debug)]
pub struct Gate {
    path: PathBuf,
    listener: UnixListener,
}

/// Somebody who stands at the gate; dropped, it is let through.
#[derive(Debug)]
pub struct Arrival {
    stream: UnixStream,
}

impl Gate {
    /// A gate at a path where nothing is yet.
    ///
    /// # Panics
    /// The socket cannot be made there.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        let listener = UnixListener::bind(&path)
            .unwrap_or_else(|error| panic!("no gate at {}: {error}", path.display()));
        listener.set_nonblocking(true).unwrap();
        Self { path, listener }
    }

    /// What an agent is told.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until somebody stands at the gate.
    ///
    /// # Panics
    /// Nobody comes within [`crate::WAIT`].
    #[must_use]
    #[track_caller]
    pub fn arrival(&self) -> Arrival {
        let deadline = Deadline::standard();
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => return Arrival { stream },
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => panic!("gate: {error}"),
            }
            let mut fds = [PollFd::new(&self.listener, PollFlags::IN)];
            let come = poll(&mut fds, Some(&deadline.timeout()));
            assert!(
                come.is_err() || come.is_ok_and(|ready| ready > 0),
                "nobody came to the gate {}",
                self.path.display()
            );
        }
    }

    /// Whether nobody stands at the gate now.
    ///
    /// # Panics
    /// The socket fails.
    #[must_use]
    pub fn is_deserted(&self) -> bool {
        match self.listener.accept() {
            Ok(_) => false,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => true,
            Err(error) => panic!("gate: {error}"),
        }
    }
}

impl Arrival {
    /// Lets it go on.
    ///
    /// # Panics
    /// It is gone.
    pub fn release(mut self) {
        self.stream.write_all(b"!").expect("the agent still waits");
    }
}
