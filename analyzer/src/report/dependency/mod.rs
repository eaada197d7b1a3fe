//! What the end would be if stages took another time, and how much each stage
//! adds to it: the runs' dependency graphs ([`retime`](crate::retime)) replayed,
//! and summarised over the runs of a cohort.
//!
//! Computed only when it is asked for. Nothing is pooled over cohorts.
//! [`answers`] asks one run, [`summaries`] makes reports of the answers.

mod answers;
mod summaries;

use serde::Serialize;

use crate::halves::each;
use crate::model::lens::Lens;
use crate::retime::change::Change;
use crate::retime::names::UnknownStage;
use crate::units::Nanos;

use super::build::Row;
use answers::{Answer, Question, answer, names_of};
use summaries::report;

/// Value of [`Prediction::kind`] for an end-to-end metric.
pub const METRIC: &str = "metric";
/// Value of [`Prediction::kind`] for a window.
pub const WINDOW: &str = "window";
/// Value of [`Prediction::kind`] for a stage.
pub const STAGE: &str = "stage";

/// What is asked of the dependency graphs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// Changes that are made together; none predict nothing.
    pub changes: Vec<Change>,
    /// Whether drag and slack of every stage are wanted.
    pub drag: Drags,
}

/// Whether drag and slack are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Drags {
    /// They are not.
    #[default]
    Left,
    /// Of every stage.
    Taken,
}

/// Predictions and drags of one cohort.
#[derive(Clone, Debug, Serialize)]
pub struct DependencyReport {
    /// Cohort; empty where there is only one.
    pub cohort: String,
    /// Complete runs with a session, which are all that count here.
    pub n: usize,
    /// The changes, made together.
    pub changes: Vec<ChangeReport>,
    /// What comes of them: metrics in the model's order, then the windows and
    /// stages that change in any run.
    pub predictions: Vec<Prediction>,
    /// Drag and slack of every stage with work, the most drag first.
    pub stages: Vec<StageDependency>,
}

/// One change.
#[derive(Clone, Debug, Serialize)]
pub struct ChangeReport {
    /// Stage as it was named.
    pub stage: String,
    /// The change, as it was written.
    pub change: String,
    /// Runs that have the stage; in the others nothing is changed.
    pub n_present: usize,
    /// Median time of the stage in the runs that have it.
    pub time_p50: Option<Nanos>,
    /// Median of its work: its time without what it only waits.
    pub work_p50: Option<Nanos>,
    /// Whether its place in time is assumed, because the source has lengths only.
    pub placed: bool,
}

/// A total as it was and as it would be.
#[derive(Clone, Debug, Serialize)]
pub struct Prediction {
    /// `metric`, `window` or `stage`.
    pub kind: &'static str,
    /// Name; of a stage `WINDOW:STAGE`.
    pub name: String,
    /// Runs that have it.
    pub n: usize,
    /// Median as measured.
    pub p50: Option<Nanos>,
    /// Median as predicted.
    pub predicted_p50: Option<Nanos>,
    /// 95 % order-statistic interval of the predicted median.
    pub predicted_ci: Option<[Nanos; 2]>,
    /// Median over runs of predicted − measured.
    pub change_p50: Option<Nanos>,
    /// 95 % order-statistic interval of that median.
    pub change_ci: Option<[Nanos; 2]>,
    /// Where an experiment of two new sets of as many runs would find the
    /// difference of the medians, at 95 %: MOVER of both medians' intervals.
    pub repeat_ci: Option<[Nanos; 2]>,
    /// Runs that the intervals need, where there are fewer.
    pub needs_n: Option<usize>,
    /// Whether it ends when the session is there.
    #[serde(skip)]
    pub ends_with_session: bool,
    /// Finest difference that its values show.
    #[serde(skip)]
    pub quantum: Nanos,
}

/// How much one stage adds to the session's end.
#[derive(Clone, Debug, Serialize)]
pub struct StageDependency {
    /// Window.
    pub window: String,
    /// Stage.
    pub name: String,
    /// Runs that have it.
    pub n_present: usize,
    /// Median of its time; 0 in runs without it, as of what follows.
    pub time_p50: Option<Nanos>,
    /// Median of its work.
    pub work_p50: Option<Nanos>,
    /// Median of its drag.
    pub drag_p50: Option<Nanos>,
    /// Median of its slack over the runs that have it; null where it may grow for
    /// ever in the half of them.
    pub slack_p50: Option<Nanos>,
    /// Runs in which it may grow for ever.
    pub n_never_limits: usize,
    /// Whether its place in time is assumed.
    pub placed: bool,
    /// Finest difference that its values show.
    #[serde(skip)]
    pub quantum: Nanos,
}

/// Computes what is asked, for each cohort by itself. Empty where nothing is.
///
/// # Errors
/// [`UnknownStage`] where a change names a stage that no run has.
pub(super) fn dependency(
    lens: &Lens<'_>,
    rows: &[&Row<'_>],
    cohorts: &[String],
    asked: &Asked,
) -> Result<Vec<DependencyReport>, UnknownStage> {
    if asked.changes.is_empty() && asked.drag == Drags::Left {
        return Ok(Vec::new());
    }
    let (names, placed) = names_of(lens, rows);
    let stages = asked.changes.iter().map(|change| names.find(&change.stage));
    let question = Question {
        asked,
        stages: stages.collect::<Result<_, _>>()?,
        placed,
    };
    let of = |cohort: Option<&String>| {
        let own = rows
            .iter()
            .filter(|row| cohort.is_none_or(|name| row.run.cohort == *name));
        let own: Vec<&Row<'_>> = own.copied().collect();
        let answers = each(&own, own.len(), |row| answer(lens, row, &question));
        let answers: Vec<Answer<'_>> = answers.into_iter().flatten().collect();
        report(lens, cohort.map_or("", String::as_str), &question, &answers)
    };
    Ok(if cohorts.is_empty() {
        vec![of(None)]
    } else {
        cohorts.iter().map(|cohort| of(Some(cohort))).collect()
    })
}
