//! What a guard reports: codes with stable names, and findings made of them.
//!
//! A finding is not an error: errors stop the program, findings are its result.
//! Nothing here decides when one is due; `check` does.

use crate::layer::Layer;

/// Kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Code {
    PackageDenied,
    LinkedDenied,
    PresentDenied,
    ReachableDenied,
    PresentNotInClosure,
    ClosureDiffers,
    RuleUnmatched,
    LazyUnmatched,
    LazyExpired,
    LazyEagerlyNeeded,
    LazyEndpointMissing,
    RootMissing,
    TwinMismatch,
    EvidenceMissing,
    EvidenceStale,
    NotRust,
    LayerInconclusive,
    DeclaredNotPresent,
    InteriorRoot,
}

/// What a finding does to the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// The policy is violated.
    Violation,
    /// The policy cannot be judged.
    CannotJudge,
    /// Worth knowing; the verdict stays.
    Note,
}

impl Code {
    /// Every code, in the order of the documentation.
    pub(crate) const ALL: [Self; 19] = [
        Self::PackageDenied,
        Self::LinkedDenied,
        Self::PresentDenied,
        Self::ReachableDenied,
        Self::PresentNotInClosure,
        Self::ClosureDiffers,
        Self::RuleUnmatched,
        Self::LazyUnmatched,
        Self::LazyExpired,
        Self::LazyEagerlyNeeded,
        Self::LazyEndpointMissing,
        Self::RootMissing,
        Self::TwinMismatch,
        Self::EvidenceMissing,
        Self::EvidenceStale,
        Self::NotRust,
        Self::LayerInconclusive,
        Self::DeclaredNotPresent,
        Self::InteriorRoot,
    ];

    /// Stable name, used in the JSON report and in the documentation.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::PackageDenied => "package-denied",
            Self::LinkedDenied => "linked-denied",
            Self::PresentDenied => "present-denied",
            Self::ReachableDenied => "reachable-denied",
            Self::PresentNotInClosure => "present-not-in-closure",
            Self::ClosureDiffers => "closure-differs",
            Self::RuleUnmatched => "rule-unmatched",
            Self::LazyUnmatched => "lazy-unmatched",
            Self::LazyExpired => "lazy-expired",
            Self::LazyEagerlyNeeded => "lazy-eagerly-needed",
            Self::LazyEndpointMissing => "lazy-endpoint-missing",
            Self::RootMissing => "root-missing",
            Self::TwinMismatch => "twin-mismatch",
            Self::EvidenceMissing => "evidence-missing",
            Self::EvidenceStale => "evidence-stale",
            Self::NotRust => "not-rust",
            Self::LayerInconclusive => "layer-inconclusive",
            Self::DeclaredNotPresent => "declared-not-present",
            Self::InteriorRoot => "interior-root",
        }
    }

    /// One sentence for people who meet the code for the first time.
    pub(crate) const fn description(self) -> &'static str {
        match self {
            Self::PackageDenied => "a denied package is in the program's closure",
            Self::LinkedDenied => "a denied package was handed to the linker",
            Self::PresentDenied => "code of a denied package is in the binary",
            Self::ReachableDenied => "denied code can be reached from the start of the path",
            Self::PresentNotInClosure => {
                "the binary holds code of a package that its closure does not name"
            }
            Self::ClosureDiffers => "the predicted closure is not what cargo built",
            Self::RuleUnmatched => "a rule matches nothing, so it guards nothing",
            Self::LazyUnmatched => "a lazy edge of the policy is not in the program",
            Self::LazyExpired => "a lazy edge is past its date",
            Self::LazyEagerlyNeeded => "a library that should be loaded late is needed at start",
            Self::LazyEndpointMissing => {
                "an end of a lazy edge is no function of the binary, so nothing can be cut"
            }
            Self::RootMissing => "a root of the path is no function of the binary",
            Self::TwinMismatch => {
                "a file is not of the recorded build, or the stripped and the unstripped program differ"
            }
            Self::EvidenceMissing => "there is no recorded build to judge",
            Self::EvidenceStale => "the lock file has changed since the build",
            Self::NotRust => "the binary holds no sign of Rust code",
            Self::LayerInconclusive => "a layer cannot see enough to say that something is absent",
            Self::DeclaredNotPresent => {
                "a denied package is in the closure and none of its code is in the binary"
            }
            Self::InteriorRoot => {
                "reachability from a root inside the program misses calls through objects made elsewhere"
            }
        }
    }

    /// What it does to the verdict.
    pub(crate) const fn severity(self) -> Severity {
        match self {
            Self::PackageDenied
            | Self::LinkedDenied
            | Self::PresentDenied
            | Self::ReachableDenied
            | Self::PresentNotInClosure
            | Self::ClosureDiffers
            | Self::RuleUnmatched
            | Self::LazyUnmatched
            | Self::LazyExpired
            | Self::LazyEagerlyNeeded => Severity::Violation,
            Self::LazyEndpointMissing
            | Self::RootMissing
            | Self::TwinMismatch
            | Self::EvidenceMissing
            | Self::EvidenceStale
            | Self::NotRust
            | Self::LayerInconclusive => Severity::CannotJudge,
            Self::DeclaredNotPresent | Self::InteriorRoot => Severity::Note,
        }
    }
}

/// One finding on one start path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) code: Code,
    /// The layer that saw it; none for findings about the policy or the files.
    pub(crate) layer: Option<Layer>,
    /// Package, symbol, edge or file that it is about.
    pub(crate) subject: String,
    /// The rule of the policy, as written.
    pub(crate) rule: Option<String>,
    /// What was seen, most telling first, bounded by the layer.
    pub(crate) evidence: Vec<String>,
    /// One shortest way from the start to the subject, both ends included.
    pub(crate) route: Vec<String>,
    /// Further routes, when all were asked for.
    pub(crate) more_routes: Vec<Vec<String>>,
    /// What to do next.
    pub(crate) hint: String,
}

impl Finding {
    /// A finding with a hint and nothing else; the rest is filled in by the caller.
    pub(crate) fn new(code: Code, subject: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            code,
            layer: None,
            subject: subject.into(),
            rule: None,
            evidence: Vec::new(),
            route: Vec::new(),
            more_routes: Vec::new(),
            hint: hint.into(),
        }
    }

    /// Sets the layer.
    #[must_use]
    pub(crate) fn at(mut self, layer: Layer) -> Self {
        self.layer = Some(layer);
        self
    }

    /// Sets the rule.
    #[must_use]
    pub(crate) fn of_rule(mut self, rule: impl Into<String>) -> Self {
        self.rule = Some(rule.into());
        self
    }

    /// Sets the evidence.
    #[must_use]
    pub(crate) fn with_evidence(mut self, evidence: Vec<String>) -> Self {
        self.evidence = evidence;
        self
    }

    /// Sets the route.
    #[must_use]
    pub(crate) fn with_route(mut self, route: Vec<String>) -> Self {
        self.route = route;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::{Code, Severity};
    use std::collections::BTreeSet;

    #[test]
    fn names_are_distinct_kebab_case_words() {
        let names: BTreeSet<&str> = Code::ALL.iter().map(|code| code.name()).collect();
        assert_eq!(names.len(), Code::ALL.len());
        for name in names {
            assert!(
                name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'),
                "{name}"
            );
        }
    }

    #[test]
    fn the_guide_has_every_code_with_its_severity_and_sentence() {
        let guide = include_str!("../../docs/guard.md");
        for code in Code::ALL {
            let severity = match code.severity() {
                Severity::Violation => "violation",
                Severity::CannotJudge => "cannot judge",
                Severity::Note => "note",
            };
            let row = format!(
                "| `{}` | {severity} | {} |",
                code.name(),
                code.description()
            );
            assert!(guide.contains(&row), "{row}");
        }
    }

    #[test]
    fn what_cannot_be_judged_is_never_a_note() {
        assert_eq!(Code::LayerInconclusive.severity(), Severity::CannotJudge);
        assert_eq!(Code::RootMissing.severity(), Severity::CannotJudge);
    }
}
