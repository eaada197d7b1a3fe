//! Sessions of the workspace: `thread` makes one each time, `single` shares one.
//!
//! Concurrent first requests of scope `single` coalesce on one creation: one gets
//! `attached: false`, all share the same failure, and the next one tries again.

use crate::channel::{Attempt, Channel, ChannelError, Channels, Failure};
use crate::runtime::hold_up;
use coldpath_acp::messages::{NewSessionRequest, NewSessionResponse};
use coldpath_trace_format::emit::{
    MonoNanos, SpanContext, Stage, Telemetry, WallNanos, fault, uuid,
};
use coldpath_trace_format::{attributes as keys, spans};
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::watch;

/// Longest session id that an agent may give. Real ones have 36 bytes.
const SESSION_ID_MAX_BYTES: usize = 1024;

/// Whether a request wants a session of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Single,
    Thread,
}

/// A session that a request got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Granted {
    pub(crate) session_id: String,
    pub(crate) created_at: String,
    pub(crate) outcome: Outcome,
    pub(crate) channel_id: String,
}

/// How the request came by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Made for this request.
    Created,
    /// Was there.
    Attached,
    /// Was being made for somebody else.
    Coalesced,
}

/// Why a request gets none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SessionError {
    /// As many as are allowed are live.
    Full {
        limit: usize,
    },
    Channel(Failure),
}

impl From<Failure> for SessionError {
    fn from(failure: Failure) -> Self {
        Self::Channel(failure)
    }
}

impl From<ChannelError> for SessionError {
    fn from(error: ChannelError) -> Self {
        Self::Channel(error.into())
    }
}

type Made = Result<Granted, SessionError>;

/// The sessions of one workspace.
#[derive(Debug)]
pub(crate) struct Sessions {
    channels: Rc<Channels>,
    telemetry: Telemetry,
    cwd: String,
    limit: Option<usize>,
    timeout: Duration,
    live: RefCell<BTreeMap<String, Live>>,
    /// Sessions that are being made: they count against the limit too.
    making: Cell<usize>,
    single: RefCell<Single>,
}

#[derive(Debug)]
struct Live {
    created_at: String,
    channel: Rc<Channel>,
}

#[derive(Debug)]
enum Single {
    None,
    Making(watch::Receiver<Option<Made>>),
    Made(String),
}

impl Sessions {
    pub(crate) fn new(
        channels: Rc<Channels>,
        telemetry: Telemetry,
        config: &crate::config::Config,
    ) -> Rc<Self> {
        Rc::new(Self {
            channels,
            telemetry,
            // Judged to be UTF-8 when the configuration was made.
            cwd: config.workspace.to_str().unwrap_or_default().to_owned(),
            limit: config.max_sessions,
            timeout: config.initialize_timeout,
            live: RefCell::default(),
            making: Cell::new(0),
            single: RefCell::new(Single::None),
        })
    }

    /// Sessions whose agent still lives.
    pub(crate) fn count(&self) -> usize {
        self.forget_dead();
        self.live.borrow().len()
    }

    /// Gets a session for a request whose span is `parent`.
    pub(crate) async fn get(
        self: &Rc<Self>,
        scope: Scope,
        mcp_servers: Value,
        parent: Option<SpanContext>,
    ) -> Made {
        self.forget_dead();
        match scope {
            Scope::Thread => self.create(mcp_servers, parent.as_ref()).await,
            Scope::Single => self.get_single(mcp_servers, parent).await,
        }
    }

    async fn get_single(self: &Rc<Self>, mcp_servers: Value, parent: Option<SpanContext>) -> Made {
        let making = match &*self.single.borrow() {
            Single::Made(id) => {
                let live = self.live.borrow();
                match live.get(id) {
                    Some(session) => return Ok(session.grant(id, Outcome::Attached)),
                    None => None,
                }
            }
            // A maker whose task is gone (it panicked) will never tell.
            Single::Making(made) if made.has_changed().is_ok() => Some(made.clone()),
            Single::None | Single::Making(_) => None,
        };
        if let Some(mut made) = making {
            if !self.channels.is_absent() {
                // Only for the span: what the maker says is what counts. Without a
                // channel its failure is on the way, and another start would be in vain.
                let _ = self.wait_for_channel(parent.as_ref()).await;
            }
            let made = made
                .wait_for(Option::is_some)
                .await
                .map_err(|_| ChannelError::Stopping)?;
            let granted = (*made)
                .clone()
                .unwrap_or(Err(ChannelError::Stopping.into()))?;
            return Ok(Granted {
                outcome: Outcome::Coalesced,
                ..granted
            });
        }
        let (announce, made) = watch::channel(None);
        *self.single.borrow_mut() = Single::Making(made);
        let outcome = self.create(mcp_servers, parent.as_ref()).await;
        *self.single.borrow_mut() = match &outcome {
            Ok(granted) => Single::Made(granted.session_id.clone()),
            Err(_) => Single::None,
        };
        announce.send_replace(Some(outcome.clone()));
        outcome
    }

    async fn create(self: &Rc<Self>, mcp_servers: Value, parent: Option<&SpanContext>) -> Made {
        if let Some(limit) = self.limit
            && self.live.borrow().len() + self.making.get() >= limit
        {
            return Err(SessionError::Full { limit });
        }
        let _counted = Counted::new(&self.making);
        let channel = self.wait_for_channel(parent).await?;
        let mut stage = self
            .telemetry
            .stage(spans::SESSION_NEW, parent)
            .with_sched();
        stage.set(keys::CHANNEL_ID, channel.id().to_owned());
        let made = self.new_session(&channel, mcp_servers, &mut stage).await;
        match made {
            Ok(granted) => {
                stage.end();
                Ok(granted)
            }
            Err(error) => {
                stage.fail(error.code(), error.to_string());
                stage.end();
                if channel.is_hung() && !self.is_in_use(&channel) {
                    // The next request gets a fresh one.
                    channel.kill();
                }
                let attempt = Attempt {
                    channel_id: channel.id().to_owned(),
                    span: channel.initialize_context(),
                };
                Err(Failure {
                    error,
                    attempt: Some(attempt),
                }
                .into())
            }
        }
    }

    /// Whether somebody else would lose something with this channel.
    fn is_in_use(&self, channel: &Rc<Channel>) -> bool {
        let live = self.live.borrow();
        self.making.get() > 1 || live.values().any(|one| Rc::ptr_eq(&one.channel, channel))
    }

    /// The wait for the channel, as the stage of a request.
    async fn wait_for_channel(&self, parent: Option<&SpanContext>) -> Result<Rc<Channel>, Failure> {
        let mut stage = self
            .telemetry
            .stage(spans::CHANNEL_WAIT, parent)
            .with_sched();
        let ticket = self.channels.ensure(stage.context());
        stage.set(keys::CHANNEL_PATH, ticket.path.name());
        if fault::reached(spans::CHANNEL_WAIT) {
            std::future::pending::<()>().await;
        }
        hold_up(spans::CHANNEL_WAIT).await;
        match ticket.redeem().await {
            Ok(channel) => {
                stage.set(keys::CHANNEL_ID, channel.id().to_owned());
                if let Some(initialize) = channel.initialize_context() {
                    stage.link(&initialize);
                }
                stage.end();
                Ok(channel)
            }
            Err(failure) => {
                failure.mark(&mut stage);
                stage.end();
                Err(failure)
            }
        }
    }

    async fn new_session(
        &self,
        channel: &Rc<Channel>,
        mcp_servers: Value,
        stage: &mut Stage,
    ) -> Result<Granted, ChannelError> {
        if fault::reached(spans::SESSION_NEW) {
            std::future::pending::<()>().await;
        }
        hold_up(spans::SESSION_NEW).await;
        let request = NewSessionRequest {
            cwd: self.cwd.clone(),
            mcp_servers,
            meta: crate::channel::trace_meta(stage),
        };
        let deadline = MonoNanos::now().after(self.timeout);
        let result = channel
            .call("session/new", &request, deadline, self.timeout)
            .await?;
        let response: NewSessionResponse =
            serde_json::from_str(result.get()).map_err(|error| ChannelError::Invalid {
                method: "session/new",
                detail: error.to_string(),
            })?;
        self.check_id(&response.session_id)?;
        if !channel.is_live() {
            return Err(ChannelError::Closed {
                method: "session/new",
                detail: "it ended after its answer".to_owned(),
            });
        }
        stage.set(keys::SESSION_ID, response.session_id.clone());
        let session = Live {
            created_at: WallNanos::now().to_iso_millis(),
            channel: Rc::clone(channel),
        };
        let granted = session.grant(&response.session_id, Outcome::Created);
        self.live.borrow_mut().insert(response.session_id, session);
        Ok(granted)
    }

    /// An id goes into answers, traces and a table of the live ones.
    fn check_id(&self, id: &str) -> Result<(), ChannelError> {
        let detail = if id.is_empty() || id.len() > SESSION_ID_MAX_BYTES {
            format!(
                "its sessionId has {} bytes; 1 to {SESSION_ID_MAX_BYTES} are taken",
                id.len()
            )
        } else if id.contains(char::is_control) {
            "its sessionId holds control characters".to_owned()
        } else if self.live.borrow().contains_key(id) {
            "its sessionId is that of a live session".to_owned()
        } else {
            return Ok(());
        };
        Err(ChannelError::Invalid {
            method: "session/new",
            detail,
        })
    }

    /// Sessions end with their agent.
    fn forget_dead(&self) {
        self.live
            .borrow_mut()
            .retain(|_, session| session.channel.is_live());
    }
}

/// Counts something while it lives.
struct Counted<'a>(&'a Cell<usize>);

impl<'a> Counted<'a> {
    fn new(count: &'a Cell<usize>) -> Self {
        count.set(count.get() + 1);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Live {
    fn grant(&self, id: &str, outcome: Outcome) -> Granted {
        Granted {
            session_id: id.to_owned(),
            created_at: self.created_at.clone(),
            outcome,
            channel_id: self.channel.id().to_owned(),
        }
    }
}

impl Outcome {
    /// Its name in traces.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Attached => "attached",
            Self::Coalesced => "coalesced",
        }
    }
}

/// A client id for a request that brought none.
pub(crate) fn client_id() -> String {
    format!("client_{}", uuid::random())
}
