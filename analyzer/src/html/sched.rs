//! Where the time of each stage went: on a processor, waiting for one, blocked.

use maud::{Markup, html};

use super::text::{Cohort, Text, css, number};
use crate::breakdown::client;
use crate::report::numbers::{percent, time};
use crate::report::{Report, StageReport, WindowReport};
use crate::units::Nanos;

pub(super) fn section(report: &Report) -> Markup {
    let pooled = (None, "windows".to_owned(), &report.windows);
    let cohorts = report.cohorts.iter().enumerate();
    let of_cohorts = cohorts.map(|(place, one)| {
        (
            Some(one.name.as_str()),
            format!("cohorts/{place}/windows"),
            &one.windows,
        )
    });
    let groups: Vec<_> = if report.cohorts.is_empty() {
        vec![pooled]
    } else {
        of_cohorts.collect()
    };
    let tables = groups
        .iter()
        .filter_map(|(cohort, at, windows)| table(*cohort, at, windows));
    let tables: Vec<Markup> = tables.collect();
    html! {
        @if !tables.is_empty() {
            ul.keys aria-hidden="true" {
                li { i.run {} "running" } li { i.wait {} "waiting for a processor" } li { i.block {} "blocked" }
            }
            @for table in &tables { (table) }
            p.note { "Medians of the thread that ran the span, where the trace recorded it. Where a stage only waits for another process, “of” names that process’s span, and only the parts of its time are shown." }
        }
    }
}

fn table(cohort: Option<&str>, at: &str, windows: &[WindowReport]) -> Option<Markup> {
    let mut rows = Vec::new();
    for (place, window) in windows.iter().enumerate() {
        if window.name == client::WINDOW {
            continue;
        }
        for (index, stage) in window.stages.iter().enumerate() {
            rows.extend(row(
                &format!("{at}/{place}/stages/{index}/sched"),
                window,
                stage,
            ));
        }
    }
    (!rows.is_empty()).then(|| {
        html! {
            div.scroll tabindex="0" role="region" aria-label="scheduler figures" {
                table {
                    @if let Some(cohort) = cohort { caption { (Cohort(cohort)) } }
                    thead { tr { th { "window / stage" } th { "of" } th.n { "running" } th.n { "waiting" } th.n { "blocked" } th { } } }
                    tbody { @for row in &rows { (row) } }
                }
            }
        }
    })
}

fn row(at: &str, window: &WindowReport, stage: &StageReport) -> Option<Markup> {
    let sched = stage.sched.as_ref()?;
    let times = [
        ("cpu", sched.cpu),
        ("runq", sched.runq),
        ("blocked", sched.blocked),
    ];
    let whole: i64 = times.iter().map(|(_, time)| time.0).sum();
    let parts = times.map(|(_, time)| time.0 as f64 / whole.max(1) as f64);
    let foreign = sched.from.is_some();
    let shown = |place: usize, value: Nanos| {
        if foreign {
            percent(parts[place])
        } else {
            time(value, window.quantum)
        }
    };
    Some(html! {
        tr {
            th scope="row" { (Text(&window.name)) " / " (Text(&stage.name)) }
            td { @match &sched.from { Some(from) => (Text(from)), None => "itself" } }
            @for (place, (key, value)) in times.iter().enumerate() {
                td.n { (number(&format!("{at}/{key}"), value.as_ms(), &shown(place, *value))) }
            }
            td aria-hidden="true" {
                span.stack {
                    @for (class, (_, value)) in ["run", "wait", "block"].iter().zip(times) {
                        i class=(class) style=(format!("width:{}", css(value.0 as f64, whole as f64))) {}
                    }
                }
            }
        }
    })
}
