//! The verdict table: what four layers say, at the level that the policy asks for.
//!
//! Layers outside of the level state facts; the level's own layer decides. Code in
//! the binary that the certain closure does not explain is a violation at any level.

use super::edges::{Most, cut_edges, stale_edges};
use super::findings;
use super::{Inspection, LayerReport, PathReport};
use crate::binary::Link;
use crate::evidence::Evidence;
use crate::finding::{Code, Finding};
use crate::layer::{Answer, Judgement, Layer};
use crate::linked;
use crate::packages::{self, Routes};
use crate::policy::{Date, Denied, DenyRule, StartPath, SymbolPattern, Unmatched};
use crate::present::{Judge, paths_matching};
use crate::reachable::{
    Graph, Labels, Node, Source, Walk, build as build_graph, entry_roots, judge as judge_reachable,
    labels, walk,
};
use std::collections::{BTreeMap, BTreeSet};

/// What the caller wants besides the policy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CheckOptions {
    /// The day on which lazy edges are looked at.
    pub(crate) today: Date,
    pub(crate) routes: Routes,
    pub(crate) source: Source,
}

/// Judges one path on one build that was looked at.
pub(crate) fn check_path(
    path: &StartPath,
    evidence: &Evidence,
    seen: &Inspection<'_>,
    options: CheckOptions,
) -> PathReport {
    let mut report = PathReport {
        name: path.name.clone(),
        program: program_label(evidence),
        level: path.level,
        inputs: evidence.inputs(),
        layers: Vec::new(),
        findings: Vec::new(),
    };
    if let Some(unlike) = &seen.unlike {
        report.findings.push(
            Finding::new(
                Code::TwinMismatch,
                evidence.record.shipped.name.clone(),
                "build again with `guard build`",
            )
            .with_evidence(vec![unlike.to_string()]),
        );
        return report;
    }
    if !seen.difference.is_empty() {
        report.findings.push(closure_differs(seen));
    }
    if !seen.presence.is_rust() && path.level >= Layer::Present {
        report.findings.push(
            Finding::new(
                Code::NotRust,
                evidence.record.shipped.name.clone(),
                "name a Rust program, or build without `-Zlocation-detail=none`",
            )
            .with_evidence(vec!["no Rust symbol and no panic location".to_owned()]),
        );
    }
    let context = Judge {
        presence: &seen.presence,
        workspace: &seen.workspace,
        closure: &seen.closure,
        closure_is_certain: seen.difference.is_empty(),
        named: named_code(path, seen),
    };
    report
        .layers
        .push(packages_layer(path, seen, options.routes));
    report.layers.push(linked_layer(path, seen, &context));
    report.layers.push(present_layer(path, seen, &context));
    if path.level == Layer::Reachable {
        reachable_layer(path, seen, &context, options, &mut report);
    }
    report
        .findings
        .extend(stale_edges(path, seen, options.today));
    report.findings.extend(unmatched_rules(path, seen));
    for (index, rule) in path.deny.iter().enumerate() {
        let decided = rule_findings(path.level, rule, index, &report.layers);
        report.findings.extend(decided);
    }
    report
        .findings
        .sort_by_key(|finding| (finding.code.severity(), finding.code));
    report
}

/// What the path's rules for symbols name in the binary.
fn named_code<'p>(
    path: &'p StartPath,
    seen: &Inspection<'_>,
) -> BTreeMap<&'p str, BTreeSet<String>> {
    let patterns = path.deny.iter().filter_map(|rule| match &rule.what {
        Denied::Symbol { pattern } => Some(pattern),
        Denied::Crate { .. } => None,
    });
    let patterns: Vec<&SymbolPattern> = patterns.collect();
    let found = paths_matching(&seen.image, &patterns);
    let texts = patterns.into_iter().map(SymbolPattern::text);
    texts.zip(found).collect()
}

fn program_label(evidence: &Evidence) -> String {
    let record = &evidence.record;
    let mut parts = vec![
        format!("{} of {}", record.bin, record.package),
        format!("profile {}", record.profile),
        record.target.clone(),
    ];
    if !record.default_features {
        parts.push("no default features".to_owned());
    }
    if !record.features.is_empty() {
        parts.push(format!("features {}", record.features.join(" ")));
    }
    if !record.together_with.is_empty() {
        parts.push(format!(
            "built together with {}",
            record.together_with.join(" ")
        ));
    }
    parts.join(", ")
}

fn closure_differs(seen: &Inspection<'_>) -> Finding {
    let difference = &seen.difference;
    let mut evidence: Vec<String> = Vec::new();
    let lists = [
        ("predicted, not built", &difference.only_predicted),
        ("built, not predicted", &difference.only_built),
        ("other features", &difference.features),
    ];
    for (title, list) in lists {
        evidence.extend(list.iter().map(|item| format!("{title}: {item}")));
    }
    Finding::new(
        Code::ClosureDiffers,
        "closure",
        "build with exactly the policy's features, target and profile; if they agree, this is a defect of the prediction",
    )
    .at(Layer::Packages)
    .with_evidence(evidence)
}

fn judged(path: &StartPath, judge: impl Fn(&DenyRule) -> Judgement) -> Vec<(String, Judgement)> {
    path.deny
        .iter()
        .map(|rule| (rule.label(), judge(rule)))
        .collect()
}

fn packages_layer(path: &StartPath, seen: &Inspection<'_>, routes: Routes) -> LayerReport {
    let agreement = if seen.difference.is_empty() {
        "the artifact stream agrees"
    } else {
        "the artifact stream differs"
    };
    LayerReport {
        layer: Layer::Packages,
        saw: vec![
            format!("{} packages in the closure", seen.closure.packages.len()),
            agreement.to_owned(),
        ],
        rules: judged(path, |rule| {
            packages::judge(&seen.workspace, &seen.closure, rule, routes)
        }),
    }
}

fn linked_layer(path: &StartPath, seen: &Inspection<'_>, context: &Judge<'_>) -> LayerReport {
    let saw = match &seen.linked {
        Some(linked) => format!("{} packages given to the linker", linked.packages.len()),
        None => "no packages in the linker's arguments".to_owned(),
    };
    LayerReport {
        layer: Layer::Linked,
        saw: vec![saw],
        rules: judged(path, |rule| {
            linked::judge(
                seen.linked.as_ref(),
                &seen.workspace,
                &seen.closure,
                context.closure_is_certain,
                rule,
            )
        }),
    }
}

fn present_layer(path: &StartPath, seen: &Inspection<'_>, context: &Judge<'_>) -> LayerReport {
    let presence = &seen.presence;
    let mut saw = vec![match &presence.symbols {
        Some(table) => format!(
            "{} Rust symbols, {} legacy and {} v0",
            table.count,
            table.legacy,
            table.count - table.legacy
        ),
        None => "no Rust symbols (stripped)".to_owned(),
    }];
    saw.push(format!("{} panic locations", presence.locations.len()));
    if presence.has_audit_list {
        saw.push("an audit list of packages, a hint only".to_owned());
    }
    LayerReport {
        layer: Layer::Present,
        saw,
        rules: judged(path, |rule| context.judge(rule)),
    }
}

fn reachable_layer(
    path: &StartPath,
    seen: &Inspection<'_>,
    context: &Judge<'_>,
    options: CheckOptions,
    report: &mut PathReport,
) {
    let Some(graph) = build_graph(&seen.image, &seen.pointers, options.source) else {
        report.findings.push(
            Finding::new(
                Code::LayerInconclusive,
                "call graph",
                "link with -Wl,--emit-relocs, or let the instructions be decoded",
            )
            .at(Layer::Reachable)
            .with_evidence(vec!["the linker kept no relocations".to_owned()]),
        );
        return;
    };
    let labels = labels(&graph, &seen.image, &seen.presence);
    let allowed = cut_edges(path, &graph, &labels, &mut report.findings);
    let roots = roots_of(path, seen, &graph, &labels, &mut report.findings);
    let reached = walk(&graph, &roots, &allowed.cut);
    let certain = match &allowed.most {
        Most::Some { cut, .. } => Some(walk(&graph, &roots, cut)),
        Most::Nothing | Most::Anything { .. } => None,
    };
    if !path.roots.is_empty() && !roots.is_empty() {
        report.findings.push(interior_root(path, &graph, &reached));
    }
    let rules = judged(path, |rule| {
        if roots.is_empty() {
            return Judgement::inconclusive("there is no root to start from");
        }
        let judge = |walk: &Walk| judge_reachable(&graph, walk, &labels, context, rule);
        let said = judge(&reached);
        if said.answer == Answer::Found {
            without_broken_edges(said, &allowed.most, certain.as_ref().map(judge))
        } else {
            said
        }
    });
    report.findings.extend(unmatched_symbols(path, &labels));
    report.layers.push(LayerReport {
        layer: Layer::Reachable,
        saw: what_was_seen(seen, &graph, &reached, allowed.cut.edges.len()),
        rules,
    });
}

/// What stays of something found, when edges with a missing end may have excused it:
/// `certain` is what was found with all that they could excuse cut.
fn without_broken_edges(found: Judgement, most: &Most, certain: Option<Judgement>) -> Judgement {
    let (Most::Some { edges, .. } | Most::Anything { edges }) = most else {
        return found;
    };
    match certain {
        Some(certain) if certain.answer == Answer::Found => certain,
        _ => Judgement::inconclusive(format!(
            "it is reached, perhaps only by what the policy allows: an end is missing of {}",
            edges.join(", ")
        )),
    }
}

fn what_was_seen(seen: &Inspection<'_>, graph: &Graph, reached: &Walk, cut: usize) -> Vec<String> {
    let (functions, bytes) = reached.size(graph);
    let mut saw = vec![
        format!(
            "{} functions, {} by symbols and {} more by unwind tables",
            graph.functions.list.len(),
            graph.functions.from_symbols,
            graph.functions.from_unwind
        ),
        format!("references from {}", graph.source.describe()),
        format!(
            "{functions} functions with {bytes} of {} bytes of code reached",
            seen.image.code_bytes()
        ),
        format!("{cut} edges cut"),
    ];
    if seen.image.link == Link::Fixed {
        saw.push("fixed addresses: words that look like pointers count as such".to_owned());
    }
    saw
}

fn roots_of(
    path: &StartPath,
    seen: &Inspection<'_>,
    graph: &Graph,
    labels: &Labels<'_>,
    found: &mut Vec<Finding>,
) -> Vec<Node> {
    if path.roots.is_empty() {
        let roots = entry_roots(&seen.image, graph);
        if graph.functions.at(seen.image.entry).is_none() {
            found.push(root_missing("the program's entry"));
        }
        return roots;
    }
    let mut roots = Vec::new();
    for name in &path.roots {
        let named = labels.find(graph, name);
        if named.is_empty() {
            found.push(root_missing(name));
        }
        roots.extend(named.into_iter().map(Node::Function));
    }
    roots
}

fn root_missing(name: &str) -> Finding {
    Finding::new(
        Code::RootMissing,
        name,
        "mark it #[inline(never)] and name it by its full path, or leave `roots` out to start at the entry",
    )
    .at(Layer::Reachable)
}

fn interior_root(path: &StartPath, graph: &Graph, reached: &Walk) -> Finding {
    let evidence = match graph.source {
        Source::Decoded => format!(
            "{} indirect calls in what was reached may lead to objects made elsewhere",
            reached.indirect
        ),
        Source::Relocations => {
            "relocations do not show indirect calls, which may lead to objects made elsewhere"
                .to_owned()
        }
    };
    Finding::new(
        Code::InteriorRoot,
        path.roots.join(", "),
        "leave `roots` out to start at the entry, with the lazy edges named",
    )
    .at(Layer::Reachable)
    .with_evidence(vec![evidence])
}

fn unmatched(rule: &DenyRule, evidence: &str) -> Finding {
    Finding::new(
        Code::RuleUnmatched,
        rule.label(),
        "correct the name, or write unmatched = \"allow\" for a ban on what may come",
    )
    .of_rule(rule.label())
    .with_evidence(vec![evidence.to_owned()])
}

/// Crate rules that name no package of the lock file.
fn unmatched_rules(path: &StartPath, seen: &Inspection<'_>) -> Vec<Finding> {
    path.deny
        .iter()
        .filter(|rule| rule.unmatched == Unmatched::Fails)
        .filter(|rule| matches!(rule.what, Denied::Crate { .. }))
        .filter(|rule| packages::matching_known(&seen.workspace, rule).is_empty())
        .map(|rule| {
            unmatched(
                rule,
                "no package of the workspace or its dependencies has such a name and version",
            )
        })
        .collect()
}

/// Symbol rules that name no function of a program whose functions have names.
fn unmatched_symbols(path: &StartPath, labels: &Labels<'_>) -> Vec<Finding> {
    if !labels.has_names {
        return Vec::new();
    }
    path.deny
        .iter()
        .filter(|rule| rule.unmatched == Unmatched::Fails)
        .filter(|rule| match &rule.what {
            Denied::Symbol { pattern } => !labels.any_matches(pattern),
            Denied::Crate { .. } => false,
        })
        .map(|rule| unmatched(rule, "no function of the program has such a path"))
        .collect()
}

/// The verdict table for one rule.
fn rule_findings(
    level: Layer,
    rule: &DenyRule,
    index: usize,
    layers: &[LayerReport],
) -> Vec<Finding> {
    let said = |layer: Layer| {
        layers
            .iter()
            .find(|report| report.layer == layer)
            .and_then(|report| report.rules.get(index))
            .map(|(_, judgement)| judgement)
    };
    let (Some(packages), Some(present)) = (said(Layer::Packages), said(Layer::Present)) else {
        return Vec::new();
    };
    if packages.answer == Answer::Absent && present.answer == Answer::Found {
        return present
            .subjects
            .iter()
            .map(|subject| findings::surprise(rule, subject))
            .collect();
    }
    let Some(decisive) = said(level) else {
        return Vec::new();
    };
    match decisive.answer {
        Answer::Found => findings::denied(level, rule, decisive, packages),
        Answer::Inconclusive => vec![findings::inconclusive(level, rule, &decisive.reason)],
        Answer::NotAsked => Vec::new(),
        Answer::Absent => declared_only(rule, packages, present).into_iter().collect(),
    }
}

fn declared_only(rule: &DenyRule, packages: &Judgement, present: &Judgement) -> Option<Finding> {
    let unused = packages.answer == Answer::Found && present.answer == Answer::Absent;
    unused.then(|| {
        let names: Vec<&str> = packages.subjects.iter().map(|s| s.name.as_str()).collect();
        Finding::new(
            Code::DeclaredNotPresent,
            names.join(", "),
            "drop the dependency where it is declared",
        )
        .at(Layer::Present)
        .of_rule(rule.label())
    })
}
