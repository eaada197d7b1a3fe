//! One `session/new`, cut into stages.
//!
//! [`Stages`] names each step, gives it a span under `agent.session_start` and a
//! phase in the session's profile from the same two readings of the clock. With
//! tracing off it reads no clock and keeps nothing.

use crate::edges::{Edge, EdgeClock, millis};
use crate::git::Head;
use crate::startup::set_sched;
use crate::trace::{Handed, Trace};
use coldpath_acp::message::RpcError;
use coldpath_trace_format::attributes as keys;
use coldpath_trace_format::emit::{SpanContext, Stage, Telemetry};
use coldpath_trace_format::profile::{PhaseList, ProfileKind, ProfileRecord};
use coldpath_trace_format::spans;

/// The stages of one `session/new`, in order; the value is the span's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionStage {
    /// The line read as a request.
    Parse,
    /// Working directory checked and its links resolved.
    Validate,
    /// Branch and commit read from `.git`.
    GitHead,
    /// Instruction files searched and read.
    Instructions,
    /// Id made, tools chosen, session kept.
    Register,
    /// Response built and serialised.
    Response,
}

impl SessionStage {
    const fn span_name(self) -> &'static str {
        match self {
            Self::Parse => "agent.session.parse",
            Self::Validate => "agent.session.validate",
            Self::GitHead => "agent.session.git_head",
            Self::Instructions => "agent.session.instructions",
            Self::Register => "agent.session.register",
            Self::Response => "agent.session.response",
        }
    }

    fn name(self) -> &'static str {
        self.span_name()
            .strip_prefix(spans::AGENT_SESSION_PREFIX)
            .unwrap_or_default()
    }
}

/// Times the stages of one `session/new`; empty when nothing is traced.
pub(crate) struct Stages<'a> {
    live: Option<Live<'a>>,
}

struct Live<'a> {
    clock: &'a EdgeClock,
    telemetry: &'a Telemetry,
    whole: Stage,
    context: Option<SpanContext>,
    start: Edge,
    last: Edge,
    current: Option<(SessionStage, Stage)>,
    phases: PhaseList,
}

impl<'a> Stages<'a> {
    /// Begins at `read`, when the line was there; `None` when nothing is traced.
    pub(crate) fn begin(
        trace: &'a Trace,
        clock: &'a EdgeClock,
        read: Option<Edge>,
        handed: Handed,
    ) -> Self {
        let Some(read) = read.filter(|_| trace.telemetry.is_on()) else {
            return Self { live: None };
        };
        let rejected = handed.rejected();
        let parent = handed.into_context();
        let telemetry = &trace.telemetry;
        let mut whole = telemetry.stage_at(spans::AGENT_SESSION_START, parent.as_ref(), read.at);
        if rejected > 0 {
            whole.set(keys::CONTEXT_REJECTED, i64::from(rejected));
        }
        let mut live = Live {
            clock,
            telemetry,
            context: whole.context(),
            whole,
            start: read,
            last: read,
            current: None,
            phases: PhaseList::new(),
        };
        // The line is read as a request before it is known whose parent it names.
        live.open(SessionStage::Parse);
        Self { live: Some(live) }
    }

    /// Ends the stage before, and begins this one.
    pub(crate) fn enter(&mut self, stage: SessionStage) {
        if let Some(live) = &mut self.live {
            live.close();
            live.open(stage);
        }
    }

    /// Notes what is checked out, as attributes of the whole session start.
    pub(crate) fn set_head(&mut self, head: Option<&Head>) {
        if let (Some(live), Some(head)) = (&mut self.live, head) {
            for (key, value) in [
                (keys::VCS_BRANCH, &head.branch),
                (keys::VCS_COMMIT, &head.commit),
            ] {
                if let Some(value) = value {
                    live.whole.set(key, value.clone());
                }
            }
        }
    }

    /// Ends all of it in success; the record to append, `None` when off.
    pub(crate) fn finish(self, session_id: &str) -> Option<ProfileRecord> {
        let mut live = self.live?;
        live.close();
        live.whole.set(keys::SESSION_ID, session_id.to_owned());
        let mut record = live.record();
        record.session_id = Some(session_id.to_owned());
        set_sched(&mut live.whole, &live.start, &live.last);
        live.whole.end_at(live.last.at);
        Some(record)
    }

    /// Ends all of it in error; the record of the stages that ran, `None` when off.
    pub(crate) fn fail(self, error: &RpcError) -> Option<ProfileRecord> {
        let mut live = self.live?;
        if let Some((_, stage)) = &mut live.current {
            stage.fail("invalid_params", error.message.clone());
        }
        live.close();
        let mut record = live.record();
        record.complete = false;
        set_sched(&mut live.whole, &live.start, &live.last);
        live.whole.fail("invalid_params", error.message.clone());
        live.whole.end_at(live.last.at);
        Some(record)
    }
}

impl Live<'_> {
    fn open(&mut self, stage: SessionStage) {
        let span = self
            .telemetry
            .stage_at(stage.span_name(), self.context.as_ref(), self.last.at);
        self.current = Some((stage, span));
    }

    fn close(&mut self) {
        let now = self.clock.edge();
        if let Some((stage, mut span)) = self.current.take() {
            let from = self.last;
            let start = millis(from.at.since(self.start.at));
            self.phases
                .push(stage.name(), Some(start), millis(now.at.since(from.at)));
            set_sched(&mut span, &from, &now);
            span.end_at(now.at);
        }
        self.last = now;
    }

    fn record(&self) -> ProfileRecord {
        let start = self.telemetry.anchor().wall_at(self.start.at);
        let total_ms = millis(self.last.at.since(self.start.at));
        let mut record = ProfileRecord::new(
            ProfileKind::SessionStart,
            start.as_unix_nanos(),
            total_ms,
            &self.phases,
        );
        if let Some(context) = &self.context {
            record.trace_id = Some(context.trace_id().to_string());
            record.span_id = Some(context.span_id().to_string());
        }
        record
    }
}
