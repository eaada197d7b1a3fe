//! What is typed: subcommands and options, with their help. No meaning here.

use crate::cleanup::watchdog;
use crate::draft::RUNS_MAX;
use crate::shim;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

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
    Watchdog {
        /// Where the id of the program is that is run.
        noted: PathBuf,
    },
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

    /// Hold a stage up, as in `agent.phase.settings_load=+5ms`; needs a program built with
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
