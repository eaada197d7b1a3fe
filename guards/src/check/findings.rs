//! From what a layer says about a rule to a finding with a hint.

use crate::finding::{Code, Finding};
use crate::layer::{Judgement, Layer, Subject};
use crate::policy::DenyRule;

/// The code of something found at `layer`.
const fn found_code(layer: Layer) -> Code {
    match layer {
        Layer::Packages => Code::PackageDenied,
        Layer::Linked => Code::LinkedDenied,
        Layer::Present => Code::PresentDenied,
        Layer::Reachable => Code::ReachableDenied,
    }
}

fn hint(layer: Layer) -> &'static str {
    match layer {
        Layer::Packages => {
            "split what this program needs from the package that brings it in, or turn the feature off where it is asked for"
        }
        Layer::Linked => "drop the dependency, or `use` of it, from what this program links",
        Layer::Present => {
            "`guard explain` shows who pulls it in; level = \"reachable\" allows it behind a named lazy edge"
        }
        Layer::Reachable => {
            "cut the route, or allow its one lazy step with [[path.lazy]] from, to and reason"
        }
    }
}

/// One finding for each thing found; below the layer of packages it also says how its
/// package came into the closure, because that is where it is turned off.
pub(super) fn denied(
    layer: Layer,
    rule: &DenyRule,
    judgement: &Judgement,
    packages: &Judgement,
) -> Vec<Finding> {
    let came_by = |finding: &mut Finding| {
        if layer != Layer::Packages {
            let entrances = packages.subjects.iter();
            let lines = entrances.map(|one| format!("in the closure: {}", one.route.join(" -> ")));
            finding.evidence.extend(lines);
        }
    };
    judgement
        .subjects
        .iter()
        .map(|subject| {
            let mut finding = of_subject(found_code(layer), layer, rule, subject);
            came_by(&mut finding);
            finding
        })
        .collect()
}

/// Code that the closure does not explain.
pub(super) fn surprise(rule: &DenyRule, subject: &Subject) -> Finding {
    let mut finding = of_subject(Code::PresentNotInClosure, Layer::Present, rule, subject);
    "look for a vendored copy inside another package, or a build with other features"
        .clone_into(&mut finding.hint);
    finding
}

fn of_subject(code: Code, layer: Layer, rule: &DenyRule, subject: &Subject) -> Finding {
    let mut evidence = subject.evidence.clone();
    evidence.extend(
        rule.reason
            .as_ref()
            .map(|reason| format!("denied because: {reason}")),
    );
    let mut finding = Finding::new(code, subject.name.clone(), hint(layer))
        .at(layer)
        .of_rule(rule.label())
        .with_evidence(evidence)
        .with_route(subject.route.clone());
    finding.more_routes.clone_from(&subject.more_routes);
    finding
}

/// A layer that cannot tell.
pub(super) fn inconclusive(layer: Layer, rule: &DenyRule, reason: &str) -> Finding {
    Finding::new(
        Code::LayerInconclusive,
        rule.label(),
        "remove what the evidence names: judge a build with symbols (`guard build` keeps one), give each lazy edge its ends, or lower the level",
    )
    .at(layer)
    .of_rule(rule.label())
    .with_evidence(vec![reason.to_owned()])
}
