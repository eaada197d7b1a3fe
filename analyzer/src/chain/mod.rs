//! Runs: which spans of which processes belong to one cold start, whether all
//! of them are there, and what the client saw.
//!
//! A run is one channel attempt with the requests joined to it ([`assemble`]).
//! Joins go by ancestor, link and equal attribute, never by a direct parent
//! alone ([`join`]); [`measured`] ties runs to the experiment that made them. [`complete`] says what is missing, [`clients`] attaches
//! client records, [`metrics`] takes the end-to-end figures.

pub mod assemble;
pub mod clients;
pub mod complete;
pub mod join;
pub mod measured;
pub mod metrics;

use std::sync::Arc;

use crate::input::client::ClientRecord;
use crate::model::lens::Lens;
use crate::model::schema::Part;
use crate::trace::dataset::SpanIndex;
use crate::units::Timestamp;

use crate::model::by_kind::ByKind;

/// What became of a session request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It made a session.
    Created,
    /// It was given a session that existed.
    Attached,
    /// It shared the session of a request at the same time.
    Coalesced,
    /// It was refused before anything was done; no part of any chain.
    Rejected,
    /// It ended in error.
    Failed,
}

/// One session request.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its span.
    pub span: SpanIndex,
    /// What became of it.
    pub outcome: Outcome,
    /// Spans below it, itself included.
    pub below: ByKind,
}

/// Whether a run's trace can be trusted to be whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainState {
    /// Every required span is there, ended and without error.
    Complete,
    /// These are missing or in error. Shared by the views of one run.
    Incomplete(Arc<[String]>),
    /// The program wrote no trace; only the client's figures are there.
    NotTraced,
}

/// One cold start and everything joined to it.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// Name, from content; unique in a report.
    pub id: String,
    /// Cohort or arm; empty where none was said.
    pub cohort: String,
    /// A warm-up: read, counted, and out of every statistic.
    pub warmup: bool,
    /// Pair it belongs to.
    pub pair: Option<i64>,
    /// First instant known of it; orders the runs.
    pub start: Timestamp,
    /// The process part.
    pub process: ByKind,
    /// The channel part.
    pub channel: ByKind,
    /// Channel id, where there is one.
    pub channel_id: Option<&'a str>,
    /// Process key, where there is one.
    pub process_key: Option<&'a str>,
    /// Whether it is the first run of its process, which alone carries the process part's figures.
    pub first_of_process: bool,
    /// Session requests, by start.
    pub requests: Vec<Request>,
    /// Spans of the client.
    pub client: ByKind,
    /// The client's record.
    pub record: Option<&'a ClientRecord>,
    /// Whether the trace is whole.
    pub chain: ChainState,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

impl Run<'_> {
    /// The first request that made a session.
    #[must_use]
    pub fn cold(&self) -> Option<&Request> {
        self.requests
            .iter()
            .find(|request| request.outcome == Outcome::Created)
    }

    /// The requests that met a cold channel: the first that made a session, and
    /// those that made one and began before that one had ended.
    #[must_use]
    pub fn cold_requests(&self, lens: &Lens<'_>) -> Vec<&Request> {
        let Some(first) = self.cold() else {
            return Vec::new();
        };
        let end = lens.data.span(first.span).interval.end();
        let cold = |request: &&Request| {
            request.outcome == Outcome::Created && lens.data.span(request.span).start() < end
        };
        self.requests.iter().filter(cold).collect()
    }

    /// The same run as if `request` had been its only one.
    #[must_use]
    pub fn with_only(&self, request: &Request) -> Self {
        Self {
            requests: vec![request.clone()],
            id: self.id.clone(),
            cohort: self.cohort.clone(),
            process: self.process.clone(),
            channel: self.channel.clone(),
            client: self.client.clone(),
            chain: self.chain.clone(),
            failure: self.failure.clone(),
            ..*self
        }
    }

    /// Whether the run's stages enter the statistics.
    #[must_use]
    pub fn counts(&self) -> bool {
        !self.warmup && self.failure.is_none() && self.chain == ChainState::Complete
    }

    /// The spans of a kind, looked up in the part where the model puts it;
    /// requests mean the cold one.
    #[must_use]
    pub fn all(&self, lens: &Lens<'_>, name: &str) -> &[SpanIndex] {
        let Some((kind, part)) = lens.kind_and_part(name) else {
            return &[];
        };
        let spans = match part {
            Part::Client => Some(&self.client),
            Part::Process => Some(&self.process),
            Part::Channel => Some(&self.channel),
            Part::Request => self.cold().map(|request| &request.below),
            Part::Other => None,
        };
        spans.map_or(&[], |spans| spans.get(kind))
    }

    /// The first span of a kind.
    #[must_use]
    pub fn first(&self, lens: &Lens<'_>, name: &str) -> Option<SpanIndex> {
        self.all(lens, name).first().copied()
    }
}
