//! What became of one run, as the manifest and the journal keep it.

use crate::run::failure::{Failure, FailureCode};
use crate::run::record::{Exit, Leftover, RunRecord, SeenProcess};
use serde::{Deserialize, Serialize};

/// The result of a run.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct RunResult {
    /// Whether nothing was wrong with it.
    pub succeeded: bool,
    /// Its trace.
    pub trace_id: String,
    /// Process id of its program; absent when none was started.
    pub pid: Option<i32>,
    /// The program's own exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended the program.
    pub signal: Option<i32>,
    /// Why it failed.
    pub failure: Option<FailureEntry>,
    /// What the program did not offer, and what was done instead.
    pub fallbacks: Vec<String>,
    /// Files in the output directory, ours first.
    pub files: Vec<String>,
    /// Processes that were seen.
    pub processes: Vec<ProcessEntry>,
    /// Processes that outlived the program.
    pub leftovers: Vec<LeftoverEntry>,
    /// Last part of the output, of failed runs only.
    pub stdout_tail: Option<String>,
    /// Last part of the output, of failed runs only.
    pub stderr_tail: Option<String>,
}

/// Why a run failed.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct FailureEntry {
    /// Its code.
    pub code: String,
    /// What happened.
    pub message: String,
}

/// A process that was seen.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct ProcessEntry {
    /// Its id.
    pub pid: i32,
    /// Its parent when it was first seen.
    pub parent_pid: i32,
    /// After the spawn; the process may be older.
    pub first_seen_ns: u64,
    /// Its executable.
    pub program: String,
}

/// A process that outlived its program.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct LeftoverEntry {
    /// Its id.
    pub pid: i32,
    /// Its executable.
    pub program: String,
}

impl RunResult {
    /// Takes what is kept of a record.
    #[must_use]
    pub fn new(record: &RunRecord) -> Self {
        let exit = record.ended.as_ref().map(|ended| ended.exit);
        let tails = record.ended.as_ref().filter(|_| record.failure.is_some());
        Self {
            succeeded: record.failure.is_none(),
            trace_id: record.run.context().trace_id().to_string(),
            pid: record.pid,
            exit_code: match exit {
                Some(Exit::Code(code)) => Some(code),
                _ => None,
            },
            signal: match exit {
                Some(Exit::Signal(signal)) => Some(signal),
                _ => None,
            },
            failure: record.failure.as_ref().map(FailureEntry::new),
            fallbacks: record.fallbacks.clone(),
            files: [&record.own_files[..], &record.files[..]].concat(),
            processes: record.tree.iter().map(ProcessEntry::new).collect(),
            leftovers: record.leftovers.iter().map(LeftoverEntry::new).collect(),
            stdout_tail: tails.map(|ended| ended.stdout.clone()),
            stderr_tail: tails.map(|ended| ended.stderr.clone()),
        }
    }

    /// Whether its program was started.
    #[must_use]
    pub fn was_started(&self) -> bool {
        !self.failed_with(FailureCode::SpawnFailed)
    }

    /// Whether the end of the experiment cut it short: then it is made again.
    #[must_use]
    pub fn was_interrupted(&self) -> bool {
        self.failed_with(FailureCode::Interrupted)
    }

    fn failed_with(&self, code: FailureCode) -> bool {
        self.failure
            .as_ref()
            .is_some_and(|failure| failure.code == code.name())
    }
}

impl FailureEntry {
    fn new(failure: &Failure) -> Self {
        Self {
            code: failure.code.name().to_owned(),
            message: failure.message.clone(),
        }
    }
}

impl ProcessEntry {
    fn new(seen: &SeenProcess) -> Self {
        Self {
            pid: seen.id.pid,
            parent_pid: seen.ppid,
            first_seen_ns: u64::try_from(seen.first_seen.as_nanos()).unwrap_or(u64::MAX),
            program: seen.program.clone(),
        }
    }
}

impl LeftoverEntry {
    fn new(leftover: &Leftover) -> Self {
        Self {
            pid: leftover.id.pid,
            program: leftover.program.clone(),
        }
    }
}
