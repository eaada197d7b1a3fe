//! Builds the report from runs: the one place where reading's results and
//! statistics meet. Pure.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::breakdown::client::{self, client_window};
use crate::breakdown::store::{WindowStore, WindowView};
use crate::breakdown::windows::{RunWindow, windows as run_windows};
use crate::chain::clients::{self, Concurrent};
use crate::chain::metrics::{Figure, figure};
use crate::chain::{ChainState, Run};
use crate::halves::{both, each, halves};
use crate::input::InputFile;
use crate::model::lens::Lens;
use crate::model::metric_rules::MetricRule;
use crate::model::window_rules::Unit;
use crate::problems::Problems;
use crate::retime::names::UnknownStage;
use crate::stats::quantile::Definition;
use crate::units::Nanos;

use super::dependency::{Asked, dependency};
use super::{
    Amount, Incomplete, Joins, Ordered, Report, RunReport, RunWindowReport, Runs, SCHEMA, cohorts,
    comparisons, covariates, explain, findings, injection, paths, picture, provenance, scenarios,
    summary, windows,
};

/// What was read, beside the spans.
pub struct Read<'a> {
    /// The command line.
    pub command: &'a [String],
    /// The files.
    pub files: &'a [InputFile],
    /// What was wrong so far.
    pub problems: Problems,
}

/// Whether a report carries every run by itself, which only JSON shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Items {
    /// All runs.
    Every,
    /// All runs, and the one nearest to the median as a picture.
    Drawn,
    /// None: for thousands of runs they are most of the report.
    None,
}

/// One run with everything computed of it.
pub(super) struct Row<'a> {
    pub(super) run: &'a Run<'a>,
    /// The run as each further cold request alone would have made it.
    others: Vec<Run<'a>>,
    store: &'a WindowStore<'a>,
    /// Places of its windows in the store.
    windows: Range<usize>,
    pub(super) figures: Vec<Figure<'a>>,
    /// Column of the latency that stages are correlated with.
    latency: Option<usize>,
}

impl<'a> Row<'a> {
    /// The windows of this name: one, or one for each cold request.
    pub(super) fn all<'n>(
        &self,
        name: &'n str,
    ) -> impl Iterator<Item = WindowView<'a>> + use<'n, 'a> {
        let store = self.store;
        let windows = self.windows.clone().map(|place| store.window(place));
        windows.filter(move |window| window.name == name)
    }

    /// All windows, in the model's order, the client's last.
    pub(super) fn windows(&self) -> impl Iterator<Item = WindowView<'a>> + use<'a> {
        let store = self.store;
        self.windows.clone().map(|place| store.window(place))
    }

    /// The window of this name of one cold request; what all share, for each.
    pub(super) fn window(&self, name: &str, request: usize) -> Option<WindowView<'a>> {
        let of = |wanted: usize| self.all(name).find(|window| window.request == wanted);
        of(request).or_else(|| of(1))
    }

    /// The run as one cold request alone would have made it, from 1.
    pub(super) fn view(&self, request: usize) -> &Run<'a> {
        let other = request.checked_sub(2).and_then(|at| self.others.get(at));
        other.unwrap_or(self.run)
    }

    /// The run once for each of its cold requests.
    pub(super) fn views(&self) -> impl Iterator<Item = &Run<'a>> {
        std::iter::once(self.run).chain(&self.others)
    }

    /// What the client waited for one cold request, in nanoseconds.
    pub(super) fn latency(&self, request: usize) -> Option<f64> {
        if !self.others.is_empty() {
            let mut own = self.all(client::WINDOW);
            let own = own.find(|window| window.request == request)?;
            return Some(own.interval.length().0 as f64);
        }
        match &self.figures[self.latency?] {
            Figure::Value(value) => Some(*value as f64),
            _ => None,
        }
    }
}

/// What a report is asked for.
pub struct Wanted<'q> {
    /// Definition of quantiles.
    pub definition: Definition,
    /// Whether it carries every run.
    pub items: Items,
    /// What it predicts.
    pub dependency: &'q Asked,
}

/// Builds the report of `runs` as `lens` sees them.
///
/// # Errors
/// [`UnknownStage`] where a prediction is asked of a stage that no run has.
pub fn build(
    lens: &Lens<'_>,
    runs: &[Run<'_>],
    read: Read<'_>,
    wanted: &Wanted<'_>,
) -> Result<Report, UnknownStage> {
    let Wanted {
        definition, items, ..
    } = *wanted;
    let mut problems = read.problems;
    let counted: Vec<&Run<'_>> = runs.iter().filter(|run| !run.warmup).collect();
    let parts = halves(&counted, counted.len(), |runs| windows_of_all(lens, runs));
    for part in &parts {
        problems.merge(part.problems.clone());
    }
    let places = parts.iter().flat_map(|part| {
        let own = part.places.iter().cloned();
        own.map(|windows| (&part.store, windows))
    });
    let drafts: Vec<_> = counted.iter().zip(places).collect();
    let rows: Vec<Row<'_>> = each(&drafts, drafts.len(), |(run, (store, windows))| {
        row(lens, run, store, windows.clone())
    });
    drop(drafts);
    let complete: Vec<&Row<'_>> = rows.iter().filter(|row| row.run.counts()).collect();
    let windows = windows::window_reports(lens, &complete, definition, &[]);
    let measured: Vec<&Row<'_>> = rows
        .iter()
        .filter(|row| row.run.failure.is_none())
        .collect();
    let failed = counted.iter().filter(|run| run.failure.is_some()).count();
    let mut metrics = metrics_of(lens, &rows, definition);
    metrics.push(summary::failure_rate(failed, counted.len()));
    let cohorts = cohorts::cohorts(lens, &rows, definition, &windows);
    let comparisons = comparisons::comparisons(lens, &rows, &cohorts, &windows);
    let names: Vec<String> = cohorts.iter().map(|cohort| cohort.name.clone()).collect();
    let model = lens.model;
    let (drill_through, (groups, paths, covariates)) = both(
        rows.len(),
        || {
            let rules = model.drill_through.iter();
            rules
                .filter_map(|rule| explain::drill_through(rule, &complete))
                .collect()
        },
        || {
            let groups = model.groups.iter();
            let paths = model.paths.iter();
            (
                groups
                    .filter_map(|rule| explain::group(rule, &complete))
                    .collect(),
                paths
                    .filter_map(|rule| paths::path(lens, rule, &complete))
                    .collect(),
                covariates::covariates(lens, &measured, latency_column(lens)),
            )
        },
    );
    let pictures = match items {
        Items::Drawn => picture::pictures(lens, &rows, &windows, &cohorts),
        Items::Every | Items::None => Vec::new(),
    };
    let mut report = Report {
        schema: SCHEMA,
        provenance: provenance::provenance(lens, read.command, read.files),
        input: provenance::input(lens, read.files, &problems),
        model: lens.model.name.clone(),
        quantile: definition.name(),
        runs: run_reports(lens, runs, &rows, items),
        metrics,
        drill_through,
        groups,
        paths,
        covariates,
        windows,
        cohorts,
        comparisons,
        injections: injection::injections(lens, &measured),
        scenarios: scenarios::scenarios(lens, &rows, &names, definition),
        delays: scenarios::delays(lens, &measured),
        dependency: dependency(lens, &complete, &names, wanted.dependency)?,
        findings: Vec::new(),
        pictures,
    };
    report.findings = findings::findings(lens, &report, &complete);
    Ok(report)
}

/// The model's metrics over all rows, in its order.
fn metrics_of(
    lens: &Lens<'_>,
    rows: &[Row<'_>],
    definition: Definition,
) -> Vec<summary::MetricReport> {
    let columns: Vec<(usize, &MetricRule)> = lens.model.metrics.iter().enumerate().collect();
    each(&columns, rows.len(), |(column, rule)| {
        let figures: Vec<_> = rows.iter().map(|row| row.figures[*column]).collect();
        let names = &lens.data.names;
        summary::metric(&rule.name, rule.unit, &figures, names, definition)
    })
}

/// Column of the metric that stages are correlated with.
fn latency_column(lens: &Lens<'_>) -> Option<usize> {
    let latency = &lens.model.client.latency;
    lens.model
        .metrics
        .iter()
        .position(|rule| rule.name == *latency)
}

/// Everything computed of one run, its windows being in the store.
fn row<'a>(
    lens: &Lens<'a>,
    run: &'a Run<'a>,
    store: &'a WindowStore<'a>,
    windows: Range<usize>,
) -> Row<'a> {
    let cold = run.cold_requests(lens);
    let others = cold.iter().skip(1).map(|request| run.with_only(request));
    let figures = lens
        .model
        .metrics
        .iter()
        .map(|rule| figure(lens, run, rule))
        .collect();
    Row {
        run,
        others: others.collect(),
        store,
        windows,
        figures,
        latency: latency_column(lens),
    }
}

/// The windows of some runs.
struct Windows<'a> {
    store: WindowStore<'a>,
    /// Where those of each run are.
    places: Vec<Range<usize>>,
    problems: Problems,
}

fn windows_of_all<'a>(lens: &Lens<'a>, runs: &[&Run<'_>]) -> Windows<'a> {
    let (mut store, mut problems) = (WindowStore::default(), Problems::default());
    let places = runs
        .iter()
        .map(|run| store.take(windows_of(lens, run, &mut problems)))
        .collect();
    store.close();
    Windows {
        store,
        places,
        problems,
    }
}

/// The windows of a run, those of its client last.
fn windows_of<'a>(lens: &Lens<'a>, run: &Run<'_>, problems: &mut Problems) -> Vec<RunWindow<'a>> {
    let mut found = if run.chain == ChainState::NotTraced {
        Vec::new()
    } else {
        run_windows(lens, run, problems)
    };
    let main = lens.model.windows.first().map(|rule| rule.name.as_str());
    let cold = run.cold_requests(lens);
    let alone = match cold.len() {
        0 | 1 => Concurrent::Alone,
        _ => Concurrent::OneOf,
    };
    for (place, request) in cold.iter().enumerate() {
        let mut windows = found.iter();
        let window =
            windows.find(|window| Some(window.name) == main && window.request == place + 1);
        if let (Some(client), Some(window)) =
            (clients::window_of(lens, run, request, alone), window)
        {
            let window = client_window(client, window);
            found.push(window);
        }
    }
    found
}

fn run_reports(lens: &Lens<'_>, runs: &[Run<'_>], rows: &[Row<'_>], items: Items) -> Runs {
    let count =
        |matches: &dyn Fn(&Run<'_>) -> bool| rows.iter().filter(|row| matches(row.run)).count();
    let not_traced = count(&|run| run.chain == ChainState::NotTraced);
    let incomplete = rows.iter().filter_map(|row| match &row.run.chain {
        ChainState::Incomplete(missing) => Some(Incomplete {
            run: row.run.id.clone(),
            missing: missing.to_vec(),
        }),
        _ => None,
    });
    Runs {
        total: rows.len(),
        traced: rows.len() - not_traced,
        complete: count(&|run| run.chain == ChainState::Complete),
        failed: count(&|run| run.failure.is_some()),
        not_traced,
        warmup: runs.len() - rows.len(),
        profile_joins: profile_joins(lens, runs),
        incomplete: incomplete.collect(),
        items: match items {
            Items::Every | Items::Drawn => rows.iter().map(|row| run_report(lens, row)).collect(),
            Items::None => Vec::new(),
        },
        first_failure: rows.iter().find_map(|row| {
            let reason = row.run.failure.clone()?;
            Some((row.run.id.clone(), reason))
        }),
    }
}

fn run_report(lens: &Lens<'_>, row: &Row<'_>) -> RunReport {
    let windows = row.windows().map(|window| RunWindowReport {
        name: window.name.to_owned(),
        request: window.request,
        total_ns: window.interval.length().0,
        stages: Ordered(
            window
                .stages
                .iter()
                .map(|stage| (stage.name.to_owned(), stage.time.0))
                .collect(),
        ),
        unattributed_ns: window.unattributed.0,
    });
    let metrics = lens
        .model
        .metrics
        .iter()
        .zip(&row.figures)
        .map(|(rule, figure)| {
            let amount = match (figure, rule.unit) {
                (Figure::Value(value), Unit::Ms) => Some(Amount::Time(Nanos(*value))),
                (Figure::Value(value), Unit::Bytes) => Some(Amount::Bytes(*value)),
                _ => None,
            };
            (rule.name.clone(), amount)
        });
    RunReport {
        run: row.run.id.clone(),
        cohort: row.run.cohort.clone(),
        complete: match row.run.chain {
            ChainState::Complete => Some(true),
            ChainState::Incomplete(_) => Some(false),
            ChainState::NotTraced => None,
        },
        failure: row.run.failure.clone(),
        windows: windows.collect(),
        metrics: Ordered(metrics.collect()),
    }
}

/// Session profiles whose session is one of a run's.
fn profile_joins(lens: &Lens<'_>, runs: &[Run<'_>]) -> Joins {
    if lens.data.session_profiles.is_empty() && lens.data.profiles.is_empty() {
        return Joins::default();
    }
    let sessions: BTreeSet<&str> = runs
        .iter()
        .flat_map(|run| clients::sessions_of(lens, run))
        .collect();
    let joined = lens
        .data
        .session_profiles
        .iter()
        .filter(|profile| sessions.contains(profile.session.as_str()));
    let channels: BTreeSet<&str> = runs.iter().filter_map(|run| run.channel_id).collect();
    let records = lens.data.profiles.iter();
    let own = records.filter(|profile| {
        channels.contains(profile.channel.as_str()) || sessions.contains(profile.session.as_str())
    });
    Joins {
        joined: joined.count() + own.count(),
        of: lens.data.session_profiles.len() + lens.data.profiles.len(),
    }
}
