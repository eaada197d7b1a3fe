//! Every run in a row, failed and incomplete ones included; of very many, those
//! that matter and an even choice of the rest.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use maud::{Markup, html};

use super::metrics::latency;
use super::samples::{evenly, is_summed};
use super::text::{Cohort, Text, amount_at, css, nothing};
use crate::report::numbers::time;
use crate::report::{Amount, Report, RunReport, RunWindowReport, WindowReport};
use crate::units::Nanos;

/// Rows that are shown.
const ROWS_MAX: usize = 1_500;
/// Of these, rows of failed, incomplete and slow runs.
const NAMED_MAX: usize = 750;
/// Stages that have a column.
const COLUMNS_MAX: usize = 12;

pub(super) fn section(report: &Report) -> Markup {
    let items = &report.runs.items;
    let main = report.windows.first();
    let kept = kept(report);
    let missing: HashMap<&str, &[String]> = report
        .runs
        .incomplete
        .iter()
        .map(|one| (one.run.as_str(), one.missing.as_slice()))
        .collect();
    let columns = main.map(columns).unwrap_or_default();
    let longest = items
        .iter()
        .filter_map(|run| window_of(run, main?))
        .map(|one| one.total_ns);
    let longest = longest.max().unwrap_or(0);
    html! {
        @if items.is_empty() { }
        @else {
            @if kept.len() < items.len() {
                p.note { (kept.len()) " of " (items.len()) " runs: the failed, incomplete and slowest ones (" (NAMED_MAX) " at most) and others at even distances. The JSON report has them all." }
            }
            @if let Some(main) = main {
                ul.keys {
                    li.soft { (Text(&main.title)) ":" }
                    @for (place, name) in columns.iter().enumerate() { li { i class=(format!("c{}", place % 8)) {} (Text(name)) } }
                    @if !columns.is_empty() { li { i.un {} "unattributed and the rest" } }
                }
            }
            div.scroll.runs tabindex="0" role="region" aria-label="runs" {
                table {
                    thead { tr {
                        th { "run" }
                        @if !report.cohorts.is_empty() { th { "cohort" } }
                        th { "state" }
                        @if let Some(name) = latency(report) { th.n { (Text(name)) } }
                        @if let Some(main) = main {
                            th.n { (Text(&main.name)) } th { }
                            @for name in &columns { th.n { (Text(name)) } }
                            @if !main.stages.is_empty() { th.n { "unattributed" } }
                        }
                    } }
                    tbody {
                        @for place in &kept {
                            (row(report, *place, main, &columns, longest, &missing))
                        }
                    }
                }
            }
        }
    }
}

/// Names of the stages that have a column.
fn columns(main: &WindowReport) -> Vec<&str> {
    let named = main
        .stages
        .iter()
        .enumerate()
        .filter(|(place, _)| !is_summed(main, *place));
    named
        .take(COLUMNS_MAX)
        .map(|(_, stage)| stage.name.as_str())
        .collect()
}

/// Places of the runs that are shown, ascending.
fn kept(report: &Report) -> Vec<usize> {
    let items = &report.runs.items;
    if items.len() <= ROWS_MAX {
        return (0..items.len()).collect();
    }
    let flawed = |run: &RunReport| run.failure.is_some() || run.complete == Some(false);
    let slow: BTreeSet<&str> = report
        .windows
        .first()
        .map(|main| main.slow_runs.iter().map(String::as_str).collect())
        .unwrap_or_default();
    let places = || items.iter().enumerate();
    let named = places().filter(|(_, run)| flawed(run));
    let named = named.chain(places().filter(|(_, run)| slow.contains(run.run.as_str())));
    let mut kept: BTreeSet<usize> = named.map(|(place, _)| place).take(NAMED_MAX).collect();
    let room = ROWS_MAX - kept.len();
    kept.extend(evenly(items.len(), room));
    kept.into_iter().collect()
}

fn window_of<'r>(run: &'r RunReport, main: &WindowReport) -> Option<&'r RunWindowReport> {
    run.windows.iter().find(|one| one.name == main.name)
}

fn row(
    report: &Report,
    place: usize,
    main: Option<&WindowReport>,
    columns: &[&str],
    longest: i64,
    missing: &HashMap<&str, &[String]>,
) -> Markup {
    let run = &report.runs.items[place];
    let window = main.and_then(|main| window_of(run, main));
    let latency = latency(report).and_then(|name| {
        let mut metrics = run.metrics.0.iter();
        metrics.find(|(metric, _)| metric == name)
    });
    html! {
        tr data-run=(place) {
            th scope="row" { (Text(&run.run)) }
            @if !report.cohorts.is_empty() { td { (Cohort(&run.cohort)) } }
            td { (state(run, missing)) }
            @if let Some((_, value)) = latency { td.n { (latency_cell(report, *value)) } }
            @else if super::metrics::latency(report).is_some() { td.n { (nothing()) } }
            @if let Some(main) = main { (window_cells(main, window, columns, longest)) }
        }
    }
}

fn latency_cell(report: &Report, value: Option<Amount>) -> Markup {
    let name = latency(report).unwrap_or_default();
    let found = report.metrics.iter().find(|one| one.name == name);
    amount_at("", value, found.map_or(Nanos(1), |one| one.quantum))
}

fn state(run: &RunReport, missing: &HashMap<&str, &[String]>) -> Markup {
    html! {
        @if let Some(reason) = &run.failure { span.bad { "failed" } ": " (Text(reason)) " " }
        @match run.complete {
            Some(true) => { @if run.failure.is_none() { "complete" } }
            Some(false) => {
                span.bad { "incomplete" }
                @if let Some(missing) = missing.get(run.run.as_str()) { ": lacks " (Text(&missing.join(", "))) }
            }
            None => span.soft { "not traced" },
        }
    }
}

fn window_cells(
    main: &WindowReport,
    window: Option<&RunWindowReport>,
    columns: &[&str],
    longest: i64,
) -> Markup {
    let cell = |value: i64| html! { data value=(value) { (time(Nanos(value), main.quantum)) } };
    let time_of = |window: &RunWindowReport, name: &str| -> i64 {
        let stages = window.stages.0.iter().filter(|(stage, _)| stage == name);
        stages.map(|(_, time)| time).sum()
    };
    html! {
        @match window {
            Some(window) => {
                td.n { (cell(window.total_ns)) }
                td aria-hidden="true" { span.stack {
                    @for (place, name) in columns.iter().enumerate() {
                        @let time = time_of(window, name);
                        @if time > 0 { i class=(format!("c{}", place % 8)) style=(format!("width:{}", css(time as f64, longest as f64))) {} }
                    }
                    @let named: i64 = columns.iter().map(|name| time_of(window, name)).sum();
                    @if !columns.is_empty() { i.un style=(format!("width:{}", css((window.total_ns - named) as f64, longest as f64))) {} }
                } }
                @for name in columns { td.n { (cell(time_of(window, name))) } }
                @if !main.stages.is_empty() { td.n { (cell(window.unattributed_ns)) } }
            }
            None => { td.n { (nothing()) } td {} @for _ in columns { td.n { (nothing()) } } @if !main.stages.is_empty() { td.n { (nothing()) } } }
        }
    }
}
