//! What happened before telemetry existed, as instants, and how it is told.

use crate::config::Config;
use crate::contract::StartupFacts;
use crate::http::Head;
use coldpath_trace_format::emit::collector::Endpoint;
use coldpath_trace_format::emit::live::{LiveConfig, LiveView};
use coldpath_trace_format::emit::{
    Anchor, MonoNanos, ProcessStart, SpanContext, SpawnEnv, SpawnStamp, Telemetry, TelemetryConfig,
    WallNanos, remote_context, uuid,
};
use coldpath_trace_format::traceparent::TraceParent;
use coldpath_trace_format::{attributes as keys, env as vars, spans};
use std::path::PathBuf;
use std::sync::OnceLock;

/// What started the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// The first answered `/health`.
    Health,
    /// An admitted request that needs it.
    Request,
    /// Nothing came in time.
    Fallback,
    /// The configuration.
    Immediate,
}

impl Trigger {
    /// Its name in traces.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Health => "health",
            Self::Request => "request",
            Self::Fallback => "fallback",
            Self::Immediate => "immediate",
        }
    }
}

/// A `/health` whose answer is not out yet.
#[derive(Clone, Debug)]
pub(crate) struct HealthRequest {
    /// The accept, when its first bytes were there by then; else when they came.
    began: MonoNanos,
    method: &'static str,
    /// The client's trace context, as it sent it.
    traceparent: Option<String>,
    tracestate: Option<String>,
}

/// The first `/health` that was answered.
#[derive(Clone, Debug)]
pub(crate) struct HealthRecord {
    request: HealthRequest,
    /// When the last byte of the answer was given to the socket.
    flushed: MonoNanos,
}

impl HealthRequest {
    /// Keeps what its span needs.
    pub(crate) fn new(head: &Head<'_>, began: MonoNanos) -> Self {
        Self {
            began,
            method: if head.method == "HEAD" { "HEAD" } else { "GET" },
            traceparent: head.traceparent.map(str::to_owned),
            tracestate: head.tracestate.map(str::to_owned),
        }
    }

    /// The same with its answer out.
    pub(crate) fn answered(self, flushed: MonoNanos) -> HealthRecord {
        HealthRecord {
            request: self,
            flushed,
        }
    }
}

impl HealthRecord {
    /// When its answer was out.
    pub(crate) fn flushed(&self) -> MonoNanos {
        self.flushed
    }

    /// Tells it as `health.first`, under the client's span or else under `boot`.
    pub(crate) fn tell(
        &self,
        telemetry: &Telemetry,
        boot: Option<&SpanContext>,
    ) -> Option<SpanContext> {
        let request = &self.request;
        let remote = parse_parent(
            request.traceparent.as_deref(),
            request.tracestate.as_deref(),
        );
        let invalid = remote.is_err();
        let parent = remote.ok().flatten().or_else(|| boot.cloned());
        let mut stage = telemetry.stage_at(spans::HEALTH_FIRST, parent.as_ref(), request.began);
        stage.set(keys::HTTP_METHOD, request.method);
        stage.set(keys::HTTP_ROUTE, "/health");
        if invalid {
            stage.event_at("traceparent.invalid", request.began);
        }
        let context = stage.context();
        stage.end_at(self.flushed);
        context
    }
}

/// The request that started the runtime, before anything could serve it.
#[derive(Clone, Debug)]
pub(crate) struct RequestRecord {
    pub(crate) arrived: MonoNanos,
    pub(crate) method: String,
    pub(crate) route: String,
    pub(crate) traceparent: Option<String>,
    pub(crate) tracestate: Option<String>,
}

impl RequestRecord {
    /// Keeps what its span needs.
    pub(crate) fn new(head: &Head<'_>, arrived: MonoNanos) -> Self {
        Self {
            arrived,
            method: head.method.to_owned(),
            route: head.route().to_owned(),
            traceparent: head.traceparent.map(str::to_owned),
            tracestate: head.tracestate.map(str::to_owned),
        }
    }
}

/// What was told of a boot, for what comes after it.
#[derive(Debug, Default)]
pub(crate) struct BootTold {
    pub(crate) telemetry: Telemetry,
    /// Context of `daemon.boot`.
    pub(crate) boot: Option<SpanContext>,
    /// Context of `health.first`, when it was over already.
    pub(crate) health: Option<SpanContext>,
}

/// Instants of one boot and what the environment said about it.
#[derive(Clone, Debug)]
pub(crate) struct BootRecord {
    pub(crate) main: MonoNanos,
    pub(crate) args_done: MonoNanos,
    pub(crate) bound: MonoNanos,
    pub(crate) health: Option<HealthRecord>,
    trace: Option<TraceRecord>,
    /// Taken when somebody first asks for calendar time.
    anchor: OnceLock<Anchor>,
}

/// What only a traced process needs.
#[derive(Clone, Debug)]
struct TraceRecord {
    dir: PathBuf,
    collector: Option<Endpoint>,
    /// File of the live view.
    chrome: Option<PathBuf>,
    spawn: SpawnEnv,
    parent: Option<SpanContext>,
    rejected: u32,
}

impl BootRecord {
    /// Begins with the first clock reading; reads the trace environment when traces are on.
    pub(crate) fn begin(main: MonoNanos, config: &Config) -> Self {
        Self {
            main,
            args_done: main,
            bound: main,
            health: None,
            trace: config
                .trace_dir
                .clone()
                .map(|dir| TraceRecord::read(dir, config, main)),
            anchor: OnceLock::new(),
        }
    }

    /// The clock anchor: the spawner's where it is believed, else this process's own.
    fn anchor(&self) -> Anchor {
        match self.stamp() {
            Some(stamp) => stamp.anchor,
            None => *self.anchor.get_or_init(Anchor::take),
        }
    }

    fn stamp(&self) -> Option<SpawnStamp> {
        match self.trace.as_ref()?.spawn {
            SpawnEnv::Accepted(stamp) => Some(stamp),
            _ => None,
        }
    }

    /// What clients read about the start-up. Time zero is the spawn where it is
    /// known, else the first clock reading of `main`.
    pub(crate) fn facts(&self) -> StartupFacts {
        let (anchor, now) = (self.anchor(), MonoNanos::now());
        let process = self.stamp().map_or(self.main, |stamp| stamp.spawned);
        StartupFacts {
            process_started_at: anchor.wall_at(process).to_iso_millis(),
            listener_ready_at: anchor.wall_at(self.bound).to_iso_millis(),
            process_to_listen: self.stamp().map(|stamp| self.bound.since(stamp.spawned)),
            main_to_listen: self.bound.since(self.main),
            uptime: now.since(process),
            // The anchor may be older than a suspend or a step of the clock.
            now: WallNanos::now().to_iso_millis(),
        }
    }

    /// Opens telemetry where it is asked for and tells the boot; off, or when the
    /// trace cannot be written, the daemon goes on without.
    pub(crate) fn open_telemetry(&self) -> BootTold {
        let Some(trace) = &self.trace else {
            return BootTold::default();
        };
        let config = TelemetryConfig {
            service: "coldpathd",
            version: crate::VERSION,
            instance_id: uuid::random(),
            trace_dir: trace.dir.clone(),
            anchor: self.anchor(),
            process_start: if self.stamp().is_some() {
                ProcessStart::Spawn
            } else {
                ProcessStart::Main
            },
            rejected_contexts: trace.rejected,
            collector: trace.collector.clone(),
        };
        match Telemetry::open_with_view(&config, self.live_view(trace)) {
            Ok(telemetry) => self.tell(telemetry, trace.parent.as_ref()),
            Err(error) => {
                crate::log::warn(&format!("{error}; going on without traces"));
                BootTold::default()
            }
        }
    }

    /// Begins the live view, where one is wanted and can be written.
    fn live_view(&self, trace: &TraceRecord) -> Option<LiveView> {
        let path = trace.chrome.as_deref()?;
        let config = LiveConfig {
            path,
            service: "coldpathd",
            anchor: self.anchor(),
            precedes: "daemon.boot and its children, health.first, runtime.start, runtime.telemetry, requests that came before this",
        };
        LiveView::open(&config)
            .inspect_err(|error| {
                let path = path.display();
                crate::log::warn(&format!("cannot write the live view to {path}: {error}"));
            })
            .ok()
    }

    /// Tells the boot as spans with their true times.
    fn tell(&self, telemetry: Telemetry, parent: Option<&SpanContext>) -> BootTold {
        let spawned = self.stamp().map(|stamp| stamp.spawned);
        let stage = telemetry.stage_at(spans::DAEMON_BOOT, parent, spawned.unwrap_or(self.main));
        let boot = stage.context();
        let child = |name, start, end| telemetry.stage_at(name, boot.as_ref(), start).end_at(end);
        if let Some(spawned) = spawned {
            child(spans::BOOT_EXEC, spawned, self.main);
        }
        child(spans::BOOT_ARGS, self.main, self.args_done);
        child(spans::BOOT_BIND, self.args_done, self.bound);
        stage.end_at(self.bound);
        let health = self
            .health
            .as_ref()
            .and_then(|health| health.tell(&telemetry, boot.as_ref()));
        BootTold {
            telemetry,
            boot,
            health,
        }
    }
}

impl TraceRecord {
    fn read(dir: PathBuf, config: &Config, main: MonoNanos) -> Self {
        let spawn = SpawnStamp::from_env(main);
        let mut rejected = 0;
        if let SpawnEnv::Rejected(reason) = spawn {
            rejected += 1;
            crate::log::warn(&format!("{} {reason}; ignored", vars::SPAWN));
        }
        let text = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let parent = parse_parent(
            text(vars::TRACEPARENT).as_deref(),
            text(vars::TRACESTATE).as_deref(),
        );
        if parent.is_err() {
            rejected += 1;
            crate::log::warn(&format!(
                "{} is not a valid trace context; ignored",
                vars::TRACEPARENT
            ));
        }
        Self {
            dir,
            collector: config.otlp_endpoint.clone(),
            chrome: config.chrome.clone(),
            spawn,
            parent: parent.ok().flatten(),
            rejected,
        }
    }
}

/// Reads a trace context that may be absent; `Err` when it is there and invalid.
pub(crate) fn parse_parent(
    traceparent: Option<&str>,
    tracestate: Option<&str>,
) -> Result<Option<SpanContext>, ()> {
    match traceparent {
        None => Ok(None),
        Some(text) => TraceParent::parse(text.trim())
            .map(|parent| Some(remote_context(&parent, tracestate)))
            .map_err(|_| ()),
    }
}
