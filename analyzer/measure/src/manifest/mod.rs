//! `manifest.json`: what was run on what, in which order, with which result.
//!
//! Wire types and their making; written whole when the schedule is fixed, so that
//! a killed experiment leaves it, and again at the end, each time by a rename.
//! [`Identity`] is the part of it that must not change between two sittings of one
//! experiment.

pub mod result;

use crate::arm::Arm;
use crate::digest;
use crate::experiment::{Experiment, Set};
use crate::host::describe::HostDescription;
use crate::schedule::{Phase, Slot};
use crate::units::Bytes;
use coldpath_trace_format::emit::WallNanos;
use coldpath_trace_format::emit::file::create_private;
use result::RunResult;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Version of the format.
pub const SCHEMA: &str = "coldpath.manifest/1";
/// Name of the file.
pub const FILE_NAME: &str = "manifest.json";

/// How far an experiment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
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
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Manifest {
    schema: String,
    status: Status,
    started_at: String,
    finished_at: Option<String>,
    /// Starts of the sittings after the first.
    #[serde(default)]
    resumed_at: Vec<String>,
    command: Vec<String>,
    versions: Versions,
    #[serde(flatten)]
    identity: Identity,
    schedule: Vec<RunEntry>,
}

/// What an experiment is: another value of anything in it is another experiment.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Identity {
    /// What asked for it.
    pub kind: String,
    /// This program.
    pub harness: Program,
    /// What it runs on.
    pub host: Host,
    /// What holds for every run.
    pub settings: Settings,
    /// What fixed the order.
    pub seed: u64,
    /// The sets.
    pub sets: Vec<SetEntry>,
    /// The arms.
    pub arms: Vec<ArmEntry>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Versions {
    measure: String,
    trace_contract: i64,
}

/// A file and its digest.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Program {
    path: String,
    /// Absent when the file cannot be read.
    sha256: Option<String>,
}

/// A host.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Host {
    cpu_model: Option<String>,
    cores: Option<usize>,
    kernel: Option<String>,
    memory_bytes: Option<u64>,
    boot_id: Option<String>,
}

/// What holds for every run.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Settings {
    step_timeout_ms: u64,
    rss: String,
    page_cache: String,
    workspace: String,
}

/// A set.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct SetEntry {
    name: String,
    arms: Vec<String>,
    runs: usize,
    warmup: usize,
}

/// An arm.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ArmEntry {
    name: String,
    command: Vec<String>,
    env: BTreeMap<String, String>,
    program: Program,
    /// The target's own files beside the program.
    files: Vec<Program>,
    driver: DriverEntry,
    scenario: String,
    stop_at: String,
    inject: BTreeMap<String, u64>,
    sampling: String,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
struct DriverEntry {
    name: String,
    sha256: String,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct RunEntry {
    index: usize,
    block: usize,
    arm: String,
    order: Option<String>,
    warmup: bool,
    /// Absent while the run has not been made.
    result: Option<RunResult>,
}

impl Manifest {
    /// Describes an experiment before its first run.
    #[must_use]
    pub fn new(experiment: &Experiment, command: &[String]) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            status: Status::Running,
            started_at: WallNanos::now().to_iso_millis(),
            finished_at: None,
            resumed_at: Vec::new(),
            command: command.to_vec(),
            versions: Versions {
                measure: env!("CARGO_PKG_VERSION").to_owned(),
                trace_contract: coldpath_trace_format::TRACE_VERSION,
            },
            identity: Identity::new(experiment),
            schedule: experiment
                .schedule
                .iter()
                .map(|slot| RunEntry::new(experiment, *slot))
                .collect(),
        }
    }

    /// Reads the one of a directory.
    ///
    /// # Errors
    /// It is not there, or is no manifest.
    pub fn read(dir: &Path) -> io::Result<Self> {
        let text = std::fs::read(dir.join(FILE_NAME))?;
        let manifest: Self = serde_json::from_slice(&text)?;
        if manifest.schema == SCHEMA {
            Ok(manifest)
        } else {
            let found = format!("its schema is `{}`, not `{SCHEMA}`", manifest.schema);
            Err(io::Error::other(found))
        }
    }

    /// What the experiment is.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Takes the sittings of an earlier one over, before this one.
    pub fn follow(&mut self, earlier: &Self) {
        let now = std::mem::replace(&mut self.started_at, earlier.started_at.clone());
        self.resumed_at.clone_from(&earlier.resumed_at);
        self.resumed_at.push(now);
        self.command.clone_from(&earlier.command);
        for (entry, old) in self.schedule.iter_mut().zip(&earlier.schedule) {
            entry.result.clone_from(&old.result);
        }
    }

    /// Positions and results of the runs that were made.
    pub fn results(&self) -> impl Iterator<Item = (usize, &RunResult)> {
        let of = |entry: &'_ RunEntry| entry.index;
        self.schedule
            .iter()
            .filter_map(move |entry| Some((of(entry), entry.result.as_ref()?)))
    }

    /// The result of a run that was made.
    #[must_use]
    pub fn result(&self, slot: Slot) -> Option<&RunResult> {
        self.schedule.get(slot.index)?.result.as_ref()
    }

    /// Notes the result of a run.
    pub fn set_result(&mut self, slot: Slot, result: RunResult) {
        self.set_result_at(slot.index, Some(result));
    }

    /// Notes the result at a position, or that there is none.
    pub fn set_result_at(&mut self, index: usize, result: Option<RunResult>) {
        if let Some(entry) = self.schedule.get_mut(index) {
            entry.result = result;
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

impl Identity {
    fn new(experiment: &Experiment) -> Self {
        let host = HostDescription::read();
        Self {
            kind: experiment.kind.name().to_owned(),
            harness: harness(),
            host: Host {
                cpu_model: host.cpu_model,
                cores: host.cores,
                kernel: host.kernel,
                memory_bytes: host.memory.map(Bytes::get),
                boot_id: host.boot_id,
            },
            settings: Settings {
                step_timeout_ms: u64::try_from(experiment.step_timeout.as_millis())
                    .unwrap_or(u64::MAX),
                rss: experiment.rss.name().to_owned(),
                page_cache: experiment.page_cache.name().to_owned(),
                workspace: experiment.workspace.to_string_lossy().into_owned(),
            },
            seed: experiment.seed,
            sets: set_entries(&experiment.sets, &experiment.arms),
            arms: arm_entries(&experiment.arms),
        }
    }

    /// What differs in the other, in words; `None` where nothing does.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Option<String> {
        if self.harness != other.harness {
            return Some("`measure` itself has changed".to_owned());
        }
        if self.host != other.host {
            return Some("the host is another one, or was started anew".to_owned());
        }
        for (mine, theirs) in self.arms.iter().zip(&other.arms) {
            if mine != theirs {
                let name = &mine.name;
                return Some(match mine.changed_file(theirs) {
                    Some(path) => format!("arm `{name}`: {path} has changed"),
                    None if mine.driver != theirs.driver => {
                        format!("arm `{name}`: its driver has changed")
                    }
                    None => format!("arm `{name}` is another one"),
                });
            }
        }
        (self != other).then(|| "arms, sets, settings or seed are others".to_owned())
    }
}

impl ArmEntry {
    fn new(arm: &Arm, digests: &mut Digests) -> Self {
        let others = arm.files.iter().filter(|path| **path != arm.program);
        Self {
            name: arm.name.clone(),
            command: arm
                .words
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            env: arm.env.iter().cloned().collect(),
            program: digests.program(&arm.program),
            files: others.map(|path| digests.program(path)).collect(),
            driver: DriverEntry {
                name: arm.driver.name.clone(),
                sha256: arm.driver.sha256.clone(),
            },
            scenario: arm.scenario.to_string(),
            stop_at: arm.stop_at.name().to_owned(),
            inject: arm
                .injections
                .iter()
                .map(|one| (one.stage.clone(), one.nanos()))
                .collect(),
            sampling: arm.sampling.name(),
        }
    }

    /// A file that both have with other bytes.
    fn changed_file<'a>(&'a self, other: &Self) -> Option<&'a str> {
        let mine = std::iter::once(&self.program).chain(&self.files);
        let theirs = std::iter::once(&other.program).chain(&other.files);
        mine.zip(theirs)
            .find(|(mine, theirs)| mine.path == theirs.path && mine.sha256 != theirs.sha256)
            .map(|(mine, _)| mine.path.as_str())
    }
}

fn arm_entries(arms: &[Arm]) -> Vec<ArmEntry> {
    let mut digests = Digests::default();
    arms.iter()
        .map(|arm| ArmEntry::new(arm, &mut digests))
        .collect()
}

/// Files whose digest is known: arms often share theirs.
#[derive(Default)]
struct Digests {
    known: BTreeMap<PathBuf, Program>,
}

impl Digests {
    fn program(&mut self, path: &Path) -> Program {
        let known = self.known.entry(path.to_owned());
        known.or_insert_with(|| Program::read(path)).clone()
    }
}

fn set_entries(sets: &[Set], arms: &[Arm]) -> Vec<SetEntry> {
    let mut arms = arms.iter();
    sets.iter()
        .map(|set| SetEntry {
            name: set.name.clone(),
            arms: arms
                .by_ref()
                .take(set.size.arms)
                .map(|arm| arm.name.clone())
                .collect(),
            runs: set.size.runs,
            warmup: set.size.warmups,
        })
        .collect()
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

impl Program {
    fn read(path: &Path) -> Self {
        Self {
            path: path.to_string_lossy().into_owned(),
            sha256: digest::of_file(path).ok(),
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
        sha256: digest::of_file(link).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_cannot_be_read_has_no_digest() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Program::read(&dir.path().join("gone")).sha256, None);
        assert!(harness().sha256.is_some());
    }
}
