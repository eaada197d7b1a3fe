//! The command line: what can be said, and nothing about what it does.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Proves from the release binary what is not on a program's start path.
///
/// A policy names start paths of programs and what must not be on them. `guard build`
/// makes one build with everything that is needed; `guard check` judges it.
#[derive(Debug, Parser)]
#[command(name = "guard", version, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

const AFTER_HELP: &str = "Exit codes: 0 nothing denied was found, 1 the policy is violated, \
2 usage, policy or input, 3 cannot judge, 4 internal.";

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Build the programs of the policy, with everything that the layers need.
    Build(BuildArgs),
    /// Hold the policy against the builds.
    Check(CheckArgs),
    /// Say on which layers a crate or a function is there, and how it is reached.
    Explain(ExplainArgs),
    /// List the packages of a program with their bytes.
    Closure(ClosureArgs),
}

/// Where a policy is looked for, from the current folder.
pub(crate) const POLICY_DEFAULT: &str = "guards/policy.toml";
/// Where builds are left and looked for, from the current folder.
pub(crate) const EVIDENCE_DEFAULT: &str = "target/guard";

/// Where policy and builds are.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// The policy.
    #[arg(long, value_name = "FILE", default_value = POLICY_DEFAULT)]
    pub(crate) policy: PathBuf,
    /// Folder of the builds.
    #[arg(long, value_name = "DIR", default_value = EVIDENCE_DEFAULT)]
    pub(crate) evidence: PathBuf,
    /// Only this path of the policy; may be repeated.
    #[arg(long = "path", value_name = "NAME")]
    pub(crate) paths: Vec<String>,
}

/// Arguments of `guard build`.
#[derive(Debug, Args)]
pub(crate) struct BuildArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Manifest of the workspace; default: cargo's search from here.
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest_path: Option<PathBuf>,
    /// Cargo's target folder; default: cargo's own.
    #[arg(long, value_name = "DIR")]
    pub(crate) target_dir: Option<PathBuf>,
}

/// Arguments of `guard check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// How the report is written.
    #[arg(long, value_enum, default_value = "human", value_name = "FORMAT")]
    pub(crate) format: Format,
    /// Write every route to a denied package, not one shortest; at most fifty.
    #[arg(long)]
    pub(crate) all_paths: bool,
    /// Where references of code come from.
    #[arg(long, value_enum, default_value = "decode", value_name = "SOURCE")]
    pub(crate) graph_from: GraphFrom,
    /// The day on which lazy edges are looked at; default: today in UTC.
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub(crate) date: Option<String>,
}

/// Arguments of `guard explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Package or library name, pattern with `*`, path of a function, or code of a finding.
    #[arg(value_name = "CRATE|SYMBOL")]
    pub(crate) what: String,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Arguments of `guard closure`.
#[derive(Debug, Args)]
pub(crate) struct ClosureArgs {
    #[command(flatten)]
    pub(crate) common: Common,
}

/// How a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Human,
    /// `coldpath.guard/1`.
    Json,
}

/// Where references of code come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFrom {
    /// Decode the instructions.
    Decode,
    /// Relocations of a program that was linked with `-Wl,--emit-relocs`.
    Relocations,
}
