//! What the call graph says about one rule.

use super::graph::Graph;
use super::labels::Labels;
use super::walk::Walk;
use crate::layer::{Judgement, Subject};
use crate::policy::{Denied, DenyRule};
use crate::present::{Judge, Names, PathClass};

/// Judges one rule on one walk.
pub(crate) fn judge(
    graph: &Graph,
    walk: &Walk,
    labels: &Labels<'_>,
    context: &Judge<'_>,
    rule: &DenyRule,
) -> Judgement {
    let names = context.names(rule);
    let by_name = |index: usize| match &rule.what {
        Denied::Symbol { pattern } => labels.matches(index, pattern),
        Denied::Crate { .. } => match &names {
            Names::Decide(crates) => labels.mentions(index, crates),
            Names::Ambiguous(_) => false,
        },
    };
    // Owners are few, functions are many.
    let denied: Vec<bool> = labels
        .known_owners
        .iter()
        .map(|owner| !matches!(owner.class, PathClass::Std) && context.owner_is_denied(rule, owner))
        .collect();
    let by_location = |index: usize| labels.owners_of(index).any(|owner| denied[owner]);
    let reached: Vec<usize> = (0..graph.functions.list.len())
        .filter(|index| walk.reaches(*index) && (by_name(*index) || by_location(*index)))
        .collect();
    if let Some((index, mut subject)) = nearest(graph, walk, labels, &reached) {
        if !by_name(index) {
            let whose = labels.owners_of(index).filter(|owner| denied[*owner]);
            let labelled = whose.map(|owner| labels.known_owners[owner].label());
            subject
                .evidence
                .extend(labelled.map(|label| format!("it uses panic locations of {label}")));
        }
        return Judgement::from_subjects(vec![subject]);
    }
    if context.closure_excludes(rule) {
        return Judgement::absent();
    }
    let has_locations = !context.presence.locations.is_empty();
    match (labels.has_names, &names, &rule.what) {
        (true, Names::Decide(_), Denied::Crate { .. }) if !has_locations => {
            Judgement::inconclusive(
                "no name of what is reached mentions it, but the binary has no panic locations to confirm that",
            )
        }
        (true, Names::Decide(_), _) | (true, _, Denied::Symbol { .. }) => Judgement::absent(),
        (true, Names::Ambiguous(_), _) => Judgement::inconclusive(
            "versions inside and outside of the rule have one name, and no panic location tells them apart",
        ),
        (false, _, _) => Judgement::inconclusive(
            "functions have no names, and those without a panic location cannot be told apart",
        ),
    }
}

/// The reached function with the shortest route, and how much more there is.
fn nearest(
    graph: &Graph,
    walk: &Walk,
    labels: &Labels<'_>,
    reached: &[usize],
) -> Option<(usize, Subject)> {
    let lengths: Vec<usize> = reached.iter().map(|index| walk.distance(*index)).collect();
    let shortest = lengths.iter().min()?;
    let index = reached
        .iter()
        .zip(&lengths)
        .filter(|(_, length)| *length == shortest)
        .map(|(index, _)| *index)
        .min_by_key(|index| (labels.display(graph, *index), *index))?;
    let route = walk.route(index);
    let bytes = reached.iter().fold(0_u64, |sum, index| {
        sum.saturating_add(graph.functions.list[*index].bytes())
    });
    let subject = Subject {
        name: labels.display(graph, index),
        evidence: vec![format!(
            "{} such {} with {bytes} bytes of code can be reached",
            reached.len(),
            if reached.len() == 1 {
                "function"
            } else {
                "functions"
            },
        )],
        route: labels.words(graph, &route),
        more_routes: Vec::new(),
    };
    Some((index, subject))
}
