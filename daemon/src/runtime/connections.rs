//! The open connections of the server, bounded: when all places are taken, the
//! one that has been idle longest makes room, so that clients that connect and
//! say nothing cannot keep a health check out.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tokio::task::AbortHandle;

/// Connections that are served at once.
const CONNECTIONS_MAX: usize = 256;

/// All open connections, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Connections {
    open: RefCell<Vec<Open>>,
}

#[derive(Debug)]
struct Open {
    task: AbortHandle,
    requests: Requests,
}

/// Requests of one connection that are being answered.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests(Rc<Cell<usize>>);

/// One request that is being answered.
#[derive(Debug)]
pub(super) struct InFlight(Requests);

impl Requests {
    pub(super) fn begin(&self) -> InFlight {
        self.0.set(self.0.get() + 1);
        InFlight(self.clone())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.0.set(self.0.0.get() - 1);
    }
}

impl Connections {
    /// Makes room for one more; `false` when every place is taken by a connection
    /// whose request is being answered.
    pub(super) fn make_room(&self) -> bool {
        let mut open = self.open.borrow_mut();
        open.retain(|connection| !connection.task.is_finished());
        if open.len() < CONNECTIONS_MAX {
            return true;
        }
        match open
            .iter()
            .position(|connection| connection.requests.0.get() == 0)
        {
            Some(idle) => {
                open.remove(idle).task.abort();
                true
            }
            None => false,
        }
    }

    /// Notes a connection that is served by `task`.
    pub(super) fn add(&self, task: AbortHandle, requests: Requests) {
        self.open.borrow_mut().push(Open { task, requests });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, test);
    }

    fn serve_for_ever(connections: &Connections) -> (tokio::task::JoinHandle<()>, Requests) {
        let task = tokio::task::spawn_local(std::future::pending());
        let requests = Requests::default();
        connections.add(task.abort_handle(), requests.clone());
        (task, requests)
    }

    #[test]
    fn the_longest_idle_connection_makes_room_and_a_busy_one_never_does() {
        run(async {
            let connections = Connections::default();
            let mut all: Vec<_> = (0..CONNECTIONS_MAX)
                .map(|_| serve_for_ever(&connections))
                .collect();
            let busy = all[0].1.begin();
            assert!(connections.make_room());
            let (second, _) = all.remove(1);
            assert!(second.await.unwrap_err().is_cancelled());
            assert!(!all[0].0.is_finished());
            drop(busy);
        });
    }

    #[test]
    fn there_is_no_room_when_all_are_busy() {
        run(async {
            let connections = Connections::default();
            let all: Vec<_> = (0..CONNECTIONS_MAX)
                .map(|_| serve_for_ever(&connections))
                .collect();
            let busy: Vec<_> = all.iter().map(|(_, requests)| requests.begin()).collect();
            assert!(!connections.make_room());
            drop(busy);
            assert!(connections.make_room());
        });
    }
}
