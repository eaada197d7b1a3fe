//! A driver made ready for one run: everything that can exist before the spawn.
//!
//! Span ids, request bytes, sockets and response buffers are made here, so that
//! inside the timed window only system calls remain.

use crate::driver::http::{PreparedRequest, ResponseBuffer};
use crate::driver::{Driver, Part, RequestStep, Step};
use coldpath_trace_format::emit::{ReservedSpan, SpanContext};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};
use std::os::fd::OwnedFd;

/// The steps of one run, with all they need.
#[derive(Debug)]
pub(super) struct Plan {
    /// Ids of the root span.
    pub(super) run: ReservedSpan,
    /// Text before the address in the ready line.
    pub(super) ready_marker: &'static str,
    /// The steps; emptied by whoever carries them out.
    pub(super) steps: Vec<PlannedStep>,
}

/// A step, ready.
#[derive(Debug)]
pub(super) enum PlannedStep {
    /// Read stdout until the ready line is complete.
    AwaitListener(ReservedSpan),
    /// Read the RSS of the listening program.
    ReadListenerRss,
    /// Send a request.
    Request(Box<PlannedRequest>),
    /// Read the covariates and the process tree.
    CloseWindow,
}

/// A request, ready.
#[derive(Debug)]
pub(super) struct PlannedRequest {
    /// What is asked.
    pub(super) step: RequestStep,
    /// Ids of the request's span.
    pub(super) ids: ReservedSpan,
    /// Ids of the `client.action` around it.
    pub(super) action: Option<ReservedSpan>,
    /// Its bytes, but for the host.
    pub(super) bytes: PreparedRequest,
    /// Where the answer goes.
    pub(super) response: ResponseBuffer,
    /// An IPv4 socket, not yet connected; another family's is made when needed.
    pub(super) socket: Option<OwnedFd>,
}

impl Plan {
    /// Prepares a driver for one run.
    pub(super) fn new(driver: &Driver) -> Self {
        let run = ReservedSpan::new(None);
        let steps = driver
            .steps
            .iter()
            .map(|step| match step {
                Step::AwaitListener => {
                    PlannedStep::AwaitListener(ReservedSpan::new(Some(run.context())))
                }
                Step::ReadListenerRss => PlannedStep::ReadListenerRss,
                Step::Request(step) => {
                    PlannedStep::Request(Box::new(PlannedRequest::new(step, run.context())))
                }
                Step::CloseWindow => PlannedStep::CloseWindow,
            })
            .collect();
        Self {
            run,
            ready_marker: driver.ready_marker,
            steps,
        }
    }
}

impl PlannedRequest {
    fn new(step: &RequestStep, run: &SpanContext) -> Self {
        let action = (step.part == Part::Action).then(|| ReservedSpan::new(Some(run)));
        let parent = action.as_ref().map_or(run, ReservedSpan::context);
        let ids = ReservedSpan::new(Some(parent));
        Self {
            step: step.clone(),
            bytes: PreparedRequest::new(step, &ids.traceparent()),
            ids,
            action,
            response: ResponseBuffer::default(),
            socket: open_socket(AddressFamily::INET).ok(),
        }
    }
}

/// A non-blocking TCP socket that sends at once.
pub(super) fn open_socket(family: AddressFamily) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    Ok(socket)
}
