//! An experiment: arms, a schedule that is fixed beforehand, and its carrying out.
//!
//! Runs are serialized and none is discarded: a failed one stays, with its
//! reason, and the schedule goes on. Computes no statistics.

use crate::arm::Arm;
use crate::cleanup::token::TokenPrefix;
use crate::cleanup::watchdog::{Watchdog, WatchdogError};
use crate::interrupt::{Caught, Interrupts};
use crate::manifest::{Manifest, Status};
use crate::progress::Progress;
use crate::run::failure::{Failure, FailureCode};
use crate::run::record::RunRecord;
use crate::run::{self, RssReading, RunContext};
use crate::schedule::{Phase, Size, Slot};
use coldpath_trace_format::emit::TelemetryError;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// A checked experiment.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The arms, in the order given.
    pub arms: Vec<Arm>,
    /// How many blocks.
    pub size: Size,
    /// What fixed the order.
    pub seed: u64,
    /// Every run, in order.
    pub schedule: Vec<Slot>,
    /// Empty or missing directory for everything that is written, absolute.
    pub out: PathBuf,
    /// Workspace of the sessions, absolute.
    pub workspace: PathBuf,
    /// Bound of each step.
    pub step_timeout: Duration,
    /// When memory is read.
    pub rss: RssReading,
}

/// What became of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Measured runs that the schedule has.
    pub planned: usize,
    /// Measured runs whose program was started.
    pub measured: usize,
    /// Measured runs that succeeded.
    pub succeeded: usize,
    /// The first failure of a measured run.
    pub first_failure: Option<FirstFailure>,
    /// The signal that ended it early.
    pub interrupted: Option<Caught>,
}

/// A failed run, for the person who looks at the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstFailure {
    /// Its position in the schedule.
    pub index: usize,
    /// Its arm.
    pub arm: String,
    /// What happened.
    pub failure: Failure,
    /// The last lines of its stderr, at most [`LAST_WORDS`].
    pub last_words: Vec<String>,
}

/// Lines of a failed run's stderr that the summary repeats.
pub const LAST_WORDS: usize = 5;

/// Why an experiment could not be carried out or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// Signals cannot be handled.
    #[error("cannot handle signals: {0}")]
    Signals(#[source] io::Error),
    /// No token.
    #[error("no random bytes for the run tokens: {0}")]
    Token(#[source] io::Error),
    /// Nobody would clean up.
    #[error(transparent)]
    Watchdog(#[from] WatchdogError),
    /// The manifest cannot be written.
    #[error("cannot write {path}: {1}", path = .0.display())]
    Manifest(PathBuf, #[source] io::Error),
    /// A trace cannot be written; the runs before are kept.
    #[error("{0}\nhint: the runs made so far are kept; use a new --out with more room")]
    Trace(TelemetryError),
}

/// Carries out the whole schedule. `command` is this program's own, for the manifest.
///
/// # Errors
/// Something that every run needs is missing. Failed runs are no error.
pub fn carry_out(experiment: &Experiment, command: &[String]) -> Result<Outcome, ExperimentError> {
    let interrupts = Interrupts::install().map_err(ExperimentError::Signals)?;
    let tokens = TokenPrefix::random().map_err(ExperimentError::Token)?;
    let write = |manifest: &Manifest| {
        manifest
            .write(&experiment.out)
            .map_err(|error| ExperimentError::Manifest(experiment.out.clone(), error))
    };
    let mut manifest = Manifest::new(experiment, command);
    write(&manifest)?;
    // Ends its last sweep before this function returns.
    let mut watchdog = Watchdog::start(&tokens)?;
    let context = RunContext {
        out: &experiment.out,
        workspace: &experiment.workspace,
        step_timeout: experiment.step_timeout,
        rss: experiment.rss,
        tokens: &tokens,
        interrupts: &interrupts,
    };
    let made = run_all(experiment, context, &mut watchdog, &mut manifest);
    // Only an empty one: what a failed run left behind is for its owner to read.
    let _ = std::fs::remove_dir(run::state_root(&experiment.out));
    manifest.finish(match &made {
        Err(_) => Status::Aborted,
        Ok(outcome) if outcome.interrupted.is_some() => Status::Interrupted,
        Ok(_) => Status::Complete,
    });
    let written = write(&manifest);
    drop(watchdog);
    let outcome = made?;
    written?;
    Ok(outcome)
}

fn run_all(
    experiment: &Experiment,
    context: RunContext<'_>,
    watchdog: &mut Watchdog,
    manifest: &mut Manifest,
) -> Result<Outcome, ExperimentError> {
    let mut progress = Progress::new(experiment.schedule.len());
    let mut outcome = Outcome {
        planned: experiment.size.arms * experiment.size.runs,
        ..Outcome::default()
    };
    for &slot in &experiment.schedule {
        outcome.interrupted = context.interrupts.caught();
        if outcome.interrupted.is_some() {
            break;
        }
        let Some(arm) = experiment.arms.get(slot.arm) else {
            continue;
        };
        let record = watchdog
            .revive(context.tokens)
            .map_err(ExperimentError::Watchdog)
            .and_then(|()| run::carry_out(context, arm, slot).map_err(ExperimentError::Trace))
            .inspect_err(|_| progress.clear())?;
        match &record.failure {
            None => progress.run_succeeded(),
            Some(_) => progress.run_failed(),
        }
        manifest.set_result(slot, &record);
        if slot.phase == Phase::Measured {
            outcome.count(slot, arm, record);
        }
    }
    outcome.interrupted = context.interrupts.caught();
    progress.clear();
    Ok(outcome)
}

impl Outcome {
    fn count(&mut self, slot: Slot, arm: &Arm, record: RunRecord) {
        let started = record
            .failure
            .as_ref()
            .is_none_or(|failure| failure.code != FailureCode::SpawnFailed);
        self.measured += usize::from(started);
        match record.failure {
            None => self.succeeded += 1,
            Some(failure) if self.first_failure.is_none() => {
                let stderr = record.ended.map(|ended| ended.stderr).unwrap_or_default();
                self.first_failure = Some(FirstFailure {
                    index: slot.index,
                    arm: arm.name.clone(),
                    failure,
                    last_words: last_lines(&stderr),
                });
            }
            Some(_) => {}
        }
    }

    /// The exit code that says so.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        if let Some(caught) = self.interrupted {
            crate::exit::interrupted_by(caught.number)
        } else if self.measured == 0 {
            crate::exit::NOT_MEASURED
        } else if self.succeeded < self.planned {
            crate::exit::RUN_FAILED
        } else {
            crate::exit::OK
        }
    }
}

fn last_lines(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let from = lines.len().saturating_sub(LAST_WORDS);
    lines[from..]
        .iter()
        .map(|line| (*line).to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_without_blank_ones() {
        assert_eq!(
            last_lines("1\n2\n\n3\n4\n5\n6\n\n"),
            ["2", "3", "4", "5", "6"]
        );
        assert_eq!(last_lines("\n"), [""; 0]);
    }

    #[track_caller]
    fn check(measured: usize, succeeded: usize, signal: Option<i32>, expected: u8) {
        let outcome = Outcome {
            planned: 3,
            measured,
            succeeded,
            first_failure: None,
            interrupted: signal.map(|number| Caught { number, name: "" }),
        };
        assert_eq!(outcome.exit_code(), expected);
    }

    #[test]
    fn the_exit_code_tells_failed_from_not_measured_from_interrupted() {
        check(3, 3, None, 0);
        check(3, 2, None, 1);
        check(1, 1, None, 1);
        check(0, 0, None, 3);
        check(1, 1, Some(2), 130);
        check(0, 0, Some(15), 143);
    }
}
