//! `Stage`: the one way to instrument a step.
//!
//! A stage opens an OpenTelemetry span with explicit times from the clock module
//! and, where there is a live view, a `tracing` span of the same name. Made by
//! [`super::Telemetry`]; off, it is empty and costs a branch.

use super::clock::{Anchor, MonoNanos};
use super::sched::SchedSample;
use super::telemetry::Inner;
use crate::attributes as keys;
use crate::traceparent::TraceParent;
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _,
    TraceFlags, TraceId, TraceState, Tracer as _,
};
use opentelemetry::{Context, KeyValue, Value};
use std::borrow::Cow;
use std::str::FromStr as _;
use std::sync::Arc;

pub use opentelemetry::trace::SpanKind as StageKind;

/// A step that is being timed. Ended by [`Stage::end`]; dropped before that, it
/// ends there with an error that says so.
#[derive(Debug, Default)]
pub struct Stage {
    live: Option<Live>,
}

#[derive(Debug)]
struct Live {
    telemetry: Arc<Inner>,
    span: opentelemetry_sdk::trace::Span,
    tracing: tracing::Span,
    anchor: Anchor,
    before: Option<SchedSample>,
    /// Given to the span at its end.
    attributes: Vec<KeyValue>,
    /// Why the step failed.
    failure: Option<Cow<'static, str>>,
}

/// Span context of a remote parent; `tracestate` is dropped when it is invalid,
/// as the standard asks.
#[must_use]
pub fn remote_context(parent: &TraceParent, tracestate: Option<&str>) -> SpanContext {
    let state = tracestate
        .and_then(|text| TraceState::from_str(text).ok())
        .unwrap_or_default();
    SpanContext::new(
        TraceId::from_bytes(parent.trace_id()),
        SpanId::from_bytes(parent.span_id()),
        TraceFlags::new(parent.flags()),
        true,
        state,
    )
}

impl Stage {
    /// A stage that records nothing.
    #[must_use]
    pub const fn off() -> Self {
        Self { live: None }
    }

    pub(super) fn start(
        telemetry: &Arc<Inner>,
        name: Cow<'static, str>,
        parent: Option<&SpanContext>,
        start: MonoNanos,
        kind: SpanKind,
    ) -> Self {
        let anchor = telemetry.anchor();
        let context = match parent {
            Some(parent) => Context::new().with_remote_span_context(parent.clone()),
            None => Context::new(),
        };
        let shown = telemetry.live.as_ref().map(|live| (live, name.clone()));
        let builder = SpanBuilder::from_name(name)
            .with_kind(kind)
            .with_start_time(anchor.wall_at(start).to_system_time());
        let span = telemetry.tracer.build_with_context(builder, &context);
        let tracing = shown.map_or_else(tracing::Span::none, |(live, name)| {
            live.span(&name, span.span_context(), parent, start)
        });
        Self {
            live: Some(Live {
                telemetry: Arc::clone(telemetry),
                span,
                tracing,
                anchor,
                before: None,
                attributes: Vec::new(),
                failure: None,
            }),
        }
    }

    /// Takes the scheduler and I/O figures of this thread at both edges. Nothing
    /// is taken on a thread that is not attached.
    #[must_use]
    pub fn with_sched(mut self) -> Self {
        if let Some(live) = &mut self.live {
            live.before = live
                .telemetry
                .probe()
                .and_then(super::sched::SchedProbe::read);
        }
        self
    }

    /// Like [`Stage::with_sched`] for a stage that began with its thread: the
    /// figures of the thread count from zero, those of the process from now.
    #[must_use]
    pub fn with_sched_from_thread_start(mut self) -> Self {
        if let Some(live) = &mut self.live {
            let now = live
                .telemetry
                .probe()
                .and_then(super::sched::SchedProbe::read);
            live.before = now.map(|now| SchedSample {
                cpu_ns: 0,
                runq_ns: now.runq_ns.map(|_| 0),
                ..now
            });
        }
        self
    }

    /// Sets the scheduler and I/O figures from two readings of one thread's probe,
    /// for a stage whose edges were read before telemetry existed. A figure that
    /// either reading lacks is left out.
    pub fn set_sched(&mut self, before: &SchedSample, after: &SchedSample) {
        if let Some(live) = &mut self.live {
            live.set_sched(before, after);
        }
    }

    /// The span's context, for children and links; `None` when off.
    #[must_use]
    pub fn context(&self) -> Option<SpanContext> {
        self.live
            .as_ref()
            .map(|live| live.span.span_context().clone())
    }

    /// `traceparent` of the span, for another process; `None` when off.
    #[must_use]
    pub fn traceparent(&self) -> Option<String> {
        let context = self.context()?;
        TraceParent::from_parts(
            context.trace_id().to_bytes(),
            context.span_id().to_bytes(),
            context.trace_flags().to_u8(),
        )
        .ok()
        .map(|parent| parent.to_string())
    }

    /// `tracestate` of the span; `None` when off or empty.
    #[must_use]
    pub fn tracestate(&self) -> Option<String> {
        let header = self.context()?.trace_state().header();
        (!header.is_empty()).then_some(header)
    }

    /// Sets an attribute; the last value of a key wins. Numbers must be finite.
    pub fn set(&mut self, key: impl Into<Cow<'static, str>>, value: impl Into<Value>) {
        if let Some(live) = &mut self.live {
            let key = match key.into() {
                Cow::Borrowed(key) => opentelemetry::Key::from_static_str(key),
                Cow::Owned(key) => opentelemetry::Key::new(key),
            };
            live.set(key, value.into());
        }
    }

    /// Links to a span that caused or explains this one and is not its parent.
    pub fn link(&mut self, context: &SpanContext) {
        if let Some(live) = &mut self.live {
            live.span.add_link(context.clone(), Vec::new());
        }
    }

    /// Adds a point in time: now.
    pub fn event(&mut self, name: &'static str) {
        if self.live.is_some() {
            self.event_at(name, MonoNanos::now());
        }
    }

    /// Adds a point in time that was read before, on the same clock.
    pub fn event_at(&mut self, name: &'static str, at: MonoNanos) {
        if let Some(live) = &mut self.live {
            let at = live.anchor.wall_at(at).to_system_time();
            live.span.add_event_with_timestamp(name, at, Vec::new());
        }
    }

    /// Marks the step as failed; it still has to end. The first failure stands:
    /// what follows from it is not its cause.
    pub fn fail(&mut self, error_type: &'static str, message: impl Into<Cow<'static, str>>) {
        if let Some(live) = &mut self.live
            && live.failure.is_none()
        {
            live.failure = Some(message.into());
            live.set(keys::ERROR_TYPE.into(), error_type.into());
        }
    }

    /// Ends the step now.
    pub fn end(mut self) {
        if let Some(live) = self.live.take() {
            live.end_at(MonoNanos::now());
        }
    }

    /// Ends the step at an instant that was read before, on the same clock.
    pub fn end_at(mut self, end: MonoNanos) {
        if let Some(live) = self.live.take() {
            live.end_at(end);
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if self.live.is_some() {
            self.fail("cancelled", "dropped before its end");
            if let Some(live) = self.live.take() {
                live.end_at(MonoNanos::now());
            }
        }
    }
}

impl Live {
    fn end_at(mut self, end: MonoNanos) {
        // First, because its clock is read when it goes.
        drop(std::mem::replace(&mut self.tracing, tracing::Span::none()));
        if let (Some(before), Some(after)) = (
            self.before,
            self.telemetry
                .probe()
                .and_then(super::sched::SchedProbe::read),
        ) {
            self.set_sched(&before, &after);
        }
        self.span
            .set_attributes(std::mem::take(&mut self.attributes));
        if let Some(failure) = self.failure.take() {
            self.span.set_status(Status::error(failure));
        }
        self.span
            .end_with_timestamp(self.anchor.wall_at(end).to_system_time());
    }

    /// The SDK would keep both values of a key that is set twice, which OTLP forbids.
    fn set(&mut self, key: opentelemetry::Key, value: Value) {
        match self.attributes.iter_mut().find(|pair| pair.key == key) {
            Some(pair) => pair.value = value,
            None => self.attributes.push(KeyValue::new(key, value)),
        }
    }

    fn set_sched(&mut self, before: &SchedSample, after: &SchedSample) {
        let mut count = |key: &'static str, before: u64, after: u64| {
            let value = i64::try_from(after.saturating_sub(before)).unwrap_or(i64::MAX);
            self.set(key.into(), value.into());
        };
        count(keys::SCHED_CPU_NS, before.cpu_ns, after.cpu_ns);
        if let (Some(before), Some(after)) = (before.runq_ns, after.runq_ns) {
            count(keys::SCHED_RUNQ_NS, before, after);
        }
        count(
            keys::IO_MAJOR_FAULTS,
            before.major_faults,
            after.major_faults,
        );
        count(keys::IO_READ_BYTES, before.read_bytes, after.read_bytes);
    }
}
