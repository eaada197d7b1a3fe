//! Holds one policy against the evidence: layers look, then findings are made.
//!
//! Computes only: files are read before, reports are written after.

mod edges;
mod findings;
mod inspect;
mod rules;

pub(crate) use inspect::{InspectError, Inspection, inspect};
pub(crate) use rules::{CheckOptions, check_path};

use crate::evidence::InputFile;
use crate::exit;
use crate::finding::{Finding, Severity};
use crate::layer::{Judgement, Layer};

/// What a guard says in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    Ok,
    CannotJudge,
    Violated,
}

impl Verdict {
    /// Stable name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::CannotJudge => "cannot-judge",
            Self::Violated => "violated",
        }
    }

    /// Exit code of the program.
    pub(crate) const fn exit_code(self) -> u8 {
        match self {
            Self::Ok => exit::OK,
            Self::CannotJudge => exit::CANNOT_JUDGE,
            Self::Violated => exit::VIOLATED,
        }
    }

    /// A violation outranks what cannot be judged.
    pub(crate) fn of(findings: &[Finding]) -> Self {
        let worst = findings.iter().map(|finding| finding.code.severity()).min();
        match worst {
            Some(Severity::Violation) => Self::Violated,
            Some(Severity::CannotJudge) => Self::CannotJudge,
            Some(Severity::Note) | None => Self::Ok,
        }
    }
}

/// What one layer saw and said.
#[derive(Debug, Clone)]
pub(crate) struct LayerReport {
    pub(crate) layer: Layer,
    /// What it could see, in words with figures.
    pub(crate) saw: Vec<String>,
    /// By rule, in the order of the policy.
    pub(crate) rules: Vec<(String, Judgement)>,
}

/// What came out for one path of the policy.
#[derive(Debug, Clone)]
pub(crate) struct PathReport {
    pub(crate) name: String,
    /// `package/bin` with features and target.
    pub(crate) program: String,
    pub(crate) level: Layer,
    pub(crate) inputs: Vec<InputFile>,
    pub(crate) layers: Vec<LayerReport>,
    pub(crate) findings: Vec<Finding>,
}

impl PathReport {
    /// Verdict of this path.
    pub(crate) fn verdict(&self) -> Verdict {
        Verdict::of(&self.findings)
    }
}

/// A whole report.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    /// The policy as it was named.
    pub(crate) policy: String,
    pub(crate) paths: Vec<PathReport>,
}

impl Report {
    /// Verdict over all paths.
    pub(crate) fn verdict(&self) -> Verdict {
        self.paths
            .iter()
            .map(PathReport::verdict)
            .max()
            .unwrap_or(Verdict::CannotJudge)
    }
}
