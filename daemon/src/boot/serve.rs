//! The bootstrap loop: one thread, one `poll`, at most 64 connections.
//!
//! It answers `/health`, `/capabilities` and `/daemon/status` before anything
//! else exists, holds what needs the runtime, and decides when that starts. When
//! the runtime is ready it gets the listener and every open connection with the
//! bytes already read; when it failed, the loop stays and says so.

mod accept;

use super::answers;
use super::connection::{Connection, State};
use super::{BootRecord, Bound, HealthRecord, HealthRequest, RequestRecord, Trigger};
use crate::config::Config;
use crate::contract::{self, Phase};
use crate::exit;
use crate::http::{Admission, Answer, Head, Scanned, admit, scan};
use crate::runtime::{HandOver, StartOrder, Starting};
use coldpath_trace_format::emit::{MonoNanos, fault};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::AsFd as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Connections whose requests wait for the runtime. The other places are left to
/// those who ask whether the daemon is there: a slow start must not look like a
/// dead one.
const HELD_MAX: usize = 48;

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
        full: false,
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
            Turn::Fail => {
                server.stop();
                return ExitCode::from(exit::REFUSED);
            }
        }
    }
}

struct Loop {
    config: Arc<Config>,
    bound: Bound,
    record: BootRecord,
    connections: Vec<Connection>,
    runtime: Runtime,
    /// When the listener is looked at again, if not now.
    accept_at: Option<MonoNanos>,
    /// Whether that is because every place is taken.
    full: bool,
}

/// How far the runtime is, as the loop knows it.
enum Runtime {
    /// Not started; it will be at this time for this reason.
    Idle { at: Option<(MonoNanos, Trigger)> },
    /// Given up at this time.
    Starting(Starting, MonoNanos),
    Failed {
        message: String,
        /// One that was given up and may still come to its end.
        late: Option<Starting>,
    },
}

enum Turn {
    Again,
    HandOver,
    Stop,
    /// The loop cannot go on.
    Fail,
}

impl Loop {
    /// Waits for the next event and handles everything that is there.
    fn turn(&mut self) -> Turn {
        let ready = match self.wait() {
            Ok(ready) => ready,
            Err(error) => {
                // Nothing that poll can say is temporary but EINTR.
                crate::log::error(&format!("waiting for connections failed: {error}"));
                return Turn::Fail;
            }
        };
        if ready.stop && self.bound.stop.take() {
            return Turn::Stop;
        }
        let now = MonoNanos::now();
        if self.look_at_runtime(&ready, now) {
            return Turn::HandOver;
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
        self.clear_places(now);
        Turn::Again
    }

    /// Starts the runtime when its time has come, and gives it up when its time is
    /// over. `true` when it is ready.
    fn look_at_runtime(&mut self, ready: &Ready, now: MonoNanos) -> bool {
        match &self.runtime {
            Runtime::Starting(starting, give_up_at) => {
                let outcome = ready.runtime.then(|| starting.outcome()).flatten();
                match outcome {
                    Some(Ok(())) => return true,
                    Some(Err(message)) => self.runtime_failed(message),
                    // Its outcome may come at this very moment: then the pipe says so.
                    None if *give_up_at <= now && starting.give_up() => {
                        self.runtime_given_up();
                    }
                    None => {}
                }
            }
            Runtime::Idle {
                at: Some((at, trigger)),
            } if *at <= now => self.start(*trigger, now),
            Runtime::Idle { .. } | Runtime::Failed { .. } => {}
        }
        false
    }

    fn wait(&self) -> io::Result<Ready> {
        let mut fds = Vec::with_capacity(self.connections.len() + 3);
        fds.push(PollFd::new(&self.bound.stop, PollFlags::IN));
        let now = MonoNanos::now();
        let accepts = self.accept_at.is_none_or(|at| at <= now);
        fds.push(PollFd::new(
            &self.bound.listener,
            if accepts {
                PollFlags::IN
            } else {
                PollFlags::empty()
            },
        ));
        let starting = match &self.runtime {
            Runtime::Starting(starting, _) => Some(starting),
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
        match poll(&mut fds, self.timeout(now).as_ref()) {
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

    fn timeout(&self, now: MonoNanos) -> Option<Timespec> {
        let start = match &self.runtime {
            Runtime::Idle { at: Some((at, _)) } | Runtime::Starting(_, at) => Some(*at),
            _ => None,
        };
        let deadlines = self
            .connections
            .iter()
            .filter_map(|connection| match connection.state {
                State::Reading | State::Writing { .. } => Some(connection.deadline),
                State::Held { .. } | State::Done => None,
            });
        // A pause that is over is no time to wait for: the listener is polled again.
        let pause = self.accept_at.filter(|at| *at > now);
        let next = deadlines.chain(start).chain(pause).min()?;
        // A nanosecond more, so that the deadline has passed when poll returns.
        let wait = next.since(now) + Duration::from_nanos(1);
        Timespec::try_from(wait).ok()
    }

    /// Goes on with one connection as far as it goes without waiting.
    fn advance(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        if !connection.flush() {
            return;
        }
        if let Some(health) = connection.take_answered(MonoNanos::now()) {
            self.health_served(health);
        }
        let connection = &mut self.connections[index];
        if matches!(connection.state, State::Held { .. } | State::Done) {
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
                self.send(index, &answers::unreadable(error), &Head::default());
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
                    let health = HealthRequest::new(&head, self.connections[index].began());
                    self.connections[index].consume(length);
                    self.send_answer(index, &answer.for_origin(allow_origin), &head, health);
                }
                None if self.held() >= HELD_MAX => {
                    let answer = answers::runtime_starting().for_origin(allow_origin);
                    self.connections[index].consume(length);
                    self.send(index, &answer, &head);
                }
                None => self.hold(index, &head),
            },
        }
        true
    }

    /// Connections whose requests wait for the runtime.
    fn held(&self) -> usize {
        let held = |connection: &&Connection| matches!(connection.state, State::Held { .. });
        self.connections.iter().filter(held).count()
    }

    /// The answer that can be given without the runtime.
    fn answer(&self, head: &Head<'_>) -> Option<Answer> {
        let failed = match &self.runtime {
            Runtime::Failed { message, .. } => Some(message.as_str()),
            _ => None,
        };
        let answer = match (head.method, head.route()) {
            ("GET" | "HEAD", "/health") => answers::health(head, failed),
            ("GET" | "HEAD", "/capabilities") => {
                Answer::json(200, &contract::capabilities(&self.config))
            }
            ("GET" | "HEAD", "/daemon/status") => {
                crate::runtime::status_answer(&self.config, &self.record, head, &self.phase())
            }
            _ => return failed.map(answers::runtime_failed),
        };
        Some(answer)
    }

    fn phase(&self) -> Phase {
        match &self.runtime {
            Runtime::Failed { message, .. } => Phase::Failed(message.clone()),
            _ => Phase::Starting,
        }
    }

    /// Sends an answer and notes the first answered `/health`, when it is one.
    fn send_answer(
        &mut self,
        index: usize,
        answer: &Answer,
        head: &Head<'_>,
        health: HealthRequest,
    ) {
        let counts = head.is_health()
            && self.record.health.is_none()
            && !matches!(self.runtime, Runtime::Failed { .. });
        if counts && fault::reached("health.first") {
            // The span stays open for ever: the answer is never sent.
            self.connections[index].state = State::Held {
                since: self.connections[index].began(),
                started: false,
            };
            return;
        }
        let flushed = self.send(index, answer, head);
        if counts && flushed {
            self.health_served(health.answered(MonoNanos::now()));
        } else if counts {
            self.connections[index].await_flush(health);
        }
    }

    fn send(&mut self, index: usize, answer: &Answer, head: &Head<'_>) -> bool {
        // A body that nobody reads would be taken for the next request.
        let keep_alive = head.keep_alive && !head.has_body;
        let bytes = answer.to_bytes(keep_alive, head.method == "HEAD");
        self.connections[index].send(&bytes, !keep_alive, MonoNanos::now())
    }

    /// Notes the first `/health` whose answer is out, and starts the runtime for it.
    fn health_served(&mut self, health: HealthRecord) {
        if self.record.health.is_some() {
            return;
        }
        let flushed = health.flushed();
        self.record.health = Some(health);
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
            Ok(starting) => {
                let give_up_at = MonoNanos::now().after(self.config.start.timeout);
                self.runtime = Runtime::Starting(starting, give_up_at);
            }
            Err(error) => self.runtime_failed(format!("cannot start its thread: {error}")),
        }
    }

    /// A start that hangs (a state or trace directory that does not answer, say)
    /// counts as failed; should it come to its end later, it finds nothing to serve.
    fn runtime_given_up(&mut self) {
        let given_up = std::mem::replace(&mut self.runtime, Runtime::Idle { at: None });
        let timeout_ms = self.config.start.timeout.as_millis();
        self.runtime_failed(format!("it was not ready within {timeout_ms} ms"));
        if let (Runtime::Failed { late, .. }, Runtime::Starting(starting, _)) =
            (&mut self.runtime, given_up)
        {
            *late = Some(starting);
        }
    }

    /// The listener stays: health says 503 with the reason, so do held and later requests.
    fn runtime_failed(&mut self, message: String) {
        crate::log::error(&format!("the runtime failed to start: {message}"));
        let answer = answers::runtime_failed(&message);
        self.runtime = Runtime::Failed {
            message,
            late: None,
        };
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
        let Runtime::Starting(starting, _) = self.runtime else {
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
        let Bound { listener, stop, .. } = self.bound;
        drop((self.connections, listener));
        match self.runtime {
            Runtime::Starting(starting, _) => starting.abandon(&stop),
            Runtime::Idle { .. } => {
                self.record.open_telemetry().telemetry.close();
                ExitCode::from(exit::CLEAN)
            }
            // The runtime's thread closed its telemetry when it failed.
            Runtime::Failed { late, .. } => {
                if let Some(late) = late {
                    late.end_given_up();
                }
                ExitCode::from(exit::REFUSED)
            }
        }
    }
}

struct Ready {
    stop: bool,
    listener: bool,
    runtime: bool,
    connections: Vec<usize>,
}

#[cfg(test)]
mod tests;
