//! The agent's trace: what the environment says about it, and opening it.
//!
//! What is cheap and must be known at once (the spawn stamp) is read at start-up;
//! the file, the provider and the writer thread cost 0.12 ms and come when no
//! request waits. Nothing here fails a request.

use crate::diagnostics::Diagnostics;
use crate::startup::Startup;
use coldpath_trace_format::attributes as keys;
use coldpath_trace_format::emit::collector::Endpoint;
use coldpath_trace_format::emit::live::{LiveConfig, LiveView, agent_path};
use coldpath_trace_format::emit::profile_file::ProfileFile;
use coldpath_trace_format::emit::{
    Anchor, MonoNanos, ProcessStart, SpanContext, SpawnEnv, SpawnStamp, Telemetry, TelemetryConfig,
    TelemetryError, remote_context, uuid,
};
use coldpath_trace_format::env;
use coldpath_trace_format::traceparent::TraceParent;
use serde_json::{Map, Value};
use std::path::PathBuf;

/// `service.name`, and the first part of the files' names.
const SERVICE: &str = "coldpath-agent";

/// A trace context that was handed over.
#[derive(Clone, Debug)]
pub(crate) enum Handed {
    /// None.
    Absent,
    /// A valid one.
    Valid(SpanContext),
    /// One that breaks the W3C standard; counted and otherwise ignored.
    Invalid,
}

impl Handed {
    /// Judges a `traceparent` with its `tracestate`.
    fn judge(traceparent: Option<&str>, tracestate: Option<&str>) -> Self {
        match traceparent.map(TraceParent::parse) {
            None => Self::Absent,
            Some(Ok(parent)) => Self::Valid(remote_context(&parent, tracestate)),
            Some(Err(_)) => Self::Invalid,
        }
    }

    /// The context at the root of an ACP `_meta`.
    pub(crate) fn from_meta(meta: &Map<String, Value>) -> Self {
        let text = |key| meta.get(key).and_then(Value::as_str);
        match meta.get(keys::META_TRACEPARENT) {
            None | Some(Value::Null) => Self::Absent,
            Some(Value::String(parent)) => Self::judge(Some(parent), text(keys::META_TRACESTATE)),
            Some(_) => Self::Invalid,
        }
    }

    fn from_env() -> Self {
        match std::env::var_os(env::TRACEPARENT) {
            None => Self::Absent,
            Some(value) => match value.to_str() {
                None => Self::Invalid,
                Some(parent) => {
                    let state = std::env::var(env::TRACESTATE).ok();
                    Self::judge(Some(parent), state.as_deref())
                }
            },
        }
    }

    /// 1 for a context that was refused.
    pub(crate) fn rejected(&self) -> u32 {
        u32::from(matches!(self, Self::Invalid))
    }

    /// The context, where there is a valid one.
    pub(crate) fn into_context(self) -> Option<SpanContext> {
        match self {
            Self::Valid(context) => Some(context),
            Self::Absent | Self::Invalid => None,
        }
    }
}

/// Where the environment wants traces; an empty value is none.
pub(crate) fn dir_from_env() -> Option<PathBuf> {
    std::env::var_os(env::TRACE_DIR)
        .filter(|dir| !dir.is_empty())
        .map(PathBuf::from)
}

/// Everything that opening a trace needs to know.
#[derive(Debug)]
pub(crate) struct TraceSetup {
    dir: Option<PathBuf>,
    /// File of the live view, where the command line names one.
    chrome: Option<PathBuf>,
    spawn: SpawnEnv,
}

impl TraceSetup {
    /// Reads the spawn stamp as a process whose clock reads `main`, to trace into
    /// `dir`.
    pub(crate) fn from_env(dir: Option<PathBuf>, main: MonoNanos) -> Self {
        Self {
            dir,
            chrome: None,
            spawn: SpawnStamp::from_env(main),
        }
    }

    /// Traces into `dir`, whatever the environment says.
    pub(crate) fn set_dir(&mut self, dir: PathBuf) {
        self.dir = Some(dir);
    }

    /// Shows it live beside `file`, whatever the environment says.
    pub(crate) fn set_chrome(&mut self, file: PathBuf) {
        self.chrome = Some(file);
    }

    /// Whether a trace is wanted.
    pub(crate) fn is_on(&self) -> bool {
        self.dir.is_some()
    }

    /// The spawn stamp, where it is believed.
    pub(crate) fn stamp(&self) -> Option<SpawnStamp> {
        match self.spawn {
            SpawnEnv::Accepted(stamp) => Some(stamp),
            SpawnEnv::Absent | SpawnEnv::Rejected(_) => None,
        }
    }

    /// Opens the trace. `handed` is the context of the initialize request, beside
    /// which the environment's does not count.
    ///
    /// # Errors
    /// The directory cannot be written or the writer not started.
    pub(crate) fn open(
        &self,
        handed: Handed,
        diagnostics: &mut Diagnostics,
    ) -> Result<Trace, TelemetryError> {
        let dir = self.dir.clone().unwrap_or_default();
        let from_env = Handed::from_env();
        let stamp_rejected = matches!(self.spawn, SpawnEnv::Rejected(_));
        let anchor = self.stamp().map_or_else(Anchor::take, |stamp| stamp.anchor);
        let live = live_view(self.chrome.clone(), anchor, diagnostics);
        let config = TelemetryConfig {
            service: SERVICE,
            version: env!("CARGO_PKG_VERSION"),
            instance_id: uuid::random(),
            trace_dir: dir.clone(),
            anchor,
            process_start: match self.stamp() {
                Some(_) => ProcessStart::Spawn,
                None => ProcessStart::Main,
            },
            // Checked by the daemon; started by hand with a bad one, there is none.
            collector: std::env::var(env::OTLP_ENDPOINT)
                .ok()
                .and_then(|text| Endpoint::parse(&text).ok()),
            rejected_contexts: handed.rejected() + from_env.rejected() + u32::from(stamp_rejected),
        };
        let telemetry = Telemetry::open_with_view(&config, live)?;
        let now = anchor.wall_at(MonoNanos::now());
        Ok(Trace {
            telemetry,
            profiles: ProfileFile::new(dir, SERVICE, now),
            parent: handed.into_context().or_else(|| from_env.into_context()),
        })
    }
}

/// Begins the live view beside `file`, else beside the one that the environment
/// names, where it can be written.
fn live_view(
    file: Option<PathBuf>,
    anchor: Anchor,
    diagnostics: &mut Diagnostics,
) -> Option<LiveView> {
    let in_env = || std::env::var_os(env::CHROME).filter(|file| !file.is_empty());
    let file = file.or_else(|| in_env().map(PathBuf::from))?;
    let path = agent_path(&file, std::process::id());
    let view = LiveView::open(&LiveConfig {
        path: &path,
        service: SERVICE,
        anchor,
        precedes: "agent.startup and its phases, and a session that began before this",
    });
    view.inspect_err(|error| {
        let path = path.display();
        diagnostics.warn(&format!("cannot write the live view to {path}: {error}"));
    })
    .ok()
}

/// An open trace.
#[derive(Debug)]
pub(crate) struct Trace {
    /// Makes the spans.
    pub(crate) telemetry: Telemetry,
    /// Takes the session profiles.
    pub(crate) profiles: ProfileFile,
    /// Parent of the start-up.
    pub(crate) parent: Option<SpanContext>,
}

/// How far the trace is.
#[derive(Debug)]
pub(crate) enum Tracing {
    /// None is wanted, or it could not be opened.
    Off,
    /// Wanted, and opened when that delays nobody; with the context of the
    /// initialize request, once it came.
    Pending(TraceSetup, Handed),
    /// Open.
    Open(Trace),
}

impl Tracing {
    /// A trace that is not opened yet.
    pub(crate) fn new(setup: TraceSetup) -> Self {
        if setup.is_on() {
            Self::Pending(setup, Handed::Absent)
        } else {
            Self::Off
        }
    }

    /// Whether what happens has to be recorded.
    pub(crate) const fn is_wanted(&self) -> bool {
        !matches!(self, Self::Off)
    }

    /// Whether it still has to be opened.
    pub(crate) const fn is_pending(&self) -> bool {
        matches!(self, Self::Pending(..))
    }

    /// Takes the context of the initialize request.
    pub(crate) fn set_parent(&mut self, context: Handed) {
        if let Self::Pending(_, handed) = self {
            *handed = context;
        }
    }

    /// Opens a pending trace and writes the start-up; `failure` says why that did
    /// not come to its end. Gives the trace, unless there is none.
    pub(crate) fn open(
        &mut self,
        startup: &Startup,
        failure: Option<&'static str>,
        diagnostics: &mut Diagnostics,
    ) -> Option<&mut Trace> {
        if let Self::Pending(setup, handed) = self {
            *self = match setup.open(handed.clone(), diagnostics) {
                Ok(trace) => {
                    startup.emit(&trace.telemetry, trace.parent.as_ref(), failure);
                    Self::Open(trace)
                }
                Err(error) => {
                    diagnostics.warn(&format!("{error}; nothing is traced"));
                    Self::Off
                }
            };
        }
        match self {
            Self::Open(trace) => Some(trace),
            Self::Off | Self::Pending(..) => None,
        }
    }

    /// Writes what is queued and the last line. Bounded.
    pub(crate) fn close(&self, diagnostics: &mut Diagnostics) {
        let Self::Open(trace) = self else {
            return;
        };
        let closed = trace.telemetry.close();
        if !closed.final_line {
            diagnostics.warn("the trace's last line could not be written in time");
        }
        if let Some(problem) = closed.live.and_then(|live| live.problem()) {
            diagnostics.warn(problem);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[track_caller]
    fn check(meta: &Value, expected: &str) {
        let handed = Handed::from_meta(meta.as_object().unwrap());
        let rejected = handed.rejected();
        let text = match handed.into_context() {
            Some(context) => format!(
                "{} {} {}",
                context.trace_id(),
                context.span_id(),
                context.trace_state().header()
            ),
            None => format!("none, {rejected} rejected"),
        };
        assert_eq!(text, expected, "{meta}");
    }

    #[test]
    fn the_context_of_meta_is_taken_when_it_is_valid() {
        let ids = "4bf92f3577b34da6a3ce929d0e0e4736 00f067aa0ba902b7";
        check(&json!({ "traceparent": PARENT }), &format!("{ids} "));
        check(
            &json!({"traceparent": PARENT, "tracestate": "a=1"}),
            &format!("{ids} a=1"),
        );
        check(
            &json!({"traceparent": PARENT, "tracestate": "= ="}),
            &format!("{ids} "),
        );
    }

    #[test]
    fn an_invalid_context_is_counted_and_an_absent_one_is_not() {
        check(&json!({}), "none, 0 rejected");
        check(&json!({"traceparent": null}), "none, 0 rejected");
        check(&json!({"traceparent": 5}), "none, 1 rejected");
        check(
            &json!({"traceparent": PARENT.to_uppercase()}),
            "none, 1 rejected",
        );
        check(&json!({"traceparent": ""}), "none, 1 rejected");
    }
}
