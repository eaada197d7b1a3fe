//! What is known about one run when it is over: instants, figures, reasons.
//!
//! Data only: the trace of the run and its entry in the manifest are made of it.

use super::failure::Failure;
use super::plan::Plan;
use crate::host::covariates::Covariate;
use crate::host::process::ProcessId;
use crate::host::sampler::First;
use crate::host::tree::Tree;
use crate::units::Bytes;
use coldpath_trace_format::emit::{MonoNanos, ReservedSpan};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// One run.
#[derive(Debug)]
pub struct RunRecord {
    /// Ids of the root span.
    pub run: ReservedSpan,
    /// The instant just before the spawn.
    pub spawned: MonoNanos,
    /// Process id; absent when nothing was started.
    pub pid: Option<i32>,
    /// The program's end; absent when nothing was started.
    pub ended: Option<Ended>,
    /// From SIGTERM to the end; absent when the program had ended before.
    pub shutdown: Option<(MonoNanos, MonoNanos)>,
    /// What the client did, in order.
    pub spans: Vec<ClientSpan>,
    /// Memory.
    pub memory: MemoryReadings,
    /// The host around the run.
    pub covariates: Vec<Covariate>,
    /// The processes that were seen, by first sight.
    pub tree: Vec<SeenProcess>,
    /// The processes that outlived the program, and were ended.
    pub leftovers: Vec<Leftover>,
    /// What the program did not offer, and what was done instead.
    pub fallbacks: Vec<String>,
    /// Names of our own files about it, sorted.
    pub own_files: Vec<String>,
    /// Names of the files that the program wrote into its trace directory, sorted.
    pub files: Vec<String>,
    /// Traces that it put among its state though it was told of no trace directory,
    /// sorted.
    pub strays: Vec<String>,
    /// Why the run failed; absent on success.
    pub failure: Option<Failure>,
}

/// The end of a program.
#[derive(Clone, Debug)]
pub struct Ended {
    /// When.
    pub at: MonoNanos,
    /// With what.
    pub exit: Exit,
    /// Last part of its stdout.
    pub stdout: String,
    /// Last part of its stderr.
    pub stderr: String,
}

/// What a program ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Its own code.
    Code(i32),
    /// A signal.
    Signal(i32),
    /// It has not ended, or the kernel did not say.
    Unknown,
}

/// A step as the client saw it.
#[derive(Clone, Debug)]
pub struct ClientSpan {
    /// Its ids, under which others may already have taken it for their parent.
    pub ids: ReservedSpan,
    /// Name.
    pub name: &'static str,
    /// Begin.
    pub start: MonoNanos,
    /// End.
    pub end: MonoNanos,
    /// `coldpath.session.temperature`.
    pub temperature: Option<&'static str>,
    /// `session.id`.
    pub session_id: Option<String>,
    /// `http.response.status_code`.
    pub status: Option<u16>,
    /// Whether it stands below the action.
    pub of_action: bool,
    /// Answer to a session request, where it is short enough to be kept.
    pub body: Option<Vec<u8>>,
    /// Keys with which the driver says that the answer begins.
    pub keys: Vec<String>,
    /// Why it failed.
    pub failure: Option<Failure>,
}

impl ClientSpan {
    /// A span of which no more is known.
    #[must_use]
    pub fn new(
        ids: ReservedSpan,
        name: &'static str,
        start: MonoNanos,
        end: MonoNanos,
        failure: Option<Failure>,
    ) -> Self {
        Self {
            ids,
            name,
            start,
            end,
            temperature: None,
            session_id: None,
            status: None,
            of_action: false,
            body: None,
            keys: Vec::new(),
            failure,
        }
    }
}

/// Memory of the program and its descendants; absent where not read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryReadings {
    /// The tree at the listener.
    pub listener: Option<Bytes>,
    /// How long that reading took, inside the way from spawn to `/health`.
    pub listener_cost: Option<Duration>,
    /// The tree with one session.
    pub session: Option<Bytes>,
    /// The program alone with one session.
    pub session_process: Option<Bytes>,
    /// Upper bound of the tree's peak.
    pub peak: Option<Bytes>,
    /// Largest sum among the samples.
    pub sampled_peak: Option<Bytes>,
    /// How many samples were taken, and how long they took in all; absent where
    /// nothing was sampled.
    pub samples: Option<(u64, Duration)>,
}

/// A process of the run's tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenProcess {
    /// Which one.
    pub id: ProcessId,
    /// Its parent when it was first seen.
    pub ppid: i32,
    /// When it was first seen, after the spawn; it may be older.
    pub first_seen: Duration,
    /// Its executable.
    pub program: String,
}

/// A process that outlived the program of its run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// Which one.
    pub id: ProcessId,
    /// Its executable.
    pub program: String,
}

/// The processes seen so far.
#[derive(Clone, Debug, Default)]
pub struct SeenProcesses {
    entries: BTreeMap<ProcessId, SeenProcess>,
}

impl SeenProcesses {
    /// Adds those of a reading that are new.
    pub fn add(&mut self, tree: &Tree, after_spawn: Duration) {
        for one in &tree.processes {
            self.entries.entry(one.id).or_insert_with(|| SeenProcess {
                id: one.id,
                ppid: one.ppid,
                first_seen: after_spawn,
                program: one.program.clone(),
            });
        }
    }

    /// Adds what a sample met first, or dates it earlier.
    pub fn add_first(&mut self, first: &First) {
        let new = SeenProcess {
            id: first.id,
            ppid: first.ppid,
            first_seen: first.after_spawn,
            program: first.program.clone(),
        };
        let known = self.entries.entry(first.id).or_insert(new);
        known.first_seen = known.first_seen.min(first.after_spawn);
    }

    /// Their ids, sorted.
    pub fn ids(&self) -> impl Iterator<Item = ProcessId> + '_ {
        self.entries.keys().copied()
    }

    /// All of them, by first sight, then by id.
    #[must_use]
    pub fn into_entries(self) -> Vec<SeenProcess> {
        let mut entries: Vec<SeenProcess> = self.entries.into_values().collect();
        entries.sort_by_key(|seen| (seen.first_seen, seen.id));
        entries
    }
}

impl RunRecord {
    /// The record of a run whose program could not be started.
    pub(super) fn not_started(plan: Plan, at: MonoNanos, failure: Failure) -> Self {
        Self {
            run: plan.run,
            spawned: at,
            pid: None,
            ended: None,
            shutdown: None,
            spans: Vec::new(),
            memory: MemoryReadings::default(),
            covariates: Vec::new(),
            tree: Vec::new(),
            leftovers: Vec::new(),
            fallbacks: Vec::new(),
            own_files: Vec::new(),
            files: Vec::new(),
            strays: Vec::new(),
            failure: Some(failure),
        }
    }
}

impl Exit {
    /// Value of `coldpath.run.exit_code`: the code, or the negative signal.
    #[must_use]
    pub const fn as_attribute(self) -> Option<i64> {
        match self {
            Self::Code(code) => Some(code as i64),
            Self::Signal(signal) => Some(-(signal as i64)),
            Self::Unknown => None,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::Unknown => f.write_str("no known code"),
        }
    }
}
