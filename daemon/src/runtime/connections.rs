//! The open connections of the server, bounded: when all places are taken, the
//! one that has been idle longest makes room, so that clients that connect and
//! say nothing cannot keep a health check out.

use crate::boot::SILENCE_MIN;
use coldpath_trace_format::emit::MonoNanos;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use tokio::task::AbortHandle;

/// Connections that are served at once.
const CONNECTIONS_MAX: usize = 256;
/// Places beyond that, for `/health` alone: requests that take long must not keep a
/// health check out either.
const RESERVED_MAX: usize = 32;

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
#[derive(Clone, Debug)]
pub(super) struct Requests(Rc<Counted>);

#[derive(Debug)]
struct Counted {
    in_flight: Cell<usize>,
    /// When the connection began to be idle.
    idle_since: Cell<MonoNanos>,
}

/// One request that is being answered.
#[derive(Debug)]
pub(super) struct InFlight(Requests);

impl Requests {
    /// None yet, on a connection that was opened at `now`.
    pub(super) fn new(now: MonoNanos) -> Self {
        Self(Rc::new(Counted {
            in_flight: Cell::new(0),
            idle_since: Cell::new(now),
        }))
    }

    pub(super) fn begin(&self) -> InFlight {
        self.0.in_flight.set(self.0.in_flight.get() + 1);
        InFlight(self.clone())
    }

    fn are_none_for(&self, time: Duration, now: MonoNanos) -> bool {
        self.0.in_flight.get() == 0 && self.0.idle_since.get().after(time) <= now
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let counted = &self.0.0;
        counted.in_flight.set(counted.in_flight.get() - 1);
        counted.idle_since.set(MonoNanos::now());
    }
}

/// What there is for one more connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Free,
    /// For `/health` alone.
    Reserved,
    None,
}

impl Connections {
    /// Makes room for one more at `now`; none is left when every place is taken by a
    /// connection whose request is being answered, or may be on its way.
    pub(super) fn make_room(&self, now: MonoNanos) -> Room {
        let mut open = self.open.borrow_mut();
        open.retain(|connection| !connection.task.is_finished());
        if open.len() < CONNECTIONS_MAX {
            return Room::Free;
        }
        let idle = (0..open.len())
            .filter(|index| open[*index].requests.are_none_for(SILENCE_MIN, now))
            .min_by_key(|index| open[*index].requests.0.idle_since.get());
        match idle {
            Some(idle) => {
                open.remove(idle).task.abort();
                if open.len() < CONNECTIONS_MAX {
                    Room::Free
                } else {
                    Room::Reserved
                }
            }
            None if open.len() < CONNECTIONS_MAX + RESERVED_MAX => Room::Reserved,
            None => Room::None,
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
    use tokio::task::JoinHandle;

    const OPENED: MonoNanos = MonoNanos::from_nanos(1_000);

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, test);
    }

    /// As many as there are places, opened a nanosecond apart.
    fn fill(connections: &Connections) -> Vec<(JoinHandle<()>, Requests)> {
        (0..CONNECTIONS_MAX as u64)
            .map(|at| {
                let task = tokio::task::spawn_local(std::future::pending());
                let requests = Requests::new(MonoNanos::from_nanos(OPENED.as_nanos() + at));
                connections.add(task.abort_handle(), requests.clone());
                (task, requests)
            })
            .collect()
    }

    #[test]
    fn the_longest_idle_connection_makes_room_and_a_busy_one_never_does() {
        run(async {
            let connections = Connections::default();
            let mut all = fill(&connections);
            let busy = all[0].1.begin();
            let later = OPENED.after(2 * SILENCE_MIN);
            assert_eq!(connections.make_room(later), Room::Free);
            let (second, _) = all.remove(1);
            assert!(second.await.unwrap_err().is_cancelled());
            assert!(!all[0].0.is_finished());
            drop(busy);
        });
    }

    #[test]
    fn a_connection_whose_request_may_be_on_its_way_is_kept() {
        run(async {
            let connections = Connections::default();
            let _all = fill(&connections);
            assert_eq!(connections.make_room(OPENED), Room::Reserved);
            assert_eq!(connections.make_room(OPENED.after(SILENCE_MIN)), Room::Free);
        });
    }

    #[test]
    fn when_all_are_busy_there_is_room_for_health_alone_and_then_none() {
        run(async {
            let connections = Connections::default();
            let all = fill(&connections);
            let busy: Vec<_> = all.iter().map(|(_, requests)| requests.begin()).collect();
            let later = OPENED.after(2 * SILENCE_MIN);
            let reserved: Vec<_> = (0..RESERVED_MAX)
                .map(|_| {
                    assert_eq!(connections.make_room(later), Room::Reserved);
                    let task = tokio::task::spawn_local(std::future::pending::<()>());
                    let requests = Requests::new(later);
                    connections.add(task.abort_handle(), requests.clone());
                    (task, requests)
                })
                .collect();
            assert_eq!(connections.make_room(later), Room::None);
            drop((busy, reserved));
        });
    }
}
