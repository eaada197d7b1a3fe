//! Rules of a model that put runs together: chain, joins, experiment, closing.

use serde::Deserialize;

use super::schema::Literal;

/// How runs are put together and what makes one complete.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    /// Each request is a run of its own, whatever it shares with others.
    #[serde(default)]
    pub run_per_request: bool,
    /// Required once in a process.
    #[serde(default)]
    pub process: Vec<String>,
    /// Required once in a process from which no session was asked.
    #[serde(default)]
    pub process_without_session: Vec<String>,
    /// Required in a channel; these carry the channel key and make the runs.
    pub channel: Vec<String>,
    /// Required in a channel whose agent writes traces of this model.
    #[serde(default)]
    pub channel_agent: Vec<String>,
    /// Kind of the session requests.
    pub request: String,
    /// Required below a request that made a session.
    pub created: Vec<String>,
    /// Likewise where the agent writes traces of this model.
    #[serde(default)]
    pub created_agent: Vec<String>,
    /// A request with such a span below it made a session, unless `outcome` says otherwise.
    pub created_by: String,
    /// Attribute of a request that says `created`, `attached`, `coalesced`, `rejected` or `failed`.
    pub outcome: Option<String>,
    /// When the agent is somebody else's and its spans are not required.
    pub foreign_agent: Option<AttributeRule>,
    /// How a request finds its channel, in this order.
    #[serde(rename = "join")]
    pub joins: Vec<Join>,
}

/// An attribute of a span of a kind, and its value.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttributeRule {
    /// The span's kind.
    pub kind: String,
    /// The attribute.
    pub key: String,
    /// The value.
    pub equals: Literal,
}

/// One way from a request to its channel.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "via", rename_all = "snake_case", deny_unknown_fields)]
pub enum Join {
    /// Attribute `key` of a span below the request.
    Attribute {
        /// Kind of that span.
        of: String,
        /// The attribute.
        key: String,
    },
    /// Attribute `key` of an event of a span below the request.
    Event {
        /// Kind of that span.
        of: String,
        /// Name of the event.
        event: String,
        /// The attribute.
        key: String,
    },
    /// The channel key of a span that a span below the request links to.
    Link {
        /// Kind of the linking span.
        of: String,
    },
    /// The channel key of a span below the request.
    Descendant {
        /// Kind of that span.
        of: String,
    },
    /// The channel of the same process whose span overlaps most in time.
    Overlap {
        /// Kind of the span below the request.
        of: String,
        /// Kind of the channel's span.
        with: String,
    },
}

/// What an experiment's own span says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Kind of that span.
    pub kind: String,
    /// Kinds of client spans that ask for a session.
    pub session: Vec<String>,
    /// Attribute: position in the schedule.
    pub index: String,
    /// Attribute: cohort.
    pub cohort: String,
    /// Attribute: warm-up.
    pub warmup: String,
    /// Attribute: why the run failed.
    pub failure: String,
    /// Attribute: pair.
    pub pair: String,
    /// Attribute: scenario, `NAME` or `NAME=VALUE`.
    pub scenario: Option<String>,
    /// Scenarios whose value is how long the client waited before it asked for a
    /// session: whole `us`, `ms` or `s`, without a unit milliseconds.
    #[serde(default)]
    pub delays: Vec<String>,
    /// Attributes of delays that were injected.
    pub injected: Option<Injected>,
}

/// What spans of one kind cannot end without, beyond what links, stages and
/// drill-through say.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitRule {
    /// Kind of the spans that wait.
    pub of: String,
    /// Only those of which a prefix rule leaves this of the name.
    pub named: Option<String>,
    /// Kinds of the spans that they wait for; one that is not there, or is later
    /// than their own end, was not waited for.
    #[serde(rename = "for")]
    pub what: Vec<String>,
    /// Which end of these.
    #[serde(default)]
    pub edge: WaitEdge,
}

/// Which end of a span is waited for.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum WaitEdge {
    /// Its first instant.
    Start,
    /// Its last instant.
    #[default]
    End,
}

/// Attributes of delays that were injected at a stage, in nanoseconds: prefix, the
/// stage's name, suffix.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Injected {
    /// Before the name.
    pub prefix: String,
    /// Behind the name.
    pub suffix: String,
    /// Metric that is the total which a delay may reach.
    pub total: String,
}

/// What a process says about its own trace, as resource attributes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Closing {
    /// Major version of the contract.
    pub version: String,
    /// The version that this model describes.
    pub supported: i64,
    /// `true` on the last line of a closed file.
    pub r#final: String,
    /// Spans that were dropped.
    pub dropped: String,
    /// Trace context that was refused.
    pub rejected: String,
}

/// Attributes with scheduler figures, in nanoseconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sched {
    /// Time on a processor.
    pub cpu: String,
    /// Time runnable without one.
    pub runq: String,
}
