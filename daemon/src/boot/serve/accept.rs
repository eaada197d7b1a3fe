//! Who gets a place in the bootstrap loop, and who has to leave it.

use super::Loop;
use crate::boot::connection::{CONNECTION_DEADLINE, Connection, SILENCE_MIN, State};
use coldpath_trace_format::emit::MonoNanos;
use std::io;
use std::time::Duration;

/// Connections that are open at once. When all places are taken, the one that has
/// been silent longest makes room: it must not keep a health check out.
pub(super) const CONNECTIONS_MAX: usize = 64;

/// Pause after a failed `accept` (out of descriptors, say) or with every place
/// taken, so that the loop does not spin on it.
pub(super) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

impl Loop {
    /// Accepts as long as somebody asks and there is a place.
    pub(super) fn accept(&mut self, now: MonoNanos) {
        self.accept_at = None;
        loop {
            if self.connections.len() >= CONNECTIONS_MAX {
                // Answered and closed in this very turn, they take no places.
                self.clear_places(now);
            }
            let full = self.connections.len() >= CONNECTIONS_MAX;
            let silent = self.silent_longest(now).filter(|_| full);
            if full && silent.is_none() {
                // Every place is taken by a request that waits for the runtime, or by
                // a client whose request may be on its way.
                self.full = true;
                self.accept_at = Some(now.after(ACCEPT_PAUSE));
                return;
            }
            match self.bound.listener.accept() {
                Ok((stream, _)) => {
                    if let Some(silent) = silent {
                        self.connections.remove(silent);
                    }
                    if let Ok(connection) = Connection::new(stream, MonoNanos::now()) {
                        self.connections.push(connection);
                        // The request is there already more often than not.
                        self.advance(self.connections.len() - 1);
                    }
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return,
                    // A signal, or a client that left before it was its turn.
                    io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => {}
                    _ => {
                        self.accept_at = Some(now.after(ACCEPT_PAUSE));
                        return;
                    }
                },
            }
        }
    }

    /// The connection that has waited longest for a request, and long enough.
    fn silent_longest(&self, now: MonoNanos) -> Option<usize> {
        let silent = |index: &usize| {
            let connection = &self.connections[*index];
            connection.state == State::Reading
                && connection.deadline.since(now) <= CONNECTION_DEADLINE.saturating_sub(SILENCE_MIN)
        };
        (0..self.connections.len())
            .filter(silent)
            .min_by_key(|index| self.connections[*index].deadline)
    }

    /// Removes connections that are over or were silent for too long; a place that
    /// is free now need not be waited for.
    pub(super) fn clear_places(&mut self, now: MonoNanos) {
        self.connections.retain(|connection| {
            let waits = matches!(connection.state, State::Reading | State::Writing { .. });
            connection.state != State::Done && !(waits && connection.deadline <= now)
        });
        if self.full && self.connections.len() < CONNECTIONS_MAX {
            self.full = false;
            self.accept_at = None;
        }
    }
}
