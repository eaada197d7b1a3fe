//! The bootstrap loop: one thread, one `poll`, at most 64 connections.
//!
//! It answers `/health`, `/capabilities` and `/daemon/status` before anything
//! else exists, holds what needs the runtime, and decides when that starts. When
//! the runtime is ready it gets the listener and every open connection with the
//! bytes already read; when it failed, the loop stays and says so.

use super::connection::{CONNECTION_DEADLINE, Connection, SILENCE_MIN, State};
use super::{BootRecord, Bound, HealthRecord, RequestRecord, Trigger};
use crate::config::Config;
use crate::contract::{self, Phase};
use crate::exit;
use crate::http::{Admission, Answer, Head, HeadError, Scanned, admit, scan};
use crate::runtime::{HandOver, StartOrder, Starting};
use coldpath_trace_format::emit::{MonoNanos, fault};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;
use std::io;
use std::os::fd::AsFd as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Connections that are open at once. When all places are taken, the one that has
/// been silent longest makes room: it must not keep a health check out.
const CONNECTIONS_MAX: usize = 64;

/// Pause after a failed `accept` (out of descriptors, say), so that the loop
/// does not spin on it.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until the process stops, here or in the runtime.
///
/// Out of line, like the ways out of it below, so that the program shows what can
/// be reached before the first answer.
#[inline(never)]
pub(crate) fn serve(config: Config, bound: Bound, record: BootRecord) -> ExitCode {
    let mut server = Loop {
        config: Arc::new(config),
        bound,
        record,
        connections: Vec::new(),
        runtime: Runtime::Idle { at: None },
        accept_at: None,
    };
    let now = MonoNanos::now();
    if server.config.start.immediate {
        server.start(Trigger::Immediate, now);
    } else {
        server.runtime = Runtime::Idle {
            at: Some((now.after(server.config.start.fallback), Trigger::Fallback)),
        };
    }
    loop {
        match server.turn() {
            Turn::Again => {}
            Turn::HandOver => return server.hand_over(),
            Turn::Stop => return server.stop(),
        }
    }
}

struct Loop {
    config: Arc<Config>,
    bound: Bound,
    record: BootRecord,
    connections: Vec<Connection>,
    runtime: Runtime,
    accept_at: Option<MonoNanos>,
}

/// How far the runtime is, as the loop knows it.
enum Runtime {
    /// Not started; it will be at this time for this reason.
    Idle {
        at: Option<(MonoNanos, Trigger)>,
    },
    Starting(Starting),
    Failed(String),
}

enum Turn {
    Again,
    HandOver,
    Stop,
}

impl Loop {
    /// Waits for the next event and handles everything that is there.
    fn turn(&mut self) -> Turn {
        let ready = match self.wait() {
            Ok(ready) => ready,
            Err(error) => {
                // Nothing that poll can say is temporary but EINTR.
                crate::log::error(&format!("waiting for connections failed: {error}"));
                return Turn::Stop;
            }
        };
        if ready.stop && self.bound.stop.take() {
            return Turn::Stop;
        }
        let now = MonoNanos::now();
        if let Runtime::Starting(starting) = &self.runtime
            && ready.runtime
        {
            match starting.outcome() {
                Some(Ok(())) => return Turn::HandOver,
                Some(Err(message)) => self.runtime_failed(message),
                None => {}
            }
        }
        if let Runtime::Idle {
            at: Some((at, trigger)),
        } = self.runtime
            && at <= now
        {
            self.start(trigger, now);
        }
        for index in ready.connections {
            if matches!(self.connections[index].state, State::Held { .. }) {
                // Nothing was asked of it, so this is an error: the peer is gone.
                self.connections[index].state = State::Done;
            } else {
                self.advance(index);
            }
        }
        if ready.listener {
            self.accept(now);
        }
        self.connections.retain(|connection| {
            let waits = matches!(connection.state, State::Reading | State::Writing { .. });
            connection.state != State::Done && !(waits && connection.deadline <= now)
        });
        Turn::Again
    }

    fn wait(&self) -> io::Result<Ready> {
        let mut fds = Vec::with_capacity(self.connections.len() + 3);
        fds.push(PollFd::new(&self.bound.stop, PollFlags::IN));
        let accepts = self.accept_at.is_none_or(|at| at <= MonoNanos::now());
        fds.push(PollFd::new(
            &self.bound.listener,
            if accepts {
                PollFlags::IN
            } else {
                PollFlags::empty()
            },
        ));
        let starting = match &self.runtime {
            Runtime::Starting(starting) => Some(starting),
            _ => None,
        };
        // Without a runtime to wait for, the slot repeats the stop signal.
        fds.push(PollFd::from_borrowed_fd(
            starting.map_or(self.bound.stop.as_fd(), Starting::as_fd),
            PollFlags::IN,
        ));
        for connection in &self.connections {
            let wanted = match connection.state {
                State::Reading => PollFlags::IN,
                State::Writing { .. } => PollFlags::OUT,
                State::Held { .. } | State::Done => PollFlags::empty(),
            };
            fds.push(PollFd::new(connection.stream(), wanted));
        }
        match poll(&mut fds, self.timeout().as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let hit = |at: usize| !fds[at].revents().is_empty();
        Ok(Ready {
            stop: hit(0),
            listener: hit(1) && accepts,
            runtime: starting.is_some() && hit(2),
            connections: (0..self.connections.len())
                .filter(|at| hit(at + 3))
                .collect(),
        })
    }

    fn timeout(&self) -> Option<Timespec> {
        let start = match &self.runtime {
            Runtime::Idle { at: Some((at, _)) } => Some(*at),
            _ => None,
        };
        let deadlines = self
            .connections
            .iter()
            .filter_map(|connection| match connection.state {
                State::Reading | State::Writing { .. } => Some(connection.deadline),
                State::Held { .. } | State::Done => None,
            });
        let next = deadlines.chain(start).chain(self.accept_at).min()?;
        // A nanosecond more, so that the deadline has passed when poll returns.
        let wait = next.since(MonoNanos::now()) + Duration::from_nanos(1);
        Timespec::try_from(wait).ok()
    }

    fn accept(&mut self, now: MonoNanos) {
        self.accept_at = None;
        loop {
            let silent = self.silent_longest(now);
            if self.connections.len() >= CONNECTIONS_MAX && silent.is_none() {
                // Every place is taken by a request that waits for the runtime, or by
                // a client whose request may be on its way.
                self.accept_at = Some(now.after(ACCEPT_PAUSE));
                return;
            }
            match self.bound.listener.accept() {
                Ok((stream, _)) => {
                    if let Some(silent) =
                        silent.filter(|_| self.connections.len() >= CONNECTIONS_MAX)
                    {
                        self.connections.remove(silent);
                    }
                    if let Ok(connection) = Connection::new(stream, now) {
                        self.connections.push(connection);
                        // The request is there already more often than not.
                        self.advance(self.connections.len() - 1);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.accept_at = Some(now.after(ACCEPT_PAUSE));
                    return;
                }
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

    /// Goes on with one connection as far as it goes without waiting.
    fn advance(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        if !connection.flush() || matches!(connection.state, State::Held { .. } | State::Done) {
            // A held peer that went away is noticed when its answer is written.
            return;
        }
        let open = connection.fill();
        while self.connections[index].state == State::Reading && self.answer_next(index) {}
        let connection = &mut self.connections[index];
        if !open && matches!(connection.state, State::Reading | State::Writing { .. }) {
            connection.state = State::Done;
        }
    }

    /// Handles the request at the front, if a whole one is there. `false` when
    /// more bytes are needed.
    fn answer_next(&mut self, index: usize) -> bool {
        // The head borrows the bytes while the connection changes: they are few, so
        // they are copied.
        let bytes = self.connections[index].bytes().to_vec();
        let (head, length) = match scan(&bytes) {
            Ok(Scanned::Complete(head, length)) => (head, length),
            Ok(Scanned::Partial) => return false,
            Err(error) => {
                let answer = match error {
                    HeadError::Malformed => {
                        Answer::error(400, "malformed HTTP request", Some("malformed_request"))
                    }
                    HeadError::TooLarge => Answer::error(
                        431,
                        "request head is larger than 8 KiB or 64 fields",
                        Some("head_too_large"),
                    ),
                };
                self.send(index, &answer, &Head::default());
                return true;
            }
        };
        match admit(&head, &self.config.access, self.bound.address.port()) {
            Admission::Refused(answer) => {
                self.connections[index].consume(length);
                self.send(index, &answer, &head);
            }
            Admission::Admitted { allow_origin } => match self.answer(&head) {
                Some(answer) => {
                    self.connections[index].consume(length);
                    self.send_answer(index, &answer.for_origin(allow_origin), &head);
                }
                None => self.hold(index, &head),
            },
        }
        true
    }

    /// The answer that can be given without the runtime.
    fn answer(&self, head: &Head<'_>) -> Option<Answer> {
        let failed = match &self.runtime {
            Runtime::Failed(message) => Some(message),
            _ => None,
        };
        let answer = match (head.method, head.route()) {
            ("GET" | "HEAD", "/health") => match failed {
                Some(message) => {
                    Answer::json(503, &json!({ "status": "degraded", "error": message }))
                }
                None if head.query_flag("deep") => {
                    Answer::json(503, &json!({ "status": "degraded", "reason": "bootstrap" }))
                        .with_header("Retry-After", "1")
                }
                None => Answer::json(200, &json!({ "status": "ok" })),
            },
            ("GET" | "HEAD", "/capabilities") => {
                Answer::json(200, &contract::capabilities(&self.config))
            }
            ("GET" | "HEAD", "/daemon/status") => {
                crate::runtime::status_answer(&self.config, &self.record, head, &self.phase())
            }
            _ => return failed.map(|message| runtime_failed_answer(message)),
        };
        Some(answer)
    }

    fn phase(&self) -> Phase {
        match &self.runtime {
            Runtime::Failed(message) => Phase::Failed(message.clone()),
            _ => Phase::Starting,
        }
    }

    /// Sends an answer and notes the first answered `/health`.
    fn send_answer(&mut self, index: usize, answer: &Answer, head: &Head<'_>) {
        let accepted = self.connections[index].accepted;
        let counts = head.is_health()
            && self.record.health.is_none()
            && !matches!(self.runtime, Runtime::Failed(_));
        if counts && fault::reached("health.first") {
            // The span stays open for ever: the answer is never sent.
            self.connections[index].state = State::Held {
                since: accepted,
                started: false,
            };
            return;
        }
        let flushed = self.send(index, answer, head);
        if counts && flushed {
            self.health_served(accepted, head);
        }
    }

    fn send(&mut self, index: usize, answer: &Answer, head: &Head<'_>) -> bool {
        // A body that nobody reads would be taken for the next request.
        let keep_alive = head.keep_alive && !head.has_body;
        let bytes = answer.to_bytes(keep_alive, head.method == "HEAD");
        self.connections[index].send(&bytes, !keep_alive, MonoNanos::now())
    }

    fn health_served(&mut self, accepted: MonoNanos, head: &Head<'_>) {
        let flushed = MonoNanos::now();
        self.record.health = Some(HealthRecord {
            accepted,
            flushed,
            traceparent: head.traceparent.map(str::to_owned),
            tracestate: head.tracestate.map(str::to_owned),
        });
        if let Runtime::Idle { .. } = self.runtime {
            let grace = self.config.start.health_grace;
            if grace.is_zero() {
                self.start(Trigger::Health, flushed);
            } else {
                self.runtime = Runtime::Idle {
                    at: Some((flushed.after(grace), Trigger::Health)),
                };
            }
        }
    }

    fn hold(&mut self, index: usize, head: &Head<'_>) {
        let since = MonoNanos::now();
        let started = matches!(self.runtime, Runtime::Idle { .. });
        self.connections[index].state = State::Held { since, started };
        if started {
            let request = RequestRecord::new(head, since);
            self.start_for(Trigger::Request, since, Some(request));
        }
    }

    fn start(&mut self, trigger: Trigger, now: MonoNanos) {
        self.start_for(trigger, now, None);
    }

    #[inline(never)]
    fn start_for(&mut self, trigger: Trigger, at: MonoNanos, request: Option<RequestRecord>) {
        let order = StartOrder {
            config: Arc::clone(&self.config),
            record: self.record.clone(),
            address: self.bound.address,
            trigger,
            at,
            request,
        };
        match crate::runtime::start_runtime(order) {
            Ok(starting) => self.runtime = Runtime::Starting(starting),
            Err(error) => self.runtime_failed(format!("cannot start its thread: {error}")),
        }
    }

    /// The listener stays: health says 503 with the reason, so do held and later requests.
    fn runtime_failed(&mut self, message: String) {
        crate::log::error(&format!("the runtime failed to start: {message}"));
        let answer = runtime_failed_answer(&message);
        self.runtime = Runtime::Failed(message);
        for index in 0..self.connections.len() {
            if matches!(self.connections[index].state, State::Held { .. }) {
                // Its body may still be on the way: the connection cannot be used again.
                self.connections[index].state = State::Reading;
                let head = Head {
                    keep_alive: false,
                    ..Head::default()
                };
                self.send(index, &answer, &head);
            }
        }
    }

    #[inline(never)]
    fn hand_over(self) -> ExitCode {
        let Runtime::Starting(starting) = self.runtime else {
            return ExitCode::from(exit::REFUSED);
        };
        starting.hand_over(HandOver {
            listener: self.bound.listener,
            stop: self.bound.stop,
            health: self.record.health,
            connections: self
                .connections
                .into_iter()
                .filter(|connection| connection.state != State::Done)
                .map(Connection::into_pending)
                .collect(),
        })
    }

    /// Stops from within the loop. The boot spans and the final line are still written.
    #[inline(never)]
    fn stop(self) -> ExitCode {
        drop(self.connections);
        drop(self.bound);
        match self.runtime {
            Runtime::Starting(starting) => starting.abandon(),
            Runtime::Idle { .. } => {
                self.record.open_telemetry().telemetry.close();
            }
            // The runtime's thread closed its telemetry when it failed.
            Runtime::Failed(_) => return ExitCode::from(exit::REFUSED),
        }
        ExitCode::from(exit::CLEAN)
    }
}

struct Ready {
    stop: bool,
    listener: bool,
    runtime: bool,
    connections: Vec<usize>,
}

fn runtime_failed_answer(message: &str) -> Answer {
    Answer::json(
        503,
        &json!({ "error": format!("the runtime failed to start: {message}"), "code": "daemon_runtime_failed" }),
    )
}
