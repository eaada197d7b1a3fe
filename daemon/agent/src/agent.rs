//! The protocol: one line in, at most one line out, and what follows after it.
//!
//! [`Agent::handle`] answers; [`Agent::settle`] does what must not delay the
//! answer (opening the trace, writing spans and profiles, asking git) once it is
//! written. It performs no I/O on the protocol's pipes itself.

use crate::diagnostics::Diagnostics;
use crate::edges::{Edge, EdgeClock};
use crate::git::status::{Answer, STATUS_BOUND, StatusRunner};
use crate::initialize::InitializeResult;
use crate::instructions::Instructions;
use crate::session::{Prepared, Session};
use crate::session_stages::{SessionStage, SessionStart, Stages};
use crate::settings::{GitStatus, Settings};
use crate::startup::{Startup, StartupProfile, is_profile_wanted};
use crate::tools::Registry;
use crate::trace::{Handed, TraceSetup, Tracing};
use coldpath_acp::framing::{LineTooLong, MAX_LINE_BYTES};
use coldpath_acp::message::{
    self, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, Incoming, METHOD_NOT_FOUND, RpcError,
};
use coldpath_acp::messages::{InitializeRequest, NewSessionRequest, method};
use coldpath_trace_format::emit::{fault, inject, uuid};
use coldpath_trace_format::spans;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// An answer, and what follows once it is written.
#[derive(Debug)]
pub(crate) struct Reply {
    /// The line with its newline; `None` for what wants no answer.
    pub(crate) line: Option<Vec<u8>>,
    after: Option<AfterSession>,
}

/// A session request that was answered.
#[derive(Debug)]
struct AfterSession {
    start: Option<SessionStart>,
    /// Id of the session; `None` when it was refused.
    id: Option<String>,
    mcp_servers: usize,
}

impl AfterSession {
    fn refused(start: Option<SessionStart>) -> Self {
        Self {
            start,
            id: None,
            mcp_servers: 0,
        }
    }
}

impl Reply {
    fn new(line: Vec<u8>) -> Self {
        Self {
            line: Some(line),
            after: None,
        }
    }

    fn of_session(line: Vec<u8>, after: AfterSession) -> Self {
        Self {
            line: Some(line),
            after: Some(after),
        }
    }

    fn none() -> Self {
        Self {
            line: None,
            after: None,
        }
    }
}

/// The agent between two lines.
#[derive(Debug)]
pub(crate) struct Agent {
    settings: Settings,
    tools: Registry,
    instructions: Instructions,
    clock: EdgeClock,
    startup: Startup,
    client: Option<Client>,
    tracing: Tracing,
    sessions: BTreeMap<String, Session>,
    status: StatusRunner,
}

/// What the first initialize request said.
#[derive(Debug)]
struct Client {
    capabilities: Map<String, Value>,
    profile: StartupProfile,
}

impl Agent {
    /// An agent at the end of its start-up but for the initialize request.
    pub(crate) fn new(
        settings: Settings,
        tools: Registry,
        instructions: Instructions,
        setup: TraceSetup,
        clock: EdgeClock,
        startup: Startup,
    ) -> Self {
        Self {
            settings,
            tools,
            instructions,
            clock,
            startup,
            client: None,
            tracing: Tracing::new(setup),
            sessions: BTreeMap::new(),
            status: StatusRunner::new(STATUS_BOUND),
        }
    }

    /// The instant at which a line was read, where anything is timed by it: up
    /// to the initialize request, and in a traced agent.
    pub(crate) fn edge(&self) -> Option<Edge> {
        (self.client.is_none() || self.tracing.is_wanted()).then(|| self.clock.edge())
    }

    /// Answers one line, which was there at `read`.
    pub(crate) fn handle(&mut self, line: &[u8], read: Option<Edge>) -> Reply {
        match message::parse(line) {
            Ok(Incoming::Request { id, method, params }) => self.request(id, &method, params, read),
            // `session/cancel` ends a running turn, and none can run; other
            // notifications are unknown. Nothing was asked of the client, so no
            // response is waited for.
            Ok(Incoming::Notification { .. } | Incoming::Response { .. }) => Reply::none(),
            Err(refused) => {
                let (id, error) = refused.to_rpc();
                Reply::new(message::error_response(id, &error))
            }
        }
    }

    /// Answers a line that was too long to keep.
    pub(crate) fn refuse_too_long(error: LineTooLong) -> Vec<u8> {
        let text = format!("{error}; the bound is {MAX_LINE_BYTES} bytes");
        message::error_response(None, &RpcError::new(INVALID_REQUEST, text))
    }

    fn request(
        &mut self,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
        read: Option<Edge>,
    ) -> Reply {
        let outcome = match method {
            method::INITIALIZE => return self.initialize(id, params, read),
            _ if self.client.is_none() => Err(RpcError::new(
                INVALID_REQUEST,
                format!("`{method}` came before `initialize`"),
            )),
            method::SESSION_NEW => return self.new_session(id, params, read),
            method::SESSION_PROMPT => self.prompt(params),
            _ => Err(RpcError::new(
                METHOD_NOT_FOUND,
                format!("there is no method `{method}`"),
            )),
        };
        Reply::new(match outcome {
            Ok(()) => message::response(id, &()),
            Err(error) => message::error_response(Some(id), &error),
        })
    }

    fn initialize(
        &mut self,
        id: &RawValue,
        params: Option<&RawValue>,
        read: Option<Edge>,
    ) -> Reply {
        let request: InitializeRequest = match read_params(params) {
            Ok(request) => request,
            Err(error) => return Reply::new(message::error_response(Some(id), &error)),
        };
        let wanted = is_profile_wanted(&request.meta);
        if self.client.is_none() {
            fault::block(spans::AGENT_STARTUP);
            self.tracing.set_parent(Handed::from_meta(&request.meta));
            if let Some(read) = read {
                self.startup.mark_at("request_wait", read);
            }
            self.startup.mark("initialize", &self.clock);
            self.client = Some(Client {
                capabilities: request.client_capabilities,
                profile: self.startup.profile(),
            });
        }
        // A second request is answered alike, with the profile as it was.
        let profile = self
            .client
            .as_ref()
            .map(|client| &client.profile)
            .filter(|_| wanted);
        let result = InitializeResult::new(self.tools.definitions(), profile);
        Reply::new(message::response(id, &result))
    }

    fn new_session(
        &mut self,
        id: &RawValue,
        params: Option<&RawValue>,
        read: Option<Edge>,
    ) -> Reply {
        let request = read_params::<NewSessionRequest>(params);
        let mut stages = match read.filter(|_| self.tracing.is_wanted()) {
            Some(read) => Stages::begin(&self.clock, read, handed(&request, params)),
            None => Stages::off(),
        };
        fault::block(spans::AGENT_SESSION_START);
        let options = &self.settings.instructions;
        let prepared = request.and_then(|request| {
            let open = self.sessions.len();
            Prepared::new(&request, open, options, &self.instructions, &mut stages)
        });
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                let line = message::error_response(Some(id), &error);
                return Reply::of_session(line, AfterSession::refused(stages.fail(&error)));
            }
        };
        stages.enter(SessionStage::Register);
        let session_id = uuid::random();
        let mcp_servers = prepared.mcp_servers;
        let session = prepared.into_session(self.offered_tools());
        self.instructions = session.instructions.clone();
        let session = self.sessions.entry(session_id.clone()).or_insert(session);
        stages.enter(SessionStage::Response);
        let line = message::response(id, &session.result(&session_id));
        let after = AfterSession {
            start: stages.finish(&session_id, session.head.as_ref()),
            id: Some(session_id),
            mcp_servers,
        };
        Reply::of_session(line, after)
    }

    fn offered_tools(&self) -> Vec<&'static str> {
        self.client.as_ref().map_or_else(Vec::new, |client| {
            self.tools.for_client(&client.capabilities)
        })
    }

    fn prompt(&self, params: Option<&RawValue>) -> Result<(), RpcError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct PromptRequest {
            session_id: String,
        }
        let PromptRequest { session_id } = read_params(params)?;
        if self.sessions.contains_key(&session_id) {
            Err(RpcError::new(
                INTERNAL_ERROR,
                "no model endpoint is configured: this agent opens sessions but cannot run a turn",
            ))
        } else {
            Err(RpcError::new(
                INVALID_PARAMS,
                format!("there is no session `{session_id}`"),
            ))
        }
    }

    /// Does what follows an answer that has been written.
    pub(crate) fn settle(&mut self, reply: Reply, diagnostics: &mut Diagnostics) {
        let Some(AfterSession {
            start,
            id,
            mcp_servers,
        }) = reply.after
        else {
            return;
        };
        if let Some(trace) = self.tracing.open(&self.startup, None, diagnostics)
            && let Some(start) = start
        {
            start.emit(trace);
        }
        if let Some(id) = id
            && let Some(session) = self.sessions.get(&id)
            && session.head.is_some()
            && self.settings.git_status == GitStatus::Ask
        {
            inject::hold_up("agent.", "git_status");
            self.status.ask(&session.directory, &id);
        }
        if mcp_servers > 0 {
            diagnostics.warn(&format!(
                "MCP servers were named ({mcp_servers}); this agent connects to none"
            ));
        }
    }

    /// Whether start-up is over and its trace still has to be opened: at the next
    /// pause, or after the first session.
    pub(crate) fn wants_pause(&self) -> bool {
        self.client.is_some() && self.tracing.is_pending()
    }

    /// Uses a pause of the client.
    pub(crate) fn pause(&mut self, diagnostics: &mut Diagnostics) {
        self.tracing.open(&self.startup, None, diagnostics);
    }

    /// Runs of `git status`, for the loop that polls them.
    pub(crate) fn status(&mut self) -> &mut StatusRunner {
        &mut self.status
    }

    /// Lines that tell the client what git said; none for what is unknown.
    pub(crate) fn tell(&mut self, answer: &Answer) -> Vec<u8> {
        let mut lines = Vec::new();
        for id in &answer.sessions {
            if let Some(session) = self.sessions.get_mut(id)
                && answer.dirty.is_some()
            {
                session.dirty = answer.dirty;
                lines.extend(session.workspace_update(id));
            }
        }
        lines
    }

    /// Ends what runs and closes the trace. Bounded.
    pub(crate) fn finish(&mut self, diagnostics: &mut Diagnostics) {
        self.status.stop();
        let failure = if self.client.is_none() && self.tracing.is_wanted() {
            self.startup.mark("request_wait", &self.clock);
            Some("stdin ended before an initialize request")
        } else {
            None
        };
        self.tracing.open(&self.startup, failure, diagnostics);
        self.tracing.close(diagnostics);
    }
}

/// The trace context of a session request, also of one that is refused.
fn handed(request: &Result<NewSessionRequest, RpcError>, params: Option<&RawValue>) -> Handed {
    #[derive(Deserialize)]
    struct OnlyMeta {
        #[serde(rename = "_meta", default)]
        meta: Map<String, Value>,
    }
    match request {
        Ok(request) => Handed::from_meta(&request.meta),
        Err(_) => read_params(params).map_or(Handed::Absent, |only: OnlyMeta| {
            Handed::from_meta(&only.meta)
        }),
    }
}

fn read_params<'a, T: Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<T, RpcError> {
    let Some(params) = params else {
        return Err(RpcError::new(INVALID_PARAMS, "`params` is missing"));
    };
    serde_json::from_str(params.get())
        .map_err(|error| RpcError::new(INVALID_PARAMS, format!("`params`: {error}")))
}
