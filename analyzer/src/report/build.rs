//! Builds the report from runs: the one place where reading's results and
//! statistics meet. Pure.

use std::collections::BTreeSet;

use crate::breakdown::client::{self, client_window};
use crate::breakdown::windows::{RunWindow, StageTime, UNATTRIBUTED, windows};
use crate::chain::metrics::{Figure, figure};
use crate::chain::{ChainState, Run, clients};
use crate::input::InputFile;
use crate::model::lens::Lens;
use crate::model::window_rules::Unit;
use crate::problems::Problems;
use crate::stats::attribution;
use crate::stats::quantile::{Definition, median};
use crate::trace::span::Value;
use crate::units::Nanos;

use super::cohorts::{self, Table};
use super::{
    Amount, Incomplete, Input, Joins, Ordered, PlaceReport, ProblemReport, Provenance, Records,
    Report, RunReport, RunWindowReport, Runs, SCHEMA, SchedReport, WindowReport, explain, findings,
    summary,
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

/// One run with everything computed of it.
pub(super) struct Row<'a> {
    pub(super) run: &'a Run<'a>,
    pub(super) windows: Vec<RunWindow>,
    pub(super) figures: Vec<Figure>,
}

impl Row<'_> {
    /// The window of this name, where the run has it.
    pub(super) fn window(&self, name: &str) -> Option<&RunWindow> {
        self.windows.iter().find(|window| window.name == name)
    }
}

/// Builds the report of `runs` as `lens` sees them.
#[must_use]
pub fn build(lens: &Lens<'_>, runs: &[Run<'_>], read: Read<'_>, definition: Definition) -> Report {
    let mut problems = read.problems;
    let counted: Vec<&Run<'_>> = runs.iter().filter(|run| !run.warmup).collect();
    let rows: Vec<Row<'_>> = counted
        .iter()
        .map(|run| row(lens, run, &mut problems))
        .collect();
    let complete: Vec<&Row<'_>> = rows.iter().filter(|row| row.run.counts()).collect();
    let windows = window_reports(lens, &complete, definition);
    let failed = counted.iter().filter(|run| run.failure.is_some()).count();
    let mut metrics: Vec<_> = lens
        .model
        .metrics
        .iter()
        .enumerate()
        .map(|(column, rule)| {
            let figures: Vec<_> = rows.iter().map(|row| row.figures[column].clone()).collect();
            summary::metric(&rule.name, rule.unit, &figures, definition)
        })
        .collect();
    metrics.push(summary::failure_rate(failed, counted.len()));
    let table = Table {
        runs: counted.clone(),
        figures: rows.iter().map(|row| row.figures.clone()).collect(),
        rules: &lens.model.metrics,
    };
    let cohorts = cohorts::cohorts(&table, definition);
    let comparisons = cohorts::comparisons(&table, &cohorts);
    let mut report = Report {
        schema: SCHEMA,
        provenance: provenance(lens, read.command, read.files),
        input: input(lens, read.files, &problems),
        model: lens.model.name.clone(),
        quantile: definition.name(),
        runs: run_reports(lens, runs, &rows),
        metrics,
        drill_through: lens
            .model
            .drill_through
            .iter()
            .filter_map(|rule| explain::drill_through(rule, &complete))
            .collect(),
        groups: lens
            .model
            .groups
            .iter()
            .filter_map(|rule| explain::group(rule, &complete))
            .collect(),
        covariates: Vec::new(),
        windows,
        cohorts,
        comparisons,
        findings: Vec::new(),
    };
    report.findings = findings::findings(&report, &complete);
    report
}

fn row<'a>(lens: &Lens<'_>, run: &'a Run<'a>, problems: &mut Problems) -> Row<'a> {
    let mut found = if run.chain == ChainState::NotTraced {
        Vec::new()
    } else {
        windows(lens, run, problems)
    };
    let main = lens.model.windows.first().map(|rule| &rule.name);
    let request = found.iter().find(|window| Some(&window.name) == main);
    if let (Some(client), Some(request)) = (clients::window_of(lens, run), request) {
        let window = client_window(client, request);
        found.push(window);
    }
    let figures = lens
        .model
        .metrics
        .iter()
        .map(|rule| figure(lens, run, rule))
        .collect();
    Row {
        run,
        windows: found,
        figures,
    }
}

fn run_reports(lens: &Lens<'_>, runs: &[Run<'_>], rows: &[Row<'_>]) -> Runs {
    let count =
        |matches: &dyn Fn(&Run<'_>) -> bool| rows.iter().filter(|row| matches(row.run)).count();
    let not_traced = count(&|run| run.chain == ChainState::NotTraced);
    let incomplete = rows.iter().filter_map(|row| match &row.run.chain {
        ChainState::Incomplete(missing) => Some(Incomplete {
            run: row.run.id.clone(),
            missing: missing.clone(),
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
        items: rows.iter().map(|row| run_report(lens, row)).collect(),
    }
}

fn run_report(lens: &Lens<'_>, row: &Row<'_>) -> RunReport {
    let windows = row.windows.iter().map(|window| RunWindowReport {
        name: window.name.clone(),
        total_ns: window.interval.length().0,
        stages: Ordered(
            window
                .stages
                .iter()
                .map(|stage| (stage.name.clone(), stage.time.0))
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

/// Every window of the complete runs, in the order of the first run that has it.
fn window_reports(lens: &Lens<'_>, rows: &[&Row<'_>], definition: Definition) -> Vec<WindowReport> {
    let mut names: Vec<(&str, &str)> = Vec::new();
    for rule in &lens.model.windows {
        if !names.iter().any(|(name, _)| *name == rule.name) {
            names.push((&rule.name, &rule.title));
        }
    }
    names.push((client::WINDOW, "Request as the client saw it"));
    let column = lens
        .model
        .metrics
        .iter()
        .position(|rule| rule.name == lens.model.client.latency);
    let report = |(name, title): (&str, &str)| {
        let mine: Vec<(&RunWindow, &Row<'_>)> = rows
            .iter()
            .filter_map(|row| Some((row.windows.iter().find(|window| window.name == name)?, *row)))
            .collect();
        let latency: Vec<Option<f64>> = mine
            .iter()
            .map(|(_, row)| match column.map(|column| &row.figures[column]) {
                Some(Figure::Value(value)) => Some(*value as f64),
                _ => None,
            })
            .collect();
        (!mine.is_empty()).then(|| window_report(lens, name, title, &mine, &latency, definition))
    };
    names.into_iter().filter_map(report).collect()
}

fn window_report(
    lens: &Lens<'_>,
    name: &str,
    title: &str,
    mine: &[(&RunWindow, &Row<'_>)],
    latency: &[Option<f64>],
    definition: Definition,
) -> WindowReport {
    let totals: Vec<f64> = mine
        .iter()
        .map(|(window, _)| window.interval.length().0 as f64)
        .collect();
    let near = attribution::windows(&totals);
    let summarise = |name: &str, times: &[f64], present: usize| {
        let samples = summary::StageSamples {
            times,
            totals: &totals,
            latency,
            latency_name: &lens.model.client.latency,
            windows: &near,
        };
        summary::stage(name, present, &samples, definition)
    };
    let stages = stage_names(mine).into_iter().map(|stage| {
        let found: Vec<Option<&StageTime>> = mine
            .iter()
            .map(|(window, _)| window.stages.iter().find(|found| found.name == stage))
            .collect();
        let times: Vec<f64> = found
            .iter()
            .map(|stage| stage.map_or(0.0, |stage| stage.time.0 as f64))
            .collect();
        let present = found.iter().flatten().filter(|stage| stage.present).count();
        let mut report = summarise(&stage, &times, present);
        report.sched = sched(lens, &found, mine);
        report
    });
    let rest: Vec<f64> = mine
        .iter()
        .map(|(window, _)| window.unattributed.0 as f64)
        .collect();
    WindowReport {
        name: name.to_owned(),
        title: title.to_owned(),
        quantum: mine
            .iter()
            .map(|(window, _)| window.quantum)
            .max()
            .unwrap_or(Nanos(1)),
        n: mine.len(),
        total: summary::totals(&totals, definition),
        stages: stages.collect(),
        unattributed: summarise(UNATTRIBUTED, &rest, mine.len()),
    }
}

/// Names of all stages, by their mean place in the runs that have them.
fn stage_names(mine: &[(&RunWindow, &Row<'_>)]) -> Vec<String> {
    let mut places: Vec<(String, f64, f64)> = Vec::new();
    for (window, _) in mine {
        for (place, stage) in window.stages.iter().enumerate() {
            match places.iter_mut().find(|(name, _, _)| *name == stage.name) {
                Some((_, sum, count)) => {
                    *sum += place as f64;
                    *count += 1.0;
                }
                None => places.push((stage.name.clone(), place as f64, 1.0)),
            }
        }
    }
    places.sort_by(|a, b| {
        (a.1 / a.2)
            .total_cmp(&(b.1 / b.2))
            .then_with(|| a.0.cmp(&b.0))
    });
    places.into_iter().map(|(name, _, _)| name).collect()
}

/// Medians of the scheduler figures of a stage's spans, or of the span that
/// stands for it; `None` unless every run that has the stage has them.
fn sched(
    lens: &Lens<'_>,
    found: &[Option<&StageTime>],
    mine: &[(&RunWindow, &Row<'_>)],
) -> Option<SchedReport> {
    let rule = lens.model.sched.as_ref()?;
    let (mut cpu, mut runq, mut blocked) = (Vec::new(), Vec::new(), Vec::new());
    let mut from = None;
    for (stage, (_, row)) in found.iter().zip(mine) {
        let Some(stage) = stage.filter(|stage| stage.present) else {
            continue;
        };
        let span = match &stage.sched_from {
            Some(kind) => {
                from = Some(kind.clone());
                row.run.first(lens, kind)?
            }
            None => *stage.spans.first()?,
        };
        let read = |key: &str| lens.attribute(span, key).and_then(Value::number);
        let (on, waiting) = (read(&rule.cpu)?, read(&rule.runq)?);
        cpu.push(on);
        runq.push(waiting);
        // The two clocks differ by a tick at most; below it nothing was blocked.
        blocked.push((lens.data.span(span).interval.length().0 as f64 - on - waiting).max(0.0));
    }
    let middle = |values: &[f64]| median(values).map(Nanos::rounded);
    Some(SchedReport {
        from,
        cpu: middle(&cpu)?,
        runq: middle(&runq)?,
        blocked: middle(&blocked)?,
    })
}

fn provenance(lens: &Lens<'_>, command: &[String], files: &[InputFile]) -> Provenance {
    use coldpath_trace_format::attributes::{SERVICE_NAME, SERVICE_VERSION};
    let mut versions = BTreeSet::new();
    for span in lens.data.indices() {
        if let (Some(name), Some(version)) = (
            lens.resource_text(span, SERVICE_NAME),
            lens.resource_text(span, SERVICE_VERSION),
        ) {
            versions.insert(format!("{name} {version}"));
        }
    }
    let own = format!("analyze {}", env!("CARGO_PKG_VERSION"));
    Provenance {
        command: command.to_vec(),
        versions: std::iter::once(own).chain(versions).collect(),
        inputs_sha256: files.iter().map(|file| file.sha256.clone()).collect(),
        ..Provenance::default()
    }
}

fn input(lens: &Lens<'_>, files: &[InputFile], problems: &Problems) -> Input {
    let counts = lens.data.counts;
    let problem = |(code, tally): (crate::problems::Code, &crate::problems::Tally)| ProblemReport {
        code: code.name(),
        count: tally.count,
        message: tally.message.clone(),
        first: tally.first.map(|place| PlaceReport {
            file: files
                .get(place.file as usize)
                .map_or_else(String::new, |file| file.name.clone()),
            line: place.line,
            byte: place.byte,
        }),
    };
    Input {
        files: files.len(),
        bytes: files.iter().map(|file| file.bytes).sum(),
        records: Records {
            spans: counts.spans,
            logs: counts.logs,
            metrics: counts.metrics,
            profiles: counts.profiles,
        },
        problems: problems.iter().map(problem).collect(),
    }
}
