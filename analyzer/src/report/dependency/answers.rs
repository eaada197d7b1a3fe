//! What one run's dependency graph answers.

use std::collections::{BTreeMap, BTreeSet};

use crate::breakdown::client;
use crate::breakdown::store::WindowView;
use crate::chain::Run;
use crate::chain::metrics::{Figure, source_of};
use crate::model::lens::Lens;
use crate::model::metric_rules::{Edge, MetricSource};
use crate::model::window_rules::Unit;
use crate::retime::activities::{RunGraph, StageKey};
use crate::retime::change::Scope;
use crate::retime::drag::drag;
use crate::retime::graph::{Node, Place, end_of, start_of};
use crate::retime::names::Names;
use crate::retime::replay::{Instants, replay};
use crate::retime::slack::Latest;

use super::super::build::Row;
use super::{Asked, Drags};

/// What is asked, its stages looked up.
pub(super) struct Question<'q, 'a> {
    pub(super) asked: &'q Asked,
    /// Stages of each change.
    pub(super) stages: Vec<Vec<StageKey<'a>>>,
    /// Stages whose place in time is assumed.
    pub(super) placed: BTreeSet<StageKey<'a>>,
}

/// All stages of the runs, and those that were placed.
pub(super) fn names_of<'a>(
    lens: &Lens<'a>,
    rows: &[&Row<'a>],
) -> (Names<'a>, BTreeSet<StageKey<'a>>) {
    let (mut names, mut placed) = (Names::default(), BTreeSet::new());
    for window in rows.iter().flat_map(|row| row.windows()) {
        if window.name == client::WINDOW {
            continue;
        }
        let whole = StageKey {
            window: window.name,
            stage: window.name,
        };
        names.note(whole, None);
        for stage in window.stages.iter().filter(|stage| stage.present) {
            let key = StageKey {
                window: window.name,
                stage: stage.name,
            };
            let span = stage.spans.first();
            names.note(
                key,
                span.map(|span| lens.data.names.text(lens.data.span(*span).name)),
            );
            if stage.placed {
                placed.insert(key);
            }
        }
    }
    (names, placed)
}

/// A total before and after, in nanoseconds.
pub(super) type Pair = (f64, f64);

/// What one run answers.
pub(super) struct Answer<'a> {
    /// By place of the metric in the model.
    pub(super) metrics: BTreeMap<usize, (Pair, bool)>,
    pub(super) windows: Vec<(&'a str, Pair)>,
    pub(super) stages: Vec<(StageKey<'a>, Pair)>,
    /// Time and work of each change's stages; `None` where the run has none.
    pub(super) changes: Vec<Option<Pair>>,
    pub(super) drags: Vec<(StageKey<'a>, Stage)>,
}

/// Figures of one stage in one run.
#[derive(Clone, Copy)]
pub(super) struct Stage {
    pub(super) time: f64,
    pub(super) work: f64,
    pub(super) drag: f64,
    pub(super) slack: Option<f64>,
}

/// `None` for a run without a session in its graph.
pub(super) fn answer<'a>(
    lens: &Lens<'a>,
    row: &Row<'a>,
    question: &Question<'_, 'a>,
) -> Option<Answer<'a>> {
    let views: Vec<&Run<'_>> = row.views().collect();
    let windows: Vec<WindowView<'a>> = row.windows().collect();
    let graph = RunGraph::of(lens, &views, &windows);
    let end = graph.session(lens, row.run)?;
    let drags = match question.asked.drag {
        Drags::Taken => drags(&graph, end),
        Drags::Left => Vec::new(),
    };
    let mut lengths = graph.graph.lengths();
    let changes = question.asked.changes.iter().zip(&question.stages);
    let changes = changes.map(|(change, keys)| {
        let own: Vec<Place> = keys
            .iter()
            .filter_map(|key| graph.stages.get(key))
            .flatten()
            .copied()
            .collect();
        let scope = Scope::of(&graph.graph, |place| own.contains(&place));
        scope.apply(&graph.graph, change.amount, &mut lengths);
        (!scope.is_empty()).then(|| (time_of(&graph, &scope), scope.work(&graph.graph).0 as f64))
    });
    let changes = changes.collect();
    let after = replay(&graph.graph, &lengths);
    let of = |places: &[Place], sum: Sum| {
        (
            length(&graph, places, sum, None),
            length(&graph, places, sum, Some(&after)),
        )
    };
    Some(Answer {
        metrics: metrics(lens, row, &graph, &after, end),
        windows: graph
            .windows
            .iter()
            .map(|(name, places)| (*name, of(places, Sum::Envelope)))
            .collect(),
        stages: graph
            .stages
            .iter()
            .filter(|(key, _)| key.window != key.stage)
            .map(|(key, places)| (*key, of(places, Sum::Each)))
            .collect(),
        changes,
        drags,
    })
}

/// How the times of several activities make one.
#[derive(Clone, Copy)]
enum Sum {
    /// From the first start to the last end.
    Envelope,
    /// All of them added up.
    Each,
}

/// Length of some activities, as measured or `after` a change.
fn length(graph: &RunGraph<'_>, places: &[Place], sum: Sum, after: Option<&Instants>) -> f64 {
    let at = |node: Node| match after {
        None => graph.graph.measured(node).0,
        Some(after) => after.at(node).0,
    };
    let ends = places
        .iter()
        .map(|place| (at(start_of(*place)), at(end_of(*place))));
    let nanos = match sum {
        Sum::Each => ends.map(|(start, end)| end - start).sum(),
        Sum::Envelope => {
            let first = ends.clone().map(|(start, _)| start).min();
            let last = ends.map(|(_, end)| end).max();
            last.unwrap_or(0) - first.unwrap_or(0)
        }
    };
    nanos as f64
}

fn time_of(graph: &RunGraph<'_>, scope: &Scope) -> f64 {
    let places: Vec<Place> = scope.tops().collect();
    length(graph, &places, Sum::Each, None)
}

fn drags<'a>(graph: &RunGraph<'a>, end: Node) -> Vec<(StageKey<'a>, Stage)> {
    let latest = Latest::of(&graph.graph, end);
    let stages = graph
        .stages
        .iter()
        .filter(|(key, _)| key.window != key.stage);
    let of = |(key, places): (&StageKey<'a>, &Vec<Place>)| {
        let scope = Scope::of(&graph.graph, |place| places.contains(&place));
        let figures = Stage {
            time: time_of(graph, &scope),
            work: scope.work(&graph.graph).0 as f64,
            drag: drag(&graph.graph, &scope, end).0 as f64,
            slack: latest
                .slack(&graph.graph, &scope)
                .map(|slack| slack.0 as f64),
        };
        (*key, figures)
    };
    stages.map(of).collect()
}

/// Metrics of time whose both ends the graph knows, and those of client records
/// that end with the session: they move with the end of its request.
fn metrics<'a>(
    lens: &Lens<'a>,
    row: &Row<'a>,
    graph: &RunGraph<'a>,
    after: &Instants,
    session: Node,
) -> BTreeMap<usize, (Pair, bool)> {
    let moved = |node: Node| (after.at(node).0 - graph.graph.measured(node).0) as f64;
    let node = |(edge, kind): &(Edge, String)| {
        let place = graph.place(row.run.first(lens, kind)?)?;
        Some(match edge {
            Edge::Start => start_of(place),
            Edge::End => end_of(place),
        })
    };
    let of = |(column, figure): (usize, &Figure<'_>)| {
        let rule = lens
            .model
            .metrics
            .get(column)
            .filter(|rule| rule.unit == Unit::Ms)?;
        let Figure::Value(value) = figure else {
            return None;
        };
        let (shift, with_session) = match source_of(lens, row.run, rule)? {
            MetricSource::Between { from, to, .. } => {
                let (from, to) = (node(from)?, node(to)?);
                (moved(to) - moved(from), to == session)
            }
            MetricSource::Record {
                ends_with_session: true,
                ..
            } => {
                let request = graph.place(row.run.cold()?.span)?;
                (moved(end_of(request)), true)
            }
            MetricSource::Record { .. } | MetricSource::Attribute { .. } => return None,
        };
        let value = *value as f64;
        Some((column, ((value, value + shift), with_session)))
    };
    row.figures.iter().enumerate().filter_map(of).collect()
}
