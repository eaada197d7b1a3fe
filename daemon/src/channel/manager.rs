//! One channel for everybody: reuse the live one, join the one that is being
//! made, or make it. Single flight: work that was begun for one is shared by all,
//! and nobody's leaving cancels it.

use super::error::{Attempt, ChannelError, Failure};
use super::handshake::{self, Exchange};
use super::live::Channel;
use super::process::{AgentProcess, Family, KILL_GRACE, SpawnOrder, end_survivors, kill_survivors};
use crate::config::Config;
use crate::runtime::hold_up;
use crate::store::{ProcessIdentity, Store};
use coldpath_trace_format::emit::profile_file::ProfileFile;
use coldpath_trace_format::emit::{
    MonoNanos, SpanContext, SpawnStamp, Stage, Telemetry, fault, uuid,
};
use coldpath_trace_format::profile::{ProfileRecord, handover};
use coldpath_trace_format::{attributes as keys, env as vars, spans};
use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How often orphans that have ended are reaped while an agent lives.
const REAP_EVERY: Duration = Duration::from_secs(30);

/// Shared by everybody who waited.
type Outcome = Result<Rc<Channel>, Failure>;
type Flight = watch::Receiver<Option<Outcome>>;

/// How a request comes by its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChannelPath {
    Reused,
    Joined,
    SpawnedOnRequest,
}

impl ChannelPath {
    /// Its name in traces.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Reused => "reused",
            Self::Joined => "joined",
            Self::SpawnedOnRequest => "spawned_on_request",
        }
    }
}

/// What the channels need of the rest of the daemon.
#[derive(Debug)]
pub(crate) struct Services {
    pub(crate) config: Arc<Config>,
    pub(crate) telemetry: Telemetry,
    pub(crate) store: Store,
    /// Agents that an earlier daemon left; the store names them until they are gone.
    pub(crate) survivors: Vec<ProcessIdentity>,
}

/// The workspace's channel, present or not.
#[derive(Debug)]
pub(crate) struct Channels {
    services: Services,
    family: Family,
    slot: RefCell<Slot>,
    /// Channels whose processes have not ended, the live one included.
    alive: RefCell<Vec<Rc<Channel>>>,
    profiles: RefCell<Option<ProfileFile>>,
    /// The task that ends the survivors, until somebody waits for it.
    ending: RefCell<Option<JoinHandle<()>>>,
    stopping: Cell<bool>,
}

#[derive(Debug)]
enum Slot {
    Empty,
    Starting(Flight),
    Live(Rc<Channel>),
}

/// A place in line for the channel; the path was decided when it was taken.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) path: ChannelPath,
    wait: Wait,
}

#[derive(Debug)]
enum Wait {
    Ready(Outcome),
    Flight(Flight),
}

impl Ticket {
    /// Waits for the channel, or for the reason why there is none.
    pub(crate) async fn redeem(self) -> Outcome {
        match self.wait {
            Wait::Ready(outcome) => outcome,
            Wait::Flight(mut flight) => match flight.wait_for(Option::is_some).await {
                Ok(outcome) => (*outcome)
                    .clone()
                    .unwrap_or(Err(ChannelError::Stopping.into())),
                Err(_) => Err(ChannelError::Stopping.into()),
            },
        }
    }
}

impl Channels {
    pub(crate) fn new(services: Services) -> Rc<Self> {
        let profiles = services
            .config
            .trace_dir
            .clone()
            .filter(|_| services.telemetry.is_on());
        let profiles = profiles.map(|dir| {
            let now = services.telemetry.anchor().wall_at(MonoNanos::now());
            ProfileFile::new(dir, "coldpathd", now)
        });
        Rc::new(Self {
            services,
            family: Family::default(),
            slot: RefCell::new(Slot::Empty),
            alive: RefCell::default(),
            profiles: RefCell::new(profiles),
            ending: RefCell::default(),
            stopping: Cell::new(false),
        })
    }

    /// Whether an agent is connected now.
    pub(crate) fn is_live(&self) -> bool {
        matches!(&*self.slot.borrow(), Slot::Live(channel) if channel.is_live())
    }

    /// Whether the next request would start an agent.
    pub(crate) fn is_absent(&self) -> bool {
        match &*self.slot.borrow() {
            Slot::Empty => true,
            Slot::Starting(_) => false,
            Slot::Live(channel) => !channel.is_live(),
        }
    }

    /// Takes a place in line. Spans of a start-up that this begins stand under `parent`.
    pub(crate) fn ensure(self: &Rc<Self>, parent: Option<SpanContext>) -> Ticket {
        if self.stopping.get() {
            return Ticket {
                path: ChannelPath::Reused,
                wait: Wait::Ready(Err(ChannelError::Stopping.into())),
            };
        }
        let mut slot = self.slot.borrow_mut();
        match &*slot {
            Slot::Live(channel) if channel.is_live() => Ticket {
                path: ChannelPath::Reused,
                wait: Wait::Ready(Ok(Rc::clone(channel))),
            },
            // A flight whose task is gone (it panicked) will never land.
            Slot::Starting(flight) if flight.has_changed().is_ok() => Ticket {
                path: ChannelPath::Joined,
                wait: Wait::Flight(flight.clone()),
            },
            Slot::Empty | Slot::Live(_) | Slot::Starting(_) => {
                let (announce, flight) = watch::channel(None);
                *slot = Slot::Starting(flight.clone());
                let channels = Rc::clone(self);
                tokio::task::spawn_local(async move {
                    let outcome = channels.start(parent).await;
                    let (outcome, record) = match outcome {
                        Ok((channel, record)) => (Ok(channel), record),
                        Err(error) => (Err(error), None),
                    };
                    *channels.slot.borrow_mut() = match &outcome {
                        Ok(channel) => Slot::Live(Rc::clone(channel)),
                        Err(_) => Slot::Empty,
                    };
                    announce.send_replace(Some(outcome));
                    // Behind those who waited: a file is nothing to wait for.
                    tokio::task::yield_now().await;
                    channels.keep(record);
                });
                Ticket {
                    path: ChannelPath::SpawnedOnRequest,
                    wait: Wait::Flight(flight),
                }
            }
        }
    }

    fn keep(&self, record: Option<ProfileRecord>) {
        if let (Some(record), Some(file)) = (record, self.profiles.borrow_mut().as_mut()) {
            file.append(&record);
        }
    }

    async fn start(
        self: &Rc<Self>,
        parent: Option<SpanContext>,
    ) -> Result<(Rc<Channel>, Option<ProfileRecord>), Failure> {
        let config = &self.services.config;
        let id = uuid::random();
        let begun = MonoNanos::now();
        let deadline = begun.after(config.initialize_timeout);
        let mut stage = self
            .services
            .telemetry
            .stage_at(spans::CHANNEL_SPAWN, parent.as_ref(), begun)
            .with_sched();
        self.describe(&mut stage, &id);
        if fault::reached(spans::CHANNEL_SPAWN) {
            std::future::pending::<()>().await;
        }
        hold_up(spans::CHANNEL_SPAWN).await;
        // A stop may have come since the place in line was given: it ended what it
        // saw, and an agent that is started now would be nobody's.
        let spawned = if self.stopping.get() {
            Err(ChannelError::Stopping)
        } else {
            self.spawn(&id, &stage)
        };
        let (channel, spawned) = match spawned {
            Ok(started) => started,
            Err(error) => return Err(failed(error, id, stage)),
        };
        stage.end();
        let mut stage = self
            .services
            .telemetry
            .stage(spans::CHANNEL_INITIALIZE, parent.as_ref())
            .with_sched();
        self.describe(&mut stage, &id);
        match self
            .initialize(&channel, &mut stage, spawned, deadline)
            .await
        {
            Ok(record) => {
                channel.set_initialize_context(stage.context());
                stage.end();
                Ok((channel, record))
            }
            Err(error) => {
                channel.kill();
                // What the agent did when it was ended is not its failure.
                let stopping = self.stopping.get();
                let error = if stopping {
                    ChannelError::Stopping
                } else {
                    error
                };
                Err(failed(error, id, stage))
            }
        }
    }

    fn describe(&self, stage: &mut Stage, id: &str) {
        stage.set(keys::CHANNEL_ID, id.to_owned());
        stage.set(
            keys::AGENT_EMBEDDED,
            self.services.config.agent.is_embedded(),
        );
    }

    /// Starts the process and watches it; what it leaves is the watcher's business.
    fn spawn(
        self: &Rc<Self>,
        id: &str,
        stage: &Stage,
    ) -> Result<(Rc<Channel>, MonoNanos), ChannelError> {
        let config = &self.services.config;
        let program = config
            .agent
            .locate(&config.workspace)
            .map_err(ChannelError::Spawn)?;
        let stamp = SpawnStamp::now(self.services.telemetry.anchor());
        let variables = self.variables(id, stage, stamp);
        let order = SpawnOrder {
            program: &program,
            arguments: config.agent.arguments(),
            workspace: &config.workspace,
            variables: &variables,
        };
        let spawn_error =
            |error: std::io::Error| ChannelError::Spawn(format!("{}: {error}", program.display()));
        let (process, pipes) = AgentProcess::spawn(&order, &self.family).map_err(spawn_error)?;
        // Before anything is waited for, so that a daemon that is killed has noted it;
        // the agent is busy with its own start meanwhile.
        self.note(&process, id);
        let token = config.access.token.clone();
        let channel = Channel::connect(id.to_owned(), Rc::clone(&process), pipes, token);
        let watched = Rc::clone(&process);
        tokio::task::spawn_local(async move { watched.watch().await });
        let channel = channel
            .inspect_err(|_| process.kill())
            .map_err(spawn_error)?;
        self.alive.borrow_mut().push(Rc::clone(&channel));
        tokio::task::spawn_local(Rc::clone(self).attend(Rc::clone(&channel), process));
        Ok((channel, stamp.spawned))
    }

    /// Notes a started agent in the state file.
    fn note(&self, process: &AgentProcess, channel: &str) {
        if let Some(identity) = process.identity()
            && let Err(error) = self.services.store.record(identity, channel)
        {
            crate::log::warn(&format!(
                "cannot note agent {} in the state directory: {error}",
                process.pid().as_raw_nonzero()
            ));
        }
    }

    /// Keeps order while an agent lives: zombies, and the slot when it ends.
    async fn attend(self: Rc<Self>, channel: Rc<Channel>, process: Rc<AgentProcess>) {
        let exit = loop {
            match tokio::time::timeout(REAP_EVERY, process.ended()).await {
                Ok(exit) => break exit,
                Err(_) => self.family.reap_zombies(),
            }
        };
        channel.kill();
        self.alive
            .borrow_mut()
            .retain(|alive| !Rc::ptr_eq(alive, &channel));
        self.forget_ended();
        let mut slot = self.slot.borrow_mut();
        if matches!(&*slot, Slot::Live(live) if Rc::ptr_eq(live, &channel)) {
            *slot = Slot::Empty;
        }
        if !self.stopping.get() {
            crate::log::warn(&format!("the agent ended ({exit})"));
        }
    }

    /// Changes to the agent's environment: never this daemon's token, and the
    /// trace context of its own spawn or none.
    fn variables(
        &self,
        id: &str,
        stage: &Stage,
        stamp: SpawnStamp,
    ) -> Vec<(&'static str, Option<OsString>)> {
        let config = &self.services.config;
        let traced = self.services.telemetry.is_on();
        let dir = config
            .trace_dir
            .as_ref()
            .filter(|_| traced)
            .and_then(|dir| std::path::absolute(dir).ok());
        vec![
            (crate::config::TOKEN_VAR, None),
            (vars::CHANNEL, Some(id.into())),
            (vars::TRACEPARENT, stage.traceparent().map(OsString::from)),
            (vars::TRACESTATE, stage.tracestate().map(OsString::from)),
            (vars::TRACE_DIR, dir.map(OsString::from)),
            (
                vars::OTLP_ENDPOINT,
                config
                    .otlp_endpoint
                    .as_ref()
                    .filter(|_| traced)
                    .map(|endpoint| endpoint.to_string().into()),
            ),
            (
                vars::CHROME,
                config
                    .chrome
                    .as_ref()
                    .filter(|_| traced)
                    .and_then(|file| std::path::absolute(file).ok())
                    .map(OsString::from),
            ),
            (vars::SPAWN, traced.then(|| stamp.to_string().into())),
        ]
    }

    async fn initialize(
        &self,
        channel: &Channel,
        stage: &mut Stage,
        spawned: MonoNanos,
        deadline: MonoNanos,
    ) -> Result<Option<ProfileRecord>, ChannelError> {
        let config = &self.services.config;
        stage.set(keys::AGENT_COMMAND, config.agent.program().into_owned());
        if fault::reached(spans::CHANNEL_INITIALIZE) {
            std::future::pending::<()>().await;
        }
        hold_up(spans::CHANNEL_INITIALIZE).await;
        let request = handshake::request(stage);
        let result = channel
            .call("initialize", &request, deadline, config.initialize_timeout)
            .await?;
        let received = MonoNanos::now();
        let meta = handshake::read(&result)?;
        if !self.services.telemetry.is_on() {
            return Ok(None);
        }
        let exchange = Exchange {
            spawned,
            received,
            spawned_at: self.services.telemetry.anchor().wall_at(spawned),
        };
        let record = handover::read(&meta).map(|profile| {
            let mut record = handshake::note_profile(&profile, exchange, stage);
            record.channel_id = Some(channel.id().to_owned());
            if let Some(context) = stage.context() {
                record.trace_id = Some(context.trace_id().to_string());
                record.span_id = Some(context.span_id().to_string());
            }
            record
        });
        Ok(record)
    }

    /// Ends what an earlier daemon left, beside everything else.
    pub(crate) fn end_survivors(self: &Rc<Self>) {
        if !self.services.survivors.is_empty() {
            let channels = Rc::clone(self);
            let task = async move { end_survivors(&channels.services.survivors).await };
            *self.ending.borrow_mut() = Some(tokio::task::spawn_local(task));
        }
    }

    /// Ends every agent; no new one is started. Bounded by the graces of a process.
    pub(crate) async fn stop(&self) {
        self.stopping.set(true);
        let alive: Vec<_> = self.alive.borrow().clone();
        // All at once: the graces of one must not be added to those of another.
        let stops: Vec<_> = alive
            .into_iter()
            .map(|channel| tokio::task::spawn_local(async move { channel.stop().await }))
            .collect();
        for stop in stops {
            // It only fails by a panic, which is told elsewhere.
            let _ = stop.await;
        }
        let ending = self.ending.borrow_mut().take();
        if let Some(ending) = ending {
            // It only fails by a panic, which is told elsewhere.
            let _ = ending.await;
        }
        self.forget_ended();
    }

    /// Ends every agent and what it leaves at once. Bounded by the time that a kill takes.
    pub(crate) async fn kill(&self) {
        self.stopping.set(true);
        let ended = async {
            while !self.alive.borrow().is_empty() {
                for channel in self.alive.borrow().iter() {
                    channel.kill();
                }
                // An agent that is gone has left its orphans to this process.
                self.family.kill_orphans().await;
                tokio::task::yield_now().await;
            }
        };
        let _ = tokio::time::timeout(KILL_GRACE, ended).await;
        kill_survivors(&self.services.survivors).await;
        self.forget_ended();
    }

    /// Empties the state file when it names nobody who may still run.
    fn forget_ended(&self) {
        let survivors = &self.services.survivors;
        if self.alive.borrow().is_empty() && !survivors.iter().any(ProcessIdentity::is_running) {
            self.services.store.clear();
        }
    }
}

/// Tells why an attempt failed, on its span, to people, and to those who wait.
fn failed(error: ChannelError, id: String, mut stage: Stage) -> Failure {
    stage.fail(error.code(), error.to_string());
    let span = stage.context();
    stage.end();
    if error != ChannelError::Stopping {
        crate::log::warn(&error.to_string());
    }
    let attempt = Attempt {
        channel_id: id,
        span,
    };
    Failure {
        error,
        attempt: Some(attempt),
    }
}
