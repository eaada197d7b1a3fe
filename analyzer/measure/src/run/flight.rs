//! One HTTP request on a connection of its own, from `connect` to the last byte of
//! its answer, while others may be on their way as well.
//!
//! The clock is read just before `connect` and just after the read that brought
//! the last byte; between the two stand system calls and the search for the end
//! of the response. Never waits: [`Flight::awaited`] says what for, and whoever
//! polls calls [`Flight::advance`].

use super::child::Awaited;
use super::failure::{Failure, FailureCode};
use super::plan::{HttpPayload, open_socket};
use crate::driver::http::{Progress, Response, ResponseError};
use crate::driver::ready::Listener;
use coldpath_trace_format::emit::MonoNanos;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, connect, send, sockopt};
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

/// Room that a read offers; the first response of a daemon fits into one.
const READ_BYTES: usize = 8 * 1024;

/// A request on its way.
#[derive(Debug)]
pub(super) struct Flight {
    /// Just before `connect`.
    pub(super) start: MonoNanos,
    /// Until when the answer must be there.
    pub(super) deadline: MonoNanos,
    listener: Listener,
    payload: Box<HttpPayload>,
    state: State,
}

#[derive(Debug)]
enum State {
    Connecting(OwnedFd),
    Sending(OwnedFd, usize),
    Receiving(OwnedFd),
    Landed(Landed),
}

/// The end of a flight.
#[derive(Clone, Debug)]
pub(super) struct Landed {
    /// Just after the last byte was read, or when it failed.
    pub(super) end: MonoNanos,
    /// The response, or why there is none.
    pub(super) result: Result<Response, Failure>,
}

impl Flight {
    /// Connects, and sends what can be sent at once.
    pub(super) fn begin(
        mut payload: Box<HttpPayload>,
        listener: &Listener,
        timeout: Duration,
    ) -> Self {
        let family = match listener.address {
            std::net::SocketAddr::V4(_) => AddressFamily::INET,
            std::net::SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let prepared = payload
            .socket
            .take()
            .filter(|_| family == AddressFamily::INET);
        payload.bytes.fill_in(&listener.authority);
        let start = MonoNanos::now();
        let begun = prepared
            .map_or_else(|| open_socket(family), Ok)
            .map_err(|error| {
                Failure::new(FailureCode::ConnectFailed, format!("no socket: {error}"))
            })
            .and_then(|socket| begin_connect(listener, socket));
        let mut flight = Self {
            start,
            deadline: start.after(timeout),
            listener: listener.clone(),
            payload,
            state: begun.unwrap_or_else(|failure| State::Landed(Landed::failed(failure))),
        };
        if matches!(flight.state, State::Sending(..)) {
            flight.advance();
        }
        flight
    }

    /// What to wait for; nothing once it has landed.
    pub(super) fn awaited(&self) -> Option<Awaited<'_>> {
        match &self.state {
            State::Connecting(socket) | State::Sending(socket, _) => {
                Some(Awaited::Writable(socket.as_fd()))
            }
            State::Receiving(socket) => Some(Awaited::Readable(socket.as_fd())),
            State::Landed(_) => None,
        }
    }

    /// Its end, once it has landed.
    pub(super) fn landed(&self) -> Option<&Landed> {
        match &self.state {
            State::Landed(landed) => Some(landed),
            _ => None,
        }
    }

    /// What it is waiting for, in words.
    pub(super) fn waiting_for(&self) -> &'static str {
        match self.state {
            State::Connecting(_) => "to connect",
            State::Sending(..) => "to send",
            State::Receiving(_) | State::Landed(_) => "for the response",
        }
    }

    /// Goes on as far as it can without waiting.
    pub(super) fn advance(&mut self) {
        let landed = Landed::failed(bad_response("left in the middle"));
        self.state = match std::mem::replace(&mut self.state, State::Landed(landed)) {
            State::Connecting(socket) => match sockopt::socket_error(&socket) {
                Ok(Ok(())) => self.send(socket, 0),
                Ok(Err(error)) | Err(error) => {
                    State::Landed(Landed::failed(refused(&self.listener, error)))
                }
            },
            State::Sending(socket, sent) => self.send(socket, sent),
            State::Receiving(socket) => self.receive(socket),
            landed @ State::Landed(_) => landed,
        };
    }

    fn send(&mut self, socket: OwnedFd, mut sent: usize) -> State {
        let bytes = self.payload.bytes.bytes();
        while sent < bytes.len() {
            match send(&socket, &bytes[sent..], SendFlags::NOSIGNAL) {
                Ok(more) => sent += more,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return State::Sending(socket, sent),
                Err(error) => {
                    let failure = bad_response(&format!("cannot send: {error}"));
                    return State::Landed(Landed::failed(failure));
                }
            }
        }
        State::Receiving(socket)
    }

    fn receive(&mut self, socket: OwnedFd) -> State {
        let response = &mut self.payload.response;
        response.bytes.reserve(READ_BYTES);
        let read = rustix::io::read(&socket, rustix::buffer::spare_capacity(&mut response.bytes));
        let end = MonoNanos::now();
        let refuse = |error: ResponseError| bad_response(&error.to_string());
        let result = match read {
            Ok(0) => response.finish().map_err(refuse),
            Ok(_) => match response.progress() {
                Ok(Progress::Complete(response)) => Ok(response),
                Ok(Progress::Incomplete) => return State::Receiving(socket),
                Err(error) => Err(refuse(error)),
            },
            Err(Errno::INTR | Errno::AGAIN) => return State::Receiving(socket),
            Err(error) => Err(bad_response(&format!("cannot read: {error}"))),
        };
        State::Landed(Landed { end, result })
    }
}

impl Landed {
    fn failed(failure: Failure) -> Self {
        Self {
            end: MonoNanos::now(),
            result: Err(failure),
        }
    }
}

fn begin_connect(listener: &Listener, socket: OwnedFd) -> Result<State, Failure> {
    match connect(&socket, &listener.address) {
        Ok(()) => Ok(State::Sending(socket, 0)),
        Err(Errno::INPROGRESS | Errno::INTR) => Ok(State::Connecting(socket)),
        Err(error) => Err(refused(listener, error)),
    }
}

fn refused(listener: &Listener, error: Errno) -> Failure {
    Failure::new(
        FailureCode::ConnectFailed,
        format!("cannot connect to {}: {error}", listener.address),
    )
}

fn bad_response(message: &str) -> Failure {
    Failure::new(FailureCode::BadResponse, message)
}
