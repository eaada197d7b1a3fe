//! What the page is about: its head, coverage, covariates, problems, provenance.

use maud::{Markup, html};

use super::metrics::latency;
use super::text::{Cohort, Text, amount_at, count_at, nothing, value_at};
use crate::report::numbers::{coefficient, counted};
use crate::report::paths::PathValue;
use crate::report::{MetricReport, Report};

/// Incomplete runs that are listed; the table of runs marks all of its own.
const LISTED_MAX: usize = 50;
/// Checksums that are listed.
const FILES_MAX: usize = 400;

/// Title, key figures and the way to each section.
pub(super) fn header(report: &Report, links: &[(&str, &str)]) -> Markup {
    let runs = &report.runs;
    html! {
        header {
            h1 { "Cold starts of " (Text(&report.model)) }
            p.soft {
                (count_at("runs/total", runs.total)) @if runs.total == 1 { " run, " } @else { " runs, " }
                "chains complete " (count_at("runs/complete", runs.complete)) "/" (count_at("runs/traced", runs.traced))
                @if runs.failed > 0 { ", " span.bad { (count_at("runs/failed", runs.failed)) " failed" } }
                @if runs.not_traced > 0 { ", " (count_at("runs/not_traced", runs.not_traced)) " not traced" }
                @if runs.warmup > 0 { ", " (count_at("runs/warmup", runs.warmup)) " warm-ups left out" }
                @if !report.cohorts.is_empty() { ", " (report.cohorts.len()) " cohorts" }
                @if let Some(host) = &report.provenance.host { ", host " (Text(host)) }
            }
            (key_figures(report))
            nav aria-label="sections" { @for (id, title) in links { a href=(format!("#{id}")) { (title) } } }
        }
    }
}

/// What the client waits, of all or of the first few cohorts.
fn key_figures(report: &Report) -> Markup {
    let name = latency(report).unwrap_or_default();
    let place = report.metrics.iter().position(|one| one.name == name);
    let Some(place) = place else {
        return html! {};
    };
    let card = |at: String, one: &MetricReport, of: Option<&str>| {
        html! {
            div {
                b { (amount_at(&format!("{at}/p50"), one.p50, one.quantum)) }
                span {
                    "P50 of " (Text(name)) @if let Some(of) = of { ", " (Cohort(of)) }
                    @if let Some([Some(low), Some(high)]) = one.p50_ci {
                        br; (amount_at(&format!("{at}/p50_ci/0"), Some(low), one.quantum)) " … " (amount_at(&format!("{at}/p50_ci/1"), Some(high), one.quantum)) " (95 %)"
                    }
                }
            }
        }
    };
    html! {
        div.key {
            @if report.cohorts.is_empty() {
                @let one = &report.metrics[place];
                @if one.n > 0 { (card(format!("metrics/{place}"), one, None)) }
                @if one.n > 1 && one.p95.is_some() {
                    div {
                        b { (amount_at(&format!("metrics/{place}/p95"), one.p95, one.quantum)) }
                        span { "P95 of " (Text(name)) @if let Some(n) = one.p95_needs_n { br; "an interval needs " (count_at(&format!("metrics/{place}/p95_needs_n"), n)) " runs" } }
                    }
                }
                @for (index, one) in report.metrics.iter().enumerate() {
                    @if one.n > 0 && index != place && matches!(one.name.as_str(), "process_to_health" | "process_to_session") {
                        div { b { (amount_at(&format!("metrics/{index}/p50"), one.p50, one.quantum)) } span { "P50 of " (Text(&one.name)) } }
                    }
                }
            } @else {
                @for (index, cohort) in report.cohorts.iter().take(6).enumerate() {
                    @if let Some(one) = cohort.metrics.get(place).filter(|one| one.n > 0) {
                        (card(format!("cohorts/{index}/metrics/{place}"), one, Some(&cohort.name)))
                    }
                }
            }
        }
    }
}

pub(super) fn covariates(report: &Report) -> Markup {
    html! {
        @if let Some(first) = report.covariates.first() {
            p.soft { "with " (Text(&first.with)) ", within cohorts" }
            div.scroll tabindex="0" role="region" aria-label="covariates" {
                table {
                    thead { tr { th { "name" } th { "role" } th.n { "n" } th.n { "Pearson" } th.n { "Spearman" } th.n { "p (Holm)" } th { } } }
                    tbody {
                        @for (place, one) in report.covariates.iter().enumerate() {
                            @let at = format!("covariates/{place}");
                            tr {
                                th scope="row" { (Text(&one.name)) } td { (one.role) }
                                td.n { (count_at(&format!("{at}/n"), one.n)) }
                                td.n { (value_at(&format!("{at}/pearson"), one.pearson, coefficient)) }
                                td.n { (value_at(&format!("{at}/spearman"), one.spearman, coefficient)) }
                                td.n { (value_at(&format!("{at}/p"), one.p, |p| if p < 0.0005 { "< 0.001".to_owned() } else { format!("{p:.3}") })) }
                                td { @if let Some(reason) = &one.reason { (Text(reason)) } }
                            }
                        }
                    }
                }
            }
            p.note { "mediator: the run itself brings it about; it says how a run was slow and explains nothing" }
        }
    }
}

pub(super) fn coverage(report: &Report) -> Markup {
    let records = &report.input.records;
    let joins = report.runs.profile_joins;
    html! {
        p {
            (count_at("input/files", report.input.files)) " files, "
            (number_of("input/records/spans", records.spans)) " spans, " (number_of("input/records/logs", records.logs)) " logs, "
            (number_of("input/records/metrics", records.metrics)) " metrics, " (number_of("input/records/profiles", records.profiles)) " profiles parsed"
            @if joins.of > 0 { "; profile joins " (count_at("runs/profile_joins/joined", joins.joined)) "/" (count_at("runs/profile_joins/of", joins.of)) }
            @if report.input.not_traces > 0 { "; " (counted(report.input.not_traces, "file")) " without a trace" }
        }
        @for (place, path) in report.paths.iter().enumerate() {
            p {
                code { (Text(&path.name)) } ": "
                @for (index, value) in path.values.iter().enumerate() {
                    @if index > 0 { ", " }
                    (path_value(&format!("paths/{place}/values/{index}"), value)) "/" (count_at(&format!("paths/{place}/n"), path.n))
                }
            }
        }
        @if report.runs.total > 0 && report.runs.traced == 0 {
            p.bad { "No traces of the program itself are among these files, so there is no breakdown." }
        }
        @if !report.runs.incomplete.is_empty() {
            h3 { "Incomplete runs" }
            dl {
                @for one in report.runs.incomplete.iter().take(LISTED_MAX) {
                    dt { (Text(&one.run)) } dd { "lacks " (Text(&one.missing.join(", "))) }
                }
            }
            @if report.runs.incomplete.len() > LISTED_MAX { p.note { "the first " (LISTED_MAX) " of " (report.runs.incomplete.len()) } }
        }
    }
}

fn number_of(at: &str, value: u64) -> Markup {
    html! { data value=(value) data-j=(at) { (value) } }
}

fn path_value(at: &str, value: &PathValue) -> Markup {
    html! {
        @match &value.value { Some(text) => (Text(text)), None => (nothing()) }
        " " (count_at(&format!("{at}/n"), value.n))
        @if !value.runs.is_empty() { " (" (Text(&value.runs.join(", "))) ")" }
    }
}

pub(super) fn problems(report: &Report) -> Markup {
    html! {
        @if report.input.problems.is_empty() { p.soft { "none: every record was read" } }
        @else {
            div.scroll tabindex="0" role="region" aria-label="problems" {
                table {
                    thead { tr { th { "problem" } th.n { "count" } th { "first" } th { "reason" } } }
                    tbody {
                        @for (place, one) in report.input.problems.iter().enumerate() {
                            tr {
                                th scope="row" { code { (one.code) } }
                                td.n { (number_of(&format!("input/problems/{place}/count"), one.count)) }
                                td { @if let Some(at) = &one.first { (Text(&at.file)) ":" (at.line) " (byte " (at.byte) ")" } }
                                td { (Text(&one.message)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

pub(super) fn provenance(report: &Report) -> Markup {
    let from = &report.provenance;
    let line = |name: &str, value: &Option<String>| {
        html! { @if let Some(value) = value { dt { (name) } dd { (Text(value)) } } }
    };
    html! {
        dl {
            dt { "command" } dd.mono { (Text(&from.command.join(" "))) }
            dt { "versions" } dd { (Text(&from.versions.join(", "))) }
            dt { "model" } dd { (Text(&report.model)) }
            dt { "quantiles" } dd { (report.quantile) }
            (line("host", &from.host)) (line("boot id", &from.boot_id)) (line("seed", &from.seed))
            dt { "input" } dd { (count_at("input/files", report.input.files)) " files, " (number_of("input/bytes", report.input.bytes)) " bytes" }
        }
        @if !from.inputs_sha256.is_empty() {
            details {
                summary { "SHA-256 of the files, in the order of reading" }
                ol.mono {
                    @for sum in from.inputs_sha256.iter().take(FILES_MAX) { li { (sum) } }
                }
                @if from.inputs_sha256.len() > FILES_MAX { p.note { "the first " (FILES_MAX) " of " (from.inputs_sha256.len()) "; the JSON report has them all" } }
            }
        }
    }
}
