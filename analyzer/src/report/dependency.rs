//! What the end would be if stages took another time, and how much each stage
//! adds to it: the runs' dependency graphs ([`retime`](crate::retime)) replayed,
//! and summarised over the runs of a cohort.
//!
//! Computed only when it is asked for. Nothing is pooled over cohorts.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::breakdown::client;
use crate::breakdown::store::WindowView;
use crate::chain::Run;
use crate::chain::metrics::{Figure, source_of};
use crate::halves::each;
use crate::model::lens::Lens;
use crate::model::metric_rules::{Edge, MetricSource};
use crate::model::window_rules::Unit;
use crate::retime::activities::{RunGraph, StageKey};
use crate::retime::change::{Change, Scope};
use crate::retime::drag::drag;
use crate::retime::graph::{Node, Place, end_of, start_of};
use crate::retime::names::{Names, UnknownStage};
use crate::retime::replay::{Instants, replay};
use crate::retime::slack::Latest;
use crate::stats::mover::{self, Estimate};
use crate::stats::order_interval::{OrderInterval, order_interval};
use crate::stats::quantile::{Definition, median, quantile, sorted};
use crate::units::Nanos;

use super::build::Row;
use super::summary::grain;

/// What is asked of the dependency graphs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// Changes that are made together; none predict nothing.
    pub changes: Vec<Change>,
    /// Whether drag and slack of every stage are wanted.
    pub drag: Drags,
}

/// Whether drag and slack are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Drags {
    /// They are not.
    #[default]
    Left,
    /// Of every stage.
    Taken,
}

/// Predictions and drags of one cohort.
#[derive(Clone, Debug, Serialize)]
pub struct DependencyReport {
    /// Cohort; empty where there is only one.
    pub cohort: String,
    /// Complete runs with a session, which are all that count here.
    pub n: usize,
    /// The changes, made together.
    pub changes: Vec<ChangeReport>,
    /// What comes of them: metrics in the model's order, then the windows and
    /// stages that change in any run.
    pub predictions: Vec<Prediction>,
    /// Drag and slack of every stage with work, the most drag first.
    pub stages: Vec<StageDependency>,
}

/// One change.
#[derive(Clone, Debug, Serialize)]
pub struct ChangeReport {
    /// Stage as it was named.
    pub stage: String,
    /// The change, as it was written.
    pub change: String,
    /// Runs that have the stage; in the others nothing is changed.
    pub n_present: usize,
    /// Median time of the stage in the runs that have it.
    pub time_p50: Option<Nanos>,
    /// Median of its work: its time without what it only waits.
    pub work_p50: Option<Nanos>,
    /// Whether its place in time is assumed, because the source has lengths only.
    pub placed: bool,
}

/// A total as it was and as it would be.
#[derive(Clone, Debug, Serialize)]
pub struct Prediction {
    /// `metric`, `window` or `stage`.
    pub kind: &'static str,
    /// Name; of a stage `WINDOW:STAGE`.
    pub name: String,
    /// Runs that have it.
    pub n: usize,
    /// Median as measured.
    pub p50: Option<Nanos>,
    /// Median as predicted.
    pub predicted_p50: Option<Nanos>,
    /// Median over runs of predicted − measured.
    pub change_p50: Option<Nanos>,
    /// 95 % order-statistic interval of that median.
    pub change_ci: Option<[Nanos; 2]>,
    /// Where an experiment of two new sets of as many runs would find the
    /// difference of the medians, at 95 %: MOVER of both medians' intervals.
    pub repeat_ci: Option<[Nanos; 2]>,
    /// Runs that the intervals need, where there are fewer.
    pub needs_n: Option<usize>,
    /// Whether it ends when the session is there.
    #[serde(skip)]
    pub ends_with_session: bool,
    /// Finest difference that its values show.
    #[serde(skip)]
    pub quantum: Nanos,
}

/// How much one stage adds to the session's end.
#[derive(Clone, Debug, Serialize)]
pub struct StageDependency {
    /// Window.
    pub window: String,
    /// Stage.
    pub name: String,
    /// Runs that have it.
    pub n_present: usize,
    /// Median of its time; 0 in runs without it, as of what follows.
    pub time_p50: Option<Nanos>,
    /// Median of its work.
    pub work_p50: Option<Nanos>,
    /// Median of its drag.
    pub drag_p50: Option<Nanos>,
    /// Median of its slack over the runs that have it; null where it may grow for
    /// ever in the half of them.
    pub slack_p50: Option<Nanos>,
    /// Runs in which it may grow for ever.
    pub n_never_limits: usize,
    /// Whether its place in time is assumed.
    pub placed: bool,
    /// Finest difference that its values show.
    #[serde(skip)]
    pub quantum: Nanos,
}

/// Computes what is asked, for each cohort by itself. Empty where nothing is.
///
/// # Errors
/// [`UnknownStage`] where a change names a stage that no run has.
pub(super) fn dependency(
    lens: &Lens<'_>,
    rows: &[&Row<'_>],
    cohorts: &[String],
    asked: &Asked,
) -> Result<Vec<DependencyReport>, UnknownStage> {
    if asked.changes.is_empty() && asked.drag == Drags::Left {
        return Ok(Vec::new());
    }
    let (names, placed) = names_of(lens, rows);
    let stages = asked.changes.iter().map(|change| names.find(&change.stage));
    let question = Question {
        asked,
        stages: stages.collect::<Result<_, _>>()?,
        placed,
    };
    let of = |cohort: Option<&String>| {
        let own = rows
            .iter()
            .filter(|row| cohort.is_none_or(|name| row.run.cohort == *name));
        let own: Vec<&Row<'_>> = own.copied().collect();
        let answers = each(&own, own.len(), |row| answer(lens, row, &question));
        let answers: Vec<Answer<'_>> = answers.into_iter().flatten().collect();
        report(lens, cohort.map_or("", String::as_str), &question, &answers)
    };
    Ok(if cohorts.is_empty() {
        vec![of(None)]
    } else {
        cohorts.iter().map(|cohort| of(Some(cohort))).collect()
    })
}

/// What is asked, its stages looked up.
struct Question<'q, 'a> {
    asked: &'q Asked,
    /// Stages of each change.
    stages: Vec<Vec<StageKey<'a>>>,
    /// Stages whose place in time is assumed.
    placed: BTreeSet<StageKey<'a>>,
}

/// All stages of the runs, and those that were placed.
fn names_of<'a>(lens: &Lens<'a>, rows: &[&Row<'a>]) -> (Names<'a>, BTreeSet<StageKey<'a>>) {
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
type Pair = (f64, f64);

/// What one run answers.
struct Answer<'a> {
    /// By place of the metric in the model.
    metrics: BTreeMap<usize, (Pair, bool)>,
    windows: Vec<(&'a str, Pair)>,
    stages: Vec<(StageKey<'a>, Pair)>,
    /// Time and work of each change's stages; `None` where the run has none.
    changes: Vec<Option<Pair>>,
    drags: Vec<(StageKey<'a>, Stage)>,
}

/// Figures of one stage in one run.
#[derive(Clone, Copy)]
struct Stage {
    time: f64,
    work: f64,
    drag: f64,
    slack: Option<f64>,
}

/// `None` for a run without a session in its graph.
fn answer<'a>(lens: &Lens<'a>, row: &Row<'a>, question: &Question<'_, 'a>) -> Option<Answer<'a>> {
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

fn report(
    lens: &Lens<'_>,
    cohort: &str,
    question: &Question<'_, '_>,
    answers: &[Answer<'_>],
) -> DependencyReport {
    let predictions = if question.asked.changes.is_empty() {
        Vec::new()
    } else {
        predictions(lens, answers)
    };
    DependencyReport {
        cohort: cohort.to_owned(),
        n: answers.len(),
        changes: changes(question, answers),
        predictions,
        stages: stages(question, answers),
    }
}

fn middle(values: &[f64]) -> Option<Nanos> {
    median(values).map(Nanos::rounded)
}

fn changes(question: &Question<'_, '_>, answers: &[Answer<'_>]) -> Vec<ChangeReport> {
    let asked = question
        .asked
        .changes
        .iter()
        .zip(&question.stages)
        .enumerate();
    let of = |(place, (change, keys)): (usize, (&Change, &Vec<StageKey<'_>>))| {
        let own = answers
            .iter()
            .filter_map(|answer| *answer.changes.get(place)?);
        let (times, works): (Vec<f64>, Vec<f64>) = own.unzip();
        ChangeReport {
            stage: change.stage.clone(),
            change: change.text.clone(),
            n_present: times.len(),
            time_p50: middle(&times),
            work_p50: middle(&works),
            placed: keys.iter().any(|key| question.placed.contains(key)),
        }
    };
    asked.map(of).collect()
}

/// Summarises a total before and after over the runs that have it.
fn prediction(
    kind: &'static str,
    name: String,
    pairs: &[Pair],
    ends_with_session: bool,
) -> Prediction {
    let (before, after): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let differences: Vec<f64> = pairs.iter().map(|(before, after)| after - before).collect();
    let (now, then, change) = (estimate(&before), estimate(&after), estimate(&differences));
    let both = |(low, high): (f64, f64)| [Nanos::rounded(low), Nanos::rounded(high)];
    Prediction {
        kind,
        name,
        n: pairs.len(),
        p50: middle(&before),
        predicted_p50: middle(&after),
        change_p50: middle(&differences),
        change_ci: change.map(|change| both((change.low, change.high))),
        repeat_ci: now
            .zip(then)
            .map(|(now, then)| both(mover::of_difference(now, then))),
        needs_n: match order_interval(pairs.len(), 0.5) {
            OrderInterval::NeedsN(n) => Some(n),
            OrderInterval::Between { .. } => None,
        },
        ends_with_session,
        quantum: grain(before.iter().chain(&differences).copied()),
    }
}

/// The median with its order-statistic interval; `None` of too few values.
fn estimate(values: &[f64]) -> Option<Estimate> {
    let sorted = sorted(values);
    let OrderInterval::Between { low, high } = order_interval(sorted.len(), 0.5) else {
        return None;
    };
    let at = |rank: usize| sorted.get(rank.checked_sub(1)?).copied();
    Some(Estimate {
        low: at(low)?,
        mid: quantile(&sorted, 0.5, Definition::Type7)?,
        high: at(high)?,
    })
}

fn stages(question: &Question<'_, '_>, answers: &[Answer<'_>]) -> Vec<StageDependency> {
    let mut of: BTreeMap<StageKey<'_>, Vec<Stage>> = BTreeMap::new();
    for (key, drag) in answers.iter().flat_map(|answer| &answer.drags) {
        of.entry(*key).or_default().push(*drag);
    }
    let summary = |(key, drags): (StageKey<'_>, Vec<Stage>)| {
        let absent = answers.len().saturating_sub(drags.len());
        let over = |figure: &dyn Fn(&Stage) -> f64| {
            let present = drags.iter().map(figure);
            present
                .chain(std::iter::repeat_n(0.0, absent))
                .collect::<Vec<f64>>()
        };
        // What never limits is more than any slack.
        let slacks: Vec<f64> = drags
            .iter()
            .map(|drag| drag.slack.unwrap_or(f64::INFINITY))
            .collect();
        let slack =
            quantile(&sorted(&slacks), 0.5, Definition::Type7).filter(|slack| slack.is_finite());
        let times = over(&|drag| drag.time);
        StageDependency {
            window: key.window.to_owned(),
            name: key.stage.to_owned(),
            n_present: drags.len(),
            time_p50: middle(&times),
            work_p50: middle(&over(&|drag| drag.work)),
            drag_p50: middle(&over(&|drag| drag.drag)),
            slack_p50: slack.map(Nanos::rounded),
            n_never_limits: drags.iter().filter(|drag| drag.slack.is_none()).count(),
            placed: question.placed.contains(&key),
            quantum: grain(times.iter().copied()),
        }
    };
    let mut found: Vec<StageDependency> = of.into_iter().map(summary).collect();
    found.sort_by(|a, b| {
        let order = b
            .drag_p50
            .cmp(&a.drag_p50)
            .then_with(|| b.work_p50.cmp(&a.work_p50));
        order.then_with(|| (&a.window, &a.name).cmp(&(&b.window, &b.name)))
    });
    found
}

/// All predictions: metrics in the model's order, then the windows in theirs and
/// the stages that change in any run.
fn predictions(lens: &Lens<'_>, answers: &[Answer<'_>]) -> Vec<Prediction> {
    let rules = lens.model.metrics.iter().enumerate();
    let metric = rules.filter_map(|(column, rule)| {
        let own = answers
            .iter()
            .filter_map(|answer| answer.metrics.get(&column));
        let (pairs, ends): (Vec<Pair>, Vec<bool>) = own.copied().unzip();
        let with_session = ends.iter().any(|ends| *ends);
        (!pairs.is_empty()).then(|| prediction(METRIC, rule.name.clone(), &pairs, with_session))
    });
    let mut windows: BTreeMap<&str, Vec<Pair>> = BTreeMap::new();
    let mut stages: BTreeMap<StageKey<'_>, Vec<Pair>> = BTreeMap::new();
    for answer in answers {
        for (name, pair) in &answer.windows {
            windows.entry(name).or_default().push(*pair);
        }
        for (key, pair) in &answer.stages {
            stages.entry(*key).or_default().push(*pair);
        }
    }
    let changes = |pairs: &Vec<Pair>| {
        pairs
            .iter()
            .any(|(before, after)| before.total_cmp(after).is_ne())
    };
    let mut found: Vec<Prediction> = metric.collect();
    let mut names: Vec<&str> = Vec::new();
    for rule in &lens.model.windows {
        if !names.contains(&rule.name.as_str()) {
            names.push(&rule.name);
        }
    }
    let of_windows = names.iter().filter_map(|name| {
        let pairs = windows.get(name).filter(|pairs| changes(pairs))?;
        Some(prediction(WINDOW, (*name).to_owned(), pairs, false))
    });
    found.extend(of_windows);
    let of_stages = stages.iter().filter(|(_, pairs)| changes(pairs));
    found.extend(of_stages.map(|(key, pairs)| {
        prediction(STAGE, format!("{}:{}", key.window, key.stage), pairs, false)
    }));
    found
}

/// Value of [`Prediction::kind`] for an end-to-end metric.
pub const METRIC: &str = "metric";
/// Value of [`Prediction::kind`] for a window.
pub const WINDOW: &str = "window";
/// Value of [`Prediction::kind`] for a stage.
pub const STAGE: &str = "stage";
