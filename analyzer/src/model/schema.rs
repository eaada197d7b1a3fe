//! The shape of a model file (TOML). Unknown keys are errors: a misspelt rule
//! must not silently match nothing.

use std::collections::BTreeMap;

use serde::Deserialize;
use thiserror::Error;

/// Version of the model format that this program reads.
pub const SCHEMA: u32 = 1;

/// Why a model cannot be used.
#[derive(Debug, Error)]
pub enum ModelError {
    /// Neither a built-in model nor a file.
    #[error(
        "no model named `{name}`, and no such file\nhint: built-in models are {builtin}; a file is named by its path"
    )]
    Unknown {
        /// What was asked for.
        name: String,
        /// Names of the built-in models.
        builtin: String,
    },
    /// The file cannot be read.
    #[error("cannot read model {path}: {source}")]
    Unreadable {
        /// The file.
        path: String,
        /// The operating system's reason.
        #[source]
        source: std::io::Error,
    },
    /// Not TOML, or not of this shape.
    #[error("model {name}: {reason}")]
    Invalid {
        /// Name or path of the model.
        name: String,
        /// Line, key and reason.
        reason: String,
    },
}

/// A model.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Format version, [`SCHEMA`].
    pub schema: u32,
    /// Short name, as `--model` takes it.
    pub name: String,
    /// Name for people.
    pub title: String,
    /// Keys that tie spans together.
    pub keys: Keys,
    /// What spans there are; the first rule that fits a span decides its kind.
    #[serde(rename = "span")]
    pub spans: Vec<SpanRule>,
    /// How runs are put together and what makes one complete.
    pub chain: Chain,
    /// What an experiment's own span says, where there is one.
    pub measured: Option<Measured>,
    /// What a process says about its own trace, where it does.
    pub closing: Option<Closing>,
    /// Scheduler figures on spans, where there are some.
    pub sched: Option<Sched>,
    /// Windows to break down. Entries of one name are alternatives: in each run
    /// the first that finds its stages is used.
    #[serde(rename = "window")]
    pub windows: Vec<WindowRule>,
    /// Named sums of stages.
    #[serde(default, rename = "group")]
    pub groups: Vec<GroupRule>,
    /// Stages that another window explains.
    #[serde(default)]
    pub drill_through: Vec<DrillRule>,
    /// What the client saw.
    pub client: Client,
    /// End-to-end figures.
    #[serde(default, rename = "metric")]
    pub metrics: Vec<MetricRule>,
}

/// Keys that tie spans together.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keys {
    /// Resource attribute that identifies a process.
    pub process: String,
    /// Span attribute that identifies a channel.
    pub channel: String,
    /// Span or event attribute that identifies a session.
    pub session: String,
}

/// Which part of a run a span belongs to, which decides how it is joined.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Below the experiment's own span.
    Client,
    /// Of one process, shared by all its runs.
    Process,
    /// Of one channel.
    Channel,
    /// Of one session request.
    Request,
    /// Known, and no part of a chain.
    Other,
}

/// A value in a rule.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(untagged)]
pub enum Literal {
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// Text.
    Text(String),
}

/// What makes a span one of a kind.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpanRule {
    /// The kind; several rules may share one.
    pub kind: String,
    /// How it is joined to a run.
    pub part: Part,
    /// Exact span name.
    pub name: Option<String>,
    /// Start of the span name; the rest names the stage.
    pub name_prefix: Option<String>,
    /// Attributes that must have these values.
    #[serde(default, rename = "where")]
    pub conditions: BTreeMap<String, Literal>,
    /// Attribute that must be there.
    pub has: Option<String>,
    /// Parent means cause, not containment.
    #[serde(default)]
    pub asynchronous: bool,
    /// The parent may be a span of somebody else's trace.
    #[serde(default)]
    pub remote_parent: bool,
}

/// How runs are put together and what makes one complete.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chain {
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

/// A window.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowRule {
    /// Name in reports.
    pub name: String,
    /// Name for people.
    pub title: String,
    /// What it spans.
    pub of: WindowSource,
    /// Its stages.
    #[serde(default, rename = "stage")]
    pub stages: Vec<StageRule>,
}

/// What a window spans.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum WindowSource {
    /// One span.
    Span {
        /// Its kind.
        span: String,
    },
    /// First start to last end of several spans.
    Envelope {
        /// Their kinds.
        envelope: Vec<String>,
    },
    /// A length that an attribute gives.
    Attribute {
        /// The attribute.
        attribute: String,
        /// Kind of the span that has it.
        on: String,
        /// Unit of its value.
        unit: Unit,
        /// Attribute with the time from the window's end to the span's end.
        end_before: Option<String>,
    },
    /// A phase profile of the run's channel or session.
    Profile {
        /// Kind of the profile.
        profile: String,
    },
}

/// Unit of a value.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Milliseconds.
    Ms,
    /// Bytes.
    Bytes,
}

impl Unit {
    /// The unit as reports write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ms => "ms",
            Self::Bytes => "bytes",
        }
    }
}

/// Where a stage stands whose source has a length and no times.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// At the start of the window.
    Start,
    /// The stages of the window are laid one behind the other up to its end.
    #[default]
    End,
}

/// One stage, or a family of stages.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageRule {
    /// Name in reports; families take theirs from the data.
    pub name: Option<String>,
    /// Source: spans of this kind.
    pub span: Option<String>,
    /// Source: spans of this kind, one stage for each rest of the name.
    pub spans: Option<String>,
    /// Source: an attribute.
    pub attribute: Option<String>,
    /// Source: attributes with this start, one stage for each rest of the key.
    pub attribute_prefix: Option<String>,
    /// End of those keys.
    pub attribute_suffix: Option<String>,
    /// Kind of the span that has the attributes; default: the window's span.
    pub on: Option<String>,
    /// Unit of the attributes.
    pub unit: Option<Unit>,
    /// Where an attribute's length is laid.
    #[serde(default)]
    pub place: Placement,
    /// Kind of the span whose scheduler figures classify this stage, because
    /// the stage itself waits for another process.
    pub sched_from: Option<String>,
}

/// A named sum of stages.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupRule {
    /// Name in reports.
    pub name: String,
    /// Name for people.
    pub title: String,
    /// Window whose stages these are.
    pub window: String,
    /// The stages.
    pub stages: Vec<String>,
}

/// A stage that another window explains.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrillRule {
    /// Window of the stage.
    pub window: String,
    /// The stage.
    pub stage: String,
    /// Kind of the span that explains it.
    pub explained_by: String,
    /// Window whose stages are laid over it.
    pub phases: String,
}

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
#[derive(Clone, Debug, Deserialize)]
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
    },
}

/// A resource attribute and its value.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceCondition {
    /// The attribute.
    pub resource: String,
    /// The value.
    pub equals: String,
}

impl Model {
    /// Reads a model and checks that its rules fit together.
    ///
    /// # Errors
    /// [`ModelError::Invalid`] with line, key and reason.
    pub fn parse(name: &str, text: &str) -> Result<Self, ModelError> {
        let invalid = |reason: String| ModelError::Invalid {
            name: name.to_owned(),
            reason,
        };
        let model: Self = toml::from_str(text).map_err(|error| invalid(error.to_string()))?;
        if model.schema != SCHEMA {
            return Err(invalid(format!(
                "schema is {}, this program reads {SCHEMA}",
                model.schema
            )));
        }
        if let Some(kind) = model
            .named_kinds()
            .find(|kind| !model.spans.iter().any(|rule| rule.kind == **kind))
        {
            return Err(invalid(format!(
                "kind `{kind}` is used and no [[span]] defines it"
            )));
        }
        let known = |name: &String| model.windows.iter().any(|window| window.name == *name);
        let windows = model.groups.iter().map(|group| &group.window);
        let windows = windows.chain(
            model
                .drill_through
                .iter()
                .flat_map(|drill| [&drill.window, &drill.phases]),
        );
        if let Some(window) = windows.into_iter().find(|name| !known(name)) {
            return Err(invalid(format!(
                "window `{window}` is used and no [[window]] defines it"
            )));
        }
        if model
            .windows
            .iter()
            .flat_map(|window| &window.stages)
            .any(|stage| !stage.is_one_source())
        {
            return Err(invalid("a stage needs a name with `span` or `attribute`, or `spans` or `attribute_prefix` alone".to_owned()));
        }
        if model
            .spans
            .iter()
            .any(|rule| rule.name.is_none() && rule.name_prefix.is_none() && rule.has.is_none())
        {
            return Err(invalid(
                "a [[span]] needs `name`, `name_prefix` or `has`".to_owned(),
            ));
        }
        Ok(model)
    }

    /// Every kind that a rule other than `[[span]]` names.
    fn named_kinds(&self) -> impl Iterator<Item = &String> {
        let chain = &self.chain;
        let lists = [
            &chain.process,
            &chain.process_without_session,
            &chain.channel,
            &chain.channel_agent,
            &chain.created,
            &chain.created_agent,
        ];
        let joins = chain.joins.iter().flat_map(|join| match join {
            Join::Attribute { of, .. }
            | Join::Event { of, .. }
            | Join::Link { of }
            | Join::Descendant { of } => vec![of],
            Join::Overlap { of, with } => vec![of, with],
        });
        let windows = self.windows.iter().flat_map(|window| match &window.of {
            WindowSource::Span { span } => vec![span],
            WindowSource::Envelope { envelope } => envelope.iter().collect(),
            WindowSource::Attribute { on, .. } => vec![on],
            WindowSource::Profile { .. } => Vec::new(),
        });
        let stages = self.windows.iter().flat_map(|window| &window.stages);
        let stages = stages.flat_map(|stage| {
            [&stage.span, &stage.spans, &stage.on, &stage.sched_from]
                .into_iter()
                .flatten()
        });
        let metrics = self
            .metrics
            .iter()
            .flat_map(|metric| &metric.sources)
            .flat_map(|source| match source {
                MetricSource::Between { from, to, .. } => vec![&from.1, &to.1],
                MetricSource::Attribute { on, .. } => vec![on],
                MetricSource::Record { .. } => Vec::new(),
            });
        let measured = self
            .measured
            .iter()
            .flat_map(|measured| std::iter::once(&measured.kind).chain(&measured.session));
        let drills = self.drill_through.iter().map(|drill| &drill.explained_by);
        let single = [&chain.request, &chain.created_by].into_iter();
        let single = single
            .chain(chain.foreign_agent.iter().map(|rule| &rule.kind))
            .chain(&self.client.span);
        lists
            .into_iter()
            .flatten()
            .chain(joins)
            .chain(windows)
            .chain(stages)
            .chain(metrics)
            .chain(measured)
            .chain(drills)
            .chain(single)
    }
}

impl StageRule {
    fn is_one_source(&self) -> bool {
        let sources = [
            &self.span,
            &self.spans,
            &self.attribute,
            &self.attribute_prefix,
        ];
        let one = sources.iter().filter(|source| source.is_some()).count() == 1;
        let named = self.span.is_some() || self.attribute.is_some();
        one && named == self.name.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builtin;

    #[test]
    fn an_unknown_key_and_an_undefined_kind_are_errors() {
        let text = builtin::source("qwen").unwrap();
        let misspelt = text.replace("asynchronous = true", "asynchronus = true");
        assert!(
            Model::parse("x", &misspelt)
                .unwrap_err()
                .to_string()
                .contains("asynchronus")
        );
        let undefined = text.replace(
            "created_by = \"session.new\"",
            "created_by = \"session.mew\"",
        );
        assert!(
            Model::parse("x", &undefined)
                .unwrap_err()
                .to_string()
                .contains("`session.mew`")
        );
        let newer = text.replace("schema = 1", "schema = 2");
        assert!(
            Model::parse("x", &newer)
                .unwrap_err()
                .to_string()
                .contains("schema is 2")
        );
    }
}
