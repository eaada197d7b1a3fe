//! What is still to be written to an agent's stdin: whole lines, in order.
//!
//! One task owns the pipe. Whoever sends waits for a place in the queue at most;
//! when it gives up, its line is either not there at all or written as a whole,
//! so that a request that ran out of time never cuts the next one in two.

use std::cell::RefCell;
use std::io;
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// Lines that wait for an agent that does not read. A handful: each may hold a
/// client's whole body.
const QUEUE_LINES: usize = 8;

/// The writing side of a channel.
#[derive(Debug)]
pub(super) struct Outbox {
    open: RefCell<Option<Open>>,
}

#[derive(Debug)]
struct Open {
    queue: mpsc::Sender<Vec<u8>>,
    task: AbortHandle,
}

impl Outbox {
    /// Begins to write; `broken` is called when the agent closed its input.
    pub(super) fn new(mut stdin: pipe::Sender, broken: impl Future<Output = ()> + 'static) -> Self {
        let (queue, mut lines) = mpsc::channel::<Vec<u8>>(QUEUE_LINES);
        let task = tokio::task::spawn_local(async move {
            while let Some(line) = lines.recv().await {
                if stdin.write_all(&line).await.is_err() {
                    // Nobody may wait for a place in a queue that is not emptied.
                    drop(lines);
                    broken.await;
                    return;
                }
            }
        });
        let task = task.abort_handle();
        Self {
            open: RefCell::new(Some(Open { queue, task })),
        }
    }

    /// Queues a line, waiting for a place.
    pub(super) async fn send(&self, line: Vec<u8>) -> io::Result<()> {
        let queue = self.open.borrow().as_ref().map(|open| open.queue.clone());
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        queue.ok_or_else(gone)?.send(line).await.map_err(|_| gone())
    }

    /// Queues a line if there is a place now; says whether there was.
    pub(super) fn try_send(&self, line: Vec<u8>) -> bool {
        self.open
            .borrow()
            .as_ref()
            .is_some_and(|open| open.queue.try_send(line).is_ok())
    }

    /// Closes the agent's input, with what was not written yet.
    pub(super) fn close(&self) {
        if let Some(open) = self.open.borrow_mut().take() {
            open.task.abort();
        }
    }
}
