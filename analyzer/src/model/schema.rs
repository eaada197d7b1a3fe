//! The shape of a model file (TOML). Unknown keys are errors: a misspelt rule
//! must not silently match nothing.

use std::collections::BTreeMap;

use serde::Deserialize;
use thiserror::Error;

use super::chain_rules::{Chain, Closing, Join, Measured, Sched, WaitRule};
use super::metric_rules::{Client, CovariateRule, MetricRule, MetricSource};
use super::window_rules::{DrillRule, GroupRule, PathRule, WindowRule, WindowSource, WrapperRule};

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
    /// Chosen only where no other built-in model knows any span.
    #[serde(default)]
    pub fallback: bool,
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
    /// What spans wait for, beyond what links, stages and drill-through say.
    #[serde(default, rename = "wait")]
    pub waits: Vec<WaitRule>,
    /// Attributes that say which way a request went.
    #[serde(default, rename = "path")]
    pub paths: Vec<PathRule>,
    /// How a program between the daemon and its agent is recognised.
    pub wrapper: Option<WrapperRule>,
    /// What else varied between the runs.
    #[serde(default, rename = "covariate")]
    pub covariates: Vec<CovariateRule>,
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

/// Where a span stands in its trace. A span whose parent is in none of the files
/// counts as a root.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Position {
    /// Without a parent.
    Root,
    /// Directly below a root.
    ChildOfRoot,
    /// Further down.
    Deeper,
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

impl std::fmt::Display for Literal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Text(value) => f.write_str(value),
        }
    }
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
    /// Where in its trace the span must stand.
    pub position: Option<Position>,
    /// Parent means cause, not containment.
    #[serde(default)]
    pub asynchronous: bool,
    /// The parent may be a span of somebody else's trace.
    #[serde(default)]
    pub remote_parent: bool,
}

impl SpanRule {
    /// Whether it would fit every span.
    fn says_nothing(&self) -> bool {
        self.name.is_none()
            && self.name_prefix.is_none()
            && self.has.is_none()
            && self.position.is_none()
    }
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
        let drills = model.drill_through.iter();
        let windows = windows.chain(
            drills.flat_map(|drill| std::iter::once(&drill.window).chain(drill.phases.names())),
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
        if model.spans.iter().any(SpanRule::says_nothing) {
            return Err(invalid(
                "a [[span]] needs `name`, `name_prefix`, `has` or `position`".to_owned(),
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
            [
                &stage.span,
                &stage.spans,
                &stage.on,
                &stage.sched_from,
                &stage.session_profile,
            ]
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
        let paths = self.paths.iter().map(|path| &path.of);
        let wrapper = self.wrapper.iter();
        let wrapper = wrapper.flat_map(|rule| std::iter::once(&rule.covered_by).chain(&rule.agent));
        let covariates = self.covariates.iter().flat_map(|rule| &rule.on);
        let drills = drills.chain(paths).chain(wrapper).chain(covariates);
        let waits = self.waits.iter();
        let waits = waits.flat_map(|rule| std::iter::once(&rule.of).chain(&rule.what));
        let drills = drills.chain(waits);
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
