//! What the call graph says about one rule.

use super::functions::names_of;
use super::graph::{Graph, Node};
use super::walk::Walk;
use crate::binary::{Image, owning_paths};
use crate::layer::{Judgement, Subject};
use crate::policy::{Denied, DenyRule, SymbolPattern, fold_name};
use crate::present::{Judge, Names, Owner, PathClass, Presence};
use std::collections::{BTreeMap, BTreeSet};

/// What is known about each function: its names, and whose panic locations it uses.
pub(crate) struct Labels {
    /// By function: demangled name for people, `0x…` without symbols.
    pub(crate) display: Vec<String>,
    /// By function: names for exact matches.
    pub(crate) plain: Vec<Vec<String>>,
    /// By function: paths whose code it is.
    paths: Vec<BTreeSet<String>>,
    /// By function: owners of the locations that it refers to.
    owners: Vec<BTreeSet<Owner>>,
    /// Whether there are names at all.
    pub(crate) has_names: bool,
}

/// Labels every function of `graph`.
pub(crate) fn labels(graph: &Graph, image: &Image<'_>, presence: &Presence) -> Labels {
    let places: BTreeMap<u64, &Owner> = presence
        .locations
        .iter()
        .filter(|location| location.owner.class != PathClass::Other)
        .map(|location| (location.place, &location.owner))
        .collect();
    let mut labels = Labels {
        display: Vec::new(),
        plain: Vec::new(),
        paths: Vec::new(),
        owners: Vec::new(),
        has_names: presence.symbols.is_some(),
    };
    for (function, references) in graph.functions.list.iter().zip(&graph.references.of) {
        let known = names_of(function, image);
        let mut paths = BTreeSet::new();
        for name in known.iter().filter(|name| name.is_rust) {
            paths.extend(owning_paths(&name.display).into_iter().map(str::to_owned));
        }
        let first = known.iter().map(|name| name.display.clone()).min();
        labels
            .display
            .push(first.unwrap_or_else(|| format!("code at {:#x}", function.start)));
        labels
            .plain
            .push(known.into_iter().map(|name| name.plain).collect());
        labels.paths.push(paths);
        let used = references.iter().filter_map(|r| places.get(&r.target));
        labels
            .owners
            .push(used.map(|owner| (*owner).clone()).collect());
    }
    labels
}

impl Labels {
    /// Functions whose exact path is `name`, or whose whole name it is: drop glue has no
    /// other (`core::ptr::drop_in_place<a::T>`).
    pub(crate) fn find(&self, name: &str) -> Vec<usize> {
        let is_named = |index: &usize| {
            self.plain[*index].iter().any(|plain| plain == name)
                || self.display[*index].replace("::<", "<") == name
        };
        (0..self.display.len()).filter(is_named).collect()
    }

    /// Functions that are `name`, or whose paths begin with it when it ends in `*`.
    pub(crate) fn find_sources(&self, name: &str) -> Vec<usize> {
        let Some(prefix) = name.strip_suffix('*') else {
            return self.find(name);
        };
        (0..self.display.len())
            .filter(|index| {
                self.plain[*index]
                    .iter()
                    .any(|plain| plain.starts_with(prefix))
            })
            .collect()
    }

    /// Whether any function answers to `pattern`.
    pub(crate) fn any_matches(&self, pattern: &SymbolPattern) -> bool {
        (0..self.display.len()).any(|index| self.matches(index, pattern))
    }

    fn matches(&self, index: usize, pattern: &SymbolPattern) -> bool {
        self.plain[index].iter().any(|name| pattern.matches(name))
            || self.paths[index].iter().any(|path| pattern.matches(path))
    }

    fn mentions(&self, index: usize, crates: &BTreeSet<String>) -> bool {
        self.paths[index].iter().any(|path| {
            path.split_once("::")
                .is_some_and(|(root, _)| crates.contains(&fold_name(root)))
        })
    }

    /// A route in words; pieces of data say that a table is on the way.
    pub(crate) fn words(&self, graph: &Graph, route: &[Node]) -> Vec<String> {
        route
            .iter()
            .map(|node| match node {
                Node::Function(index) => self.display[*index].clone(),
                Node::Piece(index) => format!("(data at {:#x})", graph.pieces[*index]),
            })
            .collect()
    }
}

/// Judges one rule on one walk.
pub(crate) fn judge(
    graph: &Graph,
    walk: &Walk,
    labels: &Labels,
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
    let by_location = |index: usize| {
        labels.owners[index].iter().any(|owner| {
            !matches!(owner.class, PathClass::Std) && context.owner_is_denied(rule, owner)
        })
    };
    let reached: Vec<usize> = (0..labels.display.len())
        .filter(|index| walk.reaches(*index) && (by_name(*index) || by_location(*index)))
        .collect();
    if let Some((index, mut subject)) = nearest(graph, walk, labels, &reached) {
        if !by_name(index) {
            let whose = labels.owners[index].iter();
            let denied = whose.filter(|owner| context.owner_is_denied(rule, owner));
            subject.evidence.extend(
                denied.map(|owner| format!("it uses panic locations of {}", owner.label())),
            );
        }
        return Judgement::from_subjects(vec![subject]);
    }
    if context.closure_excludes(rule) {
        return Judgement::absent();
    }
    match (labels.has_names, &names, &rule.what) {
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
    labels: &Labels,
    reached: &[usize],
) -> Option<(usize, Subject)> {
    let (route, index) = reached
        .iter()
        .map(|index| (walk.route(*index), *index))
        .min_by_key(|(route, index)| (route.len(), labels.display[*index].clone(), *index))?;
    let bytes = reached.iter().fold(0_u64, |sum, index| {
        sum.saturating_add(graph.functions.list[*index].bytes())
    });
    let subject = Subject {
        name: labels.display[index].clone(),
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
