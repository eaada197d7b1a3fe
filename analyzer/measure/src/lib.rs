//! Cold starts as experiments: runs a daemon from process start to its first
//! sessions, again and again, and leaves traces that can be trusted.
//!
//! [`cli`] and [`experiment_file`] say what is asked, [`draft`] checks it,
//! [`experiment`] carries out a [`schedule`] that was fixed beforehand, [`run`]
//! makes one run by the steps of a [`driver`], [`host`] reads what the kernel says
//! about it, [`cleanup`] ends whatever is left, and [`manifest`] records it all.
//! No statistics here: those are `analyze`'s.

pub mod arm;
pub mod claim;
pub mod cleanup;
pub mod cli;
pub mod command;
pub mod digest;
pub mod draft;
pub mod driver;
pub mod exit;
pub mod experiment;
pub mod experiment_file;
pub mod host;
pub mod injection;
pub mod interrupt;
pub mod journal;
pub mod manifest;
mod progress;
pub mod resume;
pub mod run;
pub mod scenario;
pub mod schedule;
pub mod shim;
pub mod suite;
pub mod target;
pub mod toml_file;
pub mod units;

use clap::Parser as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use cli::UsageError;
use cli::args::{Cli, Command};
use draft::{Draft, Surroundings};
use experiment::{Experiment, Kind, Outcome};
use std::ffi::OsString;
use std::io::{self, Write};
use suite::{Claim, Facts, Verdict};

/// Runs the program: parses `args` (the program's name first), writes its one
/// line of result to `out` and errors to `err`; gives the exit code. A reader of
/// `out` that went away is a success.
pub fn main_impl(
    args: impl IntoIterator<Item = OsString>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let args: Vec<OsString> = args.into_iter().collect();
    let written = match Cli::try_parse_from(&args) {
        Err(error) if error.use_stderr() => {
            let hint = if forgotten_dashes(&error) {
                "hint: the command stands behind `--`, as in `measure run --out DIR -- CMD`
"
            } else {
                ""
            };
            return report(err, &format!("{}{hint}", error.render()), exit::USAGE);
        }
        Err(help) => write!(out, "{}", help.render()).map(|()| exit::OK),
        Ok(cli) => match cli.command {
            Command::Watchdog { noted } => cleanup::watchdog::run(&noted, &mut io::stdin(), out),
            Command::Shim { command } => shim::run(&command),
            Command::Run(given) => carry_out(given.into_draft(), &args, out, err),
            Command::Pair(given) => carry_out(given.into_draft(), &args, out, err),
            Command::Aa(given) => carry_out(given.into_draft(), &args, out, err),
            Command::Suite(given) => carry_out(given.into_draft(), &args, out, err),
        },
    };
    match written {
        Ok(code) => code,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => exit::OK,
        Err(error) => report(
            err,
            &format!("measure: cannot write: {error}\n"),
            exit::USAGE,
        ),
    }
}

/// Whether a word stands where an option is expected: a command without its `--`.
fn forgotten_dashes(error: &clap::Error) -> bool {
    let word = error.get(ContextKind::InvalidArg);
    error.kind() == ErrorKind::UnknownArgument
        && matches!(word, Some(ContextValue::String(word)) if !word.starts_with('-'))
}

fn carry_out(
    draft: Result<Draft, UsageError>,
    args: &[OsString],
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let mut refuse =
        |error: &dyn std::fmt::Display| report(err, &format!("measure: {error}\n"), exit::USAGE);
    let draft = match draft {
        Ok(draft) => draft,
        Err(error) => return Ok(refuse(&error)),
    };
    let checked = Surroundings::of_process().and_then(|around| draft.check(&around));
    let experiment = match checked {
        Ok(experiment) => experiment,
        Err(error) => return Ok(refuse(&error)),
    };
    let command: Vec<String> = args
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let mut facts = Facts::default();
    let kills_before = suite::read_oom_kills();
    let carried_out = experiment::carry_out(&experiment, &command, &mut |slot, record| {
        if experiment.kind == Kind::Suite
            && let Some(arm) = experiment.arms.get(slot.arm)
        {
            facts.add(slot.index, arm, record, &experiment.out);
        }
    });
    match carried_out {
        Ok(outcome) if experiment.kind == Kind::Suite && outcome.interrupted.is_none() => {
            let kills = suite::read_oom_kills().zip(kills_before);
            let kills = kills.map(|(after, before)| after.saturating_sub(before));
            let claims = facts.judge(kills);
            let written =
                summarize(&experiment, &outcome, out).and_then(|()| suite::write(&claims, out));
            or_gone(written, code_of(&claims))
        }
        Ok(outcome) => {
            let code = outcome.exit_code();
            or_gone(summarize(&experiment, &outcome, out), code)
        }
        Err(error) => Ok(refuse(&error)),
    }
}

/// The exit code of an experiment whose result was written, or had no reader: what
/// became of it is true without one.
fn or_gone(written: io::Result<()>, code: u8) -> io::Result<u8> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(code),
    }
}

/// The exit code of judged claims.
fn code_of(claims: &[Claim]) -> u8 {
    let any = |verdict| claims.iter().any(|claim| claim.verdict == verdict);
    if any(Verdict::Fail) {
        exit::RUN_FAILED
    } else if any(Verdict::Pass) {
        exit::OK
    } else {
        exit::NOT_MEASURED
    }
}

fn summarize(experiment: &Experiment, outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    let dir = experiment.out.display();
    let Outcome {
        succeeded, planned, ..
    } = outcome;
    writeln!(
        out,
        "{succeeded} of {planned} runs succeeded; traces in {dir}"
    )?;
    if outcome.earlier > 0 {
        let (earlier, all) = (outcome.earlier, experiment.schedule.len());
        writeln!(out, "resumed: {earlier} of {all} runs were made before")?;
    }
    if let Some(caught) = outcome.interrupted {
        writeln!(out, "ended early by {}", caught.name)?;
        writeln!(out, "hint: the same command with --resume makes the rest")?;
    }
    if let Some(first) = &outcome.first_failure {
        let (index, arm) = (first.index, &first.arm);
        let failure = plain(&first.failure);
        writeln!(out, "first failure: run {index} ({arm}): {failure}")?;
        for line in &first.last_words {
            writeln!(out, "  stderr: {}", plain(line))?;
        }
        writeln!(out, "hint: manifest.json has the output of failed runs")?;
    }
    let verb = match experiment.kind {
        Kind::Run | Kind::Suite => "analyze",
        Kind::Pair => "analyze compare",
        Kind::Aa => "analyze placebo -o placebo.json",
    };
    writeln!(out, "hint: {verb} {dir}")
}

/// Text of a program without control characters: it must not write to the terminal.
fn plain(text: &str) -> String {
    let replace = |c: char| {
        if c.is_control() && c != '\t' {
            char::REPLACEMENT_CHARACTER
        } else {
            c
        }
    };
    text.chars().map(replace).collect()
}

/// Writes an error; where that fails too, the exit code still says it.
fn report(err: &mut dyn Write, message: &dyn std::fmt::Display, code: u8) -> u8 {
    let _ = write!(err, "{message}");
    code
}
