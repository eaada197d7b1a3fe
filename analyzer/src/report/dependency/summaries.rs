//! Answers of runs, summarised over the runs of a cohort.

use std::collections::BTreeMap;

use crate::model::lens::Lens;
use crate::retime::activities::StageKey;
use crate::retime::change::Change;
use crate::stats::mover::{self, Estimate};
use crate::stats::order_interval::{OrderInterval, order_interval};
use crate::stats::quantile::{Definition, median, quantile, sorted};
use crate::units::Nanos;

use super::super::summary::grain;
use super::answers::{Answer, Pair, Question, Stage};
use super::{ChangeReport, DependencyReport, METRIC, Prediction, STAGE, StageDependency, WINDOW};

pub(super) fn report(
    lens: &Lens<'_>,
    cohort: &str,
    question: &Question<'_, '_>,
    answers: &[Answer<'_>],
) -> DependencyReport {
    let predictions = if question.asked.changes.is_empty() {
        Vec::new()
    } else {
        predictions(lens, answers)
    };
    DependencyReport {
        cohort: cohort.to_owned(),
        n: answers.len(),
        changes: changes(question, answers),
        predictions,
        stages: stages(question, answers),
    }
}

fn middle(values: &[f64]) -> Option<Nanos> {
    median(values).map(Nanos::rounded)
}

fn changes(question: &Question<'_, '_>, answers: &[Answer<'_>]) -> Vec<ChangeReport> {
    let asked = question
        .asked
        .changes
        .iter()
        .zip(&question.stages)
        .enumerate();
    let of = |(place, (change, keys)): (usize, (&Change, &Vec<StageKey<'_>>))| {
        let own = answers
            .iter()
            .filter_map(|answer| *answer.changes.get(place)?);
        let (times, works): (Vec<f64>, Vec<f64>) = own.unzip();
        ChangeReport {
            stage: change.stage.clone(),
            change: change.text.clone(),
            n_present: times.len(),
            time_p50: middle(&times),
            work_p50: middle(&works),
            placed: keys.iter().any(|key| question.placed.contains(key)),
        }
    };
    asked.map(of).collect()
}

/// Summarises a total before and after over the runs that have it.
fn prediction(
    kind: &'static str,
    name: String,
    pairs: &[Pair],
    ends_with_session: bool,
) -> Prediction {
    let (before, after): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let differences: Vec<f64> = pairs.iter().map(|(before, after)| after - before).collect();
    let (now, then, change) = (estimate(&before), estimate(&after), estimate(&differences));
    let both = |(low, high): (f64, f64)| [Nanos::rounded(low), Nanos::rounded(high)];
    Prediction {
        kind,
        name,
        n: pairs.len(),
        p50: middle(&before),
        predicted_p50: middle(&after),
        predicted_ci: then.map(|then| both((then.low, then.high))),
        change_p50: middle(&differences),
        change_ci: change.map(|change| both((change.low, change.high))),
        repeat_ci: now
            .zip(then)
            .map(|(now, then)| both(mover::of_difference(now, then))),
        needs_n: match order_interval(pairs.len(), 0.5) {
            OrderInterval::NeedsN(n) => Some(n),
            OrderInterval::Between { .. } => None,
        },
        ends_with_session,
        quantum: grain(before.iter().chain(&differences).copied()),
    }
}

/// The median with its order-statistic interval; `None` of too few values.
fn estimate(values: &[f64]) -> Option<Estimate> {
    let sorted = sorted(values);
    let OrderInterval::Between { low, high } = order_interval(sorted.len(), 0.5) else {
        return None;
    };
    let at = |rank: usize| sorted.get(rank.checked_sub(1)?).copied();
    Some(Estimate {
        low: at(low)?,
        mid: quantile(&sorted, 0.5, Definition::Type7)?,
        high: at(high)?,
    })
}

fn stages(question: &Question<'_, '_>, answers: &[Answer<'_>]) -> Vec<StageDependency> {
    let mut of: BTreeMap<StageKey<'_>, Vec<Stage>> = BTreeMap::new();
    for (key, drag) in answers.iter().flat_map(|answer| &answer.drags) {
        of.entry(*key).or_default().push(*drag);
    }
    let summary = |(key, drags): (StageKey<'_>, Vec<Stage>)| {
        let absent = answers.len().saturating_sub(drags.len());
        let over = |figure: &dyn Fn(&Stage) -> f64| {
            let present = drags.iter().map(figure);
            present
                .chain(std::iter::repeat_n(0.0, absent))
                .collect::<Vec<f64>>()
        };
        // What never limits is more than any slack.
        let slacks: Vec<f64> = drags
            .iter()
            .map(|drag| drag.slack.unwrap_or(f64::INFINITY))
            .collect();
        let slack =
            quantile(&sorted(&slacks), 0.5, Definition::Type7).filter(|slack| slack.is_finite());
        let times = over(&|drag| drag.time);
        StageDependency {
            window: key.window.to_owned(),
            name: key.stage.to_owned(),
            n_present: drags.len(),
            time_p50: middle(&times),
            work_p50: middle(&over(&|drag| drag.work)),
            drag_p50: middle(&over(&|drag| drag.drag)),
            slack_p50: slack.map(Nanos::rounded),
            n_never_limits: drags.iter().filter(|drag| drag.slack.is_none()).count(),
            placed: question.placed.contains(&key),
            quantum: grain(times.iter().copied()),
        }
    };
    let mut found: Vec<StageDependency> = of.into_iter().map(summary).collect();
    found.sort_by(|a, b| {
        let order = b
            .drag_p50
            .cmp(&a.drag_p50)
            .then_with(|| b.work_p50.cmp(&a.work_p50));
        order.then_with(|| (&a.window, &a.name).cmp(&(&b.window, &b.name)))
    });
    found
}

/// All predictions: metrics in the model's order, then the windows in theirs and
/// the stages that change in any run.
fn predictions(lens: &Lens<'_>, answers: &[Answer<'_>]) -> Vec<Prediction> {
    let rules = lens.model.metrics.iter().enumerate();
    let metric = rules.filter_map(|(column, rule)| {
        let own = answers
            .iter()
            .filter_map(|answer| answer.metrics.get(&column));
        let (pairs, ends): (Vec<Pair>, Vec<bool>) = own.copied().unzip();
        let with_session = ends.iter().any(|ends| *ends);
        (!pairs.is_empty()).then(|| prediction(METRIC, rule.name.clone(), &pairs, with_session))
    });
    let mut windows: BTreeMap<&str, Vec<Pair>> = BTreeMap::new();
    let mut stages: BTreeMap<StageKey<'_>, Vec<Pair>> = BTreeMap::new();
    for answer in answers {
        for (name, pair) in &answer.windows {
            windows.entry(name).or_default().push(*pair);
        }
        for (key, pair) in &answer.stages {
            stages.entry(*key).or_default().push(*pair);
        }
    }
    let changes = |pairs: &Vec<Pair>| {
        pairs
            .iter()
            .any(|(before, after)| before.total_cmp(after).is_ne())
    };
    let mut found: Vec<Prediction> = metric.collect();
    let mut names: Vec<&str> = Vec::new();
    for rule in &lens.model.windows {
        if !names.contains(&rule.name.as_str()) {
            names.push(&rule.name);
        }
    }
    let of_windows = names.iter().filter_map(|name| {
        let pairs = windows.get(name).filter(|pairs| changes(pairs))?;
        Some(prediction(WINDOW, (*name).to_owned(), pairs, false))
    });
    found.extend(of_windows);
    let of_stages = stages.iter().filter(|(_, pairs)| changes(pairs));
    found.extend(of_stages.map(|(key, pairs)| {
        prediction(STAGE, format!("{}:{}", key.window, key.stage), pairs, false)
    }));
    found
}
