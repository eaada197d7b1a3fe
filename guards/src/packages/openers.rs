//! Which feature opens an optional dependency, and who turned that feature on.
//!
//! Looks at declarations only where guppy says that the feature is on, so what it
//! names was really asked for; of several askers it names the first by name.

use super::{Closure, Edge, Workspace};
use std::collections::BTreeSet;

/// Longest chain of features that is followed: far above what manifests have, and
/// a bound for those that are made to be bad.
const CHAIN_MAX: usize = 32;

/// Says in words how `edge` is opened; `None` when it is always open.
pub(super) fn opener(workspace: &Workspace, closure: &Closure, edge: &Edge) -> Option<String> {
    if !edge.optional {
        return None;
    }
    let declared = &workspace.declared.get(&edge.from)?.features;
    let enabled = closure.packages.get(&edge.from)?;
    let opens = |items: &[String]| items.iter().any(|item| names_dependency(item, edge));
    let first = enabled
        .iter()
        .find(|feature| declared.get(*feature).is_some_and(|items| opens(items)))?;
    let mut chain = vec![first.clone()];
    let asker = loop {
        let last = chain.last()?;
        if let Some(asker) = asker_of(workspace, closure, &edge.from, last) {
            break Some(asker);
        }
        let above = enabled.iter().find(|feature| {
            !chain.contains(feature)
                && declared
                    .get(*feature)
                    .is_some_and(|items| items.contains(last))
        });
        match above {
            Some(feature) if chain.len() < CHAIN_MAX => chain.push(feature.clone()),
            _ => break None,
        }
    };
    let package = &workspace.known.get(&edge.from)?.name;
    let words: Vec<String> = chain
        .iter()
        .map(|feature| format!("`{package}/{feature}`"))
        .collect();
    let by = asker.map_or_else(String::new, |asker| format!(", turned on by {asker}"));
    Some(format!("feature {}{by}", words.join(" of ")))
}

/// Whether an entry of a feature table opens the dependency of `edge`.
fn names_dependency(item: &str, edge: &Edge) -> bool {
    let name = item.strip_prefix("dep:").unwrap_or(item);
    let name = name.split_once('/').map_or(name, |(name, _)| name);
    // `x?/y` does not open `x`.
    !name.ends_with('?') && (name == edge.dependency_name || Some(name) == edge.rename.as_deref())
}

/// Who asks for `feature` of package `id` from outside.
fn asker_of(workspace: &Workspace, closure: &Closure, id: &str, feature: &str) -> Option<String> {
    if id == closure.program {
        return Some("the build of the program".to_owned());
    }
    let mut askers = BTreeSet::new();
    for edge in closure.edges.iter().filter(|edge| edge.to == id) {
        let Some(package) = workspace.declared.get(&edge.from) else {
            continue;
        };
        let own_name = |d: &cargo_metadata::Dependency| {
            d.rename.as_deref().unwrap_or(&d.name) == edge.dependency_name
        };
        for dependency in package.dependencies.iter().filter(|d| own_name(d)) {
            if dependency.features.iter().any(|asked| asked == feature) {
                askers.insert(format!("`{}`", package.name));
            } else if feature == "default" && dependency.uses_default_features {
                askers.insert(format!("`{}`, which keeps default features", package.name));
            }
        }
        let slashed = [
            format!("{}/{feature}", edge.dependency_name),
            format!("{}?/{feature}", edge.dependency_name),
        ];
        let on = closure.packages.get(&edge.from);
        for (name, items) in &package.features {
            let enabled = on.is_some_and(|on| on.contains(name));
            if enabled && items.iter().any(|item| slashed.contains(item)) {
                askers.insert(format!("`{}/{name}`", package.name));
            }
        }
    }
    if let Some(first) = askers.into_iter().next() {
        return Some(first);
    }
    // Only another program of the same cargo invocation can have asked.
    let is_initial = workspace
        .known
        .get(id)
        .is_some_and(|package| package.origin == super::Origin::Workspace);
    (is_initial
        && closure.invocation.len() > closure.packages.len()
        && feature_is_foreign(workspace, closure, id, feature))
    .then(|| other_member(workspace, closure, id, feature))
    .flatten()
}

fn feature_is_foreign(workspace: &Workspace, closure: &Closure, id: &str, feature: &str) -> bool {
    let declared = workspace.declared.get(id).map(|package| &package.features);
    let enabled = closure.packages.get(id);
    // A feature that another enabled one includes is explained by that one.
    !declared.is_some_and(|table| {
        table.iter().any(|(name, items)| {
            name != feature
                && items.iter().any(|item| item == feature)
                && enabled.is_some_and(|on| on.contains(name))
        })
    })
}

/// A package of the invocation outside the closure that asks for the feature.
fn other_member(
    workspace: &Workspace,
    closure: &Closure,
    id: &str,
    feature: &str,
) -> Option<String> {
    let target = &workspace.known.get(id)?.name;
    let mut others = closure
        .invocation
        .iter()
        .filter(|(other, _)| !closure.packages.contains_key(*other));
    let asker = others.find_map(|(other, enabled)| {
        let package = workspace.declared.get(other)?;
        let mut dependencies = package.dependencies.iter();
        dependencies.find_map(|dependency| {
            (dependency.name == *target)
                .then(|| asks_for(package, enabled, dependency, feature))
                .flatten()
        })
    })?;
    Some(format!("{asker}, built in the same cargo invocation"))
}

/// How `package`, with these features on, asks a dependency for `feature`.
fn asks_for(
    package: &cargo_metadata::Package,
    enabled: &BTreeSet<String>,
    dependency: &cargo_metadata::Dependency,
    feature: &str,
) -> Option<String> {
    let name = dependency.rename.as_deref().unwrap_or(&dependency.name);
    let slashed = format!("{name}/{feature}");
    let by_feature = enabled.iter().find(|own| {
        let items = package.features.get(*own);
        items.is_some_and(|items| items.contains(&slashed))
    });
    if dependency.features.iter().any(|asked| asked == feature) {
        Some(format!("`{}`", package.name))
    } else if let Some(own) = by_feature {
        Some(format!("`{}/{own}`", package.name))
    } else if feature == "default" && dependency.uses_default_features {
        Some(format!("`{}`, which keeps default features", package.name))
    } else {
        None
    }
}
