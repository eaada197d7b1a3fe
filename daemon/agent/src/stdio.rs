//! stdin and stdout: lines in, lines out, on the one thread there is.
//!
//! Reads block while nothing else runs; while a git runs, stdin and git are
//! polled together, so that neither waits for the other. A client that has gone
//! away ends the loop as the end of stdin does.

use crate::agent::{Agent, Reply};
use crate::diagnostics::Diagnostics;
use coldpath_acp::framing::{LineBuffer, MAX_LINE_BYTES};
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use std::io::{self, ErrorKind, Stdin, Stdout, Write as _};
use std::os::fd::AsFd as _;
use std::time::Duration;

/// Bytes of one read: what a pipe holds at most.
const CHUNK_BYTES: usize = 64 * 1024;

/// How long a client must be silent after the initialize response for the agent
/// to use the time: a client that opens a session at once does so within
/// milliseconds, and opening the trace would be in its way.
const PAUSE: Duration = Duration::from_millis(20);

/// The protocol's two pipes.
pub(crate) struct Transport {
    stdin: Stdin,
    stdout: Stdout,
    lines: LineBuffer,
    chunk: Vec<u8>,
}

/// Whether the loop goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Open,
    Closed,
}

impl Transport {
    /// Makes the buffers; nothing is read yet.
    pub(crate) fn open() -> Self {
        Self {
            stdin: io::stdin(),
            stdout: io::stdout(),
            lines: LineBuffer::new(MAX_LINE_BYTES),
            // Not zeroed: pages that no request fills are never touched.
            chunk: Vec::with_capacity(CHUNK_BYTES),
        }
    }

    /// Serves until stdin ends or the client closes stdout, then ends the agent.
    ///
    /// # Errors
    /// stdin cannot be read.
    pub(crate) fn serve(
        mut self,
        agent: &mut Agent,
        diagnostics: &mut Diagnostics,
    ) -> io::Result<()> {
        let served = self.run(agent, diagnostics);
        agent.finish(diagnostics);
        match served {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            served => served,
        }
    }

    fn run(&mut self, agent: &mut Agent, diagnostics: &mut Diagnostics) -> io::Result<()> {
        loop {
            if agent.wants_pause() && self.is_quiet_for(PAUSE)? {
                agent.pause(diagnostics);
            }
            if !agent.status().is_idle() {
                let readable = self.wait(agent)?;
                if let Some(answer) = agent.status().advance() {
                    let lines = agent.tell(&answer);
                    self.write(&lines)?;
                }
                if readable == Readable::No {
                    agent.status().start_next();
                    continue;
                }
            }
            if self.read(agent, diagnostics)? == Flow::Closed {
                return Ok(());
            }
        }
    }

    /// Waits for stdin, the running git, or the end of git's time.
    fn wait(&self, agent: &mut Agent) -> io::Result<Readable> {
        let status = agent.status();
        let timeout = status
            .patience()
            .map(|patience| Timespec::try_from(patience).unwrap_or_default());
        let mut fds = vec![PollFd::from_borrowed_fd(self.stdin.as_fd(), PollFlags::IN)];
        let others = status.descriptors();
        fds.extend(
            others
                .into_iter()
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)),
        );
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let readable = fds.first().is_some_and(|stdin| !stdin.revents().is_empty());
        Ok(if readable {
            Readable::Yes
        } else {
            Readable::No
        })
    }

    /// Whether nothing comes, not even the end, for so long.
    fn is_quiet_for(&self, duration: Duration) -> io::Result<bool> {
        let mut fds = [PollFd::from_borrowed_fd(self.stdin.as_fd(), PollFlags::IN)];
        let timeout = Timespec::try_from(duration).unwrap_or_default();
        match rustix::event::poll(&mut fds, Some(&timeout)) {
            Ok(ready) => Ok(ready == 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn read(&mut self, agent: &mut Agent, diagnostics: &mut Diagnostics) -> io::Result<Flow> {
        self.chunk.clear();
        let length = match rustix::io::read(&self.stdin, spare_capacity(&mut self.chunk)) {
            Ok(length) => length,
            Err(Errno::INTR) => return Ok(Flow::Open),
            // The other holder of this pipe made it non-blocking.
            Err(Errno::AGAIN) => {
                let mut fds = [PollFd::from_borrowed_fd(self.stdin.as_fd(), PollFlags::IN)];
                return match rustix::event::poll(&mut fds, None) {
                    Ok(_) | Err(Errno::INTR) => Ok(Flow::Open),
                    Err(error) => Err(error.into()),
                };
            }
            Err(error) => return Err(error.into()),
        };
        let mut read = agent.edge();
        self.lines.push(&self.chunk);
        let tail = if length == 0 {
            self.lines.finish()
        } else {
            None
        };
        loop {
            let reply = match self.lines.next_line() {
                Some(Ok(line)) => agent.handle(&line, read),
                Some(Err(error)) => {
                    self.write(&Agent::refuse_too_long(error))?;
                    continue;
                }
                None => break,
            };
            self.answer(agent, reply, diagnostics)?;
            // A line that came with the one before has waited for its answer; that
            // is no part of its own time.
            read = agent.edge();
        }
        if let Some(tail) = tail {
            let reply = agent.handle(&tail, read);
            self.answer(agent, reply, diagnostics)?;
        }
        Ok(if length == 0 {
            Flow::Closed
        } else {
            Flow::Open
        })
    }

    fn answer(
        &mut self,
        agent: &mut Agent,
        reply: Reply,
        diagnostics: &mut Diagnostics,
    ) -> io::Result<()> {
        if let Some(line) = &reply.line {
            self.write(line)?;
        }
        agent.settle(reply, diagnostics);
        Ok(())
    }

    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        self.stdout.write_all(lines)?;
        self.stdout.flush()
    }
}

/// Whether stdin has something, or its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readable {
    Yes,
    No,
}
