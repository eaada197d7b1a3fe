//! The lazy edges of a policy: which pairs of functions they cut, and which of them
//! no longer hold. An exemption that excuses nothing is a finding.

use super::Inspection;
use crate::finding::{Code, Finding};
use crate::layer::Layer;
use crate::policy::{Date, Lazy, LazyEdge, StartPath};
use crate::reachable::{Cut, Graph, Labels, Node};

/// What the lazy edges of a path allow.
pub(super) struct Allowed {
    /// What the edges cut that are in the program.
    pub(super) cut: Cut,
    /// What could be cut besides, if edges whose ends are missing were whole; none when
    /// every edge has its ends. What is found without all of it is found for certain.
    pub(super) most: Most,
}

/// The most that edges with a missing end could excuse.
pub(super) enum Most {
    /// No edge misses an end.
    Nothing,
    /// With one end known, everything behind or before it.
    Some { edges: Vec<String>, cut: Cut },
    /// An edge has neither end: it could excuse anything.
    Anything { edges: Vec<String> },
}

/// Finds the edges of a policy in the program; what cannot be cut is a finding.
pub(super) fn cut_edges(
    path: &StartPath,
    graph: &Graph,
    labels: &Labels<'_>,
    found: &mut Vec<Finding>,
) -> Allowed {
    let mut cut = Cut::default();
    let mut broken = Broken::default();
    for edge in &path.lazy {
        let Lazy::Call { from, to } = &edge.what else {
            continue;
        };
        let (sources, targets) = (labels.find_sources(graph, from), labels.find(graph, to));
        let ends = [(from, &sources), (to, &targets)];
        let missing: Vec<&str> = ends
            .iter()
            .filter(|(_, list)| list.is_empty())
            .map(|(name, _)| name.as_str())
            .collect();
        if !missing.is_empty() {
            found.push(endpoint_missing(edge, &missing));
            broken.add(edge, sources, targets);
            continue;
        }
        let pairs = pairs_between(graph, &sources, &targets);
        if pairs.is_empty() {
            found.push(edge_unmatched(edge));
        }
        cut.edges.extend(pairs);
    }
    Allowed {
        most: broken.most(&cut),
        cut,
    }
}

/// Edges of which an end is missing.
#[derive(Default)]
struct Broken {
    edges: Vec<String>,
    has_neither: bool,
    sources: Vec<usize>,
    targets: Vec<usize>,
}

impl Broken {
    fn add(&mut self, edge: &LazyEdge, sources: Vec<usize>, targets: Vec<usize>) {
        self.edges.push(edge.label());
        self.has_neither |= sources.is_empty() && targets.is_empty();
        self.sources.extend(sources);
        self.targets.extend(targets);
    }

    fn most(self, cut: &Cut) -> Most {
        let edges = self.edges;
        if edges.is_empty() {
            return Most::Nothing;
        }
        if self.has_neither {
            return Most::Anything { edges };
        }
        let mut cut = cut.clone();
        cut.sources.extend(self.sources);
        cut.targets.extend(self.targets);
        Most::Some { edges, cut }
    }
}

/// Steps from one of `sources` to one of `targets` that the program has.
fn pairs_between(graph: &Graph, sources: &[usize], targets: &[usize]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    let mut nodes = Vec::new();
    for source in sources {
        nodes.clear();
        for reference in &graph.references.of[*source] {
            graph.targets(*reference, &mut nodes);
        }
        let taken = targets
            .iter()
            .filter(|target| nodes.contains(&Node::Function(**target)));
        pairs.extend(taken.map(|target| (*source, *target)));
    }
    pairs
}

fn endpoint_missing(edge: &LazyEdge, missing: &[&str]) -> Finding {
    Finding::new(
        Code::LazyEndpointMissing,
        edge.label(),
        "mark both functions #[inline(never)], name them by their full path, and judge a build with symbols",
    )
    .at(Layer::Reachable)
    .with_evidence(
        missing
            .iter()
            .map(|name| format!("no function is named `{name}`"))
            .collect(),
    )
}

fn edge_unmatched(edge: &LazyEdge) -> Finding {
    let hint = match &edge.what {
        Lazy::Call { .. } => "remove the edge, or name the function that contains the call",
        Lazy::Dlopen { .. } => {
            "remove the edge, or name the library as the program gives it to dlopen"
        }
        Lazy::Exec { .. } => "remove the edge, or name the other program as this one starts it",
    };
    Finding::new(Code::LazyUnmatched, edge.label(), hint)
        .with_evidence(vec![format!("its reason was: {}", edge.reason)])
}

/// Edges past their date, and libraries that are needed at start although the policy
/// says that they are loaded late.
pub(super) fn stale_edges(path: &StartPath, seen: &Inspection<'_>, today: Date) -> Vec<Finding> {
    let mut found = Vec::new();
    for edge in &path.lazy {
        if let Some(day) = edge.expires.filter(|day| *day < today) {
            found.push(
                Finding::new(
                    Code::LazyExpired,
                    edge.label(),
                    "remove the edge, or give it a later day and a reason that still holds",
                )
                .with_evidence(vec![
                    format!("it expired on {day}"),
                    format!("its reason was: {}", edge.reason),
                ]),
            );
        }
        match &edge.what {
            Lazy::Call { .. } => {}
            Lazy::Dlopen { library } => found.extend(check_dlopen(edge, library, seen)),
            Lazy::Exec { program } => {
                if !mentions(seen, program) {
                    found.push(edge_unmatched(edge));
                }
            }
        }
    }
    found
}

fn check_dlopen(edge: &LazyEdge, library: &str, seen: &Inspection<'_>) -> Option<Finding> {
    let image = &seen.image;
    if image.needed.iter().any(|needed| needed == library) {
        return Some(
            Finding::new(
                Code::LazyEagerlyNeeded,
                edge.label(),
                "do not link the library; open it with dlopen",
            )
            .with_evidence(vec![format!("`{library}` is in DT_NEEDED")]),
        );
    }
    let loads = image.imports.iter().any(|name| name == "dlopen")
        || image.symbols.iter().any(|symbol| symbol.name == "dlopen");
    (!loads || !mentions(seen, library)).then(|| edge_unmatched(edge))
}

/// Whether a name stands in the program's constants. Good enough to say that an
/// exemption is stale, never to say that something is there.
fn mentions(seen: &Inspection<'_>, name: &str) -> bool {
    let needle = name.as_bytes();
    seen.image
        .sections
        .iter()
        .filter(|section| !section.executable)
        .any(|section| holds(section.bytes, needle))
}

fn holds(bytes: &[u8], needle: &[u8]) -> bool {
    let Some(first) = needle.first() else {
        return false;
    };
    bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| *byte == first)
        .any(|(at, _)| bytes[at..].starts_with(needle))
}
