//! One run in time: its windows and stages on one axis, and below a stage that
//! waits, the phases of what it waited for.

use hashbrown::HashMap;
use maud::{Markup, html};

use super::text::{Cohort, Text, count_at, css};
use crate::report::numbers::time;
use crate::report::picture::{Picture, PictureStage, PictureWindow};
use crate::report::{Report, RunReport};
use crate::units::Nanos;

/// A run and what is known of it elsewhere in the report.
struct Scene<'r> {
    run: &'r Picture,
    item: Option<&'r RunReport>,
    /// The same colour for the same stage, wherever it stands.
    colours: &'r HashMap<&'r str, usize>,
}

fn scene<'r>(
    report: &'r Report,
    run: &'r Picture,
    colours: &'r HashMap<&'r str, usize>,
) -> Scene<'r> {
    Scene {
        run,
        item: report.runs.items.get(run.place),
        colours,
    }
}

/// Places of the names of all stages, in the order of the windows.
fn colours(report: &Report) -> HashMap<&str, usize> {
    let mut found = HashMap::new();
    for window in &report.windows {
        for (place, stage) in window.stages.iter().enumerate() {
            found.entry(stage.name.as_str()).or_insert(place);
        }
    }
    found
}

pub(super) fn section(report: &Report) -> Markup {
    let colours = colours(report);
    let placed = report.pictures.iter().flat_map(|one| &one.windows);
    let placed = placed
        .flat_map(|window| &window.stages)
        .any(|stage| stage.placed);
    html! {
        @for (index, one) in report.pictures.iter().enumerate() {
            @if report.pictures.len() > 1 {
                details.cohort open[index < 2] {
                    summary { (Cohort(one.cohort.as_deref().unwrap_or_default())) ": " code { (Text(&one.run)) } }
                    (picture(&scene(report, one, &colours)))
                }
            } @else {
                p.soft { code { (Text(&one.run)) } ", the run whose first window is nearest to the median" }
                (picture(&scene(report, one, &colours)))
            }
        }
        @if !report.pictures.is_empty() {
            p.note {
                "“from” counts from the start of the first window. ▸ opens what a stage waited for. "
                @if placed { "placed: the source has a length and no start time; laid out from the end of its window, striped. " }
                @if report.cohorts.len() > report.pictures.len() { "Of " (report.cohorts.len()) " cohorts the first " (report.pictures.len()) " are drawn. " }
                "A length is the stage’s own time: where stages overlap, the time belongs to the one that started later."
            }
        }
    }
}

fn picture(scene: &Scene<'_>) -> Markup {
    let one = scene.run;
    let all = one.length;
    let quantum = one.windows.iter().map(|window| window.quantum).min();
    let quantum = quantum.unwrap_or(Nanos(1));
    let part = |fourth: i64| time(Nanos(all.0 / 4 * fourth + all.0 % 4 * fourth / 4), quantum);
    html! {
        div.wf {
            div.r.axis { span {} span.bar { span { "0" } span { (part(2)) } span { (part(4)) } } span { "from" } span { "length" } }
            @for (place, window) in one.windows.iter().enumerate() {
                (window_rows(scene, place, window))
            }
        }
    }
}

fn window_rows(scene: &Scene<'_>, place: usize, window: &PictureWindow) -> Markup {
    let one = scene.run;
    let at = format!("runs/items/{}/windows/{place}", one.place);
    html! {
        div.r.win {
            span {
                (Text(&window.title))
                @if window.request > 1 { " " span.tag { "request " (count_at(&format!("{at}/request"), window.request)) } }
            }
            (bar(one.length, "", &[(window.start, window.length)]))
            span { (time(window.start, window.quantum)) }
            span { (ns_at(&format!("{at}/total_ns"), window.length, window.quantum)) }
        }
        @for stage in &window.stages {
            @if stage.explained_by.is_empty() {
                div.r.sub { (stage_cells(scene, place, stage)) }
            } @else {
                details {
                    summary.r.sub { (stage_cells(scene, place, stage)) }
                    @for phases in &stage.explained_by {
                        @if let Some(window) = one.windows.get(*phases) {
                            @for phase in &window.stages {
                                div.r.deep { (stage_cells(scene, *phases, phase)) }
                            }
                        }
                    }
                }
            }
        }
        @if window.left_out > 0 { p.note { (window.left_out) " more stages of this window are in the JSON report" } }
        @if !window.stages.is_empty() && window.unattributed.0 > 0 {
            div.r.sub {
                span.soft { "unattributed" } span {} span {}
                span { (ns_at(&format!("{at}/unattributed_ns"), window.unattributed, window.quantum)) }
            }
        }
    }
}

fn stage_cells(scene: &Scene<'_>, place: usize, stage: &PictureStage) -> Markup {
    let one = scene.run;
    let Some(window) = one.windows.get(place) else {
        return html! {};
    };
    let stages = scene.item.and_then(|run| run.windows.get(place));
    let known = stages.is_some_and(|window| {
        let mut stages = window.stages.0.iter();
        stages.any(|(name, _)| *name == stage.name)
    });
    let colour = scene.colours.get(stage.name.as_str()).copied().unwrap_or(0);
    let class = format!(
        "c{}{}",
        colour % 8,
        if stage.placed { " placed" } else { "" }
    );
    let from = stage.parts.iter().map(|(start, _)| *start).min();
    // A long name would be said once more for every pointer.
    let at = if known {
        pointer(one.place, place, &stage.name)
    } else {
        String::new()
    };
    html! {
        span { (Text(&stage.name)) @if stage.placed { " " span.tag { "placed" } } }
        (bar(one.length, &class, &stage.parts))
        span { @if let Some(from) = from { @if stage.placed { "≈ " } (time(from, window.quantum)) } }
        span { (ns_at(&at, stage.time, window.quantum)) }
    }
}

fn pointer(run: usize, window: usize, stage: &str) -> String {
    let short = super::text::shown(stage, super::text::TEXT_MAX);
    let key = short.replace('~', "~0").replace('/', "~1");
    format!("runs/items/{run}/windows/{window}/stages/{key}")
}

/// A time that JSON has in nanoseconds.
fn ns_at(at: &str, value: Nanos, quantum: Nanos) -> Markup {
    html! { data value=(value.0) data-j=(at) { (time(value, quantum)) } }
}

fn bar(all: Nanos, class: &str, parts: &[(Nanos, Nanos)]) -> Markup {
    html! {
        span.bar aria-hidden="true" {
            @for (start, length) in parts {
                i class=[(!class.is_empty()).then_some(class)] style=(format!("left:{};width:{}", css(start.0 as f64, all.0 as f64), css(length.0 as f64, all.0 as f64))) {}
            }
        }
    }
}
