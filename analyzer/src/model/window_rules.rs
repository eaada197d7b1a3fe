//! Rules of a model that cut windows: windows, stages, groups, drill-through.

use serde::Deserialize;

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
    /// Source: the session profile with the session id of the first span of this
    /// kind, one stage for each of its stages.
    pub session_profile: Option<String>,
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

/// An attribute whose values are counted over the complete runs: which way a
/// request went.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathRule {
    /// Name in reports.
    pub name: String,
    /// Kind of the span; the first of a run counts, of a request's spans those
    /// of each cold request.
    pub of: String,
    /// The attribute.
    pub attribute: String,
}

/// How a program between the daemon and its agent is recognised.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrapperRule {
    /// Window that the agent itself timed, from its own start.
    pub window: String,
    /// Kind of the daemon's span that covers the same.
    pub covered_by: String,
    /// Kind of the agent's span whose resource names its parent process.
    pub agent: Option<String>,
    /// Resource attribute with the parent's id.
    pub parent_pid: Option<String>,
    /// Resource attribute with the daemon's own id.
    pub pid: Option<String>,
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
    /// Window whose stages are laid over it, or several.
    pub phases: Windows,
}

/// One window or several, by name.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Windows {
    /// One.
    One(String),
    /// Several.
    Several(Vec<String>),
}

impl Windows {
    /// Their names.
    #[must_use]
    pub fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Several(names) => names,
        }
    }
}

impl StageRule {
    /// Whether it names exactly one source, and a name exactly where it needs one.
    pub(super) fn is_one_source(&self) -> bool {
        let sources = [
            &self.span,
            &self.spans,
            &self.session_profile,
            &self.attribute,
            &self.attribute_prefix,
        ];
        let one = sources.iter().filter(|source| source.is_some()).count() == 1;
        let named = self.span.is_some() || self.attribute.is_some();
        one && named == self.name.is_some()
    }
}
