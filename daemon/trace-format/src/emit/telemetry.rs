//! One process's telemetry: provider, sampler, processor, clock anchor.
//!
//! The SDK makes the spans; the sampler and the processor are ours because
//! neither of the SDK's processors fits: the simple one writes on the caller's
//! thread, the batch one costs half a millisecond and a megabyte to start.

use super::clock::{Anchor, MonoNanos};
use super::collector::{Collector, Endpoint};
use super::file::RotatingFile;
use super::live::{LiveReport, LiveView};
use super::sched::SchedProbe;
use super::stage::Stage;
use super::writer::{SpanSender, Writer};
use crate::attributes as keys;
use crate::limits;
use opentelemetry::trace::{
    Link, SpanContext, SpanKind, TraceContextExt as _, TraceId, TraceState, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    SamplingDecision, SamplingResult, SdkTracer, SdkTracerProvider, ShouldSample, Span, SpanData,
    SpanProcessor,
};
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// What one process's trace is made of.
#[derive(Clone, Debug)]
pub struct TelemetryConfig {
    /// `service.name`, also the first part of the file's name.
    pub service: &'static str,
    /// `service.version`.
    pub version: &'static str,
    /// `service.instance.id`: a UUID of this process.
    pub instance_id: String,
    /// Where the files go; created with mode 0700 where missing.
    pub trace_dir: PathBuf,
    /// Clock anchor: the spawner's where one was handed over, else this process's.
    pub anchor: Anchor,
    /// What time zero of the process is.
    pub process_start: ProcessStart,
    /// Trace contexts and spawn stamps of the environment that were invalid.
    pub rejected_contexts: u32,
    /// Collector that gets the same lines as the file.
    pub collector: Option<Endpoint>,
}

/// What stands for the start of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessStart {
    /// The spawner's spawn instant.
    Spawn,
    /// The first clock reading of `main`; whoever spawned it said nothing.
    Main,
}

/// Why there is no telemetry; never a reason to fail a session.
#[derive(Debug)]
pub enum TelemetryError {
    /// The trace file could not be created.
    File(PathBuf, std::io::Error),
    /// The writer thread could not be started.
    Thread(std::io::Error),
}

impl std::fmt::Display for TelemetryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(dir, error) => {
                write!(f, "cannot write traces to {}: {error}", dir.display())
            }
            Self::Thread(error) => write!(f, "cannot start the trace writer: {error}"),
        }
    }
}

impl std::error::Error for TelemetryError {}

/// How a trace was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseReport {
    /// Spans that were lost to the bounded channel or to the disk.
    pub dropped_spans: u64,
    /// Whether the final line was written within the time allowed.
    pub final_line: bool,
    /// How the live view ended, where there was one.
    pub live: Option<LiveReport>,
}

/// A handle to a process's telemetry; clones share it. Off, it makes nothing.
#[derive(Clone, Debug, Default)]
pub struct Telemetry {
    inner: Option<Arc<Inner>>,
}

#[derive(Debug)]
pub(super) struct Inner {
    provider: SdkTracerProvider,
    pub(super) tracer: SdkTracer,
    writer: Writer,
    pub(super) live: Option<LiveView>,
    anchor: Mutex<Anchor>,
    probe: OnceLock<SchedProbe>,
}

impl Telemetry {
    /// No telemetry: every stage is empty, no clock is read.
    #[must_use]
    pub const fn off() -> Self {
        Self { inner: None }
    }

    /// Creates the file and starts the writer. About 0.15 ms; not for the path
    /// to the first answer.
    ///
    /// # Errors
    /// The file or the thread cannot be made; the caller goes on without.
    pub fn open(config: &TelemetryConfig) -> Result<Self, TelemetryError> {
        Self::open_with_view(config, None)
    }

    /// The same, whose stages are also shown in a live view.
    ///
    /// # Errors
    /// Those of [`Telemetry::open`].
    pub fn open_with_view(
        config: &TelemetryConfig,
        live: Option<LiveView>,
    ) -> Result<Self, TelemetryError> {
        let stem = format!(
            "{}-{}-{}",
            config.service,
            config.anchor.wall_at(MonoNanos::now()).as_unix_nanos(),
            std::process::id()
        );
        let file = RotatingFile::create(
            &config.trace_dir,
            &stem,
            ".jsonl",
            limits::TRACE_FILE_MAX_BYTES,
            limits::TRACE_FILES_KEPT,
        )
        .map_err(|error| TelemetryError::File(config.trace_dir.clone(), error))?;
        let collector = config.collector.clone().map(Collector::start).transpose();
        let collector = collector.map_err(TelemetryError::Thread)?;
        let writer =
            Writer::start(file, resource(config), collector).map_err(TelemetryError::Thread)?;
        let provider = SdkTracerProvider::builder()
            .with_sampler(RecordAlways)
            .with_id_generator(super::reserve::Ids::default())
            .with_span_processor(Queue(writer.sender()))
            .with_resource(opentelemetry_sdk::Resource::builder_empty().build())
            .build();
        let tracer = provider.tracer("coldpath");
        Ok(Self {
            inner: Some(Arc::new(Inner {
                provider,
                tracer,
                writer,
                live,
                anchor: Mutex::new(config.anchor),
                probe: OnceLock::new(),
            })),
        })
    }

    /// Whether spans are made.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.inner.is_some()
    }

    /// Starts a stage now, under `parent` or as the root of a trace.
    #[must_use]
    pub fn stage(&self, name: impl Into<Cow<'static, str>>, parent: Option<&SpanContext>) -> Stage {
        match &self.inner {
            None => Stage::off(),
            Some(inner) => Stage::start(
                inner,
                name.into(),
                parent,
                MonoNanos::now(),
                SpanKind::Internal,
            ),
        }
    }

    /// Records a stage that began at `start`, which may lie before telemetry existed.
    #[must_use]
    pub fn stage_at(
        &self,
        name: impl Into<Cow<'static, str>>,
        parent: Option<&SpanContext>,
        start: MonoNanos,
    ) -> Stage {
        match &self.inner {
            None => Stage::off(),
            Some(inner) => Stage::start(inner, name.into(), parent, start, SpanKind::Internal),
        }
    }

    /// Records a request that arrived at `start`; kind SERVER.
    #[must_use]
    pub fn server_stage_at(
        &self,
        name: impl Into<Cow<'static, str>>,
        parent: Option<&SpanContext>,
        start: MonoNanos,
    ) -> Stage {
        match &self.inner {
            None => Stage::off(),
            Some(inner) => Stage::start(inner, name.into(), parent, start, SpanKind::Server),
        }
    }

    /// Opens the scheduler figures of the calling thread, which from here on is
    /// the one whose stages carry them. The first call wins.
    pub fn attach_thread(&self) {
        if let Some(inner) = &self.inner {
            inner.probe.get_or_init(SchedProbe::open);
        }
    }

    /// The anchor that new stages are dated with; a fresh one when off.
    #[must_use]
    pub fn anchor(&self) -> Anchor {
        self.inner
            .as_ref()
            .map_or_else(Anchor::take, |inner| inner.anchor())
    }

    /// Takes a new anchor when the wall clock has moved away by more than a
    /// second (suspend, step). Call only where a new run begins: a run must not
    /// mix two anchors. Says whether it did.
    pub fn renew_drifted_anchor(&self) -> bool {
        let Some(inner) = &self.inner else {
            return false;
        };
        let drifted = inner.anchor().drift() > Duration::from_nanos(limits::ANCHOR_DRIFT_MAX_NS);
        if drifted {
            *inner.anchor.lock().unwrap_or_else(PoisonError::into_inner) = Anchor::take();
        }
        drifted
    }

    /// Writes what is queued and the final line. Spans that end later are lost.
    /// Bounded: about six seconds on a disk that does not answer.
    pub fn close(&self) -> CloseReport {
        let Some(inner) = &self.inner else {
            return CloseReport {
                dropped_spans: 0,
                final_line: false,
                live: None,
            };
        };
        // Our processor has nothing to flush; this only stops new spans.
        let _ = inner.provider.shutdown();
        let (dropped_spans, final_line) = inner.writer.close();
        CloseReport {
            dropped_spans,
            final_line,
            live: inner.live.as_ref().map(LiveView::close),
        }
    }
}

impl Inner {
    pub(super) fn anchor(&self) -> Anchor {
        *self.anchor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn probe(&self) -> Option<&SchedProbe> {
        self.probe.get()
    }
}

fn resource(config: &TelemetryConfig) -> Vec<KeyValue> {
    let process_start = match config.process_start {
        ProcessStart::Spawn => keys::PROCESS_START_SPAWN,
        ProcessStart::Main => keys::PROCESS_START_MAIN,
    };
    let mut resource = vec![
        KeyValue::new(keys::SERVICE_NAME, config.service),
        KeyValue::new(keys::SERVICE_VERSION, config.version),
        KeyValue::new(keys::SERVICE_INSTANCE_ID, config.instance_id.clone()),
        KeyValue::new(keys::PROCESS_PID, i64::from(std::process::id())),
        KeyValue::new(
            keys::PROCESS_PARENT_PID,
            i64::from(super::spawn::parent_pid()),
        ),
        KeyValue::new(
            keys::HOST_ARCH,
            if cfg!(target_arch = "x86_64") {
                "amd64"
            } else {
                std::env::consts::ARCH
            },
        ),
        KeyValue::new(keys::OS_TYPE, std::env::consts::OS),
        KeyValue::new(keys::TRACE_VERSION, crate::TRACE_VERSION),
        KeyValue::new(keys::PROCESS_START, process_start),
    ];
    if config.rejected_contexts > 0 {
        resource.push(KeyValue::new(
            keys::CONTEXT_REJECTED,
            i64::from(config.rejected_contexts),
        ));
    }
    resource
}

/// Records every span and hands the parent's `sampled` flag on: an unsampled
/// parent means that others need not record, not that we do not.
#[derive(Clone, Debug)]
struct RecordAlways;

impl ShouldSample for RecordAlways {
    fn should_sample(
        &self,
        parent: Option<&Context>,
        _trace_id: TraceId,
        _name: &str,
        _kind: &SpanKind,
        _attributes: &[KeyValue],
        _links: &[Link],
    ) -> SamplingResult {
        let parent = parent
            .map(|context| context.span().span_context().clone())
            .filter(SpanContext::is_valid);
        SamplingResult {
            decision: match &parent {
                Some(parent) if !parent.is_sampled() => SamplingDecision::RecordOnly,
                _ => SamplingDecision::RecordAndSample,
            },
            attributes: Vec::new(),
            trace_state: parent.map_or(TraceState::NONE, |parent| parent.trace_state().clone()),
        }
    }
}

/// Hands ended spans to the writer, sampled or not.
#[derive(Debug)]
struct Queue(SpanSender);

impl SpanProcessor for Queue {
    fn on_start(&self, _span: &mut Span, _context: &Context) {}

    fn on_end(&self, span: SpanData) {
        self.0.send(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }
}
