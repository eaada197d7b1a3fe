//! An experiment: arms, a schedule that is fixed beforehand, and its carrying out.
//!
//! Runs are serialized and none is discarded: a failed one stays, with its
//! reason, and the schedule goes on. Each run is noted in the journal before its
//! files are put in place, so that an experiment that was killed can be resumed
//! without a run twice or none. Computes no statistics.

use crate::arm::Arm;
use crate::claim::Claim;
use crate::cleanup::heirs::Heirs;
use crate::cleanup::note::Note;
use crate::cleanup::token::TokenPrefix;
use crate::cleanup::watchdog::{Watchdog, WatchdogError};
use crate::host::page_cache::PageCache;
use crate::interrupt::{Caught, Interrupts};
use crate::journal::Journal;
use crate::manifest::result::RunResult;
use crate::manifest::{Manifest, Status};
use crate::progress::Progress;
use crate::resume::{Earlier, ResumeError};
use crate::run::record::RunRecord;
use crate::run::{self, Fate, RssReading, RunContext, RunError};
use crate::schedule::{Phase, Size, Slot};
use crate::target::Stamps;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A checked experiment.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// What asked for it; a word in the manifest.
    pub kind: Kind,
    /// The sets, whose arms follow each other in `arms`.
    pub sets: Vec<Set>,
    /// The arms, in the order given.
    pub arms: Vec<Arm>,
    /// What fixed the order.
    pub seed: u64,
    /// Every run, in order.
    pub schedule: Vec<Slot>,
    /// Directory for everything that is written, absolute.
    pub out: PathBuf,
    /// Keeps others away from it.
    pub claim: Arc<Claim>,
    /// What an earlier `measure` left there, where it is taken up again.
    pub earlier: Option<Earlier>,
    /// Workspace of the sessions, absolute.
    pub workspace: PathBuf,
    /// Bound of each step.
    pub step_timeout: Duration,
    /// When memory is read.
    pub rss: RssReading,
    /// What is done to the target's files before each run.
    pub page_cache: PageCache,
}

/// What asked for an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `measure run`.
    Run,
    /// `measure pair`.
    Pair,
    /// `measure aa`: both arms are the same.
    Aa,
    /// `measure suite`.
    Suite,
}

/// Arms that are compared with each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// Its name; empty where there is only one.
    pub name: String,
    /// How many arms and runs.
    pub size: Size,
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
    /// Runs of the schedule that an earlier `measure` had made.
    pub earlier: usize,
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
    /// What happened, with its code.
    pub failure: String,
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
    /// No token or no note for the watchdog.
    #[error("no random bytes or no memory to mark the runs: {0}")]
    Token(#[source] io::Error),
    /// Nobody would clean up.
    #[error(transparent)]
    Watchdog(#[from] WatchdogError),
    /// The manifest or the journal cannot be written.
    #[error("cannot write {path}: {1}\nhint: runs that were made are kept; make room, and --resume goes on with them", path = .0.display())]
    Manifest(PathBuf, #[source] io::Error),
    /// What was there is not this experiment.
    #[error(transparent)]
    Resume(#[from] ResumeError),
    /// Runs of two programs would stand under one digest.
    #[error(
        "arm `{0}`: {path} has changed since the experiment began\nhint: the runs made so far are kept; begin anew with another --out", path = .1.display()
    )]
    Changed(String, PathBuf),
    /// A trace cannot be written; the runs before are kept.
    #[error("{0}\nhint: the runs made so far are kept; make room and give --resume")]
    Run(#[from] RunError),
}

/// Carries out the whole schedule, or what is left of it. `command` is this
/// program's own, for the manifest. Whoever wants to look at each run that is made
/// gives a `watch`.
///
/// # Errors
/// Something that every run needs is missing. Failed runs are no error.
pub fn carry_out(
    experiment: &Experiment,
    command: &[String],
    watch: &mut dyn FnMut(Slot, &RunRecord),
) -> Result<Outcome, ExperimentError> {
    let interrupts = Interrupts::install().map_err(ExperimentError::Signals)?;
    let tokens = TokenPrefix::random().map_err(ExperimentError::Token)?;
    let cannot_write = |error| ExperimentError::Manifest(experiment.out.clone(), error);
    // Before the digests: what changes in between is found, not missed.
    let stamps = Stamps::of(&experiment.arms);
    let mut manifest = Manifest::new(experiment, command);
    if let Some(earlier) = &experiment.earlier {
        earlier.hand_over(&mut manifest)?;
        settle_earlier(experiment, &manifest)?;
    }
    manifest.write(&experiment.out).map_err(cannot_write)?;
    let journal = Journal::open(&experiment.out).map_err(cannot_write)?;
    let note = Note::new().map_err(ExperimentError::Token)?;
    let mut heirs = Heirs::adopt();
    // Ends its last sweep before this function returns.
    let watchdog = Watchdog::start(&tokens, &note)?;
    heirs.except(watchdog.pid());
    let context = RunContext {
        out: &experiment.out,
        workspace: &experiment.workspace,
        step_timeout: experiment.step_timeout,
        rss: experiment.rss,
        page_cache: experiment.page_cache,
        tokens: &tokens,
        heirs: &Heirs::Nobody,
        note: &note,
        interrupts: &interrupts,
    };
    let mut schedule = Carrying {
        experiment,
        context,
        heirs,
        stamps,
        watchdog,
        manifest,
        journal,
        watch,
    };
    let made = schedule.run_all();
    // Only an empty one: what a failed run left behind is for its owner to read.
    let _ = std::fs::remove_dir(run::state_root(&experiment.out));
    let Carrying {
        mut manifest,
        journal,
        watchdog,
        ..
    } = schedule;
    manifest.finish(match &made {
        Err(_) => Status::Aborted,
        Ok(outcome) if outcome.interrupted.is_some() => Status::Interrupted,
        Ok(_) => Status::Complete,
    });
    let written = manifest
        .write(&experiment.out)
        .and_then(|()| journal.close());
    drop(watchdog);
    let outcome = made?;
    written.map_err(cannot_write)?;
    Ok(outcome)
}

/// Puts in place what finished runs left unplaced, and removes what unfinished
/// ones left.
fn settle_earlier(experiment: &Experiment, manifest: &Manifest) -> Result<(), ExperimentError> {
    let out = &experiment.out;
    let staging = |error| ExperimentError::Manifest(run::state_root(out), error);
    for slot in &experiment.schedule {
        match manifest.result(*slot) {
            Some(result) => {
                let fate = if result.succeeded {
                    Fate::Succeeded
                } else {
                    Fate::Failed
                };
                run::publish_earlier(out, slot.index, fate)?;
            }
            None => run::forget_unfinished(out, slot.index).map_err(staging)?,
        }
    }
    Ok(())
}

/// A schedule while it is carried out.
struct Carrying<'e> {
    experiment: &'e Experiment,
    /// Without the heirs, which are kept beside it.
    context: RunContext<'e>,
    heirs: Heirs,
    stamps: Stamps,
    watchdog: Watchdog,
    manifest: Manifest,
    journal: Journal,
    watch: &'e mut dyn FnMut(Slot, &RunRecord),
}

impl Carrying<'_> {
    fn run_all(&mut self) -> Result<Outcome, ExperimentError> {
        let experiment = self.experiment;
        let mut progress = Progress::new(experiment.schedule.len());
        let sizes = experiment.sets.iter().map(|set| set.size);
        let mut outcome = Outcome {
            planned: sizes.map(|size| size.arms * size.runs).sum(),
            ..Outcome::default()
        };
        for &slot in &experiment.schedule {
            outcome.interrupted = self.context.interrupts.caught();
            if outcome.interrupted.is_some() {
                break;
            }
            let Some(arm) = experiment.arms.get(slot.arm) else {
                continue;
            };
            let known = self.manifest.result(slot).is_some();
            outcome.earlier += usize::from(known);
            if !known {
                self.run_one(slot, arm).inspect_err(|_| progress.clear())?;
            }
            let Some(result) = self.manifest.result(slot) else {
                continue;
            };
            if result.succeeded {
                progress.run_succeeded();
            } else {
                progress.run_failed();
            }
            if slot.phase == Phase::Measured {
                outcome.count(slot, arm, result);
            }
        }
        outcome.interrupted = self.context.interrupts.caught();
        progress.clear();
        Ok(outcome)
    }

    fn run_one(&mut self, slot: Slot, arm: &Arm) -> Result<(), ExperimentError> {
        if let Some(path) = self.stamps.changed(arm) {
            let (name, path) = (arm.name.clone(), path.to_owned());
            return Err(ExperimentError::Changed(name, path));
        }
        self.watchdog
            .revive(self.context.tokens, self.context.note)?;
        self.heirs.except(self.watchdog.pid());
        let context = RunContext {
            heirs: &self.heirs,
            ..self.context
        };
        let made = run::carry_out(context, arm, slot)?;
        let result = RunResult::new(&made.record);
        // First: files in place without a note would be a run that is made twice.
        self.journal
            .note(slot, &result)
            .map_err(|error| ExperimentError::Manifest(self.experiment.out.clone(), error))?;
        // What cannot be put in place now is when the experiment is resumed.
        self.manifest.set_result(slot, result);
        made.publish()?;
        (self.watch)(slot, &made.record);
        Ok(())
    }
}

impl Outcome {
    fn count(&mut self, slot: Slot, arm: &Arm, result: &RunResult) {
        self.measured += usize::from(result.was_started());
        self.succeeded += usize::from(result.succeeded);
        if let Some(failure) = &result.failure
            && self.first_failure.is_none()
        {
            let stderr = result.stderr_tail.as_deref().unwrap_or_default();
            self.first_failure = Some(FirstFailure {
                index: slot.index,
                arm: arm.name.clone(),
                failure: format!("{}: {}", failure.code, failure.message),
                last_words: last_lines(stderr),
            });
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

impl Kind {
    /// Name in the manifest.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Pair => "pair",
            Self::Aa => "aa",
            Self::Suite => "suite",
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
            interrupted: signal.map(|number| Caught { number, name: "" }),
            ..Outcome::default()
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
