//! Windows cut into stages: the table with its bars, the runs as points, each
//! stage against what the client saw, and what covers a stage that waits.

use maud::{Markup, html};

use super::plots::{Strip, scatter, strips};
use super::samples::{
    POINTS_MAX, POINTS_OF_COHORT_MAX, Sample, evenly, is_summed, stage as samples_of, thinned,
    windows as windows_of,
};
use super::text::{Text, count_at, nothing, number, shown, signed_at, time_at, value_at};
use crate::report::numbers::{coefficient, percent, time};
use crate::report::stages::FEW_RUNS;
use crate::report::{DrillReport, GroupReport, Report, StageReport, WindowReport};
use crate::units::Nanos;

/// Stages that are plotted against the latency.
const SCATTERS_MAX: usize = 12;
/// Stages that are plotted as strips.
const STRIPS_MAX: usize = 24;

/// Whose windows are shown: JSON pointer of what holds them, and the cohort.
#[derive(Clone, Copy)]
pub(super) struct Of<'r> {
    pub(super) at: &'r str,
    pub(super) cohort: Option<&'r str>,
    /// Whether runs are drawn as points.
    pub(super) points: Points,
}

/// How much of a cohort is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Points {
    /// Every window.
    All,
    /// The first window.
    First,
    /// Nothing.
    None,
}

/// The breakdown of runs that are all alike.
pub(super) fn breakdowns(report: &Report) -> Markup {
    let of = Of {
        at: "",
        cohort: None,
        points: Points::All,
    };
    of_runs(
        report,
        of,
        &report.windows,
        &report.drill_through,
        &report.groups,
    )
}

/// Windows, what covers their stages, and groups.
pub(super) fn of_runs(
    report: &Report,
    of: Of<'_>,
    windows: &[WindowReport],
    drills: &[DrillReport],
    groups: &[GroupReport],
) -> Markup {
    html! {
        @for (place, window) in windows.iter().enumerate() {
            (one(report, of, place, window))
            @if place == 0 {
                @for (place, drill) in drills.iter().enumerate() { (covers(of, place, drill)) }
            }
        }
        (sums(of, groups))
        @if !windows.is_empty() { (guide()) }
    }
}

fn guide() -> Markup {
    html! {
        p.note {
            "Exclusive times; medians of stages do not add up to the median of the window. share: median over runs of stage ÷ window. P50 runs: mean over the fifth of the runs around the median total, adds up. variance: signed part of the window’s variance, adds up to 100 %. slow runs: mean over the slowest tenth less “P50 runs”, adds up. Striped bars are negative."
        }
    }
}

fn one(report: &Report, of: Of<'_>, place: usize, window: &WindowReport) -> Markup {
    let drawn = match of.points {
        Points::All => true,
        Points::First => place == 0,
        Points::None => false,
    };
    let enough = window.n >= FEW_RUNS;
    html! {
        h3 {
            (Text(&window.title)) " " span.soft {
                "n = " (count_at(&format!("{}windows/{place}/n", of.at), window.n))
                @if window.runs != window.n { " in " (window.runs) " runs" }
            }
        }
        div.side {
            (table(of, place, window))
            @if drawn && window.n > 1 { (strip_plot(report, of, window)) }
        }
        @if drawn && place == 0 && enough { (scatters(report, of, window)) }
    }
}

fn table(of: Of<'_>, place: usize, window: &WindowReport) -> Markup {
    let at = format!("{}windows/{place}", of.at);
    let q = window.quantum;
    let spread = |key: &str, value: Option<Nanos>| {
        time_at(
            &format!("{at}/total/{key}"),
            value.filter(|_| window.n > 1),
            q,
        )
    };
    let summed = window.stages.iter().chain([&window.unattributed]);
    let excess = summed.filter_map(|stage| stage.p95_excess);
    let reach = excess.map(|time| time.0.abs()).max().unwrap_or(0);
    html! {
        div.scroll tabindex="0" role="region" aria-label=(shown(&window.title, 60)) {
            table {
                thead { tr {
                    th { "stage" } th.n { "P50" } th.n { "P95" } th.n { "max" } th.n { "share" }
                    @if window.n >= FEW_RUNS { th.n { "P50 runs" } th.n { "variance" } th.n { "slow runs" } }
                } }
                tbody {
                    @for (index, stage) in window.stages.iter().enumerate() {
                        (stage_row(&format!("{at}/stages/{index}"), stage, window, reach))
                    }
                    @if !window.stages.is_empty() {
                        (stage_row(&format!("{at}/unattributed"), &window.unattributed, window, reach))
                    }
                    tr.total {
                        th scope="row" { "total" }
                        td.n { (time_at(&format!("{at}/total/p50"), window.total.p50, q)) }
                        td.n { (spread("p95", window.total.p95)) }
                        td.n { (spread("max", window.total.max)) }
                        td.n { } @if window.n >= FEW_RUNS { td.n { } td.n { } td.n { } }
                    }
                }
            }
        }
    }
}

fn stage_row(at: &str, stage: &StageReport, window: &WindowReport, reach: i64) -> Markup {
    let q = window.quantum;
    let several = |value: Option<Nanos>| value.filter(|_| window.n > 1);
    let width = |part: f64| format!("--w:{:.4}", part.abs().min(1.0));
    let share = stage.share_p50;
    let partial = stage.n_present < stage.n && stage.name != window.unattributed.name;
    let part_of_reach = stage
        .p95_excess
        .map(|time| time.0 as f64 / reach.max(1) as f64);
    let negative = |part: Option<f64>| part.is_some_and(|part| part < 0.0);
    html! {
        tr {
            th scope="row" {
                (Text(&stage.name))
                @if partial { " " span.tag { (count_at(&format!("{at}/n_present"), stage.n_present)) "/" (count_at(&format!("{at}/n"), stage.n)) } }
            }
            td.n { (time_at(&format!("{at}/p50"), stage.p50, q)) }
            td.n { (time_at(&format!("{at}/p95"), several(stage.p95), q)) }
            td.n { (time_at(&format!("{at}/max"), several(stage.max), q)) }
            td.n.b style=(width(share.unwrap_or(0.0))) { (value_at(&format!("{at}/share_p50"), share, percent)) }
            @if window.n >= FEW_RUNS {
                td.n { (time_at(&format!("{at}/p50_attribution"), stage.p50_attribution, q)) }
                td.n.b.neg[negative(stage.variance_share)] style=(width(stage.variance_share.unwrap_or(0.0))) { (value_at(&format!("{at}/variance_share"), stage.variance_share, percent)) }
                td.n.b.neg[negative(part_of_reach)] style=(width(part_of_reach.unwrap_or(0.0))) { (signed_at(&format!("{at}/p95_excess"), stage.p95_excess, q)) }
            }
        }
    }
}

fn points_max(of: Of<'_>) -> usize {
    match of.cohort {
        None => POINTS_MAX,
        Some(_) => POINTS_OF_COHORT_MAX,
    }
}

fn strip_plot(report: &Report, of: Of<'_>, window: &WindowReport) -> Markup {
    let mine = windows_of(report, of.cohort, &window.name);
    let (mut lines, mut drawn) = (Vec::new(), 0);
    let named = window.stages.iter().enumerate();
    let named = named.filter(|(place, _)| !is_summed(window, *place));
    let named = named.map(|(_, stage)| (Some(stage.name.as_str()), stage));
    let rest = (!window.stages.is_empty()).then_some((None, &window.unattributed));
    for (name, stage) in named.take(STRIPS_MAX).chain(rest) {
        let samples = samples_of(report, &mine, name, "");
        let mut times: Vec<f64> = samples.iter().map(|one| one.time).collect();
        times.sort_by(f64::total_cmp);
        let kept = evenly(times.len(), points_max(of));
        drawn = kept.len();
        lines.push(Strip {
            name: shown(&stage.name, 48),
            points: kept.into_iter().map(|place| times[place]).collect(),
            p50: stage.p50.map(Nanos::as_ms),
            p95: stage.p95.map(Nanos::as_ms),
        });
    }
    let label = format!("times of the stages of {}", shown(&window.title, 60));
    html! {
        @if !lines.is_empty() {
            figure {
                figcaption {
                    b { "Every run a point" } "; thick line P50, thin line P95"
                    @if let Some(note) = thinned(drawn, mine.len()) { "; " (note) " a stage" }
                    @if window.stages.len() > STRIPS_MAX { "; the first " (STRIPS_MAX) " of " (window.stages.len()) " stages" }
                }
                (strips(&label, &lines))
            }
        }
    }
}

/// Each stage against the client's latency, with the slope that was fitted.
fn scatters(report: &Report, of: Of<'_>, window: &WindowReport) -> Markup {
    let with = &window.unattributed.correlation.with;
    let mine = windows_of(report, of.cohort, &window.name);
    let place = report_place(report, of, window);
    let at = format!("{}windows/{place}", of.at);
    let named = window
        .stages
        .iter()
        .enumerate()
        .filter(|(place, _)| !is_summed(window, *place));
    let named = named.map(|(place, stage)| {
        (
            format!("{at}/stages/{place}"),
            Some(stage.name.as_str()),
            stage,
        )
    });
    let rest = [(format!("{at}/unattributed"), None, &window.unattributed)];
    let plots = named
        .take(SCATTERS_MAX)
        .chain(rest)
        .filter_map(|(at, name, stage)| {
            let samples = samples_of(report, &mine, name, with);
            one_scatter(&at, stage, &samples, with, points_max(of))
        });
    let plots: Vec<Markup> = plots.collect();
    html! {
        @if !plots.is_empty() {
            h3 { "Each stage against " (Text(with)) }
            div.plots { @for plot in &plots { (plot) } }
            p.note { "Slope: milliseconds of the latency a millisecond of the stage, least squares over all runs. Near 1, a longer stage makes the client wait as much longer; near 0, it hides behind something else." }
        }
    }
}

fn report_place(report: &Report, of: Of<'_>, window: &WindowReport) -> usize {
    let cohort = report
        .cohorts
        .iter()
        .find(|one| Some(one.name.as_str()) == of.cohort);
    let windows = cohort.map_or(&report.windows, |cohort| &cohort.windows);
    windows
        .iter()
        .position(|one| one.name == window.name)
        .unwrap_or(0)
}

fn one_scatter(
    at: &str,
    stage: &StageReport,
    samples: &[Sample],
    with: &str,
    max: usize,
) -> Option<Markup> {
    let found = &stage.correlation;
    let pairs = samples
        .iter()
        .filter_map(|one| Some((one.time, one.latency?)));
    let pairs: Vec<(f64, f64)> = pairs.collect();
    let slope = found.slope?;
    let n = pairs.len() as f64;
    let middle = |part: fn(&(f64, f64)) -> f64| pairs.iter().map(part).sum::<f64>() / n;
    let (x, y) = (middle(|pair| pair.0), middle(|pair| pair.1));
    let ends = pairs.iter().map(|pair| pair.0);
    let (low, high) = (
        ends.clone().fold(f64::INFINITY, f64::min),
        ends.fold(0.0, f64::max),
    );
    // A line of least squares goes through the means.
    let line = [low, high].map(|end| (end, y + slope * (end - x)));
    let kept = evenly(pairs.len(), max);
    let drawn: Vec<(f64, f64)> = kept.iter().map(|place| pairs[*place]).collect();
    let name = shown(&stage.name, 48);
    let axes = (format!("{name}, ms"), format!("{}, ms", shown(with, 24)));
    Some(html! {
        figure {
            figcaption {
                b { (Text(&stage.name)) } ": slope " (number(&format!("{at}/correlation/slope"), slope, &coefficient(slope)))
                ", r " (value_at(&format!("{at}/correlation/pearson"), found.pearson, coefficient))
                @if let Some([low, high]) = found.pearson_ci {
                    " (" (number(&format!("{at}/correlation/pearson_ci/0"), low, &coefficient(low))) " … " (number(&format!("{at}/correlation/pearson_ci/1"), high, &coefficient(high))) ")"
                }
                ", ρ " (value_at(&format!("{at}/correlation/spearman"), found.spearman, coefficient))
                @if let Some(note) = thinned(drawn.len(), pairs.len()) { "; " (note) }
            }
            (scatter(&format!("{name} against {}", shown(with, 60)), (&axes.0, &axes.1), &drawn, Some(line)))
        }
    })
}

fn covers(of: Of<'_>, place: usize, drill: &DrillReport) -> Markup {
    let at = format!("{}drill_through/{place}", of.at);
    let q = drill.quantum;
    let placed = drill.phases.iter().any(|phase| phase.placed.is_some());
    let width = |share: Option<f64>| format!("--w:{:.4}", share.unwrap_or(0.0).clamp(0.0, 1.0));
    html! {
        h3 { "What covers " code { (Text(&drill.stage)) } " " span.soft { "from " (Text(&drill.explained_by)) ", n = " (drill.n) } }
        div.scroll tabindex="0" role="region" aria-label="what covers a stage" {
            table {
                thead { tr { th { "phase" } th.n { "P50" } th.n { "share" } @if placed { th.n { "placed" } } } }
                tbody {
                    @for (index, phase) in drill.phases.iter().enumerate() {
                        @let at = format!("{at}/phases/{index}");
                        tr {
                            th scope="row" { (Text(&phase.name)) }
                            td.n { (time_at(&format!("{at}/p50"), phase.p50, q)) }
                            td.n.b style=(width(phase.share)) { (value_at(&format!("{at}/share"), phase.share, percent)) }
                            @if placed { td.n {
                                @match phase.placed {
                                    Some([low, high]) => {
                                        (number(&format!("{at}/placed/0"), low.as_ms(), &time(low, q))) " … " (number(&format!("{at}/placed/1"), high.as_ms(), &time(high, q)))
                                    }
                                    None => (nothing()),
                                }
                            } }
                        }
                    }
                    tr {
                        th.soft scope="row" { "uncovered" }
                        td.n { (time_at(&format!("{at}/uncovered/p50"), drill.uncovered.p50, q)) }
                        td.n.b style=(width(drill.uncovered.share)) { (value_at(&format!("{at}/uncovered/share"), drill.uncovered.share, percent)) }
                        @if placed { td.n { (nothing()) } }
                    }
                }
            }
        }
        @if placed { p.note { "placed: the source has no start times; phases are laid out from the end, and the interval says how far off that can be" } }
    }
}

fn sums(of: Of<'_>, groups: &[GroupReport]) -> Markup {
    html! {
        @if !groups.is_empty() {
            h3 { "Groups of stages" }
            div.scroll tabindex="0" role="region" aria-label="groups" {
                table {
                    thead { tr { th { "group" } th { "of" } th.n { "P50" } th.n { "share" } } }
                    tbody {
                        @for (place, group) in groups.iter().enumerate() {
                            @let at = format!("{}groups/{place}", of.at);
                            tr {
                                th scope="row" { (Text(&group.title)) " " span.soft { (Text(&group.stages.join(" + "))) } }
                                td { (Text(&group.of)) }
                                td.n { (time_at(&format!("{at}/p50"), group.p50, group.quantum)) }
                                td.n.b style=(format!("--w:{:.4}", group.share_p50.unwrap_or(0.0).clamp(0.0, 1.0))) { (value_at(&format!("{at}/share_p50"), group.share_p50, percent)) }
                            }
                        }
                    }
                }
            }
        }
    }
}
