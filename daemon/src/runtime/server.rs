//! The HTTP server behind the bootstrap loop: hyper on one thread.
//!
//! It takes over the listener and every open connection, answers the same three
//! paths as the loop did, and everything else. It stops by itself: no more
//! connections, agents ended, then the rest.

use super::body::Budget;
use super::connections::{Connections, Requests, Room};
use super::requests::{self, Held};
use super::rewound::{Rewound, Wire};
use super::{HandOver, session_route};
use crate::boot::{BootRecord, HealthRecord, HealthRequest, Pending, Unsent};
use crate::channel::Channels;
use crate::config::Config;
use crate::contract::{self, Phase, Preheat, RuntimeFacts};
use crate::exit;
use crate::http::{Admission, Answer, HEAD_MAX_BYTES, HEADERS_MAX, Head, admit};
use crate::session::Sessions;
use coldpath_trace_format::emit::{MonoNanos, SpanContext, Stage, Telemetry};
use coldpath_trace_format::{attributes as keys, spans};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::HeaderName;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// Longest wait for a whole request head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest wait for answers after the agents have ended.
pub(super) const ANSWER_GRACE: Duration = Duration::from_millis(500);
/// Pause after a failed `accept`.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Longest preheat that a client waits for unless it says otherwise.
const PREHEAT_TIMEOUT_MS: u64 = 5_000;
const PREHEAT_TIMEOUT_MAX_MS: u64 = 60_000;

/// Routes with answers of their own; the rest is 404.
const ROUTES: [(&str, &str); 6] = [
    ("GET", "/health"),
    ("GET", "/capabilities"),
    ("GET", "/daemon/status"),
    ("GET", "/workspace/acp/status"),
    ("POST", "/workspace/acp/preheat"),
    ("POST", "/session"),
];

/// Whether a method and path are a route.
pub(super) fn is_route(method: &str, route: &str) -> bool {
    ROUTES.contains(&(method, route))
}

/// What the server is made of.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) config: Arc<Config>,
    pub(super) telemetry: Telemetry,
    pub(super) channels: Rc<Channels>,
    pub(super) sessions: Rc<Sessions>,
    pub(super) record: BootRecord,
    pub(super) port: u16,
    pub(super) boot: Option<SpanContext>,
    pub(super) runtime_start: Option<SpanContext>,
}

/// The running daemon.
#[derive(Debug)]
pub(crate) struct App {
    pub(super) parts: Parts,
    pub(super) bodies: Budget,
    preheat: RefCell<Preheat>,
    health_told: Cell<bool>,
    connections: Connections,
    /// Requests that are being answered.
    active: Cell<usize>,
    answered: Notify,
}

impl App {
    pub(super) fn new(parts: Parts) -> Rc<Self> {
        let health_told = Cell::new(parts.record.health.is_some());
        Rc::new(Self {
            parts,
            bodies: Budget::default(),
            preheat: RefCell::default(),
            health_told,
            connections: Connections::default(),
            active: Cell::new(0),
            answered: Notify::new(),
        })
    }

    /// Makes the channel ready before somebody asks; a failure is told and the
    /// next request tries again.
    pub(super) fn preheat(self: &Rc<Self>, parent: Option<&SpanContext>) {
        let app = Rc::clone(self);
        let begun = MonoNanos::now();
        *self.preheat.borrow_mut() = Preheat::Running;
        // The place in line is taken now, so that a request joins it.
        let stage = self.parts.telemetry.stage(spans::CHANNEL_PREHEAT, parent);
        let ticket = self.parts.channels.ensure(stage.context());
        tokio::task::spawn_local(async move {
            let outcome = ticket.redeem().await;
            let took = MonoNanos::now().since(begun);
            finish_preheat(stage, &outcome);
            *app.preheat.borrow_mut() = match outcome {
                Ok(_) => Preheat::Succeeded(took),
                Err(failure) => Preheat::Failed(took, failure.error.to_string()),
            };
        });
        self.parts.channels.end_survivors();
    }

    /// Serves until a stop signal; a second one does not wait.
    pub(super) async fn serve(
        self: Rc<Self>,
        everything: HandOver,
        request: Option<Stage>,
    ) -> ExitCode {
        let HandOver {
            listener,
            stop,
            connections,
            health,
        } = everything;
        if let Some(health) = health {
            self.health_served(&health);
        }
        let signal = match tokio::net::UnixStream::from_std(stop.into_stream()) {
            Ok(signal) => signal,
            Err(error) => return refuse(&format!("cannot wait for stop signals: {error}")),
        };
        let listener = match TcpListener::from_std(listener) {
            Ok(listener) => listener,
            Err(error) => return refuse(&format!("cannot take over the listener: {error}")),
        };
        let mut request = request;
        for connection in connections {
            self.take_over(connection, &mut request);
        }
        if let Some(deserted) = request {
            requests::end_deserted(deserted);
        }
        let accepting = tokio::task::spawn_local(Rc::clone(&self).accept(listener));
        wait_for_signal(&signal).await;
        accepting.abort();
        crate::log::info("stopping");
        tokio::select! {
            () = self.stop() => ExitCode::from(exit::CLEAN),
            () = wait_for_signal(&signal) => {
                self.parts.channels.kill().await;
                ExitCode::from(exit::REFUSED)
            }
        }
    }

    /// Ends the agents, bounded.
    pub(super) async fn stop(&self) {
        self.parts.channels.stop().await;
        // Whoever waited for an agent is told why there is none.
        let _ = tokio::time::timeout(ANSWER_GRACE, async {
            while self.active.get() > 0 {
                self.answered.notified().await;
            }
        })
        .await;
        // The last answer is written when its connection's task runs next.
        tokio::task::yield_now().await;
    }

    async fn accept(self: Rc<Self>, listener: TcpListener) {
        loop {
            let accepted = listener.accept().await;
            let now = MonoNanos::now();
            let mut room = self.connections.make_room(MonoNanos::now());
            while room == Room::None {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                room = self.connections.make_room(MonoNanos::now());
            }
            match accepted {
                Ok((stream, _)) => {
                    // One small answer a write: waiting for more to send only adds latency.
                    let _ = stream.set_nodelay(true);
                    let (unsent, wire) = (Unsent::default(), Wire::accepted(now));
                    let stream = Rewound::new(Vec::new(), stream, wire);
                    self.serve_connection(stream, unsent, None, room);
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    }

    fn take_over(self: &Rc<Self>, pending: Pending, request: &mut Option<Stage>) {
        let held = pending.held.map(|(since, started)| Held {
            since,
            stage: if started { request.take() } else { None },
            started,
        });
        match TcpStream::from_std(pending.stream) {
            Ok(stream) => {
                let wire = Wire::handed_over(pending.began);
                let stream = Rewound::new(pending.read, stream, wire);
                // The loop has fewer places than this server.
                self.serve_connection(stream, pending.unsent, held, Room::Free);
            }
            Err(error) => crate::log::warn(&format!("a connection was lost: {error}")),
        }
    }

    /// Serves a connection as a task: the rest of an answer first, then requests.
    fn serve_connection(
        self: &Rc<Self>,
        stream: Rewound,
        unsent: Unsent,
        held: Option<Held>,
        room: Room,
    ) {
        let requests = Requests::new(MonoNanos::now());
        let (app, theirs) = (Rc::clone(self), requests.clone());
        let task = tokio::task::spawn_local(async move {
            if let Some(stream) = app.send_rest(stream, unsent).await {
                app.connection(stream, theirs, held, room).await;
            }
        });
        self.connections.add(task.abort_handle(), requests);
    }

    /// Sends what the loop could not; `None` when the connection ends with it.
    async fn send_rest(&self, mut stream: Rewound, unsent: Unsent) -> Option<Rewound> {
        use tokio::io::AsyncWriteExt as _;
        stream.write_all(&unsent.bytes).await.ok()?;
        if let Some(health) = unsent.health {
            self.health_served(&health.answered(MonoNanos::now()));
        }
        if unsent.then_close {
            let _ = stream.shutdown().await;
            return None;
        }
        Some(stream)
    }

    async fn connection(
        self: Rc<Self>,
        stream: Rewound,
        requests: Requests,
        held: Option<Held>,
        room: Room,
    ) {
        let held = Rc::new(RefCell::new(held));
        let wire = stream.wire();
        let service = hyper::service::service_fn(move |request| {
            let app = Rc::clone(&self);
            let held = held.borrow_mut().take();
            let in_flight = requests.begin();
            let arrival = Arrival {
                began: wire.request_began(),
                wire: Rc::clone(&wire),
                held,
                room,
            };
            async move {
                let _in_flight = in_flight;
                app.active.set(app.active.get() + 1);
                let _answering = Answering(Rc::clone(&app));
                Ok::<_, Infallible>(app.respond(request, arrival).await)
            }
        });
        let served = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(HEAD_MAX_BYTES.max(8192))
            .max_headers(HEADERS_MAX)
            .half_close(true)
            .serve_connection(TokioIo::new(stream), service)
            .await;
        // What goes wrong with one connection is between it and its peer.
        drop(served);
    }

    async fn respond(
        self: Rc<Self>,
        request: Request<Incoming>,
        mut arrival: Arrival,
    ) -> Response<Full<Bytes>> {
        let (meta, body) = request.into_parts();
        let target = meta
            .uri
            .path_and_query()
            .map_or("/", |target| target.as_str());
        let mut head = Head {
            method: meta.method.as_str(),
            ..Head::default()
        }
        .with_target(target);
        for (name, value) in &meta.headers {
            head.note(name.as_str(), value.as_bytes());
        }
        let allow_origin = match admit(&head, &self.parts.config.access, self.parts.port) {
            Admission::Admitted { allow_origin } => allow_origin,
            Admission::Refused(answer) => return response(answer),
        };
        if head.is_health() {
            return response(self.health(&head, &arrival).for_origin(allow_origin));
        }
        if arrival.room == Room::Reserved {
            let text = "all connections are taken; this one is for /health alone";
            let answer = Answer::error(503, text, Some("too_many_connections"));
            let answer = answer
                .with_header("Retry-After", "1")
                .with_header("Connection", "close");
            return response(answer.for_origin(allow_origin));
        }
        self.begin_run(&head, &arrival);
        let mut stage = requests::arrive(&self.parts.telemetry, &head, arrival.held.as_mut());
        if let Some(held) = &arrival.held {
            requests::tell_runtime_wait(
                &self.parts.telemetry,
                &stage,
                held,
                self.parts.runtime_start.as_ref(),
            );
        }
        let (answer, mut stage) = match (head.method, head.route()) {
            ("POST", "/session") => {
                session_route::create(&self, &head, &meta.headers, body, stage).await
            }
            ("POST", "/workspace/acp/preheat") => {
                let answer = self.preheat_on_request(&head, &mut stage).await;
                (answer, stage)
            }
            _ => (self.read_only(&head), stage),
        };
        stage.set(keys::HTTP_STATUS, i64::from(answer.status()));
        stage.end();
        response(answer.for_origin(allow_origin))
    }

    /// Takes a new clock anchor where the request may begin a run: it must not mix
    /// two anchors, and neither may what is under way.
    fn begin_run(&self, head: &Head<'_>, arrival: &Arrival) {
        let starts = matches!(
            (head.method, head.route()),
            ("POST", "/session" | "/workspace/acp/preheat")
        );
        let alone = self.active.get() == 1 && arrival.held.is_none();
        if starts && alone && self.parts.channels.is_absent() {
            self.parts.telemetry.renew_drifted_anchor();
        }
    }

    fn health(self: &Rc<Self>, head: &Head<'_>, arrival: &Arrival) -> Answer {
        if !self.health_told.get() {
            let (app, request) = (Rc::clone(self), HealthRequest::new(head, arrival.began));
            let told = move |flushed| app.health_served(&request.answered(flushed));
            arrival.wire.on_flush(told);
        }
        if head.query_flag("deep") {
            Answer::json(
                200,
                &json!({
                    "status": "ok",
                    "workspaceCount": 1,
                    "sessions": self.parts.sessions.count(),
                    "channelAlive": self.parts.channels.is_live(),
                }),
            )
        } else {
            Answer::json(200, &json!({ "status": "ok" }))
        }
    }

    /// Tells the first `/health` whose answer is out.
    fn health_served(&self, health: &HealthRecord) {
        if !self.health_told.replace(true) {
            health.tell(&self.parts.telemetry, self.parts.boot.as_ref());
        }
    }

    fn read_only(&self, head: &Head<'_>) -> Answer {
        match (head.method, head.route()) {
            ("GET" | "HEAD", "/capabilities") => {
                Answer::json(200, &contract::capabilities(&self.parts.config))
            }
            ("GET" | "HEAD", "/daemon/status") => {
                super::status_answer(&self.parts.config, &self.parts.record, head, &self.phase())
            }
            ("GET" | "HEAD", "/workspace/acp/status") => Answer::json(
                200,
                &json!({ "channelLive": self.parts.channels.is_live() }),
            ),
            (method, route) => Answer::json(
                404,
                &json!({ "error": format!("no route for {method} {route}"), "code": "route_not_found", "route": format!("{method} {route}") }),
            ),
        }
    }

    fn phase(&self) -> Phase {
        Phase::Running(RuntimeFacts {
            sessions: self.parts.sessions.count(),
            channel_live: self.parts.channels.is_live(),
            preheat: self.preheat.borrow().clone(),
        })
    }

    /// Waits for the shared start-up; leaving it early neither cancels nor clears it.
    async fn preheat_on_request(&self, head: &Head<'_>, request: &mut Stage) -> Answer {
        let timeout_ms = match head.query_value("timeoutMs") {
            None => PREHEAT_TIMEOUT_MS,
            Some(text) => match text.parse() {
                Ok(ms @ 1..=PREHEAT_TIMEOUT_MAX_MS) => ms,
                _ => {
                    return Answer::error(
                        400,
                        "`timeoutMs` must be a positive integer no greater than 60000",
                        Some("invalid_timeout"),
                    );
                }
            },
        };
        let begun = MonoNanos::now();
        let stage = self
            .parts
            .telemetry
            .stage(spans::CHANNEL_PREHEAT, request.context().as_ref());
        let ticket = self.parts.channels.ensure(stage.context());
        // A task of its own: the span of shared work ends when the work does.
        let work = tokio::task::spawn_local(async move {
            let outcome = ticket.redeem().await;
            finish_preheat(stage, &outcome);
            outcome.map(|_| ())
        });
        let outcome = tokio::time::timeout(Duration::from_millis(timeout_ms), work).await;
        let (reason, error) = match outcome {
            Ok(Ok(Ok(()))) if self.parts.channels.is_live() => (None, None),
            Ok(Ok(Ok(()))) => (
                Some("error"),
                Some("ACP preheat did not produce a live channel".to_owned()),
            ),
            Ok(Ok(Err(failure))) => (Some("error"), Some(failure.error.to_string())),
            Ok(Err(_)) => (Some("error"), Some("ACP preheat failed".to_owned())),
            Err(_) => (
                Some("timeout"),
                Some("ACP preheat did not complete before the timeout".to_owned()),
            ),
        };
        let live = self.parts.channels.is_live();
        let took = u64::try_from(MonoNanos::now().since(begun).as_millis()).unwrap_or(u64::MAX);
        let mut body = json!({ "ready": live, "channelLive": live, "durationMs": took });
        if let (false, Some(reason), Some(error)) = (live, reason, error) {
            body["reason"] = reason.into();
            body["error"] = error.into();
        }
        Answer::json(200, &body)
    }
}

/// A request as it came.
#[derive(Debug)]
struct Arrival {
    began: MonoNanos,
    wire: Rc<Wire>,
    /// What it went through before, when it was handed over.
    held: Option<Held>,
    /// What its connection may ask for.
    room: Room,
}

/// Counts a request down when it is answered, or when its client left.
struct Answering(Rc<App>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.active.set(self.0.active.get() - 1);
        self.0.answered.notify_one();
    }
}

fn finish_preheat(
    mut stage: Stage,
    outcome: &Result<Rc<crate::channel::Channel>, crate::channel::Failure>,
) {
    match outcome {
        Ok(channel) => stage.set(keys::CHANNEL_ID, channel.id().to_owned()),
        Err(failure) => failure.mark(&mut stage),
    }
    stage.end();
}

/// Waits until the signal's stream is readable, and takes what is there.
async fn wait_for_signal(signal: &tokio::net::UnixStream) {
    let mut bytes = [0_u8; 16];
    loop {
        if signal.readable().await.is_err() {
            return;
        }
        match signal.try_read(&mut bytes) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            _ => return,
        }
    }
}

fn refuse(message: &str) -> ExitCode {
    crate::log::error(message);
    ExitCode::from(exit::REFUSED)
}

fn response(answer: Answer) -> Response<Full<Bytes>> {
    let (status, headers, body) = answer.into_parts();
    let has_body = body.is_some();
    let mut response = Response::new(Full::new(Bytes::from(body.unwrap_or_default())));
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if has_body {
        let json = hyper::header::HeaderValue::from_static("application/json; charset=utf-8");
        response
            .headers_mut()
            .insert(hyper::header::CONTENT_TYPE, json);
    }
    for (name, value) in headers {
        // An origin was a header before; everything else is ours.
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), value.try_into()) {
            response.headers_mut().append(name, value);
        }
    }
    response
}
