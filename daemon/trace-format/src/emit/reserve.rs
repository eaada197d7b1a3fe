//! Span ids that are known before the span can be dated.
//!
//! Whoever times a step may have to hand the step's context to another process
//! first (`TRACEPARENT`, a header that is built ahead) and must not make spans
//! inside the timed window. The ids are reserved ahead, the instants are kept,
//! and the span is recorded afterwards under those ids.

use super::stage::Stage;
use super::telemetry::Telemetry;
use super::{MonoNanos, SpanContext};
use crate::traceparent::TraceParent;
use opentelemetry::trace::{SpanId, TraceFlags, TraceId, TraceState};
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator};
use std::borrow::Cow;
use std::cell::Cell;

thread_local! {
    /// Ids that the next span made on this thread takes; set only around its making.
    static NEXT: Cell<Option<(TraceId, SpanId)>> = const { Cell::new(None) };
}

/// The identity of a span that is recorded later, sampled, by [`ReservedSpan::record`].
#[derive(Clone, Debug)]
pub struct ReservedSpan {
    parent: Option<SpanContext>,
    context: SpanContext,
}

impl ReservedSpan {
    /// Draws ids for a span under `parent`, or for the root of a new trace.
    #[must_use]
    pub fn new(parent: Option<&SpanContext>) -> Self {
        let ids = RandomIdGenerator::default();
        let trace_id = parent.map_or_else(|| ids.new_trace_id(), SpanContext::trace_id);
        Self {
            parent: parent.cloned(),
            context: SpanContext::new(
                trace_id,
                ids.new_span_id(),
                TraceFlags::SAMPLED,
                false,
                TraceState::NONE,
            ),
        }
    }

    /// The context, for children.
    #[must_use]
    pub fn context(&self) -> &SpanContext {
        &self.context
    }

    /// `traceparent` for another process: 55 bytes.
    #[must_use]
    pub fn traceparent(&self) -> String {
        TraceParent::from_parts(
            self.context.trace_id().to_bytes(),
            self.context.span_id().to_bytes(),
            self.context.trace_flags().to_u8(),
        )
        // Random ids are all zeros once in 2^64; the receiver then ignores the text.
        .map_or_else(|_| String::new(), |parent| parent.to_string())
    }

    /// Opens the span under its reserved ids with its true start; it still has to
    /// end. Call once: a second span of the same ids is a duplicate in the trace.
    #[must_use]
    pub fn record(
        &self,
        telemetry: &Telemetry,
        name: impl Into<Cow<'static, str>>,
        start: MonoNanos,
    ) -> Stage {
        NEXT.set(Some((self.context.trace_id(), self.context.span_id())));
        let stage = telemetry.stage_at(name, self.parent.as_ref(), start);
        NEXT.set(None);
        stage
    }
}

/// Random ids, but for a span that is being recorded under reserved ones.
#[derive(Debug, Default)]
pub(super) struct Ids(RandomIdGenerator);

impl IdGenerator for Ids {
    fn new_trace_id(&self) -> TraceId {
        NEXT.get()
            .map_or_else(|| self.0.new_trace_id(), |(trace, _)| trace)
    }

    fn new_span_id(&self) -> SpanId {
        NEXT.get()
            .map_or_else(|| self.0.new_span_id(), |(_, span)| span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::{Anchor, ProcessStart, TelemetryConfig};

    #[test]
    fn a_reserved_span_is_recorded_under_its_ids_and_the_next_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let telemetry = Telemetry::open(&TelemetryConfig {
            service: "measure",
            version: "0",
            instance_id: "i".to_owned(),
            trace_dir: dir.path().to_owned(),
            anchor: Anchor::take(),
            process_start: ProcessStart::Main,
            rejected_contexts: 0,
            collector: None,
        })
        .unwrap();
        let run = ReservedSpan::new(None);
        let child = ReservedSpan::new(Some(run.context()));
        assert_eq!(child.context().trace_id(), run.context().trace_id());
        assert_ne!(child.context().span_id(), run.context().span_id());
        assert!(TraceParent::parse(&child.traceparent()).unwrap().sampled());

        let start = MonoNanos::now();
        let recorded = child.record(&telemetry, "client.health", start);
        assert_eq!(recorded.context().as_ref(), Some(child.context()));
        let recorded = run.record(&telemetry, "run", start);
        assert_eq!(recorded.context().as_ref(), Some(run.context()));
        let next = telemetry.stage("next", None);
        assert_ne!(
            next.context().map(|context| context.trace_id()),
            Some(run.context().trace_id())
        );
    }
}
