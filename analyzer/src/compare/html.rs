//! A comparison as one page that stands alone: its sections as tables and a plot of
//! the paired differences of every figure. Nothing is fetched and nothing runs.
//!
//! Plots show what the JSON document holds under `metrics[].pairs`; nothing is
//! computed for them but places on the page.

use std::io::{self, Write};

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::html::{POLICY, STYLE};
use crate::report::layout::{Grid, Section};
use crate::report::numbers::{NONE, escape, or_none, signed_amount};
use crate::units::Nanos;

use super::effect::{Effect, in_unit};
use super::pairing::Order;
use super::words::{figure, interval};
use super::{Comparison, MetricChange};

/// Size of a plot in its own units.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 160.0;
/// Room around the points, so that no mark is cut.
const ROOM: f64 = 10.0;
/// More pairs than this are drawn evenly thinned, and that is said.
const POINTS_MAX: usize = 2_000;

/// Draws sections, then the plots of `comparison` where there is one.
///
/// # Errors
/// What the writer fails with.
pub fn page(
    title: &str,
    sections: &[Section],
    comparison: Option<&Comparison>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let plots = comparison.map(plots);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content=(concat!("analyze ", env!("CARGO_PKG_VERSION")));
                title { (title) }
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) }
            }
            body {
                header { h1 { (title) } }
                main {
                    @for section in sections { (of_section(section)) }
                    @if let Some(plots) = plots { (plots) }
                }
                footer { "The exact values stand in the JSON document (" code { "--format json" } "). The page fetches nothing and runs nothing." }
            }
        }
    };
    writeln!(out, "{}", page.into_string())
}

fn of_section(section: &Section) -> Markup {
    html! {
        section {
            h2 { (section.title) }
            @if !section.lines.is_empty() {
                ul { @for line in &section.lines { li { (line) } } }
            }
            @if let Some(grid) = &section.grid { (table(grid)) }
            @for note in &section.notes { p { small { (note) } } }
        }
    }
}

fn table(grid: &Grid) -> Markup {
    html! {
        div style="overflow-x:auto" {
            table {
                thead { tr { @for cell in &grid.head { th scope="col" { (cell) } } } }
                tbody {
                    @for row in &grid.rows {
                        tr {
                            @for (at, cell) in row.iter().enumerate() {
                                @if at == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn plots(comparison: &Comparison) -> Markup {
    html! {
        section {
            h2 { "Paired differences, candidate − control" }
            p { "Circles: the control ran first; squares: the candidate ran first. The band is the 95 % interval of the shift, the thick line the shift, the thin line zero." }
            @for metric in &comparison.metrics { (plot(metric)) }
        }
    }
}

fn plot(metric: &MetricChange) -> Markup {
    let effect = &metric.effect;
    let points = points(effect);
    let shift = &effect.shift;
    let marks = points.iter().map(|(_, value, _)| *value);
    let ends = shift
        .interval
        .into_iter()
        .flat_map(|(low, high)| [low, high]);
    let shown = marks
        .chain(ends)
        .chain(shift.estimate)
        .filter(|value| value.is_finite());
    let (low, high) = shown.fold((0.0f64, 0.0f64), |(low, high), one| {
        (low.min(one), high.max(one))
    });
    let span = if high > low { high - low } else { 1.0 };
    let y = |value: f64| HEIGHT - ROOM - (value - low) / span * (HEIGHT - 2.0 * ROOM);
    let last = effect.differences.len().saturating_sub(1).max(1) as f64;
    let x = |place: usize| ROOM + place as f64 / last * (WIDTH - 2.0 * ROOM);
    let band = shift
        .interval
        .filter(|ends| ends.0.is_finite() && ends.1.is_finite());
    let amount = |value: f64| {
        or_none(in_unit(effect.unit, value), |one| {
            signed_amount(one, Nanos(1))
        })
    };
    let label = format!(
        "{}: {}, {}",
        escape(&metric.name),
        figure(shift),
        interval(shift)
    );
    html! {
        figure {
            figcaption { (label) @if points.len() < effect.differences.len() { " (" (points.len()) " of " (effect.differences.len()) " pairs drawn)" } }
            svg role="img" aria-label=(label) viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) width="100%" style="max-width:640px" {
                @if let Some((low, high)) = band {
                    rect x="0" width=(WIDTH) y=(px(y(high))) height=(px(y(low) - y(high))) fill="currentColor" fill-opacity="0.12" {}
                }
                line x1="0" x2=(WIDTH) y1=(px(y(0.0))) y2=(px(y(0.0))) stroke="currentColor" stroke-width="0.5" {}
                @if let Some(value) = shift.estimate.filter(|value| value.is_finite()) {
                    line x1="0" x2=(WIDTH) y1=(px(y(value))) y2=(px(y(value))) stroke="currentColor" stroke-width="2" {}
                }
                @for (place, value, order) in &points {
                    @match order {
                        Order::ControlFirst => circle cx=(px(x(*place))) cy=(px(y(*value))) r="3" fill="none" stroke="currentColor" { title { (amount(*value)) } },
                        Order::CandidateFirst => rect x=(px(x(*place) - 2.5)) y=(px(y(*value) - 2.5)) width="5" height="5" fill="currentColor" { title { (amount(*value)) } },
                    }
                }
            }
            p { small { "from " (if low < 0.0 { amount(low) } else { "0".to_owned() }) " to " (if high > 0.0 { amount(high) } else { "0".to_owned() }) @if points.is_empty() { " " (NONE) } } }
        }
    }
}

/// Place, difference and order of the pairs that are drawn: finite ones.
fn points(effect: &Effect) -> Vec<(usize, f64, Order)> {
    let orders = effect.pairs.iter().zip(&effect.orders);
    let orders = orders
        .filter(|((control, _), _)| control.is_finite())
        .map(|(_, order)| *order);
    let all = effect.differences.iter().copied().zip(orders).enumerate();
    let all = all.filter(|(_, (value, _))| value.is_finite());
    let step = effect.differences.len().div_ceil(POINTS_MAX).max(1);
    all.filter(|(place, _)| place % step == 0)
        .map(|(place, (value, order))| (place, value, order))
        .collect()
}

/// A coordinate to a hundredth.
fn px(value: f64) -> String {
    format!("{value:.2}")
}
