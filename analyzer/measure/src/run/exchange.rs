//! One request and its response on a connection of its own, timed.
//!
//! The clock is read just before `connect` and just after the read that brought
//! the last byte; between the two stand system calls and the search for the end
//! of the response. The connection is closed by the caller's drop, afterwards.

use super::child::{Awaited, Running, Wake};
use super::failure::{Failure, FailureCode};
use super::plan::{PlannedRequest, open_socket};
use crate::driver::http::{Progress, Response, ResponseError};
use crate::driver::ready::Listener;
use coldpath_trace_format::emit::MonoNanos;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, connect, send, sockopt};
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

/// Room that a read offers; the first response of a daemon fits into one.
const READ_BYTES: usize = 8 * 1024;

/// A finished exchange.
#[derive(Debug)]
pub(super) struct Exchanged {
    /// Just before `connect`.
    pub(super) start: MonoNanos,
    /// Just after the last byte was read, or when it failed.
    pub(super) end: MonoNanos,
    /// The response, or why there is none.
    pub(super) result: Result<Response, Failure>,
}

/// Connects, sends, and reads one whole response.
pub(super) fn exchange(
    request: &mut PlannedRequest,
    listener: &Listener,
    running: &mut Running<'_>,
    timeout: Duration,
) -> Exchanged {
    let family = match listener.address {
        std::net::SocketAddr::V4(_) => AddressFamily::INET,
        std::net::SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let prepared = request
        .socket
        .take()
        .filter(|_| family == AddressFamily::INET);
    let start = MonoNanos::now();
    let mut bounded = Bounded {
        running,
        deadline: start.after(timeout),
        timeout,
    };
    let result = prepared
        .map_or_else(|| open_socket(family), Ok)
        .map_err(|error| Failure::new(FailureCode::ConnectFailed, format!("no socket: {error}")))
        .and_then(|socket| bounded.carry_out(request, listener, &socket));
    match result {
        Ok((end, response)) => Exchanged {
            start,
            end,
            result: Ok(response),
        },
        Err(failure) => Exchanged {
            start,
            end: MonoNanos::now(),
            result: Err(failure),
        },
    }
}

struct Bounded<'a, 'b> {
    running: &'a mut Running<'b>,
    deadline: MonoNanos,
    timeout: Duration,
}

impl Bounded<'_, '_> {
    fn carry_out(
        &mut self,
        request: &mut PlannedRequest,
        listener: &Listener,
        socket: &OwnedFd,
    ) -> Result<(MonoNanos, Response), Failure> {
        self.connect(listener, socket)?;
        self.send(request.bytes.bytes_for(&listener.authority), socket)?;
        self.receive(request, socket)
    }

    fn connect(&mut self, listener: &Listener, socket: &OwnedFd) -> Result<(), Failure> {
        let refused = |error: Errno| {
            Failure::new(
                FailureCode::ConnectFailed,
                format!("cannot connect to {}: {error}", listener.address),
            )
        };
        match connect(socket, &listener.address) {
            Ok(()) => Ok(()),
            Err(Errno::INPROGRESS | Errno::INTR) => {
                self.wait(Awaited::Writable(socket.as_fd()), "to connect")?;
                match sockopt::socket_error(socket) {
                    Ok(Ok(())) => Ok(()),
                    Ok(Err(error)) | Err(error) => Err(refused(error)),
                }
            }
            Err(error) => Err(refused(error)),
        }
    }

    fn send(&mut self, mut bytes: &[u8], socket: &OwnedFd) -> Result<(), Failure> {
        while !bytes.is_empty() {
            match send(socket, bytes, SendFlags::NOSIGNAL) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait(Awaited::Writable(socket.as_fd()), "to send")?,
                Err(error) => return Err(bad_response(&format!("cannot send: {error}"))),
            }
        }
        Ok(())
    }

    fn receive(
        &mut self,
        request: &mut PlannedRequest,
        socket: &OwnedFd,
    ) -> Result<(MonoNanos, Response), Failure> {
        let response = &mut request.response;
        loop {
            self.wait(Awaited::Readable(socket.as_fd()), "for the response")?;
            response.bytes.reserve(READ_BYTES);
            let read =
                rustix::io::read(socket, rustix::buffer::spare_capacity(&mut response.bytes));
            let now = MonoNanos::now();
            let refuse = |error: ResponseError| bad_response(&error.to_string());
            match read {
                Ok(0) => return Ok((now, response.finish().map_err(refuse)?)),
                Ok(_) => {
                    if let Progress::Complete(response) = response.progress().map_err(refuse)? {
                        return Ok((now, response));
                    }
                }
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(bad_response(&format!("cannot read: {error}"))),
            }
        }
    }

    fn wait(&mut self, awaited: Awaited<'_>, what: &str) -> Result<(), Failure> {
        match self.running.wait(awaited, self.deadline) {
            Wake::Ready => Ok(()),
            wake => Err(stopped_waiting(
                wake,
                what,
                self.timeout,
                FailureCode::RequestTimeout,
            )),
        }
    }
}

/// The failure of a wait that did not bring what it was for.
pub(super) fn stopped_waiting(
    wake: Wake,
    what: &str,
    timeout: Duration,
    on_timeout: FailureCode,
) -> Failure {
    match wake {
        Wake::Exited => Failure::new(
            FailureCode::ExitedEarly,
            format!("the program ended while waiting {what}"),
        ),
        Wake::Interrupted => Failure::new(FailureCode::Interrupted, "ended by a signal"),
        Wake::TimedOut | Wake::Ready => Failure::new(
            on_timeout,
            format!("waited {what} for {} ms", timeout.as_millis()),
        ),
    }
}

fn bad_response(message: &str) -> Failure {
    Failure::new(FailureCode::BadResponse, message)
}
