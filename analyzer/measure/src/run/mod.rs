//! One run: a fresh process, driven, stopped, cleaned up after, recorded.
//!
//! All waiting happens on this one thread, in [`child`]: the program's two
//! outputs, its end, a socket and our own signals are one `poll`, so that nothing
//! runs beside the program that is timed and no wait is without a deadline. Spans
//! are recorded when the program has ended; until then they are instants.

pub mod child;
mod drive;
mod exchange;
pub mod failure;
mod plan;
pub mod record;
mod spans;
mod tail;

use crate::arm::{Arm, Scenario};
use crate::cleanup::sweep;
use crate::cleanup::token::{RunToken, TokenPrefix};
use crate::command::{self, Placeholders};
use crate::driver::http_v1;
use crate::host::covariates;
use crate::interrupt::Interrupts;
use crate::schedule::Slot;
use child::stop::Stopped;
use child::{Launch, Running};
use coldpath_trace_format::emit::{
    Anchor, CloseReport, MonoNanos, ProcessStart, Telemetry, TelemetryConfig, TelemetryError, uuid,
};
use coldpath_trace_format::env;
use failure::{Failure, FailureCode};
use plan::Plan;
use record::{Ended, Leftover, RunRecord};
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
/// Longest time for ending leftovers of one run.
const LEFTOVER_BOUND: Duration = Duration::from_secs(20);

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
    /// Tokens.
    pub tokens: &'a TokenPrefix,
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

/// Carries out one run and writes its trace.
///
/// # Errors
/// The trace file cannot be opened: then nothing was started. What goes wrong
/// with the program is no error but a failed run.
pub fn carry_out(
    context: RunContext<'_>,
    arm: &Arm,
    slot: Slot,
) -> Result<RunRecord, TelemetryError> {
    let anchor = Anchor::take();
    let telemetry = Telemetry::open(&TelemetryConfig {
        service: "measure",
        version: env!("CARGO_PKG_VERSION"),
        instance_id: uuid::random(),
        trace_dir: context.out.to_owned(),
        anchor,
        process_start: ProcessStart::Main,
        rejected_contexts: 0,
        collector: None,
    })?;
    let token = context.tokens.run(slot.index);
    let state_dir = context.out.join("state").join(slot.index.to_string());
    let plan = Plan::new(&http_v1(context.workspace, arm.stop_at));
    let mut record = match prepare(context, arm, &token, &state_dir, &plan, anchor) {
        Ok(launch) => start_and_end(context, plan, &launch, &token),
        Err(failure) => RunRecord::not_started(plan, MonoNanos::now(), failure),
    };
    spans::record(&telemetry, arm, slot, &record);
    note_lost_trace(telemetry.close(), &mut record);
    if record.failure.is_none() {
        // What cannot be removed is only in the way of the next look at it.
        let _ = std::fs::remove_dir_all(&state_dir);
    }
    Ok(record)
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

fn prepare(
    context: RunContext<'_>,
    arm: &Arm,
    token: &RunToken,
    state_dir: &Path,
    plan: &Plan,
    anchor: Anchor,
) -> Result<Launch, Failure> {
    let refuse = |what: &str, error: std::io::Error| {
        Failure::new(FailureCode::SpawnFailed, format!("{what}: {error}"))
    };
    coldpath_trace_format::emit::file::make_private_dir(state_dir)
        .map_err(|error| refuse("cannot make the state directory", error))?;
    let port = if command::uses_port(&arm.words) {
        Some(free_port().map_err(|error| refuse("no free port", error))?)
    } else {
        None
    };
    let values = Placeholders {
        workspace: context.workspace,
        port,
    };
    let mut set: Vec<(&'static str, OsString)> = vec![
        (env::TRACEPARENT, plan.run.traceparent().into()),
        (env::RUN_TOKEN, token.as_str().into()),
        ("COLDPATH_STATE_DIR", state_dir.into()),
    ];
    let mut removed = vec![env::TRACESTATE];
    match arm.scenario {
        Scenario::Cold => set.push((env::TRACE_DIR, context.out.into())),
        Scenario::NoTelemetry => removed.push(env::TRACE_DIR),
    }
    Ok(Launch {
        program: arm.program.clone(),
        words: arm
            .words
            .iter()
            .map(|word| command::fill_in(word, values))
            .collect(),
        set,
        removed,
        anchor,
    })
}

/// From the spawn to the last leftover.
fn start_and_end(
    context: RunContext<'_>,
    mut plan: Plan,
    launch: &Launch,
    token: &RunToken,
) -> RunRecord {
    let before = covariates::Before::read();
    let (spawned, running) = child::spawn(launch, context.interrupts);
    let mut running = match running {
        Ok(running) => running,
        Err(error) => {
            let program = error.to_string();
            let failure = Failure::new(FailureCode::SpawnFailed, program);
            return RunRecord::not_started(plan, spawned, failure);
        }
    };
    let mut driven = drive::drive(&mut plan, &mut running, context);
    driven.read_peak(&running);
    let stopped = running.stop(STOP_GRACE, INTERRUPTED_GRACE);
    let leftovers = end_leftovers(token);
    let covariates = covariates::of_run(&before, spawned, driven.close_reading());
    let failure = judge(driven.failure.take(), &stopped, &leftovers);
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
        failure,
    }
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

fn end_leftovers(token: &RunToken) -> Vec<Leftover> {
    let left = sweep::settle(sweep::find(token.pattern()), LEFTOVER_PATIENCE);
    // A process that ended may have started another one meanwhile.
    if left.is_empty() && sweep::find(token.pattern()).is_empty() {
        return Vec::new();
    }
    let swept = sweep::end_all(token.pattern(), LEFTOVER_BOUND);
    swept
        .ended
        .into_iter()
        .map(|(id, program)| Leftover { id, program })
        .collect()
}

/// A port that was free a moment ago.
fn free_port() -> std::io::Result<u16> {
    let listener = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

/// Directory that holds the state directories of an experiment.
#[must_use]
pub fn state_root(out: &Path) -> PathBuf {
    out.join("state")
}
