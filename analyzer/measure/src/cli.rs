//! The command line: what was typed, and the draft of an experiment it means.

use crate::arm::{Sampling, StopAt};
use crate::cleanup::watchdog;
use crate::command::{self, CommandError};
use crate::draft::{ArmDraft, Draft, RUNS_MAX, SetDraft, Sitting};
use crate::experiment::Kind;
use crate::experiment_file;
use crate::host::page_cache::PageCache;
use crate::injection::{BadInjection, Injection};
use crate::run::RssReading;
use crate::scenario::Scenario;
use crate::shim;
use crate::suite;
use crate::toml_file::FileError;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest step: an hour.
const STEP_TIMEOUT_MAX_MS: u64 = 3_600_000;
/// Bound of each step where nobody says another.
const STEP_TIMEOUT_MS: u64 = 30_000;
/// Names of the arms of a pair.
const PAIR: [&str; 2] = ["control", "candidate"];

/// Runs cold starts as experiments, of this or any other daemon.
#[derive(Debug, Parser)]
#[command(name = "measure", version, about, after_help = EXIT_CODES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 every measured run succeeded; 1 a run or a claim failed; 2 usage; \
3 nothing was measured; 4 internal error; 128 + N ended by signal N";

/// Subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run one or several commands from process start to their first sessions
    Run(RunArgs),
    /// Run two commands in balanced pairs: what `analyze compare` and `gate` read
    Pair(PairArgs),
    /// Run one command as both arms of a pair: this host's placebo effect
    Aa(AaArgs),
    /// Run every scenario and judge the functional claims, one row each
    Suite(SuiteArgs),
    /// Stand between a client and an ACP agent and make the delays of `--inject`
    #[command(name = shim::SUBCOMMAND)]
    Shim {
        /// The agent's command, after `--`
        #[arg(last = true, required = true, value_name = "AGENT")]
        command: Vec<OsString>,
    },
    /// Ends what a killed `measure` leaves behind; started by `measure` itself
    #[command(name = watchdog::SUBCOMMAND, hide = true)]
    Watchdog,
}

/// `measure run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Measured runs of each arm
    #[arg(long, default_value_t = 30, value_name = "N", conflicts_with = "experiment",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(RUNS_MAX)))]
    pub runs: u32,

    /// Runs of each arm that are made first, marked, and out of every statistic
    #[arg(long, default_value_t = 1, value_name = "N", conflicts_with = "experiment",
          value_parser = clap::value_parser!(u32).range(0..=i64::from(RUNS_MAX)))]
    pub warmup: u32,

    /// A command to run, in POSIX quoting, without a shell; may be given several
    /// times, for one schedule over all. `{workspace}`, `{port}`, `{traces}` (the
    /// run's trace directory) and `{shim}` are replaced
    #[arg(long, value_name = "NAME=CMD", conflicts_with_all = ["command", "experiment"])]
    pub arm: Vec<String>,

    /// Sets of arms, counts, scenarios and delays from a TOML file
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub experiment: Option<PathBuf>,

    /// Value of a name that the experiment file defines
    #[arg(long, value_name = "NAME=VALUE", requires = "experiment")]
    pub define: Vec<String>,

    /// What holds for every experiment.
    #[command(flatten)]
    pub shared: SharedArgs,

    /// Choices for all arms or for one.
    #[command(flatten)]
    pub choices: ChoiceArgs,

    /// The command of a single arm, after `--`
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// `measure pair`.
#[derive(Debug, Args)]
pub struct PairArgs {
    /// Measured pairs
    #[arg(long, default_value_t = 60, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(RUNS_MAX)))]
    pub pairs: u32,

    /// Pairs that are made first, marked, and out of every statistic
    #[arg(long, default_value_t = 1, value_name = "N",
          value_parser = clap::value_parser!(u32).range(0..=i64::from(RUNS_MAX)))]
    pub warmup: u32,

    /// The command that is compared with, in POSIX quoting
    #[arg(long, value_name = "CMD")]
    pub control: String,

    /// The command that is compared, in POSIX quoting
    #[arg(long, value_name = "CMD")]
    pub candidate: String,

    /// What holds for every experiment.
    #[command(flatten)]
    pub shared: SharedArgs,

    /// Choices for both arms or for one. `--inject` is the candidate's where no arm
    /// is named.
    #[command(flatten)]
    pub choices: ChoiceArgs,
}

/// `measure aa`.
#[derive(Debug, Args)]
pub struct AaArgs {
    /// Measured pairs
    #[arg(long, default_value_t = 60, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(RUNS_MAX)))]
    pub pairs: u32,

    /// Pairs that are made first, marked, and out of every statistic
    #[arg(long, default_value_t = 1, value_name = "N",
          value_parser = clap::value_parser!(u32).range(0..=i64::from(RUNS_MAX)))]
    pub warmup: u32,

    /// What both arms do
    #[arg(long, value_name = "NAME[=VALUE]", default_value = "cold")]
    pub scenario: String,

    /// How both are driven: a built-in driver's name, or a file
    #[arg(long, value_name = "NAME|FILE", default_value = "http")]
    pub driver: String,

    /// What holds for every experiment.
    #[command(flatten)]
    pub shared: SharedArgs,

    /// The command, after `--`
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// `measure suite`.
#[derive(Debug, Args)]
pub struct SuiteArgs {
    /// Runs of each scenario
    #[arg(long, default_value_t = 3, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(RUNS_MAX)))]
    pub runs: u32,

    /// How it is driven: a built-in driver's name, or a file
    #[arg(long, value_name = "NAME|FILE", default_value = "http")]
    pub driver: String,

    /// What holds for every experiment.
    #[command(flatten)]
    pub shared: SharedArgs,

    /// The command, after `--`
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// What holds for every experiment.
#[derive(Debug, Args)]
pub struct SharedArgs {
    /// Directory for traces and manifest.json; missing or empty
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,

    /// Go on with the experiment in `--out`: the runs that were made stay, the rest
    /// of the same schedule is made
    #[arg(long)]
    pub resume: bool,

    /// Number that fixes the order of runs; random when absent, and recorded
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Workspace of the sessions, also `{workspace}` in a command; the current
    /// directory when absent
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,

    /// Bound of each step of a run, milliseconds; 30000 when absent
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=STEP_TIMEOUT_MAX_MS))]
    pub timeout_ms: Option<u64>,

    /// Which memory readings to make; `all` when absent
    #[arg(long, value_enum, value_name = "WHICH")]
    pub rss: Option<RssChoice>,

    /// What is done to the target's own files before each run; `as-is` when absent
    #[arg(long, value_enum, value_name = "WHAT")]
    pub page_cache: Option<CacheChoice>,
}

/// Choices for all arms or, with `ARM=`, for one.
#[derive(Debug, Args)]
pub struct ChoiceArgs {
    /// What a run does: `cold`, `preheated=3s`, `concurrent=2`, `default-single`,
    /// `no-telemetry`, `delay=250`, `early-preheat=250`, `await-preheat`,
    /// `direct-after-bootstrap`; with `ARM=` for one arm
    #[arg(long, value_name = "[ARM=]NAME[=VALUE]")]
    pub scenario: Vec<String>,

    /// Stop the program after this step: `ready`, `health` or `session` (the
    /// default); with `ARM=` for one arm
    #[arg(long, value_name = "[ARM=]STEP")]
    pub stop_at: Vec<String>,

    /// How a program is driven: `http` (the default), `acp-stdio`, `command`, or a
    /// file; with `ARM=` for one arm
    #[arg(long, value_name = "[ARM=]NAME|FILE")]
    pub driver: Vec<String>,

    /// Hold a stage up, as in `agent.phase.settings=+5ms`; needs a program built with
    /// feature `fault-points`, or `{shim}`; with `ARM=` for one arm
    #[arg(long, value_name = "[ARM=]STAGE=+DELAY")]
    pub inject: Vec<String>,

    /// Sample the memory of the process tree at this interval, or `off`; `50ms` when
    /// absent; with `ARM=` for one arm
    #[arg(long, value_name = "[ARM=]off|INTERVAL")]
    pub sampler: Vec<String>,
}

/// `--rss`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RssChoice {
    /// All; the listener's is read between the ready line and `/health`
    All,
    /// None between the spawn and the first session but those of `--sampler`
    Untimed,
}

/// `--page-cache`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CacheChoice {
    /// Nothing
    AsIs,
    /// They are evicted from the page cache
    EvictTarget,
}

/// Why arguments make no experiment.
#[derive(Debug, thiserror::Error)]
pub enum UsageError {
    /// No command.
    #[error("nothing to run\nhint: give a command after `--`, or one or more `--arm NAME=CMD`")]
    NoCommand,
    /// `--arm` or `--define` without a name.
    #[error("`{0} {1}` is not NAME={2}")]
    NotNamed(&'static str, String, &'static str),
    /// A command that cannot be split.
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
    #[error("`{option} {value}` is not known\nhint: {known}")]
    UnknownChoice {
        /// The option.
        option: &'static str,
        /// Its value.
        value: String,
        /// What there is.
        known: String,
    },
    /// A delay that is none.
    #[error("--inject: {0}")]
    Injection(#[from] BadInjection),
    /// Choices beside an experiment file.
    #[error("`{0}` does not go with --experiment\nhint: the file says it for each arm")]
    BesideFile(&'static str),
    /// The experiment file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The campaign cannot be taken up again.
    #[error("`suite` cannot be resumed: its claims are judged by the runs of one sitting")]
    SuiteResumed,
}

impl RunArgs {
    /// What it asks for.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn into_draft(self) -> Result<Draft, UsageError> {
        if let Some(path) = &self.experiment {
            self.choices.refuse_beside_file()?;
            let defines = defines(&self.define)?;
            let file = experiment_file::load(path, &defines)?;
            let mut draft = self.shared.into_draft(Kind::Run, file.sets);
            draft.file_settings(
                file.seed,
                file.workspace,
                file.step_timeout,
                file.rss,
                file.page_cache,
            );
            return Ok(draft);
        }
        let mut arms = arms(self.command, &self.arm)?;
        self.choices.apply(&mut arms, None)?;
        let set = SetDraft {
            name: String::new(),
            runs: self.runs,
            warmup: self.warmup,
            arms,
        };
        Ok(self.shared.into_draft(Kind::Run, vec![set]))
    }
}

impl Draft {
    /// Takes what a file says where the command line said nothing. The draft holds
    /// the usual values there.
    fn file_settings(
        &mut self,
        seed: Option<u64>,
        workspace: Option<PathBuf>,
        step_timeout: Option<Duration>,
        rss: Option<RssReading>,
        page_cache: Option<PageCache>,
    ) {
        self.seed = self.seed.or(seed);
        self.workspace = self.workspace.take().or(workspace);
        if self.step_timeout == Duration::from_millis(STEP_TIMEOUT_MS) {
            self.step_timeout = step_timeout.unwrap_or(self.step_timeout);
        }
        if self.rss == RssReading::All {
            self.rss = rss.unwrap_or(self.rss);
        }
        if self.page_cache == PageCache::AsIs {
            self.page_cache = page_cache.unwrap_or(self.page_cache);
        }
    }
}

impl PairArgs {
    /// What it asks for.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn into_draft(self) -> Result<Draft, UsageError> {
        let [control, candidate] = PAIR;
        let mut arms = vec![
            arm(control, &self.control)?,
            arm(candidate, &self.candidate)?,
        ];
        self.choices.apply(&mut arms, Some(candidate))?;
        let set = SetDraft {
            name: String::new(),
            runs: self.pairs,
            warmup: self.warmup,
            arms,
        };
        Ok(self.shared.into_draft(Kind::Pair, vec![set]))
    }
}

impl AaArgs {
    /// What it asks for.
    ///
    /// # Errors
    /// The scenario is none.
    pub fn into_draft(self) -> Result<Draft, UsageError> {
        let scenario = scenario(&self.scenario);
        let arms = PAIR.map(|name| ArmDraft {
            scenario: scenario.clone(),
            driver: self.driver.clone(),
            ..ArmDraft::new(name.to_owned(), self.command.clone())
        });
        let set = SetDraft {
            name: String::new(),
            runs: self.pairs,
            warmup: self.warmup,
            arms: arms.to_vec(),
        };
        Ok(self.shared.into_draft(Kind::Aa, vec![set]))
    }
}

impl SuiteArgs {
    /// What it asks for: every scenario of the campaign in one interleaved schedule.
    ///
    /// # Errors
    /// It was to be resumed.
    pub fn into_draft(self) -> Result<Draft, UsageError> {
        if self.shared.resume {
            return Err(UsageError::SuiteResumed);
        }
        let arms = suite::SCENARIOS.map(|text| ArmDraft {
            scenario: scenario(text),
            driver: self.driver.clone(),
            ..ArmDraft::new(text.replace('=', "-"), self.command.clone())
        });
        let set = SetDraft {
            name: String::new(),
            runs: self.runs,
            warmup: 0,
            arms: arms.to_vec(),
        };
        Ok(self.shared.into_draft(Kind::Suite, vec![set]))
    }
}

impl SharedArgs {
    fn into_draft(self, kind: Kind, sets: Vec<SetDraft>) -> Draft {
        Draft {
            kind,
            sets,
            out: self.out,
            sitting: if self.resume {
                Sitting::Resumed
            } else {
                Sitting::First
            },
            seed: self.seed,
            workspace: self.workspace,
            step_timeout: Duration::from_millis(self.timeout_ms.unwrap_or(STEP_TIMEOUT_MS)),
            rss: match self.rss {
                Some(RssChoice::All) | None => RssReading::All,
                Some(RssChoice::Untimed) => RssReading::Untimed,
            },
            page_cache: match self.page_cache {
                Some(CacheChoice::AsIs) | None => PageCache::AsIs,
                Some(CacheChoice::EvictTarget) => PageCache::EvictTarget,
            },
        }
    }
}

impl ChoiceArgs {
    /// Gives the arms what was chosen for them. An injection that names no arm is
    /// for `injected`, or for all where that is `None`.
    fn apply(&self, arms: &mut [ArmDraft], injected: Option<&str>) -> Result<(), UsageError> {
        let names: Vec<String> = arms.iter().map(|arm| arm.name.clone()).collect();
        for (arm, text) in addressed(&self.scenario, &names) {
            let chosen = scenario(text);
            each(arms, arm, |draft| draft.scenario.clone_from(&chosen));
        }
        for (arm, text) in addressed(&self.driver, &names) {
            each(arms, arm, |draft| text.clone_into(&mut draft.driver));
        }
        for (arm, text) in addressed(&self.stop_at, &names) {
            let known = StopAt::ALL.map(StopAt::name).join(", ");
            let chosen = choice(
                "--stop-at",
                text,
                StopAt::from_name,
                &format!("one of {known}"),
            )?;
            each(arms, arm, |draft| draft.stop_at = chosen);
        }
        for (arm, text) in addressed(&self.sampler, &names) {
            let known = "`off`, or a duration from 1ms";
            let chosen = choice("--sampler", text, Sampling::parse, known)?;
            each(arms, arm, |draft| draft.sampling = chosen);
        }
        for (arm, text) in addressed(&self.inject, &names) {
            let one: Injection = text.parse()?;
            each(arms, arm.or(injected), |draft| {
                draft.injections.push(one.clone());
            });
        }
        Ok(())
    }

    fn refuse_beside_file(&self) -> Result<(), UsageError> {
        for (option, values) in [
            ("--scenario", &self.scenario),
            ("--stop-at", &self.stop_at),
            ("--driver", &self.driver),
            ("--inject", &self.inject),
            ("--sampler", &self.sampler),
        ] {
            if !values.is_empty() {
                return Err(UsageError::BesideFile(option));
            }
        }
        Ok(())
    }
}

/// Splits `[ARM=]CHOICE` options: what stands before the first `=` is an arm if
/// there is one of that name. The last choice for an arm wins.
fn addressed<'t>(
    values: &'t [String],
    arms: &'t [String],
) -> impl Iterator<Item = (Option<&'t str>, &'t str)> {
    let split = |value: &'t String| match value.split_once('=') {
        Some((arm, choice)) if arms.iter().any(|known| known == arm) => (Some(arm), choice),
        _ => (None, value.as_str()),
    };
    // Those for all come first, so that those for one arm have the last word.
    let (all, one): (Vec<_>, Vec<_>) = values.iter().map(split).partition(|(arm, _)| arm.is_none());
    all.into_iter().chain(one)
}

fn each(arms: &mut [ArmDraft], arm: Option<&str>, mut change: impl FnMut(&mut ArmDraft)) {
    let concerned = |draft: &&mut ArmDraft| arm.is_none_or(|arm| draft.name == arm);
    arms.iter_mut().filter(concerned).for_each(&mut change);
}

fn choice<T>(
    option: &'static str,
    text: &str,
    read: impl Fn(&str) -> Option<T>,
    known: &str,
) -> Result<T, UsageError> {
    let value = text.to_owned();
    match (read(text), text.split_once('=')) {
        (Some(chosen), _) => Ok(chosen),
        (None, Some((_, rest))) if read(rest).is_some() => {
            Err(UsageError::UnknownArm { option, value })
        }
        (None, _) => Err(UsageError::UnknownChoice {
            option,
            value,
            known: known.to_owned(),
        }),
    }
}

fn scenario(text: &str) -> Scenario {
    text.parse().unwrap_or_else(|never| match never {})
}

/// The arms of a run. A command after `--` is named by its program.
fn arms(command: Vec<OsString>, given: &[String]) -> Result<Vec<ArmDraft>, UsageError> {
    if let Some(program) = command.first() {
        let name = Path::new(program).file_name().unwrap_or(program);
        let name = name.to_string_lossy().into_owned();
        return Ok(vec![ArmDraft::new(name, command)]);
    }
    if given.is_empty() {
        return Err(UsageError::NoCommand);
    }
    let named = |text: &String| match text.split_once('=') {
        Some((name, command)) => arm(name, command),
        None => Err(UsageError::NotNamed("--arm", text.clone(), "CMD")),
    };
    given.iter().map(named).collect()
}

fn arm(name: &str, command: &str) -> Result<ArmDraft, UsageError> {
    let words = command::split_words(command)
        .map_err(|error| UsageError::Command(name.to_owned(), error))?;
    Ok(ArmDraft::new(name.to_owned(), words))
}

fn defines(values: &[String]) -> Result<BTreeMap<String, String>, UsageError> {
    let pair = |text: &String| match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(UsageError::NotNamed("--define", text.clone(), "VALUE")),
    };
    values.iter().map(pair).collect()
}

#[cfg(test)]
mod tests;
