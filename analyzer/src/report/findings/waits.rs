//! What a stage does while it lasts: waits on a deadline it shares, runs,
//! starves, blocks; and whether a program stands between daemon and agent.

use serde_json::json;

use crate::breakdown::store::{StageView, WindowView};
use crate::model::lens::Lens;
use crate::model::window_rules::{DrillRule, WrapperRule};
use crate::stats::correlation::correlate;
use crate::stats::quantile::median;
use crate::units::{Nanos, difference};

use super::super::build::Row;
use super::super::numbers::{coefficient, counted, percent, time};
use super::super::stages::FEW_RUNS;
use super::super::{Finding, SchedReport, WindowReport, millionth};
use super::finding;
use super::stages::largest;

/// Two ends within this part of the stage are one event seen from two sides.
const SAME_END: f64 = 0.01;
/// Fewer runs than this show no pattern.
const PATTERN_MIN: usize = 3;
/// An agent that says it took less than this part of the daemon's wait was
/// started late: something else ran before it.
const LATE_AGENT: f64 = 0.5;
/// From this part of its time on without a processor a stage is starved.
const STARVED: f64 = 0.2;
/// From this part of its time on a processor it is busy.
const BUSY: f64 = 0.5;
/// Overlap below this part of a window changes no printed figure.
const OVERLAP_MIN: f64 = 0.01;

/// A stage that began while the work it waits for was under way and ends with
/// it in every run: it has no length of its own.
pub(super) fn shared_deadline(lens: &Lens<'_>, rows: &[&Row<'_>]) -> Vec<Finding> {
    let rules = lens.model.drill_through.iter();
    rules
        .filter_map(|rule| deadline_of(lens, rule, rows))
        .collect()
}

fn deadline_of(lens: &Lens<'_>, rule: &DrillRule, rows: &[&Row<'_>]) -> Option<Finding> {
    let mut points = Vec::new();
    // Runs that have the stage; one may have it in several windows.
    let mut of = 0;
    for row in rows {
        let mut is_there = false;
        for window in row.all(&rule.window) {
            let mut stages = window.stages.iter();
            let stage = stages.find(|stage| stage.name == rule.stage && stage.present);
            let Some(stage) = stage else { continue };
            is_there = true;
            points.push(delay_and_length(lens, rule, row, &window, &stage)?);
        }
        of += usize::from(is_there);
    }
    if of < PATTERN_MIN {
        return None;
    }
    let found = correlate(&points).ok().filter(|_| of >= FEW_RUNS);
    let mut text = format!(
        "`{}` begins while `{}` is under way and ends with it in {of} of {}: it only waits for that end",
        rule.stage,
        rule.explained_by,
        counted(of, "run")
    );
    // Only where the wait surely follows its own start is the slope evidence of it.
    let is_sure = |(_, high): (f64, f64)| high < 0.0;
    let slope = found.filter(|found| found.pearson_ci.is_some_and(is_sure));
    if let Some(found) = slope {
        text.push_str(", and one millisecond later it is ");
        text.push_str(&coefficient(-found.slope));
        text.push_str(" ms shorter");
    }
    let values = vec![
        ("stage", json!(rule.stage)),
        ("deadline", json!(rule.explained_by)),
        ("runs", json!(of)),
        ("slope", json!(found.map(|found| millionth(found.slope)))),
        (
            "pearson",
            json!(found.map(|found| millionth(found.pearson))),
        ),
    ];
    Some(finding("shared_deadline", text, values))
}

/// How long after the work's start the stage began, and how long it lasted,
/// where both end together.
fn delay_and_length(
    lens: &Lens<'_>,
    rule: &DrillRule,
    row: &Row<'_>,
    window: &WindowView<'_>,
    stage: &StageView<'_>,
) -> Option<(f64, f64)> {
    let span = row.view(window.request).first(lens, &rule.explained_by)?;
    let work = lens.data.span(span).interval;
    let (first, last) = (stage.intervals.first()?, stage.intervals.last()?);
    let length = difference(last.end(), first.start());
    let delay = difference(first.start(), work.start());
    let apart = difference(last.end(), work.end()).0.abs() as f64;
    let same = (window.quantum.0 as f64).max(length.0 as f64 * SAME_END);
    (delay.0 > window.quantum.0 && apart <= same).then(|| (delay.as_ms(), length.as_ms()))
}

/// An agent that started late, or that is not the daemon's own child.
pub(super) fn wrapper(lens: &Lens<'_>, rows: &[&Row<'_>]) -> Option<Finding> {
    let rule = lens.model.wrapper.as_ref()?;
    let late: Vec<f64> = rows
        .iter()
        .filter_map(|row| own_part(lens, rule, row))
        .collect();
    let between = rows
        .iter()
        .filter(|row| another_parent(lens, rule, row) == Some(true))
        .count();
    let part = median(&late).filter(|part| *part < LATE_AGENT);
    if part.is_none() && between == 0 {
        return None;
    }
    let mut words = Vec::new();
    if let Some(part) = part {
        words.push(format!(
            "the agent says that it took {} of `{}`: something ran before it",
            percent(part),
            rule.covered_by
        ));
    }
    if between > 0 {
        words.push(format!(
            "in {between} of {} another process stands between the daemon and the agent",
            counted(rows.len(), "run")
        ));
    }
    let text = format!("{}; start the agent's program itself", words.join("; "));
    let values = vec![
        ("own_part_p50", json!(median(&late).map(millionth))),
        ("between", json!(between)),
        ("of", json!(rows.len())),
    ];
    Some(finding("wrapper_or_relaunch", text, values))
}

/// The agent's own time as a part of the span that covers it.
fn own_part(lens: &Lens<'_>, rule: &WrapperRule, row: &Row<'_>) -> Option<f64> {
    let own = row.window(&rule.window, 1)?.interval.length();
    let cover = row.run.first(lens, &rule.covered_by)?;
    let cover = lens.data.span(cover).interval.length();
    (cover.0 > 0).then(|| own.0 as f64 / cover.0 as f64)
}

/// Whether the agent names another parent than the daemon.
fn another_parent(lens: &Lens<'_>, rule: &WrapperRule, row: &Row<'_>) -> Option<bool> {
    let number = |kind: &str, key: &str| {
        let span = row.run.first(lens, kind)?;
        let value = lens
            .data
            .resource_attribute(span, lens.data.names.find(key)?)?;
        value.integer()
    };
    let parent = number(rule.agent.as_ref()?, rule.parent_pid.as_ref()?)?;
    let daemon = number(&rule.covered_by, rule.pid.as_ref()?)?;
    Some(parent != daemon)
}

/// Where the time of the largest stage went.
pub(super) fn stage_state(window: &WindowReport) -> Option<Finding> {
    let (stage, _) = largest(window, |stage| stage.share_p50)?;
    let sched = stage.sched.as_ref()?;
    let [cpu, runq, blocked] = parts_of(sched)?;
    let (code, words) = if runq >= STARVED {
        ("stage_starved", "it starves for a processor")
    } else if cpu >= BUSY {
        ("stage_busy", "it computes")
    } else {
        ("stage_blocked", "it waits for something else")
    };
    let who = match &sched.from {
        Some(from) => format!("while `{}` waits, `{from}`", stage.name),
        None => format!("`{}`", stage.name),
    };
    let text = format!(
        "{who} is {} of the time on a processor, {} waiting for one, {} blocked: {words}",
        percent(cpu),
        percent(runq),
        percent(blocked)
    );
    let values = vec![
        ("window", json!(window.name)),
        ("stage", json!(stage.name)),
        ("of", json!(sched.from)),
        ("cpu", json!(millionth(cpu))),
        ("runq", json!(millionth(runq))),
        ("blocked", json!(millionth(blocked))),
    ];
    Some(finding(code, text, values))
}

/// On a processor, waiting for one and blocked, as parts of their sum.
pub(crate) fn parts_of(sched: &SchedReport) -> Option<[f64; 3]> {
    let all = [sched.cpu, sched.runq, sched.blocked].map(|part| part.0 as f64);
    let sum: f64 = all.iter().sum();
    (sum > 0.0).then(|| all.map(|part| part / sum))
}

/// Windows whose stages run beside each other.
pub(super) fn overlap(windows: &[WindowReport]) -> Option<Finding> {
    let overlapping = |window: &&WindowReport| {
        let part = window.overlap.zip(window.total.p50);
        part.is_some_and(|(overlap, total)| {
            overlap > window.quantum && overlap.0 as f64 > total.0 as f64 * OVERLAP_MIN
        })
    };
    let window = windows.iter().find(overlapping)?;
    let factor = window.overlap_factor?;
    let overlap = window.overlap.unwrap_or(Nanos(0));
    let text = format!(
        "stages of the {} run beside each other for {} at P50: their durations add up to {factor:.2} times the window, and the breakdown counts each instant once; which waits for which is inferred from times alone",
        window.title.to_lowercase(),
        time(overlap, window.quantum)
    );
    let values = vec![
        ("window", json!(window.name)),
        ("overlap_factor", json!(factor)),
        ("overlap_ms", json!(overlap)),
    ];
    Some(finding("overlapping_stages", text, values))
}
