//! End-to-end metrics with their intervals, and cohorts compared in pairs.

use maud::{Markup, html};

use super::plots::{SERIES_MAX, Steps, steps};
use super::samples::{evenly, metric, thinned};
use super::text::{
    Cohort, Text, amount_at, count_at, css, nothing, number, plain, signed_amount_at, value_at,
};
use crate::report::comparisons::METRIC;
use crate::report::numbers::amount;
use crate::report::{Amount, Comparison, MetricReport, Report};

/// Steps of a distribution that are drawn.
const STEPS_MAX: usize = 400;

/// The name of the metric that says what a client waits.
pub(super) fn latency(report: &Report) -> Option<&str> {
    let window = report.windows.first()?;
    Some(window.unattributed.correlation.with.as_str())
}

pub(super) fn section(report: &Report) -> Markup {
    let name = latency(report)
        .filter(|name| {
            report
                .metrics
                .iter()
                .any(|one| one.name == *name && one.n > 0)
        })
        .or_else(|| {
            let times = report.metrics.iter();
            let mut found = times.filter(|one| one.n > 1 && one.unit == "ms");
            found.next_back().map(|one| one.name.as_str())
        });
    html! {
        div.side {
            div {
                @if report.cohorts.is_empty() {
                    (table("metrics", None, &report.metrics))
                } @else {
                    (by_metric(report))
                }
                (note())
                (absent(report))
            }
            @if let Some(name) = name { (distribution(report, name)) }
        }
        (comparisons(report))
    }
}

fn note() -> Markup {
    html! {
        p.note {
            "In the picture: band = 95 % interval of the median (order statistics), bar = median, dotted = P95, dot = slowest; each row has its own scale from 0 to its largest value. A failed run counts as infinitely slow: quantiles that it touches are “> bound”."
        }
    }
}

fn absent(report: &Report) -> Markup {
    let missing = report.metrics.iter().filter(|one| one.n == 0);
    let missing: Vec<&MetricReport> = missing.collect();
    html! {
        @if !missing.is_empty() {
            p.note {
                "not in these runs: "
                @for (place, one) in missing.iter().enumerate() {
                    @if place > 0 { "; " }
                    (Text(&one.name))
                    @if let Some(reason) = &one.reason { " (" (Text(reason)) ")" }
                }
            }
        }
    }
}

fn heads() -> Markup {
    html! {
        th.n { "n" } th.n { "P50" } th.n { "95 % interval" } th.n { "P95" } th.n { "max" } th.n { "mean" } th { }
    }
}

/// The metrics of one group of runs; `at` is their JSON pointer.
pub(super) fn table(at: &str, caption: Option<&str>, metrics: &[MetricReport]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="end-to-end metrics" {
            table {
                @if let Some(caption) = caption { caption { (Text(caption)) } }
                thead { tr { th { "metric" } (heads()) } }
                tbody {
                    @for (place, one) in metrics.iter().enumerate() {
                        @if one.n > 0 {
                            tr { th scope="row" { (Text(&one.name)) } (cells(&format!("{at}/{place}"), one, largest(&[one]))) }
                        }
                    }
                }
            }
        }
    }
}

/// The same metric of every cohort below each other, on one scale.
fn by_metric(report: &Report) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="end-to-end metrics by cohort" {
            table {
                thead { tr { th { "metric" } th { "cohort" } (heads()) } }
                tbody {
                    @for (column, pooled) in report.metrics.iter().enumerate() {
                        @let mine = report.cohorts.iter().enumerate();
                        @let mine: Vec<(usize, &MetricReport)> = mine
                            .filter_map(|(place, cohort)| Some((place, cohort.metrics.get(column)?)))
                            .filter(|(_, one)| one.n > 0)
                            .collect();
                        @let scale = largest(&mine.iter().map(|(_, one)| *one).collect::<Vec<_>>());
                        @for (line, (place, one)) in mine.iter().enumerate() {
                            tr {
                                th scope="row" { @if line == 0 { (Text(&pooled.name)) } }
                                td { (Cohort(&report.cohorts[*place].name)) }
                                (cells(&format!("cohorts/{place}/metrics/{column}"), one, scale))
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What a row's picture ends at.
fn largest(metrics: &[&MetricReport]) -> f64 {
    let ends = metrics.iter().flat_map(|one| {
        let high = one.p50_ci.and_then(|[_, high]| high);
        [one.max, one.p95, one.p50, one.above, high]
    });
    ends.flatten().map(plain).fold(0.0, f64::max)
}

fn cells(at: &str, one: &MetricReport, scale: f64) -> Markup {
    let bounded = |key: &str, value: Option<Amount>| match (value, one.above) {
        (Some(value), _) => amount_at(&format!("{at}/{key}"), Some(value), one.quantum),
        (None, Some(bound)) => number(
            &format!("{at}/above"),
            plain(bound),
            &format!("> {}", amount(bound, one.quantum)),
        ),
        (None, None) => nothing(),
    };
    let spread = |key: &str, value: Option<Amount>| match one.n {
        1 => nothing(),
        _ => bounded(key, value),
    };
    html! {
        td.n { (count_at(&format!("{at}/n"), one.n)) }
        td.n { (bounded("p50", one.p50)) }
        td.n {
            @match one.p50_ci {
                Some([low, high]) => {
                    (amount_at(&format!("{at}/p50_ci/0"), low, one.quantum)) " … " (amount_at(&format!("{at}/p50_ci/1"), high, one.quantum))
                }
                None => (nothing()),
            }
        }
        td.n { (spread("p95", one.p95)) }
        td.n { (spread("max", one.max)) }
        td.n { (amount_at(&format!("{at}/mean"), one.mean, one.quantum)) }
        td.track aria-hidden="true" {
            @if one.n > 1 && one.p50.is_some() && scale > 0.0 {
                span.t {
                    @if let Some([Some(low), Some(high)]) = one.p50_ci {
                        i.ci style=(format!("left:{};width:{}", css(plain(low), scale), css(plain(high) - plain(low), scale))) {}
                    }
                    @for (class, value) in [("q", one.p95), ("x", one.max), ("m", one.p50)] {
                        @if let Some(value) = value { i class=(class) style=(format!("left:{}", css(plain(value), scale))) {} }
                    }
                }
            }
        }
    }
}

/// What part of the runs took no longer than that, each cohort a line.
fn distribution(report: &Report, name: &str) -> Markup {
    let cohorts: Vec<Option<&str>> = match report.cohorts.len() {
        0 => vec![None],
        _ => report
            .cohorts
            .iter()
            .map(|one| Some(one.name.as_str()))
            .collect(),
    };
    let drawn = cohorts.iter().take(SERIES_MAX);
    let samples = drawn.map(|cohort| metric(report, *cohort, name));
    let samples: Vec<(Vec<f64>, usize)> = samples.collect();
    if samples.iter().all(|(values, _)| values.len() < 2) {
        return html! {};
    }
    let lines = samples.iter().map(|(values, failed)| {
        let all = (values.len() + failed) as f64;
        let places = evenly(values.len(), STEPS_MAX).into_iter();
        let points = places.map(|place| (values[place], (place + 1) as f64 / all));
        Steps {
            points: points.collect(),
        }
    });
    let lines: Vec<Steps> = lines.collect();
    let n: usize = samples.iter().map(|(values, _)| values.len()).sum();
    let shown: usize = lines.iter().map(|line| line.points.len()).sum();
    let label = format!("distribution of {}", super::text::shown(name, 60));
    html! {
        figure {
            figcaption {
                b { "Distribution of " (Text(name)) } ": the part of the runs that took no longer"
                @if let Some(note) = thinned(shown, n) { "; " (note) }
                @if cohorts.len() > SERIES_MAX { "; the first " (SERIES_MAX) " of " (cohorts.len()) " cohorts" }
            }
            (steps(&label, &format!("{}, ms", super::text::shown(name, 40)), &lines))
            @if report.cohorts.len() > 1 {
                ul.keys {
                    @for (place, cohort) in report.cohorts.iter().take(SERIES_MAX).enumerate() {
                        @if !lines[place].points.is_empty() { li {
                            svg viewBox="0 0 102 30" aria-hidden="true" {
                                polyline fill="none" stroke=(format!("#0000{:02X}", 16 + place)) stroke-width="6" points="0,15 102,15" {}
                            }
                            (Cohort(&cohort.name))
                        } }
                    }
                }
            }
        }
    }
}

/// Metrics of every two cohorts compared in pairs.
fn comparisons(report: &Report) -> Markup {
    let all = report.comparisons.iter().enumerate();
    let metrics: Vec<(usize, &Comparison)> = all.filter(|(_, one)| one.kind == METRIC).collect();
    html! {
        @if !metrics.is_empty() {
            h3 { "Compared in pairs (Hodges–Lehmann)" }
            div.scroll tabindex="0" role="region" aria-label="comparisons" {
                table {
                    thead { tr { th { "metric" } th { "candidate − control" } th.n { "pairs" } th.n { "shift" } th.n { "95 % interval" } th.n { "ratio" } th.n { "95 % interval" } th { } } }
                    tbody { @for (place, one) in &metrics { (comparison(*place, one)) } }
                }
            }
            p.note { "The shift is how much longer or larger the candidate is, the ratio is candidate ÷ control; each interval belongs to the column before it. In the picture: line = no difference, band = interval of the shift, bar = shift." }
        }
    }
}

fn comparison(place: usize, one: &Comparison) -> Markup {
    let at = format!("comparisons/{place}");
    let three = |value: f64| format!("{value:.3}");
    html! {
        tr {
            th scope="row" { (Text(&one.metric)) }
            td { (Cohort(&one.candidate)) " − " (Cohort(&one.control)) }
            td.n { (count_at(&format!("{at}/n_pairs"), one.n_pairs)) }
            td.n { (signed_amount_at(&format!("{at}/shift/estimate"), one.shift.estimate, one.quantum)) }
            td.n {
                @if one.shift.low.is_some() && one.shift.high.is_some() {
                    (signed_amount_at(&format!("{at}/shift/low"), one.shift.low, one.quantum)) " … " (signed_amount_at(&format!("{at}/shift/high"), one.shift.high, one.quantum))
                } @else { (nothing()) }
            }
            td.n { (value_at(&format!("{at}/ratio/estimate"), one.ratio.estimate, three)) }
            td.n {
                @if one.ratio.low.is_some() && one.ratio.high.is_some() {
                    (value_at(&format!("{at}/ratio/low"), one.ratio.low, three)) " … " (value_at(&format!("{at}/ratio/high"), one.ratio.high, three))
                } @else { (nothing()) }
            }
            td.track aria-hidden="true" { (around_zero(one.shift.low, one.shift.estimate, one.shift.high)) }
        }
    }
}

/// An interval around no difference, which stands in the middle.
fn around_zero(low: Option<Amount>, estimate: Option<Amount>, high: Option<Amount>) -> Markup {
    let ends = [low, estimate, high].into_iter().flatten().map(plain);
    let reach = ends.map(f64::abs).fold(0.0, f64::max);
    let at = |value: Amount| css(plain(value) + reach, 2.0 * reach);
    html! {
        @if reach > 0.0 {
            span.t {
                @if let (Some(low), Some(high)) = (low, high) {
                    i.ci style=(format!("left:{};width:{}", at(low), css(plain(high) - plain(low), 2.0 * reach))) {}
                }
                i.zero style="left:50%" {}
                @if let Some(estimate) = estimate { i.m style=(format!("left:{}", at(estimate))) {} }
            }
        }
    }
}
