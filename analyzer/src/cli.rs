//! The command line: what can be said, and nothing about what it does.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::chrome::select::{Choice, Wanted};
use crate::report::render::Format;
use crate::retime::change::Change;
use crate::stats::quantile::Definition;

/// Subcommands of other versions; as names of files they are written `./check`.
pub const RESERVED: [&str; 2] = ["explain", "trend"];

/// Says where cold-start time goes.
///
/// Reads traces of cold starts, joins them into runs, cuts each run's windows exactly into stages,
/// and reports medians, tails, shares, variance and correlation with what the client saw.
#[derive(Debug, Parser)]
#[command(name = "analyze", version, after_help = AFTER_HELP)]
pub struct Args {
    /// Trace files, folders (*.json, *.jsonl, *.gz, *.zst in them), quoted globs, or `-` for standard input.
    ///
    /// Content decides what a file is, never its name: OTLP JSON lines or documents, span dumps of
    /// the OpenTelemetry JavaScript SDK, Jaeger API JSON, Chrome trace JSON, phase profiles, client
    /// records; plain, gzip or zstd.
    #[arg(required = true, value_name = "FILES")]
    pub files: Vec<PathBuf>,

    /// How the report is drawn.
    #[arg(long, value_enum, default_value = "table", value_name = "FORMAT")]
    pub format: FormatArg,

    /// File to write the report to instead of standard output; written whole or not at all, and never one of the inputs.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// What the spans mean: `coldpath`, `qwen`, `generic`, or a model file; default: the one that knows most of the spans.
    #[arg(long, value_name = "NAME|FILE")]
    pub model: Option<String>,

    /// Exit with 3 when the input has problems or a traced run is incomplete.
    #[arg(long)]
    pub strict: bool,

    /// Definition of quantiles.
    #[arg(long, value_enum, default_value = "type7", value_name = "DEFINITION")]
    pub quantile: QuantileArg,

    /// Predict the totals if a stage took another time: `channel.spawn=-50%`, `=-10ms`, `=+10ms`, `=0`; several are made together.
    ///
    /// STAGE is a stage's name, `WINDOW:STAGE`, a window, or the name of a span. A stage's work changes; what it
    /// only waits for does not.
    #[arg(
        long = "what-if",
        value_name = "STAGE=CHANGE",
        allow_hyphen_values = true
    )]
    pub what_if: Vec<Change>,

    /// Show how much each stage adds to the session's end (drag) and may grow without moving it (slack).
    #[arg(long)]
    pub drag: bool,
}

/// `analyze check --model NAME|FILE FILES…`.
#[derive(Debug, Parser)]
#[command(
    name = "analyze check",
    bin_name = "analyze check",
    about = "Says which spans match which rule of a model, and which match none"
)]
pub struct CheckArgs {
    /// Trace files, folders, quoted globs, or `-` for standard input.
    #[arg(required = true, value_name = "FILES")]
    pub files: Vec<PathBuf>,

    /// The model: a built-in one or a file.
    #[arg(long, value_name = "NAME|FILE")]
    pub model: String,

    /// Exit with 3 when a rule never matches or a span matches no rule.
    #[arg(long)]
    pub strict: bool,
}

/// `analyze chrome FILES… --run RUN`.
#[derive(Debug, Parser)]
#[command(
    name = "analyze chrome",
    bin_name = "analyze chrome",
    about = "Writes a cold start as Chrome trace JSON, for Perfetto, chrome://tracing and speedscope"
)]
pub struct ChromeArgs {
    /// Trace files, folders, quoted globs, or `-` for standard input.
    #[arg(required = true, value_name = "FILES")]
    pub files: Vec<PathBuf>,

    /// Which run: its number in the report, from 1, or the complete run nearest to `p50`, `p95` or `max` of the latency; several are drawn side by side.
    #[arg(
        long = "run",
        value_name = "N|p50|p95|max",
        default_value = "p50",
        conflicts_with = "all"
    )]
    pub runs: Vec<Choice>,

    /// Every run that has spans, up to 32.
    #[arg(long)]
    pub all: bool,

    /// What the spans mean: `coldpath`, `qwen`, `generic`, or a model file; default: the one that knows most of the spans.
    #[arg(long, value_name = "NAME|FILE")]
    pub model: Option<String>,

    /// File to write the trace to instead of standard output; written whole or not at all, and never one of the inputs.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

impl ChromeArgs {
    /// Which runs are wanted.
    #[must_use]
    pub fn wanted(&self) -> Wanted {
        if self.all {
            Wanted::All
        } else {
            Wanted::These(self.runs.clone())
        }
    }
}

/// `analyze model show NAME`.
#[derive(Debug, Parser)]
#[command(
    name = "analyze model",
    bin_name = "analyze model",
    about = "Models: what the spans of one kind of daemon mean, as data"
)]
pub struct ModelArgs {
    /// What to do with it.
    #[command(subcommand)]
    pub verb: ModelVerb,
}

/// What can be done with a model.
#[derive(Debug, clap::Subcommand)]
pub enum ModelVerb {
    /// Prints a model, ready to be changed and given to `--model`.
    Show {
        /// `coldpath`, `qwen`, `generic`, or a file.
        name: String,
    },
}

const AFTER_HELP: &str = "\
Exit codes: 0 the report was written; 2 wrong usage or unreadable input; 3 nothing to judge: no runs,
or problems or incomplete chains under --strict; 4 internal error.

`analyze compare`, `gate`, `placebo` and `plan` compare two arms; each has its own --help.
`analyze model show NAME` prints a built-in model; `analyze check --model FILE FILES` says what its rules match;
`analyze chrome FILES` writes one cold start for a trace viewer.";

/// Values of `--format`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum FormatArg {
    /// Aligned text for a terminal
    Table,
    /// Markdown for a pull request
    Markdown,
    /// One JSON document; its key `schema` names its form
    Json,
    /// One self-contained page for a browser
    Html,
}

impl From<FormatArg> for Format {
    fn from(arg: FormatArg) -> Self {
        match arg {
            FormatArg::Table => Self::Table,
            FormatArg::Markdown => Self::Markdown,
            FormatArg::Json => Self::Json,
            FormatArg::Html => Self::Html,
        }
    }
}

/// Values of `--quantile`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum QuantileArg {
    /// Linear interpolation, as R and numpy do by default
    Type7,
    /// The smallest value with at least that part of the values at or below it
    NearestRank,
}

impl From<QuantileArg> for Definition {
    fn from(arg: QuantileArg) -> Self {
        match arg {
            QuantileArg::Type7 => Self::Type7,
            QuantileArg::NearestRank => Self::NearestRank,
        }
    }
}
