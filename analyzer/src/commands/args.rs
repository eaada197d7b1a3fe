//! What `compare`, `gate`, `placebo` and `plan` take on the command line.

use std::path::PathBuf;

use clap::{Args, Parser, ValueEnum};

use crate::cli::FormatArg;
use crate::compare::control::ControlRule;
use crate::compare::margin::Margin;
use crate::compare::pairing::PairBy;

/// The two arms and how their runs are paired.
#[derive(Debug, Args)]
pub(crate) struct Arms {
    /// Trace files and folders of one experiment with two arms; quoted globs, `-` for standard input.
    #[arg(value_name = "FILES")]
    pub(crate) files: Vec<PathBuf>,

    /// Files of the control, where the arms are two sets of files; repeatable.
    #[arg(
        long,
        value_name = "FILE",
        requires = "candidate_files",
        conflicts_with = "files"
    )]
    pub(crate) control_files: Vec<PathBuf>,

    /// Files of the candidate.
    #[arg(long, value_name = "FILE", requires = "control_files")]
    pub(crate) candidate_files: Vec<PathBuf>,

    /// Arm that is compared with; default: the one called control, else the first of the experiment.
    #[arg(long, value_name = "ARM")]
    pub(crate) control: Option<String>,

    /// Arm that is compared; default: the other one.
    #[arg(long, value_name = "ARM")]
    pub(crate) candidate: Option<String>,

    /// How runs find their partners; default: by the pairs that the traces name.
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) pair_by: Option<PairByArg>,

    /// What the spans mean: `coldpath`, `qwen`, `generic`, or a model file; default: the one that knows most of the spans.
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) model: Option<String>,
}

/// How and where a document is written.
#[derive(Debug, Args)]
pub(crate) struct Out {
    /// How it is drawn.
    #[arg(long, value_enum, default_value = "table", value_name = "FORMAT")]
    pub(crate) format: FormatArg,

    /// File to write to instead of standard output; written whole or not at all, and never one of the inputs.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Values of `--pair-by`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PairByArg {
    /// By the pair that the traces name
    Attribute,
    /// Neighbours in time, when they are of different arms
    StartTime,
}

impl From<PairByArg> for PairBy {
    fn from(arg: PairByArg) -> Self {
        match arg {
            PairByArg::Attribute => Self::Attribute,
            PairByArg::StartTime => Self::StartTime,
        }
    }
}

/// `analyze compare`.
#[derive(Debug, Parser)]
#[command(
    name = "analyze compare",
    bin_name = "analyze compare",
    about = "Says what changed between two arms, with intervals, and what may not be said",
    after_help = "Exit codes: 0 compared; 2 wrong usage or unreadable input; 3 the runs must not or cannot be compared; 4 internal error."
)]
pub(crate) struct CompareArgs {
    /// The arms.
    #[command(flatten)]
    pub(crate) arms: Arms,

    /// Stage, window or metric that the change cannot touch, and how far it may seem to move: NAME=5ms; repeatable.
    #[arg(long, value_name = "NAME=MARGIN", value_parser = control_rule)]
    pub(crate) control_stage: Vec<ControlRule>,

    /// Where the comparison goes.
    #[command(flatten)]
    pub(crate) out: Out,
}

/// `analyze gate`.
#[derive(Debug, Parser)]
#[command(
    name = "analyze gate",
    bin_name = "analyze gate",
    about = "Says whether a comparison satisfies a policy: PASS, FAIL or INCONCLUSIVE",
    after_help = "Exit codes: 0 every gate passes; 1 a gate fails; 2 wrong usage, a bad policy or unreadable input;\n3 no gate fails and one cannot be judged, or the runs must not be compared; 4 internal error."
)]
pub(crate) struct GateArgs {
    /// The policy, TOML: schema = 1, then [[gate]] with name, metric, statistic, kind and margin.
    #[arg(value_name = "POLICY.toml")]
    pub(crate) policy: PathBuf,

    /// The arms.
    #[command(flatten)]
    pub(crate) arms: Arms,

    /// What `analyze placebo` wrote for this host and scenario; default: the policy's key `placebo`.
    #[arg(long, value_name = "FILE")]
    pub(crate) placebo: Option<PathBuf>,

    /// Where the verdicts go.
    #[command(flatten)]
    pub(crate) out: Out,
}

/// `analyze placebo`.
#[derive(Debug, Parser)]
#[command(
    name = "analyze placebo",
    bin_name = "analyze placebo",
    about = "Makes of identical arms (`measure aa`) what they differ by on this host, as JSON for gates",
    after_help = "Exit codes: 0 written; 2 wrong usage or unreadable input; 3 the arms are not the same or cannot be compared; 4 internal error."
)]
pub(crate) struct PlaceboArgs {
    /// The arms.
    #[command(flatten)]
    pub(crate) arms: Arms,

    /// File to write to instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// `analyze plan`.
#[derive(Debug, Parser)]
#[command(
    name = "analyze plan",
    bin_name = "analyze plan",
    about = "Says how many pairs and minutes it takes to see an effect, from the noise of a pilot",
    after_help = "Exit codes: 0 planned; 2 wrong usage or unreadable input; 3 the runs must not or cannot be compared; 4 internal error."
)]
pub(crate) struct PlanArgs {
    /// The arms of the pilot.
    #[command(flatten)]
    pub(crate) arms: Arms,

    /// The effect that is to be seen, such as 10ms or 5MiB.
    #[arg(long, value_name = "AMOUNT")]
    pub(crate) effect: Margin,

    /// Where the plan goes.
    #[command(flatten)]
    pub(crate) out: Out,
}

fn control_rule(text: &str) -> Result<ControlRule, String> {
    let (name, margin) = text
        .rsplit_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or("write NAME=MARGIN, such as boot.exec=2ms")?;
    let margin: Margin = margin
        .parse()
        .map_err(|error: crate::compare::margin::MarginError| error.to_string())?;
    Ok(ControlRule {
        name: name.to_owned(),
        margin,
    })
}
