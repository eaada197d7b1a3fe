//! A stream whose first bytes were read already, by the bootstrap loop, and the
//! instants of what goes over it.

use coldpath_trace_format::emit::MonoNanos;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Gives the bytes back first, then goes on with the stream.
#[derive(Debug)]
pub(super) struct Rewound {
    first: Vec<u8>,
    given: usize,
    stream: TcpStream,
    wire: Rc<Wire>,
}

/// When requests of one connection began and their answers were out.
pub(super) struct Wire {
    /// The accept, until the stream was looked at for the first time.
    accepted: Cell<Option<MonoNanos>>,
    /// When the first bytes after the last answer came.
    first: Cell<Option<MonoNanos>>,
    /// When bytes came last.
    last: Cell<MonoNanos>,
    /// Whether something was written and not flushed yet.
    written: Cell<bool>,
    on_flush: RefCell<Option<OnFlush>>,
}

type OnFlush = Box<dyn FnOnce(MonoNanos)>;

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire")
            .field("accepted", &self.accepted)
            .field("first", &self.first)
            .field("last", &self.last)
            .finish_non_exhaustive()
    }
}

impl Wire {
    /// Of a connection that was accepted at that instant.
    pub(super) fn accepted(at: MonoNanos) -> Rc<Self> {
        Rc::new(Self {
            accepted: Cell::new(Some(at)),
            first: Cell::new(None),
            last: Cell::new(at),
            written: Cell::new(false),
            on_flush: RefCell::new(None),
        })
    }

    /// Of a connection whose first bytes were read then, by somebody else.
    pub(super) fn handed_over(at: MonoNanos) -> Rc<Self> {
        let wire = Self::accepted(at);
        wire.accepted.set(None);
        wire
    }

    /// When the request whose head was read just now began: at the accept where its
    /// first bytes were there when the stream was first looked at, else when they
    /// came. Asked once for each request.
    pub(super) fn request_began(&self) -> MonoNanos {
        self.first.take().unwrap_or(self.last.get())
    }

    /// Calls `told` with the instant when the answer that is given now is out;
    /// never when the client leaves before that.
    pub(super) fn on_flush(&self, told: impl FnOnce(MonoNanos) + 'static) {
        *self.on_flush.borrow_mut() = Some(Box::new(told));
    }

    fn read(&self, at: MonoNanos) {
        self.last.set(at);
        if self.first.get().is_none() {
            self.first.set(Some(at));
        }
    }

    fn flushed(&self) {
        if !self.written.replace(false) {
            return;
        }
        // Bytes that came before this belong to the request that is answered, or
        // stand behind it: those came with the last read.
        self.first.set(None);
        let told = self.on_flush.borrow_mut().take();
        if let Some(told) = told {
            told(MonoNanos::now());
        }
    }
}

impl Rewound {
    pub(super) fn new(first: Vec<u8>, stream: TcpStream, wire: Rc<Wire>) -> Self {
        Self {
            first,
            given: 0,
            stream,
            wire,
        }
    }

    pub(super) fn wire(&self) -> Rc<Wire> {
        Rc::clone(&self.wire)
    }
}

impl AsyncRead for Rewound {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.given < self.first.len() {
            let length = buffer.remaining().min(self.first.len() - self.given);
            buffer.put_slice(&self.first[self.given..self.given + length]);
            self.given += length;
            self.wire.read(self.wire.last.get());
            return Poll::Ready(Ok(()));
        }
        // Bytes that came with the connection are as old as it is.
        let accepted = self.wire.accepted.take();
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.wire.read(accepted.unwrap_or_else(MonoNanos::now));
        }
        polled
    }
}

impl AsyncWrite for Rewound {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.wire.written.set(true);
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    /// Called by the server when everything that it has to say was written.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        if matches!(polled, Poll::Ready(Ok(()))) {
            self.wire.flushed();
        }
        polled
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.wire.written.set(true);
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
