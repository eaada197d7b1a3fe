//! Rules of a model about the client: its record, its latency, end-to-end metrics.

use serde::Deserialize;

use super::window_rules::Unit;

/// What the client saw.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// Metric with which stages are correlated.
    pub latency: String,
    /// Kind of the client's own span of the request.
    pub span: Option<String>,
    /// Client records, where there are some.
    pub record: Option<RecordRule>,
}

/// Where a client record says what.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordRule {
    /// Paths of session ids; any of them joins the record to its run.
    pub session: Vec<String>,
    /// Path of the daemon's pid, for runs in which no session came about.
    pub process: RecordProcess,
    /// Path of the run's name.
    pub label: String,
    /// Path of the cohort.
    pub cohort: String,
    /// Paths whose sum is the start of the request, milliseconds since the epoch.
    pub start: Vec<String>,
    /// Path of the request's duration in milliseconds.
    pub duration: String,
    /// When the session was made.
    pub success: RecordSuccess,
    /// Lists with one entry for each of several concurrent requests.
    pub concurrent: Option<RecordConcurrent>,
}

/// Lists of a record that belong together by place.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordConcurrent {
    /// Path of the session ids.
    pub session: String,
    /// Path of the durations in milliseconds.
    pub duration: String,
}

/// How a record names the process it drove.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordProcess {
    /// Path of the value.
    pub path: String,
    /// What stands before it in the process key.
    pub prefix: String,
}

/// When a record says that the session was made.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordSuccess {
    /// Path of the value; an absent one says nothing.
    pub path: String,
    /// The value.
    pub equals: String,
}

/// Something else that varied between the runs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CovariateRule {
    /// Name in reports.
    pub name: String,
    /// Whether it can explain a slow run at all.
    pub role: Role,
    /// Source: this attribute of the span `on`.
    pub attribute: Option<String>,
    /// Kind of that span.
    pub on: Option<String>,
    /// Source: path in the client's record.
    pub record: Option<String>,
    /// Path of a value to divide by, which makes an amount a rate.
    pub per: Option<String>,
    /// In which direction it can make a run slow.
    #[serde(default)]
    pub slow_when: SlowWhen,
}

/// In which direction a covariate can make a run slow. A relation the other way
/// round explains no slow run.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum SlowWhen {
    /// When there is much of it, such as load.
    #[default]
    High,
    /// When there is little of it, such as a processor's frequency.
    Low,
}

/// What a covariate can say.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It was there before the run, or comes from elsewhere: it may explain.
    Covariate,
    /// The run itself brings it about, in whole or part: it says how a run was
    /// slow and never why.
    Mediator,
}

impl Role {
    /// The role as it stands in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Covariate => "covariate",
            Self::Mediator => "mediator",
        }
    }
}

/// An end-to-end figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricRule {
    /// Name in reports.
    pub name: String,
    /// Unit in reports.
    pub unit: Unit,
    /// Where it comes from; the first that gives a value is used.
    pub sources: Vec<MetricSource>,
    /// Metrics of which it is a part: where it moves and they do not, its time
    /// went elsewhere in them.
    #[serde(default)]
    pub within: Vec<String>,
}

/// End of a span.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Edge {
    /// Its first instant.
    Start,
    /// Its last instant.
    End,
}

/// One source of a metric.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(untagged, deny_unknown_fields)]
pub enum MetricSource {
    /// Time between two edges of spans of the run.
    Between {
        /// Edge and kind where it starts.
        from: (Edge, String),
        /// Edge and kind where it ends.
        to: (Edge, String),
        /// Resource attribute that the first span must have.
        when: Option<ResourceCondition>,
    },
    /// An attribute of a span, in the metric's unit.
    Attribute {
        /// The attribute.
        attribute: String,
        /// Kind of the span.
        on: String,
    },
    /// A value of the client record, in milliseconds or KiB.
    Record {
        /// Its path.
        record: String,
        /// Path of a value to take off.
        minus: Option<String>,
        /// The value means nothing when no session was made.
        #[serde(default)]
        needs_session: bool,
        /// It ends when the first session is there, and moves with that.
        #[serde(default)]
        ends_with_session: bool,
    },
}

/// A resource attribute and its value.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct ResourceCondition {
    /// The attribute.
    pub resource: String,
    /// The value.
    pub equals: String,
}
