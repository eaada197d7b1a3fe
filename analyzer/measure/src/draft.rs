//! An experiment as it was asked for, and the checking that makes one of it.
//!
//! Command line and experiment file both end here, so that they are held to the
//! same rules. Everything that can be checked before the first run is.

use crate::arm::{Arm, Sampling, StopAt};
use crate::claim::Claim;
use crate::command::{self, CommandError};
use crate::driver::file as driver_file;
use crate::driver::{Driver, ScenarioError};
use crate::experiment::{Experiment, Kind, Set};
use crate::host::page_cache::PageCache;
use crate::injection::Injection;
use crate::resume::{Earlier, ResumeError};
use crate::run::RssReading;
use crate::scenario::Scenario;
use crate::schedule::{self, Size};
use crate::toml_file::FileError;
use coldpath_trace_format::emit::file::make_private_dir;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Most runs of an arm; a schedule is held in memory and named by number.
pub const RUNS_MAX: u32 = 100_000;
/// Stands for the stdio shim in a command.
const SHIM: &str = "{shim}";

/// An experiment as it was asked for.
#[derive(Clone, Debug)]
pub struct Draft {
    /// What asked for it.
    pub kind: Kind,
    /// The sets.
    pub sets: Vec<SetDraft>,
    /// Directory for the results.
    pub out: PathBuf,
    /// Whether what is in it is taken up again.
    pub sitting: Sitting,
    /// What fixes the order; drawn where absent.
    pub seed: Option<u64>,
    /// Workspace of the sessions; the current directory where absent.
    pub workspace: Option<PathBuf>,
    /// Bound of each step.
    pub step_timeout: Duration,
    /// When memory is read.
    pub rss: RssReading,
    /// What is done to the target's files before each run.
    pub page_cache: PageCache,
}

/// Whether an experiment is begun or taken up again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sitting {
    /// Begun, in a directory that is missing or empty.
    First,
    /// Taken up again.
    Resumed,
}

/// A set as it was asked for.
#[derive(Clone, Debug)]
pub struct SetDraft {
    /// Its name.
    pub name: String,
    /// Measured runs of each arm.
    pub runs: u32,
    /// Warm-up runs of each arm.
    pub warmup: u32,
    /// The arms.
    pub arms: Vec<ArmDraft>,
}

/// An arm as it was asked for.
#[derive(Clone, Debug)]
pub struct ArmDraft {
    /// Its name.
    pub name: String,
    /// Its command.
    pub words: Vec<OsString>,
    /// Variables that are added.
    pub env: Vec<(String, String)>,
    /// More files of its own.
    pub files: Vec<PathBuf>,
    /// Name or path of its driver.
    pub driver: String,
    /// Its scenario.
    pub scenario: Scenario,
    /// Where it stops.
    pub stop_at: StopAt,
    /// Its delays.
    pub injections: Vec<Injection>,
    /// Its sampling.
    pub sampling: Sampling,
}

impl ArmDraft {
    /// An arm with everything as usual.
    #[must_use]
    pub fn new(name: String, words: Vec<OsString>) -> Self {
        Self {
            name,
            words,
            env: Vec::new(),
            files: Vec::new(),
            driver: "http".to_owned(),
            scenario: Scenario::cold(),
            stop_at: StopAt::Session,
            injections: Vec::new(),
            sampling: Sampling::USUAL,
        }
    }
}

/// Why a draft makes no experiment.
#[derive(Debug, thiserror::Error)]
pub enum DraftError {
    /// A name that cannot be used.
    #[error(
        "`{0}` is no name for an arm\nhint: 1 to 48 letters, digits, `.`, `_` or `-`; `--arm NAME=CMD` names an arm"
    )]
    ArmName(String),
    /// A name given twice.
    #[error(
        "arm `{0}` is given twice\nhint: names of arms are unique, across all sets of an experiment file as well"
    )]
    DuplicateArm(String),
    /// A command that cannot be run.
    #[error("arm `{0}`: {1}")]
    Command(String, #[source] CommandError),
    /// A driver that cannot be used.
    #[error("arm `{0}`: driver {1}")]
    Driver(String, #[source] FileError),
    /// A scenario that its driver does not have.
    #[error("arm `{0}`: {1}")]
    Scenario(String, #[source] ScenarioError),
    /// A variable that cannot be set.
    #[error("arm `{0}`: `{1}` is no name of a variable")]
    Variable(String, String),
    /// A variable's value that cannot be set.
    #[error("arm `{0}`: the value of `{1}` holds a zero byte")]
    Value(String, String),
    /// No arm or no run.
    #[error("nothing to run: every set needs an arm and a run")]
    Empty,
    /// The workspace is not there.
    #[error("workspace {path}: {1}", path = .0.display())]
    Workspace(PathBuf, #[source] io::Error),
    /// The directory for the results cannot be used.
    #[error("--out {path}: {1}", path = .0.display())]
    Out(PathBuf, #[source] io::Error),
    /// The directory for the results holds something.
    #[error(
        "--out {} is not empty\nhint: results are never overwritten; give a new directory, or --resume to go on with the experiment in it", .0.display()
    )]
    OutNotEmpty(PathBuf),
    /// Another `measure` is at work in it.
    #[error("--out {}: another `measure` is writing there", .0.display())]
    OutTaken(PathBuf),
    /// There is nothing to go on with.
    #[error(transparent)]
    Resume(#[from] ResumeError),
    /// The current directory is gone.
    #[error("the current directory cannot be read: {0}")]
    CurrentDir(#[source] io::Error),
    /// The program itself is gone.
    #[error("the path of this program cannot be read: {0}")]
    Own(#[source] io::Error),
}

/// Where commands and drivers are looked for.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// Directory that relative paths count from.
    pub current_dir: PathBuf,
    /// `PATH`.
    pub search_path: OsString,
    /// This program.
    pub own: PathBuf,
}

impl Surroundings {
    /// Those of this process.
    ///
    /// # Errors
    /// The current directory or this program is gone.
    pub fn of_process() -> Result<Self, DraftError> {
        Ok(Self {
            current_dir: std::env::current_dir().map_err(DraftError::CurrentDir)?,
            search_path: std::env::var_os("PATH").unwrap_or_default(),
            own: std::env::current_exe().map_err(DraftError::Own)?,
        })
    }
}

impl Draft {
    /// Checks everything that can be checked before the first run, and makes the
    /// output directory.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(self, around: &Surroundings) -> Result<Experiment, DraftError> {
        let (sets, arms) = check_sets(self.sets, around)?;
        let workspace = self.workspace.unwrap_or_else(|| around.current_dir.clone());
        let workspace = absolute_dir(&around.current_dir.join(workspace.clone()))
            .map_err(|error| DraftError::Workspace(workspace, error))?;
        let out = around.current_dir.join(&self.out);
        let (out, claim, earlier) = match self.sitting {
            Sitting::First => {
                let (out, claim) = make_out(&out)?;
                (out, claim, None)
            }
            Sitting::Resumed => {
                // Claimed first: what another one is writing is not yet to be read.
                let claim = Claim::take(&out).map_err(|_| DraftError::OutTaken(out.clone()))?;
                let earlier = Earlier::read(&out)?;
                let out = out
                    .canonicalize()
                    .map_err(|error| DraftError::Out(out, error))?;
                (out, claim, Some(earlier))
            }
        };
        let seed = self
            .seed
            .or_else(|| earlier.as_ref().map(Earlier::seed))
            .unwrap_or_else(random_seed);
        let sizes: Vec<Size> = sets.iter().map(|set| set.size).collect();
        Ok(Experiment {
            kind: self.kind,
            schedule: schedule::lay_out(&sizes, seed),
            sets,
            arms,
            seed,
            out,
            claim: Arc::new(claim),
            earlier,
            workspace,
            step_timeout: self.step_timeout,
            rss: self.rss,
            page_cache: self.page_cache,
        })
    }
}

/// Checks the sets and their arms.
///
/// # Errors
/// The first thing that is wrong.
pub fn check_sets(
    drafts: Vec<SetDraft>,
    around: &Surroundings,
) -> Result<(Vec<Set>, Vec<Arm>), DraftError> {
    let mut sets = Vec::new();
    let mut arms: Vec<Arm> = Vec::new();
    let mut drivers: BTreeMap<String, Arc<Driver>> = BTreeMap::new();
    for draft in drafts {
        if draft.arms.is_empty() || draft.runs == 0 {
            return Err(DraftError::Empty);
        }
        sets.push(Set {
            name: draft.name,
            size: Size {
                arms: draft.arms.len(),
                warmups: draft.warmup as usize,
                runs: draft.runs as usize,
            },
        });
        for one in draft.arms {
            let name = one.name.clone();
            let driver = if let Some(driver) = drivers.get(&one.driver) {
                Arc::clone(driver)
            } else {
                let read = driver_file::load(&one.driver)
                    .map_err(|error| DraftError::Driver(name.clone(), error))?;
                let read = Arc::new(read);
                drivers.insert(one.driver.clone(), Arc::clone(&read));
                read
            };
            if arms.iter().any(|known| known.name == name) {
                return Err(DraftError::DuplicateArm(name));
            }
            arms.push(check_arm(one, driver, around)?);
        }
    }
    if sets.is_empty() {
        return Err(DraftError::Empty);
    }
    Ok((sets, arms))
}

fn check_arm(
    draft: ArmDraft,
    driver: Arc<Driver>,
    around: &Surroundings,
) -> Result<Arm, DraftError> {
    if !is_arm_name(&draft.name) {
        return Err(DraftError::ArmName(draft.name));
    }
    let words = with_shim(draft.words, &around.own);
    let program = words.first().map_or(OsStr::new(""), OsString::as_os_str);
    let program = command::resolve_program(program, &around.current_dir, &around.search_path)
        .map_err(|error| DraftError::Command(draft.name.clone(), error))?;
    for (variable, value) in &draft.env {
        if variable.is_empty() || variable.contains(['=', '\0']) {
            return Err(DraftError::Variable(draft.name, variable.clone()));
        }
        if value.contains('\0') {
            return Err(DraftError::Value(draft.name, variable.clone()));
        }
    }
    let given = draft.files.iter().map(|path| around.current_dir.join(path));
    let files = own_files(&program, &words, &driver, given.collect(), around);
    let arm = Arm {
        name: draft.name,
        program,
        words,
        env: draft.env,
        files,
        driver,
        scenario: draft.scenario,
        stop_at: draft.stop_at,
        injections: draft.injections,
        sampling: draft.sampling,
    };
    arm.steps()
        .map_err(|error| DraftError::Scenario(arm.name.clone(), error))?;
    Ok(arm)
}

/// Replaces `{shim}`: as a word by this program's words, inside another word by
/// the same in POSIX quoting.
fn with_shim(words: Vec<OsString>, own: &Path) -> Vec<OsString> {
    let mut replaced = Vec::with_capacity(words.len() + 2);
    for word in words {
        if word == SHIM {
            replaced.extend([own.into(), crate::shim::SUBCOMMAND.into(), "--".into()]);
            continue;
        }
        let text = word
            .to_str()
            .filter(|text| text.contains(SHIM))
            .map(|text| text.replace(SHIM, &quoted_shim(own)));
        replaced.push(text.map_or(word, OsString::from));
    }
    replaced
}

fn quoted_shim(own: &Path) -> String {
    let path = own.to_string_lossy().replace('\'', r"'\''");
    format!("'{path}' {} --", crate::shim::SUBCOMMAND)
}

/// The program, the regular files that its words name, those of the driver that
/// are there, and those that were given; sorted, each once.
fn own_files(
    program: &Path,
    words: &[OsString],
    driver: &Driver,
    given: Vec<PathBuf>,
    around: &Surroundings,
) -> Vec<PathBuf> {
    let folder = program.parent().unwrap_or(program).to_string_lossy();
    let named = words
        .iter()
        .skip(1)
        .map(|word| around.current_dir.join(word));
    let beside = driver.files.iter().map(|file| {
        let path = file.replace("{program_dir}", &folder);
        around.current_dir.join(path)
    });
    let mut files: Vec<PathBuf> = named.chain(beside).filter(|path| path.is_file()).collect();
    files.extend(given);
    files.push(program.to_owned());
    files.sort();
    files.dedup();
    files
}

fn is_arm_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=48).contains(&name.len()) && name.bytes().all(allowed)
}

fn absolute_dir(path: &Path) -> io::Result<PathBuf> {
    let path = path.canonicalize()?;
    if path.is_dir() {
        Ok(path)
    } else {
        Err(io::ErrorKind::NotADirectory.into())
    }
}

/// Makes the directory, or takes an empty one, and claims it; absolute.
fn make_out(path: &Path) -> Result<(PathBuf, Claim), DraftError> {
    let refused = |error| DraftError::Out(path.to_owned(), error);
    make_private_dir(path).map_err(refused)?;
    let claim = Claim::take(path).map_err(|_| DraftError::OutTaken(path.to_owned()))?;
    if std::fs::read_dir(path).map_err(refused)?.next().is_some() {
        return Err(DraftError::OutNotEmpty(path.to_owned()));
    }
    Ok((path.canonicalize().map_err(refused)?, claim))
}

/// 32 bits: a number that can be read out and typed again, and that every JSON
/// reader keeps exact.
fn random_seed() -> u64 {
    let mut bytes = [0_u8; 4];
    let flags = rustix::rand::GetRandomFlags::empty();
    match rustix::rand::getrandom(&mut bytes[..], flags) {
        Ok(4) => u32::from_le_bytes(bytes).into(),
        _ => coldpath_trace_format::emit::MonoNanos::now().as_nanos() & 0xffff_ffff,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around() -> Surroundings {
        Surroundings {
            current_dir: "/".into(),
            search_path: "/bin:/usr/bin".into(),
            own: "/opt/it's/measure".into(),
        }
    }

    #[test]
    fn the_shim_is_words_by_itself_and_quoted_inside_another() {
        let words = |texts: &[&str]| texts.iter().map(OsString::from).collect::<Vec<_>>();
        assert_eq!(
            with_shim(words(&["{shim}", "agent"]), &around().own),
            words(&["/opt/it's/measure", "shim", "--", "agent"])
        );
        assert_eq!(
            with_shim(words(&["d", "--agent", "{shim} agent"]), &around().own),
            words(&["d", "--agent", r"'/opt/it'\''s/measure' shim -- agent"])
        );
    }

    #[test]
    fn the_target_s_files_are_the_program_and_what_its_words_name() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("cli.js");
        std::fs::write(&script, "").unwrap();
        let words = vec!["sh".into(), script.clone().into(), "--acp".into()];
        let set = SetDraft {
            name: String::new(),
            runs: 1,
            warmup: 0,
            arms: vec![ArmDraft::new("a".to_owned(), words)],
        };
        let (_, arms) = check_sets(vec![set], &around()).unwrap();
        let program = arms[0].program.clone();
        let mut expected = [script, program];
        expected.sort();
        assert_eq!(arms[0].files, expected);
    }

    #[test]
    fn a_variable_has_a_name_and_a_value_that_can_be_set() {
        let check = |name: &str, value: &str, expected: &str| {
            let mut arm = ArmDraft::new("a".to_owned(), vec!["sh".into()]);
            arm.env = vec![(name.to_owned(), value.to_owned())];
            let set = SetDraft {
                name: String::new(),
                runs: 1,
                warmup: 0,
                arms: vec![arm],
            };
            let error = check_sets(vec![set], &around()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check("A=B", "c", "`A=B` is no name of a variable");
        check("A", "c\0", "the value of `A` holds a zero byte");
    }

    #[test]
    fn an_output_directory_is_new_or_empty() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (path, claim) = make_out(&root.join("a/b")).unwrap();
        assert_eq!(path, root.join("a/b"));
        let message = make_out(&path).unwrap_err().to_string();
        assert!(message.contains("another `measure`"), "{message}");
        drop(claim);
        assert_eq!(make_out(&path).unwrap().0, root.join("a/b"));
        let message = make_out(&root.join("a")).unwrap_err().to_string();
        assert!(message.contains("is not empty\nhint:"), "{message}");
        std::fs::write(root.join("file"), "").unwrap();
        assert!(matches!(
            make_out(&root.join("file")),
            Err(DraftError::Out(_, _))
        ));
    }
}
