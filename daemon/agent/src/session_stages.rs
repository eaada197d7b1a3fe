//! One `session/new`, cut into stages.
//!
//! [`Stages`] only records edges, so that a session costs the same whether its
//! trace is open already or not; [`SessionStart`] makes the spans and the profile
//! of the same edges once the answer is written. With tracing off nothing is
//! recorded and no clock is read.

use crate::edges::{Edge, EdgeClock, millis};
use crate::git::Head;
use crate::startup::set_sched;
use crate::trace::{Handed, Trace};
use coldpath_acp::message::RpcError;
use coldpath_trace_format::attributes as keys;
use coldpath_trace_format::emit::{SpanContext, Stage, Telemetry, WallNanos, inject};
use coldpath_trace_format::profile::{PhaseList, ProfileKind, ProfileRecord};
use coldpath_trace_format::spans;

/// `error.type` of a session that was not opened.
const REFUSED: &str = "refused";

/// The stages of one `session/new`, in order.
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

/// Records the stages of one `session/new`; empty when nothing is traced.
pub(crate) struct Stages<'a> {
    recording: Option<(&'a EdgeClock, SessionStart)>,
}

/// A session start that is over.
#[derive(Debug)]
pub(crate) struct SessionStart {
    handed: Handed,
    start: Edge,
    current: SessionStage,
    ended: Vec<(SessionStage, Edge)>,
    head: Option<Head>,
    outcome: Outcome,
}

#[derive(Debug)]
enum Outcome {
    Opened(String),
    Refused(String),
}

impl<'a> Stages<'a> {
    /// Records nothing.
    pub(crate) const fn off() -> Self {
        Self { recording: None }
    }

    /// Begins with [`SessionStage::Parse`] at `read`, when the line was there.
    pub(crate) fn begin(clock: &'a EdgeClock, read: Edge, handed: Handed) -> Self {
        let start = SessionStart {
            handed,
            start: read,
            current: SessionStage::Parse,
            ended: Vec::with_capacity(6),
            head: None,
            outcome: Outcome::Refused(String::new()),
        };
        Self {
            recording: Some((clock, start)),
        }
    }

    /// Ends the stage before, and begins this one.
    pub(crate) fn enter(&mut self, stage: SessionStage) {
        if let Some((clock, start)) = &mut self.recording {
            inject::hold_up("", start.current.span_name());
            start.ended.push((start.current, clock.edge()));
            start.current = stage;
        }
    }

    /// Ends the last stage: the session was opened as `id` and its answer built.
    pub(crate) fn finish(self, id: &str, head: Option<&Head>) -> Option<SessionStart> {
        let mut start = self.end()?;
        start.head = head.cloned();
        start.outcome = Outcome::Opened(id.to_owned());
        Some(start)
    }

    /// Ends the stage in which the session was refused.
    pub(crate) fn fail(self, error: &RpcError) -> Option<SessionStart> {
        let mut start = self.end()?;
        start.outcome = Outcome::Refused(error.message.clone());
        Some(start)
    }

    fn end(self) -> Option<SessionStart> {
        let (clock, mut start) = self.recording?;
        inject::hold_up("", start.current.span_name());
        start.ended.push((start.current, clock.edge()));
        Some(start)
    }
}

impl SessionStart {
    /// Writes the spans, `agent.session_start` with one child a stage, and the
    /// profile. A refused session has both, in error and incomplete.
    pub(crate) fn emit(self, trace: &mut Trace) {
        let telemetry = &trace.telemetry;
        let parent = match &self.handed {
            Handed::Valid(context) => Some(context),
            Handed::Absent | Handed::Invalid => None,
        };
        let mut whole = telemetry.stage_at(spans::AGENT_SESSION_START, parent, self.start.at);
        let context = whole.context();
        self.emit_stages(telemetry, context.as_ref());
        self.describe(&mut whole);
        whole.end_at(self.end().at);
        let start = telemetry.anchor().wall_at(self.start.at);
        let mut record = self.record(start);
        if let Some(context) = context {
            record.trace_id = Some(context.trace_id().to_string());
            record.span_id = Some(context.span_id().to_string());
        }
        trace.profiles.append(&record);
    }

    fn end(&self) -> Edge {
        self.ended.last().map_or(self.start, |(_, edge)| *edge)
    }

    /// Each stage with its edges.
    fn stages(&self) -> impl Iterator<Item = (SessionStage, Edge, Edge)> {
        let starts = std::iter::once(self.start).chain(self.ended.iter().map(|(_, edge)| *edge));
        let stages = starts.zip(&self.ended);
        stages.map(|(from, (stage, to))| (*stage, from, *to))
    }

    fn emit_stages(&self, telemetry: &Telemetry, whole: Option<&SpanContext>) {
        for (stage, from, to) in self.stages() {
            let mut span = telemetry.stage_at(stage.span_name(), whole, from.at);
            set_sched(&mut span, &from, &to);
            if let Outcome::Refused(reason) = &self.outcome
                && stage == self.current
            {
                span.fail(REFUSED, reason.clone());
            }
            span.end_at(to.at);
        }
    }

    fn describe(&self, whole: &mut Stage) {
        set_sched(whole, &self.start, &self.end());
        if self.handed.rejected() > 0 {
            whole.set(keys::CONTEXT_REJECTED, i64::from(self.handed.rejected()));
        }
        let head = self.head.as_ref();
        let branch = head.and_then(|head| head.branch.clone());
        let commit = head.and_then(|head| head.commit.clone());
        for (key, value) in [(keys::VCS_BRANCH, branch), (keys::VCS_COMMIT, commit)] {
            if let Some(value) = value {
                whole.set(key, value);
            }
        }
        match &self.outcome {
            Outcome::Opened(id) => whole.set(keys::SESSION_ID, id.clone()),
            Outcome::Refused(reason) => whole.fail(REFUSED, reason.clone()),
        }
    }

    fn record(&self, start: WallNanos) -> ProfileRecord {
        let mut phases = PhaseList::new();
        for (stage, from, to) in self.stages() {
            let start = millis(from.at.since(self.start.at));
            phases.push(stage.name(), Some(start), millis(to.at.since(from.at)));
        }
        let mut record = ProfileRecord::new(
            ProfileKind::SessionStart,
            start.as_unix_nanos(),
            millis(self.end().at.since(self.start.at)),
            &phases,
        );
        match &self.outcome {
            Outcome::Opened(id) => record.session_id = Some(id.clone()),
            Outcome::Refused(_) => record.complete = false,
        }
        record
    }
}
