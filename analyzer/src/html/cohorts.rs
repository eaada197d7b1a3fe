//! Breakdowns of several cohorts: the medians side by side with the shift of
//! pairs, then each cohort by itself.

use maud::{Markup, html};

use super::text::{Cohort, Text, nothing, shown, signed_amount_at, time_at};
use super::windows::{Of, Points, of_runs};
use crate::report::comparisons::WINDOW;
use crate::report::{Amount, CohortReport, Report, ShiftReport, WindowReport};
use crate::units::Nanos;

/// Cohorts whose runs are drawn.
const DRAWN_MAX: usize = 8;
/// Cohorts that stand beside each other or are shown by themselves.
const SHOWN_MAX: usize = 64;

pub(super) fn breakdowns(report: &Report) -> Markup {
    let shown_cohorts = &report.cohorts[..report.cohorts.len().min(SHOWN_MAX)];
    html! {
        @for pooled in &report.windows { (beside(report, shown_cohorts, pooled)) }
        p.note {
            @if report.comparisons.is_empty() { "These runs name no pairs, so it is not said how far the cohorts differ and how sure that is; " code { "measure" } " runs its arms in pairs." }
            @else { "Medians; the differences are Hodges–Lehmann shifts of the runs in pairs with their 95 % intervals. Shifts of stages need not add up to that of the total." }
        }
        h3 { "Each cohort by itself" }
        @for (place, cohort) in shown_cohorts.iter().enumerate() {
            @let at = format!("cohorts/{place}/");
            @let points = if place < DRAWN_MAX { Points::First } else { Points::None };
            @let of = Of { at: &at, cohort: Some(&cohort.name), points };
            details.cohort {
                summary { (Cohort(&cohort.name)) " " span.soft { "n = " (cohort.n) } }
                (of_runs(report, of, &cohort.windows, &cohort.drill_through, &cohort.groups))
            }
        }
        @if report.cohorts.len() > DRAWN_MAX {
            p.note {
                "Runs are drawn as points for the first " (DRAWN_MAX) " of " (report.cohorts.len()) " cohorts."
                @if report.cohorts.len() > SHOWN_MAX { " Of the cohorts behind the first " (SHOWN_MAX) " only the end-to-end metrics are here; the JSON report has them all." }
            }
        }
    }
}

/// One window: a row for each part, a column for each cohort.
fn beside(report: &Report, cohorts: &[CohortReport], pooled: &WindowReport) -> Markup {
    let names = pooled.stages.iter().map(|stage| stage.name.as_str());
    let mut names: Vec<&str> = names.collect();
    if !names.is_empty() {
        names.push(&pooled.unattributed.name);
    }
    let paired = |candidate: &CohortReport| comparison(report, candidate, pooled).is_some();
    html! {
        h3 { (Text(&pooled.title)) ", P50 by cohort" }
        div.scroll tabindex="0" role="region" aria-label=(shown(&pooled.title, 60)) {
            table {
                thead { tr {
                    th { "stage" }
                    @for cohort in cohorts {
                        th.n { (Cohort(&cohort.name)) }
                        @if paired(cohort) { th.n { "− " (Cohort(&cohorts[0].name)) } th.n { "95 % interval" } }
                    }
                } }
                tbody {
                    @for name in &names {
                        tr { th scope="row" { (Text(name)) } (row(report, cohorts, pooled, Some(name))) }
                    }
                    tr.total { th scope="row" { "total" } (row(report, cohorts, pooled, None)) }
                }
            }
        }
    }
}

/// The place of the window's comparison of a cohort with the first.
fn comparison(report: &Report, candidate: &CohortReport, pooled: &WindowReport) -> Option<usize> {
    let control = report.cohorts.first()?;
    report.comparisons.iter().position(|one| {
        one.kind == WINDOW
            && one.metric == pooled.name
            && one.control == control.name
            && one.candidate == candidate.name
    })
}

fn row(
    report: &Report,
    cohorts: &[CohortReport],
    pooled: &WindowReport,
    part: Option<&str>,
) -> Markup {
    html! {
        @for (place, cohort) in cohorts.iter().enumerate() {
            td.n { (median(place, cohort, pooled, part)) }
            @if let Some(found) = comparison(report, cohort, pooled) {
                (shift(report, found, pooled.quantum, part))
            }
        }
    }
}

fn median(
    place: usize,
    cohort: &CohortReport,
    pooled: &WindowReport,
    part: Option<&str>,
) -> Markup {
    let found = cohort
        .windows
        .iter()
        .position(|one| one.name == pooled.name);
    let Some(at) = found else { return nothing() };
    let window = &cohort.windows[at];
    let base = format!("cohorts/{place}/windows/{at}");
    let Some(name) = part else {
        return time_at(
            &format!("{base}/total/p50"),
            window.total.p50,
            pooled.quantum,
        );
    };
    if name == window.unattributed.name {
        let value = window.unattributed.p50;
        return time_at(&format!("{base}/unattributed/p50"), value, pooled.quantum);
    }
    // A stage that no run of the cohort has is absent, not short.
    let here = |stage: &crate::report::StageReport| stage.name == name && stage.n_present > 0;
    match window.stages.iter().position(here) {
        None => nothing(),
        Some(index) => {
            let value = window.stages[index].p50;
            time_at(&format!("{base}/stages/{index}/p50"), value, pooled.quantum)
        }
    }
}

fn shift(report: &Report, found: usize, quantum: Nanos, part: Option<&str>) -> Markup {
    let one = &report.comparisons[found];
    let at = format!("comparisons/{found}");
    let stage = part.and_then(|name| one.stages.iter().position(|stage| stage.name == name));
    match (part, stage) {
        (None, _) => shift_cells(&format!("{at}/shift"), &one.shift, quantum),
        (Some(_), Some(index)) => {
            let shift = &one.stages[index].shift;
            shift_cells(&format!("{at}/stages/{index}/shift"), shift, quantum)
        }
        (Some(_), None) => html! { td.n { (nothing()) } td.n { (nothing()) } },
    }
}

fn shift_cells(at: &str, shift: &ShiftReport<Amount>, quantum: Nanos) -> Markup {
    html! {
        td.n { (signed_amount_at(&format!("{at}/estimate"), shift.estimate, quantum)) }
        td.n {
            @if shift.low.is_some() && shift.high.is_some() {
                (signed_amount_at(&format!("{at}/low"), shift.low, quantum)) " … " (signed_amount_at(&format!("{at}/high"), shift.high, quantum))
            } @else { (nothing()) }
        }
    }
}
