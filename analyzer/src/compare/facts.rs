//! What a comparison needs to know of each run, as plain data: made once from
//! runs and their report, owned, and free of everything that was read.
//!
//! Times are nanoseconds and sizes bytes, as floats; +∞ stands for a run that
//! failed before the figure came about. Nothing is paired or judged here.

use std::collections::BTreeSet;

use coldpath_trace_format::attributes::{SERVICE_NAME, SERVICE_VERSION};

use crate::chain::Run;
use crate::chain::metrics::{Figure, figure};
use crate::model::lens::Lens;
use crate::model::window_rules::Unit;
use crate::report::runs::RunReport;
use crate::report::{Input, Provenance, Report};
use crate::trace::names::Symbol;
use crate::units::{Nanos, Timestamp};

/// Resource attributes that name a host, the more exact first.
const HOST_KEYS: [&str; 2] = ["host.id", "host.name"];

/// All runs of one input.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Name of the model.
    pub model: String,
    /// End-to-end figures, in the model's order.
    pub metrics: Vec<MetricFacts>,
    /// Windows, in the model's order.
    pub windows: Vec<WindowName>,
    /// Runs that are no warm-ups, by start.
    pub runs: Vec<RunFacts>,
    /// Names of the cohorts, the control first where that is said.
    pub cohorts: Vec<String>,
    /// Hosts and boots that the runs come from, in words.
    pub hosts: BTreeSet<String>,
    /// Where it came from and what was read, once for each set of files.
    pub sources: Vec<(Provenance, Input)>,
}

/// A window that runs may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowName {
    /// Name.
    pub name: String,
    /// Name for people.
    pub title: String,
    /// Step of the clock that its times come from.
    pub quantum: Nanos,
}

/// An end-to-end figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricFacts {
    /// Name.
    pub name: String,
    /// Unit.
    pub unit: Unit,
    /// Metrics of which it is a part.
    pub within: Vec<String>,
}

/// One run.
#[derive(Clone, Debug)]
pub struct RunFacts {
    /// Name.
    pub id: String,
    /// Cohort; empty where none was said.
    pub cohort: String,
    /// First instant.
    pub start: Timestamp,
    /// Pair, where the trace names one.
    pub pair: Option<i64>,
    /// Scenario, where the trace names one.
    pub scenario: Option<String>,
    /// Versions of the programs that served it, `name version`.
    pub versions: BTreeSet<String>,
    /// Why it failed.
    pub failure: Option<String>,
    /// Whether its chain is whole; `None` where the program wrote no trace.
    pub complete: Option<bool>,
    /// Whether a client watched the process from its start to its end.
    pub watched: bool,
    /// Figures, one for each metric; `None` where it cannot be had.
    pub figures: Vec<Option<f64>>,
    /// Its windows; those of further concurrent requests are left out.
    pub windows: Vec<WindowFacts>,
}

/// A window of a run, in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowFacts {
    /// Name.
    pub name: String,
    /// Length.
    pub total: f64,
    /// Stages that it has, and last the unattributed rest.
    pub stages: Vec<(String, f64)>,
}

/// Name under which the rest of a window is compared.
pub const UNATTRIBUTED: &str = "unattributed";

/// Takes the facts of `runs`, of which `report` was made with every item.
#[must_use]
pub fn facts(lens: &Lens<'_>, runs: &[Run<'_>], report: &Report) -> Facts {
    let counted = runs.iter().filter(|run| !run.warmup);
    let facts = counted
        .zip(&report.runs.items)
        .map(|(run, item)| run_facts(lens, run, item));
    let facts: Vec<RunFacts> = facts.collect();
    let cohorts = match report.cohorts.as_slice() {
        [] => facts.iter().take(1).map(|run| run.cohort.clone()).collect(),
        several => several.iter().map(|one| one.name.clone()).collect(),
    };
    let metrics = lens.model.metrics.iter().map(|rule| MetricFacts {
        name: rule.name.clone(),
        unit: rule.unit,
        within: rule.within.clone(),
    });
    let windows = report.windows.iter();
    Facts {
        model: lens.model.name.clone(),
        metrics: metrics.collect(),
        windows: windows
            .map(|window| WindowName {
                name: window.name.clone(),
                title: window.title.clone(),
                quantum: window.quantum,
            })
            .collect(),
        runs: facts,
        cohorts,
        hosts: hosts(lens),
        sources: vec![(report.provenance.clone(), report.input.clone())],
    }
}

/// Two sets of files as one experiment, `control` against `candidate`, whatever
/// cohorts the traces name.
#[must_use]
pub fn two_sets(control: Facts, candidate: Facts, names: (&str, &str)) -> Facts {
    let mut both = control;
    for run in &mut both.runs {
        names.0.clone_into(&mut run.cohort);
    }
    let others = candidate.runs.into_iter().map(|run| RunFacts {
        cohort: names.1.to_owned(),
        ..run
    });
    both.runs.extend(others);
    both.runs
        .sort_by(|a, b| (a.start, &a.id).cmp(&(b.start, &b.id)));
    both.hosts.extend(candidate.hosts);
    both.sources.extend(candidate.sources);
    for window in candidate.windows {
        match both.windows.iter_mut().find(|own| own.name == window.name) {
            Some(own) => own.quantum = own.quantum.max(window.quantum),
            None => both.windows.push(window),
        }
    }
    both.cohorts = vec![names.0.to_owned(), names.1.to_owned()];
    both
}

fn run_facts(lens: &Lens<'_>, run: &Run<'_>, item: &RunReport) -> RunFacts {
    let figures = lens
        .model
        .metrics
        .iter()
        .map(|rule| match figure(lens, run, rule) {
            Figure::Value(value) => Some(value as f64),
            Figure::Failed => Some(f64::INFINITY),
            Figure::Absent(_) => None,
        });
    let windows = item.windows.iter().filter(|window| window.request == 1);
    let window = |window: &crate::report::RunWindowReport| {
        let own = window.stages.0.iter();
        let rest = (UNATTRIBUTED.to_owned(), window.unattributed_ns as f64);
        WindowFacts {
            name: window.name.clone(),
            total: window.total_ns as f64,
            stages: own
                .map(|(name, time)| (name.clone(), *time as f64))
                .chain([rest])
                .collect(),
        }
    };
    let scenario = lens.model.measured.as_ref().and_then(|rule| {
        let span = run.first(lens, &rule.kind)?;
        lens.text(span, rule.scenario.as_deref()?)
    });
    RunFacts {
        id: item.run.clone(),
        cohort: item.cohort.clone(),
        start: run.start,
        pair: run.pair,
        scenario: scenario.map(str::to_owned),
        versions: versions(lens, run),
        failure: item.failure.clone(),
        complete: item.complete,
        watched: !run.client.is_empty(),
        figures: figures.collect(),
        windows: windows.map(window).collect(),
    }
}

/// Versions that the spans of the process, its channel and its requests name; the
/// client's own is not one of them.
fn versions(lens: &Lens<'_>, run: &Run<'_>) -> BTreeSet<String> {
    let parts = [run.process.spans(), run.channel.spans()];
    let requests = run.requests.iter().map(|request| request.span);
    let spans = parts.into_iter().flatten().copied().chain(requests);
    let text = |span, key| lens.resource_text(span, key);
    let version = |span| {
        let version = text(span, SERVICE_VERSION)?;
        Some(format!("{} {version}", text(span, SERVICE_NAME)?))
    };
    spans.filter_map(version).collect()
}

/// Hosts of the manifests and of the resources.
fn hosts(lens: &Lens<'_>) -> BTreeSet<String> {
    let manifests = lens.data.manifests.iter().filter_map(|manifest| {
        let boot = manifest.boot_id.as_ref();
        let boot = boot.map(|boot| format!("boot {boot}"));
        let words: Vec<String> = [manifest.host.clone(), boot]
            .into_iter()
            .flatten()
            .collect();
        (!words.is_empty()).then(|| words.join(", "))
    });
    let mut hosts: BTreeSet<String> = manifests.collect();
    let keys: Vec<Symbol> = HOST_KEYS
        .iter()
        .filter_map(|key| lens.data.names.find(key))
        .collect();
    for key in keys {
        let values = lens.data.resources.iter().filter_map(|resource| {
            let value = resource.attributes.get(key)?;
            lens.data.text(value).map(str::to_owned)
        });
        let named: BTreeSet<String> = values.collect();
        // A name that all share says nothing that the manifests do not.
        if named.len() > 1 {
            hosts.extend(named);
        }
    }
    hosts
}
