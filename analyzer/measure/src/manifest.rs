//! `manifest.json`: what was run on what, in which order, with which result.
//!
//! Wire types and their making; written whole when the schedule is fixed, so that
//! a killed experiment leaves it, and again at the end, each time by a rename.

use crate::arm::Arm;
use crate::experiment::Experiment;
use crate::host::describe::HostDescription;
use crate::run::failure::Failure;
use crate::run::record::{Exit, Leftover, RunRecord, SeenProcess};
use crate::schedule::{Phase, Slot};
use crate::units::Bytes;
use coldpath_trace_format::emit::WallNanos;
use coldpath_trace_format::emit::file::create_private;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

/// Version of the format.
pub const SCHEMA: &str = "coldpath.manifest/1";
/// Name of the file.
pub const FILE_NAME: &str = "manifest.json";

/// How far an experiment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Not at its end; what a killed `measure` leaves.
    Running,
    /// Every run of the schedule was made.
    Complete,
    /// A signal ended it.
    Interrupted,
    /// It could not go on.
    Aborted,
}

/// The file.
#[derive(Debug, Serialize)]
pub struct Manifest {
    schema: &'static str,
    status: Status,
    started_at: String,
    finished_at: Option<String>,
    command: Vec<String>,
    versions: Versions,
    harness: Program,
    host: Host,
    settings: Settings,
    seed: u64,
    arms: Vec<ArmEntry>,
    schedule: Vec<RunEntry>,
}

#[derive(Debug, Serialize)]
struct Versions {
    measure: &'static str,
    trace_contract: i64,
}

#[derive(Debug, Serialize)]
struct Program {
    path: String,
    /// Absent when the file cannot be read.
    sha256: Option<String>,
}

#[derive(Debug, Serialize)]
struct Host {
    cpu_model: Option<String>,
    cores: Option<usize>,
    kernel: Option<String>,
    memory_bytes: Option<u64>,
    boot_id: Option<String>,
}

#[derive(Debug, Serialize)]
struct Settings {
    runs: usize,
    warmup: usize,
    step_timeout_ms: u128,
    rss: &'static str,
    workspace: String,
}

#[derive(Debug, Serialize)]
struct ArmEntry {
    name: String,
    command: Vec<String>,
    program: Program,
    driver: &'static str,
    scenario: &'static str,
    stop_at: &'static str,
}

#[derive(Debug, Serialize)]
struct RunEntry {
    index: usize,
    block: usize,
    arm: String,
    order: Option<String>,
    warmup: bool,
    /// Absent while the run has not been made.
    result: Option<RunResult>,
}

#[derive(Debug, Serialize)]
struct RunResult {
    succeeded: bool,
    trace_id: String,
    pid: Option<i32>,
    exit_code: Option<i32>,
    signal: Option<i32>,
    failure: Option<FailureEntry>,
    processes: Vec<ProcessEntry>,
    leftovers: Vec<LeftoverEntry>,
    /// Last part of the outputs, of failed runs only.
    stdout_tail: Option<String>,
    stderr_tail: Option<String>,
}

#[derive(Debug, Serialize)]
struct FailureEntry {
    code: &'static str,
    message: String,
}

#[derive(Debug, Serialize)]
struct ProcessEntry {
    pid: i32,
    parent_pid: i32,
    /// After the spawn; the process may be older.
    first_seen_ns: u128,
    program: String,
}

#[derive(Debug, Serialize)]
struct LeftoverEntry {
    pid: i32,
    program: String,
}

impl Manifest {
    /// Describes an experiment before its first run.
    #[must_use]
    pub fn new(experiment: &Experiment, command: &[String]) -> Self {
        let host = HostDescription::read();
        Self {
            schema: SCHEMA,
            status: Status::Running,
            started_at: WallNanos::now().to_iso_millis(),
            finished_at: None,
            command: command.to_vec(),
            versions: Versions {
                measure: env!("CARGO_PKG_VERSION"),
                trace_contract: coldpath_trace_format::TRACE_VERSION,
            },
            harness: harness(),
            host: Host {
                cpu_model: host.cpu_model,
                cores: host.cores,
                kernel: host.kernel,
                memory_bytes: host.memory.map(Bytes::get),
                boot_id: host.boot_id,
            },
            settings: Settings {
                runs: experiment.size.runs,
                warmup: experiment.size.warmups,
                step_timeout_ms: experiment.step_timeout.as_millis(),
                rss: experiment.rss.name(),
                workspace: experiment.workspace.to_string_lossy().into_owned(),
            },
            seed: experiment.seed,
            arms: experiment.arms.iter().map(ArmEntry::new).collect(),
            schedule: experiment
                .schedule
                .iter()
                .map(|slot| RunEntry::new(experiment, *slot))
                .collect(),
        }
    }

    /// Notes the result of a run.
    pub fn set_result(&mut self, slot: Slot, record: &RunRecord) {
        if let Some(entry) = self.schedule.get_mut(slot.index) {
            entry.result = Some(RunResult::new(record));
        }
    }

    /// Notes the end of the experiment.
    pub fn finish(&mut self, status: Status) {
        self.status = status;
        self.finished_at = Some(WallNanos::now().to_iso_millis());
    }

    /// Writes the file into a directory, whole or not at all.
    ///
    /// # Errors
    /// What writing or renaming gives.
    pub fn write(&self, dir: &Path) -> io::Result<()> {
        let draft = dir.join(format!(".{FILE_NAME}.new"));
        match std::fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        create_private(&draft)?.write_all(&text)?;
        std::fs::rename(&draft, dir.join(FILE_NAME))
    }
}

impl ArmEntry {
    fn new(arm: &Arm) -> Self {
        Self {
            name: arm.name.clone(),
            command: arm
                .words
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            program: Program::read(&arm.program),
            driver: "http",
            scenario: arm.scenario.name(),
            stop_at: arm.stop_at.name(),
        }
    }
}

impl RunEntry {
    fn new(experiment: &Experiment, slot: Slot) -> Self {
        Self {
            index: slot.index,
            block: slot.block,
            arm: experiment
                .arms
                .get(slot.arm)
                .map_or_else(String::new, |arm| arm.name.clone()),
            order: slot.place.name(),
            warmup: slot.phase == Phase::Warmup,
            result: None,
        }
    }
}

impl RunResult {
    fn new(record: &RunRecord) -> Self {
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
            processes: record.tree.iter().map(ProcessEntry::new).collect(),
            leftovers: record.leftovers.iter().map(LeftoverEntry::new).collect(),
            stdout_tail: tails.map(|ended| ended.stdout.clone()),
            stderr_tail: tails.map(|ended| ended.stderr.clone()),
        }
    }
}

impl FailureEntry {
    fn new(failure: &Failure) -> Self {
        Self {
            code: failure.code.name(),
            message: failure.message.clone(),
        }
    }
}

impl ProcessEntry {
    fn new(seen: &SeenProcess) -> Self {
        Self {
            pid: seen.id.pid,
            parent_pid: seen.ppid,
            first_seen_ns: seen.first_seen.as_nanos(),
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

impl Program {
    fn read(path: &Path) -> Self {
        Self {
            path: path.to_string_lossy().into_owned(),
            sha256: sha256(path).ok(),
        }
    }
}

/// The running program itself: its file may have been replaced since it started.
fn harness() -> Program {
    let link = Path::new("/proc/self/exe");
    Program {
        path: std::fs::read_link(link)
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        sha256: sha256(link).ok(),
    }
}

fn sha256(path: &Path) -> io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0_u8; 64 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => hash.update(&buffer[..read]),
        }
    }
    let hex: Vec<String> = hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Ok(hex.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_identified_by_the_hash_of_its_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, "abc").unwrap();
        // FIPS 180-4, example for "abc".
        assert_eq!(
            sha256(&path).unwrap(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(Program::read(&dir.path().join("gone")).sha256, None);
        assert!(harness().sha256.is_some());
    }
}
