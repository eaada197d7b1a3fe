//! The four layers of evidence and what each of them can answer.
//!
//! `packages` predicts, `linked` and `present` look at what was built, and
//! `reachable` at how it hangs together. No layer guesses: what it cannot see is
//! inconclusive, with the reason.

use serde::Deserialize;

/// A layer of evidence, and the level of a policy that asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Layer {
    /// The feature-accurate closure of packages.
    Packages,
    /// What the linker was given.
    Linked,
    /// What is in the binary.
    Present,
    /// What can be reached in the binary from the start of the path.
    Reachable,
}

impl Layer {
    /// Stable name, also in policies.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Packages => "packages",
            Self::Linked => "linked",
            Self::Present => "present",
            Self::Reachable => "reachable",
        }
    }
}

/// What a layer says about one rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Answer {
    /// It is there.
    Found,
    /// It is not there, and the layer would have seen it.
    Absent,
    /// The layer cannot tell.
    Inconclusive,
    /// The layer does not judge this kind of rule.
    NotAsked,
}

impl Answer {
    /// Stable name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Found => "found",
            Self::Absent => "absent",
            Self::Inconclusive => "inconclusive",
            Self::NotAsked => "not-asked",
        }
    }
}

/// What a layer says about one rule, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Judgement {
    pub(crate) answer: Answer,
    /// What was found, by name, sorted; empty unless found.
    pub(crate) subjects: Vec<Subject>,
    /// Why the layer cannot tell; empty unless inconclusive.
    pub(crate) reason: String,
}

/// One thing that a layer found for a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subject {
    /// Package with version, or symbol.
    pub(crate) name: String,
    pub(crate) evidence: Vec<String>,
    pub(crate) route: Vec<String>,
    pub(crate) more_routes: Vec<Vec<String>>,
}

impl Judgement {
    /// Not there.
    pub(crate) fn absent() -> Self {
        Self::of(Answer::Absent, Vec::new(), String::new())
    }

    /// Not a question for this layer.
    pub(crate) fn not_asked() -> Self {
        Self::of(Answer::NotAsked, Vec::new(), String::new())
    }

    /// Cannot tell, for this reason.
    pub(crate) fn inconclusive(reason: impl Into<String>) -> Self {
        Self::of(Answer::Inconclusive, Vec::new(), reason.into())
    }

    /// Found when there are subjects, absent when there are none.
    pub(crate) fn from_subjects(subjects: Vec<Subject>) -> Self {
        if subjects.is_empty() {
            Self::absent()
        } else {
            Self::of(Answer::Found, subjects, String::new())
        }
    }

    fn of(answer: Answer, subjects: Vec<Subject>, reason: String) -> Self {
        Self {
            answer,
            subjects,
            reason,
        }
    }
}
