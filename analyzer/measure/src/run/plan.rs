//! Steps made ready for one run: everything that can exist before the spawn.
//!
//! Span ids, request bytes, sockets and response buffers are made here, so that
//! inside the timed window only system calls remain.

use crate::driver::http::{PreparedRequest, ResponseBuffer};
use crate::driver::{
    Message, Pace, Part, ReadyRule, RequestStep, Sending, SignalName, Since, Step, fill_json,
};
use coldpath_trace_format::attributes as keys;
use coldpath_trace_format::emit::{ReservedSpan, SpanContext};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

/// The steps of one run, with all they need.
#[derive(Debug)]
pub(super) struct Plan {
    /// Ids of the root span.
    pub(super) run: ReservedSpan,
    /// Ids of the action's span.
    pub(super) action: ReservedSpan,
    /// The steps; emptied by whoever carries them out.
    pub(super) steps: Vec<PlannedStep>,
}

/// A step, ready.
#[derive(Debug)]
pub(super) enum PlannedStep {
    /// Read an output until the ready line is complete.
    AwaitListener(ReservedSpan, ReadyRule),
    /// Read the RSS of the listening program.
    ReadListenerRss,
    /// Send requests together.
    Send(PlannedSending),
    /// Let time pass.
    Wait(Duration, Since),
    /// Send a signal.
    Signal(SignalName),
    /// Wait until the program has ended by itself.
    AwaitEnd(ReservedSpan),
    /// Read the covariates and the process tree.
    CloseWindow,
}

/// Requests that are sent together, ready.
#[derive(Debug)]
pub(super) struct PlannedSending {
    /// The requests.
    pub(super) requests: Vec<PlannedRequest>,
    /// Whether they are awaited.
    pub(super) pace: Pace,
    /// Where they stand.
    pub(super) part: Part,
}

/// A request, ready.
#[derive(Debug)]
pub(super) struct PlannedRequest {
    /// What is asked.
    pub(super) step: RequestStep,
    /// Ids of the request's span.
    pub(super) ids: ReservedSpan,
    /// What is sent.
    pub(super) payload: Payload,
}

/// What is sent.
#[derive(Debug)]
pub(super) enum Payload {
    /// Over a connection of its own.
    Http(Box<HttpPayload>),
    /// A line to the program's input.
    Call(CallPayload),
}

/// A request over HTTP.
#[derive(Debug)]
pub(super) struct HttpPayload {
    /// Its bytes, but for the host.
    pub(super) bytes: PreparedRequest,
    /// Where the answer goes.
    pub(super) response: ResponseBuffer,
    /// An IPv4 socket, not yet connected; another family's is made when needed.
    pub(super) socket: Option<OwnedFd>,
}

/// A JSON-RPC call.
#[derive(Debug)]
pub(super) struct CallPayload {
    /// Id of the request.
    pub(super) id: u64,
    /// The whole line.
    pub(super) line: Vec<u8>,
}

impl Plan {
    /// Prepares the steps for one run.
    pub(super) fn new(steps: Vec<Step>, workspace: &Path) -> Self {
        let run = ReservedSpan::new(None);
        let action = ReservedSpan::new(Some(run.context()));
        let child = || ReservedSpan::new(Some(run.context()));
        let mut next_id = 0;
        let steps = steps
            .into_iter()
            .map(|step| match step {
                Step::AwaitListener(rule) => PlannedStep::AwaitListener(child(), rule),
                Step::ReadListenerRss => PlannedStep::ReadListenerRss,
                Step::Send(sending) => {
                    let parent = match sending.part {
                        Part::Run => &run,
                        Part::Action => &action,
                    };
                    let parent = parent.context();
                    PlannedStep::Send(plan_sending(sending, parent, workspace, &mut next_id))
                }
                Step::Wait(duration, since) => PlannedStep::Wait(duration, since),
                Step::Signal(signal) => PlannedStep::Signal(signal),
                Step::AwaitEnd => PlannedStep::AwaitEnd(child()),
                Step::CloseWindow => PlannedStep::CloseWindow,
            })
            .collect();
        Self { run, action, steps }
    }
}

fn plan_sending(
    sending: Sending,
    parent: &SpanContext,
    workspace: &Path,
    next_id: &mut u64,
) -> PlannedSending {
    let Sending {
        requests,
        pace,
        part,
    } = sending;
    let requests = requests
        .into_iter()
        .map(|step| {
            let ids = ReservedSpan::new(Some(parent));
            let payload = payload(&step.message, &ids.traceparent(), workspace, next_id);
            PlannedRequest { step, ids, payload }
        })
        .collect();
    PlannedSending {
        requests,
        pace,
        part,
    }
}

fn payload(message: &Message, traceparent: &str, workspace: &Path, next_id: &mut u64) -> Payload {
    match message {
        Message::Http { method, path, body } => {
            let body = body
                .as_ref()
                .map(|body| fill_json(body, workspace).to_string());
            Payload::Http(Box::new(HttpPayload {
                bytes: PreparedRequest::new(method, path, body.as_deref(), traceparent),
                response: ResponseBuffer::default(),
                socket: open_socket(AddressFamily::INET).ok(),
            }))
        }
        Message::Call { method, params } => {
            let id = *next_id;
            *next_id += 1;
            let mut params = fill_json(params, workspace);
            if let Some(params) = params.as_object_mut() {
                let meta = params
                    .entry("_meta")
                    .or_insert_with(|| serde_json::json!({}));
                if let Some(meta) = meta.as_object_mut() {
                    meta.insert(keys::META_TRACEPARENT.to_owned(), traceparent.into());
                    meta.insert(keys::META_QWEN_TRACEPARENT.to_owned(), traceparent.into());
                }
            }
            let call = serde_json::json!({
                "jsonrpc": "2.0", "id": id, "method": method, "params": params,
            });
            let mut line = call.to_string().into_bytes();
            line.push(b'\n');
            Payload::Call(CallPayload { id, line })
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
