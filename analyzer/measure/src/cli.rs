//! The command line: what was typed, and what it means.

use crate::arm::{Arm, Scenario, StopAt};
use crate::cleanup::watchdog;
use crate::command::{self, CommandError};
use crate::experiment::Experiment;
use crate::run::RssReading;
use crate::schedule::{self, Size};
use clap::{Args, Parser, Subcommand, ValueEnum};
use coldpath_trace_format::emit::file::make_private_dir;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Most runs of an arm; a schedule is held in memory and named by number.
const RUNS_MAX: i64 = 100_000;
/// Longest step: an hour.
const STEP_TIMEOUT_MAX_MS: u64 = 3_600_000;

/// Runs cold starts as experiments, of this or any other daemon.
#[derive(Debug, Parser)]
#[command(name = "measure", version, about, after_help = EXIT_CODES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 every measured run succeeded; 1 a run failed; 2 usage; \
3 nothing was measured; 4 internal error; 128 + N ended by signal N";

/// Subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run one or several commands from process start to their first sessions
    Run(RunArgs),
    /// Ends what a killed `measure` leaves behind; started by `measure` itself
    #[command(name = watchdog::SUBCOMMAND, hide = true)]
    Watchdog,
}

/// `measure run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Measured runs of each arm
    #[arg(long, default_value_t = 30, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=RUNS_MAX))]
    pub runs: u32,

    /// Runs of each arm that are made first, marked, and out of every statistic
    #[arg(long, default_value_t = 1, value_name = "N",
          value_parser = clap::value_parser!(u32).range(0..=RUNS_MAX))]
    pub warmup: u32,

    /// Directory for traces and manifest.json; missing or empty
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,

    /// What a run does: `cold`, or `no-telemetry`, which leaves `COLDPATH_TRACE_DIR`
    /// out of the program's environment; with `ARM=` for one arm
    #[arg(long, value_name = "[ARM=]NAME")]
    pub scenario: Vec<String>,

    /// Stop the program after this step: `ready`, `health` or `session` (the
    /// default); with `ARM=` for one arm
    #[arg(long, value_name = "[ARM=]STEP")]
    pub stop_at: Vec<String>,

    /// Number that fixes the order of runs; random when absent, and recorded
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Workspace of the sessions, also `{workspace}` in a command; the current
    /// directory when absent
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,

    /// Bound of each step of a run, milliseconds
    #[arg(long, default_value_t = 30_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=STEP_TIMEOUT_MAX_MS))]
    pub timeout_ms: u64,

    /// Which memory readings to make
    #[arg(long, value_enum, default_value_t = RssChoice::All, value_name = "WHICH")]
    pub rss: RssChoice,

    /// A command to run, in POSIX quoting, without a shell; may be given several
    /// times, for one schedule over all. `{workspace}` and `{port}` are replaced
    #[arg(long, value_name = "NAME=CMD", conflicts_with = "command")]
    pub arm: Vec<String>,

    /// The command of a single arm, after `--`
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// `--rss`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RssChoice {
    /// All; the listener's is read between the ready line and `/health`
    All,
    /// None between the spawn and the first session
    Untimed,
}

/// Why arguments make no experiment.
#[derive(Debug, thiserror::Error)]
pub enum UsageError {
    /// No command.
    #[error("nothing to run\nhint: give a command after `--`, or one or more `--arm NAME=CMD`")]
    NoCommand,
    /// `--arm` without a name.
    #[error("`--arm {0}` is not NAME=CMD")]
    Arm(String),
    /// A name that cannot be used.
    #[error("`{0}` is no name for an arm\nhint: 1 to 48 letters, digits, `.`, `_` or `-`")]
    ArmName(String),
    /// A name given twice.
    #[error("arm `{0}` is given twice")]
    DuplicateArm(String),
    /// A command that cannot be run.
    #[error("arm `{0}`: {1}")]
    Command(String, #[source] CommandError),
    /// A choice for an arm that is not there.
    #[error("`{option} {value}` names an arm that is not given")]
    UnknownArm {
        /// The option.
        option: &'static str,
        /// Its value.
        value: String,
    },
    /// A choice that does not exist.
    #[error("`{option} {value}` is not known\nhint: one of {known}")]
    UnknownChoice {
        /// The option.
        option: &'static str,
        /// Its value.
        value: String,
        /// What there is.
        known: String,
    },
    /// The workspace is not there.
    #[error("workspace {path}: {1}", path = .0.display())]
    Workspace(PathBuf, #[source] io::Error),
    /// The directory for the results cannot be used.
    #[error("--out {path}: {1}", path = .0.display())]
    Out(PathBuf, #[source] io::Error),
    /// The directory for the results holds something.
    #[error(
        "--out {} is not empty\nhint: results are never overwritten; give a new directory", .0.display()
    )]
    OutNotEmpty(PathBuf),
    /// The current directory is gone.
    #[error("the current directory cannot be read: {0}")]
    CurrentDir(#[source] io::Error),
}

impl RunArgs {
    /// Checks everything that can be checked before the first run, and makes
    /// the output directory.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn into_experiment(self) -> Result<Experiment, UsageError> {
        let current_dir = std::env::current_dir().map_err(UsageError::CurrentDir)?;
        let search_path = std::env::var_os("PATH").unwrap_or_default();
        let arms = arms(&self, &current_dir, &search_path)?;
        let workspace = self.workspace.unwrap_or_else(|| current_dir.clone());
        let workspace = absolute_dir(&workspace)
            .map_err(|error| UsageError::Workspace(workspace.clone(), error))?;
        let size = Size {
            arms: arms.len(),
            warmups: self.warmup as usize,
            runs: self.runs as usize,
        };
        let seed = self.seed.unwrap_or_else(random_seed);
        Ok(Experiment {
            schedule: schedule::lay_out(size, seed),
            out: make_out(&current_dir.join(&self.out))?,
            arms,
            size,
            seed,
            workspace,
            step_timeout: Duration::from_millis(self.timeout_ms),
            rss: match self.rss {
                RssChoice::All => RssReading::All,
                RssChoice::Untimed => RssReading::Untimed,
            },
        })
    }
}

fn arms(args: &RunArgs, current_dir: &Path, search_path: &OsStr) -> Result<Vec<Arm>, UsageError> {
    let commands = commands(args)?;
    let names: Vec<&str> = commands.iter().map(|(name, _)| name.as_str()).collect();
    let scenarios = choices("--scenario", &args.scenario, &names, |name| {
        Scenario::from_name(name)
    })
    .map_err(|wrong| wrong.with_known(&Scenario::ALL.map(Scenario::name)))?;
    let stops = choices("--stop-at", &args.stop_at, &names, StopAt::from_name)
        .map_err(|wrong| wrong.with_known(&StopAt::ALL.map(StopAt::name)))?;
    commands
        .iter()
        .map(|(name, words)| {
            let program = words.first().map_or(OsStr::new(""), OsString::as_os_str);
            let program = command::resolve_program(program, current_dir, search_path)
                .map_err(|error| UsageError::Command(name.clone(), error))?;
            Ok(Arm {
                name: name.clone(),
                program,
                words: words.clone(),
                scenario: chosen(&scenarios, name).unwrap_or(Scenario::Cold),
                stop_at: chosen(&stops, name).unwrap_or(StopAt::Session),
            })
        })
        .collect()
}

/// Name and words of every arm. A command after `--` is named by its program.
fn commands(args: &RunArgs) -> Result<Vec<(String, Vec<OsString>)>, UsageError> {
    if let Some(program) = args.command.first() {
        let name = Path::new(program).file_name().unwrap_or(program);
        let name = name.to_string_lossy().into_owned();
        return Ok(vec![(name, args.command.clone())]);
    }
    if args.arm.is_empty() {
        return Err(UsageError::NoCommand);
    }
    let mut commands: Vec<(String, Vec<OsString>)> = Vec::new();
    for text in &args.arm {
        let (name, command) = text
            .split_once('=')
            .ok_or_else(|| UsageError::Arm(text.clone()))?;
        if !is_arm_name(name) {
            return Err(UsageError::ArmName(name.to_owned()));
        }
        if commands.iter().any(|(known, _)| known == name) {
            return Err(UsageError::DuplicateArm(name.to_owned()));
        }
        let words = command::split_words(command)
            .map_err(|error| UsageError::Command(name.to_owned(), error))?;
        commands.push((name.to_owned(), words));
    }
    Ok(commands)
}

fn is_arm_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=48).contains(&name.len()) && name.bytes().all(allowed)
}

/// A choice that could not be read.
struct WrongChoice {
    option: &'static str,
    value: String,
    unknown_arm: bool,
}

impl WrongChoice {
    fn with_known(self, known: &[&str]) -> UsageError {
        let Self { option, value, .. } = self;
        if self.unknown_arm {
            return UsageError::UnknownArm { option, value };
        }
        UsageError::UnknownChoice {
            option,
            value,
            known: known.join(", "),
        }
    }
}

/// Reads `[ARM=]CHOICE` options; the key without an arm is `None`. What stands
/// before the first `=` is an arm if there is one of that name. The last choice
/// for an arm wins.
fn choices<T>(
    option: &'static str,
    values: &[String],
    arms: &[&str],
    read: impl Fn(&str) -> Option<T>,
) -> Result<BTreeMap<Option<String>, T>, WrongChoice> {
    let mut choices = BTreeMap::new();
    for value in values {
        let wrong = |unknown_arm| WrongChoice {
            option,
            value: value.clone(),
            unknown_arm,
        };
        let (arm, choice) = match value.split_once('=') {
            Some((arm, choice)) if arms.contains(&arm) => (Some(arm.to_owned()), choice),
            Some((_, choice)) if read(choice).is_some() => return Err(wrong(true)),
            _ => (None, value.as_str()),
        };
        choices.insert(arm, read(choice).ok_or_else(|| wrong(false))?);
    }
    Ok(choices)
}

fn chosen<T: Copy>(choices: &BTreeMap<Option<String>, T>, arm: &str) -> Option<T> {
    choices
        .get(&Some(arm.to_owned()))
        .or_else(|| choices.get(&None))
        .copied()
}

fn absolute_dir(path: &Path) -> io::Result<PathBuf> {
    let path = path.canonicalize()?;
    if path.is_dir() {
        Ok(path)
    } else {
        Err(io::ErrorKind::NotADirectory.into())
    }
}

/// Makes the directory, or takes an empty one; absolute.
fn make_out(path: &Path) -> Result<PathBuf, UsageError> {
    let refused = |error| UsageError::Out(path.to_owned(), error);
    make_private_dir(path).map_err(refused)?;
    if std::fs::read_dir(path).map_err(refused)?.next().is_some() {
        return Err(UsageError::OutNotEmpty(path.to_owned()));
    }
    path.canonicalize().map_err(refused)
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
mod tests;
