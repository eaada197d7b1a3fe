//! One run: a fresh process, driven, stopped, cleaned up after, recorded.
//!
//! All waiting happens on this one thread, in [`child`]: the program's two
//! outputs, its end, a socket and our own signals are one `poll`, so that nothing
//! runs beside the program that is timed and no wait is without a deadline. Spans
//! are recorded when the program has ended; until then they are instants.

mod acp;
mod answer;
pub mod child;
mod drive;
pub mod failure;
mod flight;
mod plan;
pub mod record;
mod spans;
mod staging;
mod tail;

use crate::arm::{Arm, Sampling};
use crate::cleanup::heirs::Heirs;
use crate::cleanup::note::Note;
use crate::cleanup::sweep::{self, Effort, Marks};
use crate::cleanup::token::{RunToken, TokenPrefix};
use crate::command::{self, Placeholders};
use crate::driver::Kind;
use crate::host::covariates::{self, Covariate};
use crate::host::page_cache::{self, PageCache};
use crate::host::sampler::Sampler;
use crate::injection;
use crate::interrupt::Interrupts;
use crate::schedule::Slot;
use child::stop::Stopped;
use child::{Input, Launch, Running};
use coldpath_trace_format::emit::{
    Anchor, CloseReport, MonoNanos, ProcessStart, Telemetry, TelemetryConfig, TelemetryError, uuid,
};
use coldpath_trace_format::env;
use failure::{Failure, FailureCode};
use plan::Plan;
use record::{Ended, Leftover, RunRecord};
use staging::{Contents, Staging};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time from SIGTERM to SIGKILL at the end of a run. A `qwen serve` gives its
/// children 5 s and itself 10 s; a program that needs longer is a finding.
pub const STOP_GRACE: Duration = Duration::from_secs(12);
/// The same when somebody waits for `measure` to end.
pub const INTERRUPTED_GRACE: Duration = Duration::from_secs(2);
/// How long a descendant may outlive its program: a process that was killed is
/// gone when the kernel has taken it apart, not when the signal was sent.
pub const LEFTOVER_PATIENCE: Duration = Duration::from_millis(200);
/// Longest time for ending leftovers of one run, and how long none must be found.
const LEFTOVER_EFFORT: Effort = Effort {
    bound: Duration::from_secs(20),
    quiet: Duration::from_millis(50),
};

/// What is the same in all runs of an experiment.
#[derive(Clone, Copy, Debug)]
pub struct RunContext<'a> {
    /// Where traces go; also the parent of the state directories.
    pub out: &'a Path,
    /// Workspace of the sessions, absolute.
    pub workspace: &'a Path,
    /// Bound of each step.
    pub step_timeout: Duration,
    /// When memory is read.
    pub rss: RssReading,
    /// What is done to the target's files before.
    pub page_cache: PageCache,
    /// Tokens.
    pub tokens: &'a TokenPrefix,
    /// Children that were left to this process.
    pub heirs: &'a Heirs,
    /// Where the watchdog finds the program.
    pub note: &'a Note,
    /// Signals that end the experiment.
    pub interrupts: &'a Interrupts,
}

/// Which memory readings a run makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RssReading {
    /// All, the listener's between the ready line and `/health`.
    All,
    /// Only those that stand outside every timed span and window.
    Untimed,
}

impl RssReading {
    /// Name on the command line and in the manifest.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Untimed => "untimed",
        }
    }
}

/// Why a run was not made.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Its trace file cannot be opened.
    #[error(transparent)]
    Trace(#[from] TelemetryError),
    /// Its directory cannot be made, or its files not be put in place.
    #[error("cannot write {path}: {1}", path = .0.display())]
    Staging(PathBuf, #[source] std::io::Error),
}

/// Carries out one run and writes its trace.
///
/// Its files are made in a directory of its own and put into the output directory
/// when the run is over: what stands there is whole, and what a killed `measure`
/// leaves is not among it.
///
/// # Errors
/// The trace file cannot be opened: then nothing was started. What goes wrong
/// with the program is no error but a failed run.
pub fn carry_out(context: RunContext<'_>, arm: &Arm, slot: Slot) -> Result<Made, RunError> {
    let staging = Staging::make(context.out, slot.index)?;
    let cache = prepare_cache(context.page_cache, &arm.files);
    let anchor = Anchor::take();
    let telemetry = Telemetry::open(&TelemetryConfig {
        service: "measure",
        version: env!("CARGO_PKG_VERSION"),
        instance_id: uuid::random(),
        trace_dir: staging.own_traces(),
        anchor,
        process_start: ProcessStart::Main,
        rejected_contexts: 0,
        collector: None,
    })?;
    let token = context.tokens.run(slot.index);
    // Checked when the experiment was made.
    let steps = arm.steps().unwrap_or_default();
    let plan = Plan::new(steps, context.workspace);
    let run = RunSetup {
        context,
        arm,
        token: &token,
        staging: &staging,
        anchor,
    };
    let mut record = match run.prepare(&plan) {
        Ok(launch) => run.start_and_end(plan, launch),
        Err(failure) => RunRecord::not_started(plan, MonoNanos::now(), failure),
    };
    record.covariates.push(cache);
    spans::record(&telemetry, arm, slot, &record);
    note_lost_trace(telemetry.close(), &mut record);
    let contents = staging.contents()?;
    record.own_files = contents.own();
    record.files = contents.program();
    if !arm.driver.traces(&arm.scenario) {
        record.strays = staging.strays();
    }
    Ok(Made {
        record,
        staging,
        contents,
    })
}

/// A run that was made and whose files are not yet in place.
#[derive(Debug)]
pub struct Made {
    /// What is known about it.
    pub record: RunRecord,
    staging: Staging,
    contents: Contents,
}

impl Made {
    /// Puts its files in place; the state of a run that succeeded goes.
    ///
    /// # Errors
    /// A file cannot be moved.
    pub fn publish(&self) -> Result<(), RunError> {
        self.contents.publish()?;
        if self.record.failure.is_none() {
            self.staging.remove();
        }
        Ok(())
    }
}

/// Puts the files in place that an earlier `measure` had no time for, of a run
/// that it had finished.
///
/// # Errors
/// A file cannot be moved.
pub fn publish_earlier(out: &Path, index: usize, fate: Fate) -> Result<(), RunError> {
    let staging = Staging::of_earlier(out, index);
    staging.contents()?.publish()?;
    if fate == Fate::Succeeded {
        staging.remove();
    }
    Ok(())
}

/// What became of an earlier run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It succeeded, and its state is of no more use.
    Succeeded,
    /// It failed, and its state is kept.
    Failed,
}

/// Evicts what is to be evicted, and says what the cache holds then.
fn prepare_cache(page_cache: PageCache, files: &[PathBuf]) -> Covariate {
    if page_cache == PageCache::EvictTarget {
        page_cache::evict(files);
    }
    let value = page_cache::cached_share(files).map(covariates::Value::Float);
    Covariate {
        name: covariates::CACHED,
        value,
    }
}

/// A run whose spans are not in the file is no success: nobody can look at it.
fn note_lost_trace(closed: CloseReport, record: &mut RunRecord) {
    if record.failure.is_some() || (closed.final_line && closed.dropped_spans == 0) {
        return;
    }
    let text = format!(
        "{} spans of its trace were not written{}",
        closed.dropped_spans,
        if closed.final_line {
            ""
        } else {
            ", nor was the last line"
        }
    );
    record.failure = Some(Failure::new(FailureCode::TraceLost, text));
}

/// One run before it begins.
struct RunSetup<'r> {
    context: RunContext<'r>,
    arm: &'r Arm,
    token: &'r RunToken,
    staging: &'r Staging,
    anchor: Anchor,
}

impl RunSetup<'_> {
    fn prepare(&self, plan: &Plan) -> Result<Launch, Failure> {
        let Self { context, arm, .. } = self;
        let port = if command::uses_port(&arm.words) {
            Some(free_port().map_err(|error| {
                Failure::new(FailureCode::SpawnFailed, format!("no free port: {error}"))
            })?)
        } else {
            None
        };
        let traces = self.staging.traces();
        let values = Placeholders {
            workspace: context.workspace,
            traces: &traces,
            port,
        };
        let words = arm.words.iter();
        Ok(Launch {
            program: arm.program.clone(),
            words: words.map(|word| command::fill_in(word, values)).collect(),
            set: self.variables(plan, values),
            removed: vec![env::TRACESTATE, env::TRACE_DIR, env::INJECT],
            input: match arm.driver.kind {
                Kind::AcpStdio => Input::Pipe,
                Kind::Http(_) | Kind::Command => Input::Null,
            },
            sampler: match arm.sampling {
                Sampling::Off => None,
                Sampling::Every(every) => Some(Sampler::new(every)),
            },
            anchor: self.anchor,
        })
    }

    fn variables(&self, plan: &Plan, values: Placeholders<'_>) -> Vec<(OsString, OsString)> {
        let arm = self.arm;
        let mut set: Vec<(OsString, OsString)> = Vec::new();
        for (name, value) in &arm.env {
            let value = command::fill_in(value.as_ref(), values);
            set.push((name.into(), value));
        }
        set.extend([
            (env::TRACEPARENT.into(), plan.run.traceparent().into()),
            (env::RUN_TOKEN.into(), self.token.as_str().into()),
            ("COLDPATH_STATE_DIR".into(), self.staging.state().into()),
        ]);
        if arm.driver.traces(&arm.scenario) {
            set.push((env::TRACE_DIR.into(), values.traces.into()));
        }
        if !arm.injections.is_empty() {
            let asked = injection::environment(&arm.injections);
            set.push((env::INJECT.into(), asked.into()));
        }
        set
    }

    /// From the spawn to the last leftover.
    fn start_and_end(&self, mut plan: Plan, mut launch: Launch) -> RunRecord {
        let Self { context, arm, .. } = self;
        let before = covariates::Before::read();
        let (spawned, running) = child::spawn(&mut launch, context.interrupts, context.note);
        let mut running = match running {
            Ok(running) => running,
            Err(error) => {
                let program = error.to_string();
                let failure = Failure::new(FailureCode::SpawnFailed, program);
                return RunRecord::not_started(plan, spawned, failure);
            }
        };
        let mut driven = drive::drive(&mut plan, &mut running, *context);
        driven.read_peak(&running);
        let heirs = context.heirs.ids();
        context.note.seen(driven.seen.ids().chain(heirs));
        let stopped = running.stop(arm.driver.stop, STOP_GRACE, INTERRUPTED_GRACE);
        let leftovers = end_leftovers(self.token, context.heirs);
        let covariates = covariates::of_run(&before, spawned, driven.close_reading());
        let failure = judge(driven.failure.take(), &stopped, &leftovers)
            .or_else(|| not_injected(arm, &running));
        RunRecord {
            run: plan.run,
            spawned,
            pid: Some(running.pid()),
            ended: Some(ended(&stopped, &running)),
            shutdown: stopped.shutdown,
            spans: std::mem::take(&mut driven.spans),
            memory: driven.memory,
            covariates,
            tree: driven.seen.into_entries(),
            leftovers,
            fallbacks: driven.fallbacks,
            own_files: Vec::new(),
            files: Vec::new(),
            strays: Vec::new(),
            failure,
        }
    }
}

/// A program that was asked for a delay and did not make it is no evidence that
/// the delay has no effect.
fn not_injected(arm: &Arm, running: &Running<'_>) -> Option<Failure> {
    let unmade = injection::unmade(&arm.injections, &running.stderr_tail());
    (!unmade.is_empty()).then(|| {
        let message = format!(
            "no delay was made at {}; it needs a build with feature `fault-points`, or `{{shim}}`",
            unmade.join(", ")
        );
        Failure::new(FailureCode::NotInjected, message)
    })
}

fn ended(stopped: &Stopped, running: &Running<'_>) -> Ended {
    Ended {
        at: stopped.ended,
        exit: stopped.exit,
        stdout: running.stdout_tail(),
        stderr: running.stderr_tail(),
    }
}

/// What the run is judged by, the earliest trouble first: what happened while it
/// was driven, how it ended, what it left behind.
fn judge(driven: Option<Failure>, stopped: &Stopped, leftovers: &[Leftover]) -> Option<Failure> {
    let driven = driven.map(|failure| match failure.code {
        FailureCode::ExitedEarly => {
            let message = format!("{}, with {}", failure.message, stopped.exit);
            Failure::new(failure.code, message)
        }
        _ => failure,
    });
    driven.or_else(|| stopped.failure()).or_else(|| {
        (!leftovers.is_empty()).then(|| {
            let programs: Vec<&str> = leftovers.iter().map(|one| one.program.as_str()).collect();
            Failure::new(
                FailureCode::Leftovers,
                format!(
                    "left {} processes: {}",
                    leftovers.len(),
                    programs.join(", ")
                ),
            )
        })
    })
}

fn end_leftovers(token: &RunToken, heirs: &Heirs) -> Vec<Leftover> {
    let token = token.pattern();
    let marks = Marks { token, heirs };
    let left = sweep::settle(sweep::find(marks), LEFTOVER_PATIENCE);
    // A process that ended may have started another one meanwhile.
    let swept = (!left.is_empty() || !sweep::find(marks).is_empty())
        .then(|| sweep::end_all(marks, left, LEFTOVER_EFFORT));
    heirs.reap();
    let ended = swept.into_iter().flat_map(|swept| swept.ended);
    ended
        .map(|(id, program)| Leftover { id, program })
        .collect()
}

/// A port that was free a moment ago.
fn free_port() -> std::io::Result<u16> {
    let listener = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

/// Directory that holds the directories of the runs of an experiment.
#[must_use]
pub fn state_root(out: &Path) -> PathBuf {
    staging::root(out)
}

/// Removes what an unfinished run left in its own directory.
///
/// # Errors
/// It is there and cannot be removed.
pub fn forget_unfinished(out: &Path, index: usize) -> std::io::Result<()> {
    staging::forget(out, index)
}
