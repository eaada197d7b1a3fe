//! Cold starts as experiments: runs a daemon from process start to its first
//! sessions, again and again, and leaves traces that can be trusted.
//!
//! [`cli`] says what is asked, [`experiment`] carries out a [`schedule`] that was
//! fixed beforehand, [`run`] makes one run by the steps of a [`driver`], [`host`]
//! reads what the kernel says about it, [`cleanup`] ends whatever is left, and
//! [`manifest`] records it all. No statistics here: those are `analyze`'s.

pub mod arm;
pub mod cleanup;
pub mod cli;
pub mod command;
pub mod driver;
pub mod exit;
pub mod experiment;
pub mod host;
pub mod interrupt;
pub mod manifest;
mod progress;
pub mod run;
pub mod schedule;
pub mod units;

use clap::Parser as _;
use cli::{Cli, Command, RunArgs};
use experiment::{Experiment, Outcome};
use std::ffi::OsString;
use std::io::{self, Write};

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
            return report(err, &error.render(), exit::USAGE);
        }
        Err(help) => write!(out, "{}", help.render()).map(|()| exit::OK),
        Ok(Cli {
            command: Command::Watchdog,
        }) => cleanup::watchdog::run(&mut io::stdin(), out),
        Ok(Cli {
            command: Command::Run(run),
        }) => run_command(run, &args, out, err),
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

fn run_command(
    run: RunArgs,
    args: &[OsString],
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let experiment = match run.into_experiment() {
        Ok(experiment) => experiment,
        Err(error) => return Ok(report(err, &format!("measure: {error}\n"), exit::USAGE)),
    };
    let command: Vec<String> = args
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    match experiment::carry_out(&experiment, &command) {
        Ok(outcome) => {
            let code = outcome.exit_code();
            summarize(&experiment, &outcome, out).map(|()| code)
        }
        Err(error) => Ok(report(err, &format!("measure: {error}\n"), exit::USAGE)),
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
    if let Some(caught) = outcome.interrupted {
        writeln!(out, "ended early by {}", caught.name)?;
    }
    if let Some(first) = &outcome.first_failure {
        let (index, arm, failure) = (first.index, &first.arm, &first.failure);
        let failure = plain(&failure.to_string());
        writeln!(out, "first failure: run {index} ({arm}): {failure}")?;
        for line in &first.last_words {
            writeln!(out, "  stderr: {}", plain(line))?;
        }
        writeln!(out, "hint: manifest.json has the output of failed runs")?;
    }
    writeln!(out, "hint: analyze {dir}/*.jsonl")
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
