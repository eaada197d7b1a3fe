//! What the closure says about one rule.

use super::{Closure, Package, Workspace, all_routes, shortest_route};
use crate::layer::{Judgement, Subject};
use crate::policy::{Denied, DenyRule};

/// Whether one route is wanted for a finding, or all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Routes {
    Shortest,
    All,
}

/// Judges `rule`; symbols are not a question of packages.
pub(crate) fn judge(
    workspace: &Workspace,
    closure: &Closure,
    rule: &DenyRule,
    routes: Routes,
) -> Judgement {
    if matches!(rule.what, Denied::Symbol { .. }) {
        return Judgement::not_asked();
    }
    let mut offenders: Vec<&Package> = closure
        .packages
        .keys()
        .filter(|id| **id != closure.program)
        .filter_map(|id| workspace.known.get(id))
        .filter(|package| rule_names(rule, package))
        .collect();
    offenders.sort_by(|a, b| (&a.name, &a.version, &a.id).cmp(&(&b.name, &b.version, &b.id)));
    let subjects: Vec<Subject> = offenders
        .into_iter()
        .map(|package| Subject {
            name: package.label(),
            evidence: vec![source_line(package)],
            route: shortest_route(workspace, closure, &package.id),
            more_routes: match routes {
                Routes::Shortest => Vec::new(),
                Routes::All => all_routes(workspace, closure, &package.id)
                    .into_iter()
                    .skip(1)
                    .collect(),
            },
        })
        .collect();
    Judgement::from_subjects(fold_families(&subjects))
}

/// Offenders that another offender brings in are named there: a family such as
/// `ratatui*` has one entrance, and that is what there is to close.
fn fold_families(subjects: &[Subject]) -> Vec<Subject> {
    let passes = |inner: &Subject, outer: &Subject| {
        let hops = inner.route.len().saturating_sub(1);
        inner.route[..hops].iter().any(|hop| {
            hop.strip_prefix(&outer.name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(','))
        })
    };
    let (mut entrances, inner): (Vec<Subject>, Vec<Subject>) = subjects
        .iter()
        .cloned()
        .partition(|one| !subjects.iter().any(|other| passes(one, other)));
    for entrance in &mut entrances {
        let brought: Vec<&str> = inner
            .iter()
            .filter(|one| passes(one, entrance))
            .map(|one| one.name.as_str())
            .collect();
        if !brought.is_empty() {
            entrance
                .evidence
                .push(format!("brings in {}", brought.join(", ")));
        }
    }
    entrances
}

/// Packages that Cargo knows of, on any target and with any feature, that the rule names.
pub(crate) fn matching_known<'w>(workspace: &'w Workspace, rule: &DenyRule) -> Vec<&'w Package> {
    workspace
        .known
        .values()
        .filter(|package| rule_names(rule, package))
        .collect()
}

fn rule_names(rule: &DenyRule, package: &Package) -> bool {
    match &rule.what {
        Denied::Crate { pattern, version } => {
            package.answers_to(|name| pattern.matches(name))
                && version
                    .as_ref()
                    .is_none_or(|version| matches_version(version, &package.version))
        }
        Denied::Symbol { .. } => false,
    }
}

/// As `VersionReq`, but pre-releases count as the versions that they lead to: a ban
/// must not be passed by `2.0.0-rc.1`.
fn matches_version(wanted: &semver::VersionReq, version: &semver::Version) -> bool {
    let released = semver::Version::new(version.major, version.minor, version.patch);
    wanted.matches(version) || wanted.matches(&released)
}

fn source_line(package: &Package) -> String {
    match &package.lib_name {
        Some(lib) if lib.replace('-', "_") != package.name.replace('-', "_") => {
            format!("{} package, library `{lib}`", package.origin.name())
        }
        _ => format!("{} package", package.origin.name()),
    }
}
