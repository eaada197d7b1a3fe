//! One connection of the bootstrap loop: bytes in, bytes out, nothing decided.

use super::{HealthRecord, HealthRequest};
use crate::http::HEAD_MAX_BYTES;
use coldpath_trace_format::emit::MonoNanos;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// Longest silence of a connection before it is closed, in the middle of a head
/// or between two requests.
pub(crate) const CONNECTION_DEADLINE: Duration = Duration::from_secs(10);

/// Silence after which a connection may have to make room for another one: long
/// enough for any request that is on its way.
pub(crate) const SILENCE_MIN: Duration = Duration::from_secs(1);

/// A connection with its buffers.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
    unsent: Vec<u8>,
    /// The accept, until the socket was looked at for the first time.
    accepted: Option<MonoNanos>,
    /// When the first byte that is not consumed came.
    began: MonoNanos,
    /// When bytes came last.
    read_at: MonoNanos,
    /// A `/health` whose answer the peer has not taken whole.
    health: Option<HealthRequest>,
    pub(crate) deadline: MonoNanos,
    pub(crate) state: State,
}

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// A request.
    Reading,
    /// The peer to take the rest of an answer; then it is closed, or read again.
    Writing { then_close: bool },
    /// The runtime: its request cannot be answered here.
    Held {
        since: MonoNanos,
        /// Whether this request started the runtime.
        started: bool,
    },
    /// Nothing more; it is removed.
    Done,
}

/// A connection as the runtime takes it over: nothing that was read is lost.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) stream: TcpStream,
    pub(crate) read: Vec<u8>,
    /// When the first of these bytes came.
    pub(crate) began: MonoNanos,
    pub(crate) unsent: Unsent,
    /// When its first request began to wait for the runtime, and whether it started it.
    pub(crate) held: Option<(MonoNanos, bool)>,
}

/// Rest of an answer that the peer has not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Unsent {
    pub(crate) bytes: Vec<u8>,
    /// Whether the connection ends with it.
    pub(crate) then_close: bool,
    /// The `/health` that it answers.
    pub(crate) health: Option<HealthRequest>,
}

impl Connection {
    /// Takes an accepted stream over.
    pub(crate) fn new(stream: TcpStream, now: MonoNanos) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        // One small answer a write: waiting for more to send only adds latency.
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            read: Vec::new(),
            unsent: Vec::new(),
            accepted: Some(now),
            began: now,
            read_at: now,
            health: None,
            deadline: now.after(CONNECTION_DEADLINE),
            state: State::Reading,
        })
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Bytes that were read and not consumed.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.read
    }

    /// When the request at the front began: at the accept where its first bytes
    /// were there when the connection was first looked at, else when they were read.
    pub(crate) fn began(&self) -> MonoNanos {
        self.began
    }

    /// Takes a handled request off the front.
    pub(crate) fn consume(&mut self, length: usize) {
        self.read.drain(..length);
        // What stands behind it came no later than that.
        self.began = self.read_at;
    }

    /// Reads what is there, up to the bound. `false` when the peer is gone.
    pub(crate) fn fill(&mut self) -> bool {
        let mut buffer = [0_u8; 2048];
        // Bytes that came with the connection are as old as it is.
        let accepted = self.accepted.take();
        while self.read.len() < HEAD_MAX_BYTES {
            let room = buffer.len().min(HEAD_MAX_BYTES - self.read.len());
            match self.stream.read(&mut buffer[..room]) {
                Ok(0) => return false,
                Ok(length) => {
                    self.read_at = accepted.unwrap_or_else(MonoNanos::now);
                    if self.read.is_empty() {
                        self.began = self.read_at;
                    }
                    self.read.extend_from_slice(&buffer[..length]);
                    if length < room {
                        return true;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
        true
    }

    /// Sends an answer as far as the peer takes it. `true` when it is flushed.
    pub(crate) fn send(&mut self, bytes: &[u8], then_close: bool, now: MonoNanos) -> bool {
        self.unsent.extend_from_slice(bytes);
        self.deadline = now.after(CONNECTION_DEADLINE);
        self.state = State::Writing { then_close };
        self.flush()
    }

    /// Keeps a `/health` until its answer, which was sent in part, is flushed.
    pub(crate) fn await_flush(&mut self, health: HealthRequest) {
        self.health = Some(health);
    }

    /// The `/health` whose answer has been flushed since the last call.
    pub(crate) fn take_answered(&mut self, now: MonoNanos) -> Option<HealthRecord> {
        if self.unsent.is_empty() {
            self.health.take().map(|health| health.answered(now))
        } else {
            None
        }
    }

    /// Goes on sending. `true` when nothing is left to send.
    pub(crate) fn flush(&mut self) -> bool {
        let State::Writing { then_close } = self.state else {
            return true;
        };
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(0) => self.state = State::Done,
                Ok(length) => {
                    self.unsent.drain(..length);
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => self.state = State::Done,
            }
            return false;
        }
        self.state = if then_close {
            State::Done
        } else {
            State::Reading
        };
        true
    }

    pub(crate) fn into_pending(self) -> Pending {
        let held = match self.state {
            State::Held { since, started } => Some((since, started)),
            _ => None,
        };
        let then_close = self.state == State::Writing { then_close: true };
        Pending {
            stream: self.stream,
            read: self.read,
            began: self.began,
            unsent: Unsent {
                bytes: self.unsent,
                then_close,
                health: self.health,
            },
            held,
        }
    }
}
