//! `cargo xtask bench page`: the page of a thousand and of twenty thousand cold
//! starts: what it takes to write it beside the other formats, how large it is,
//! and how long Chromium takes to open it.

use crate::cargo::{Build, build, program};
use crate::steps::{Outcome, output, root, say, target_dir};
use std::process::Command;

/// Runs the benchmark with `rounds` turns.
pub(crate) fn run(rounds: u32) -> Outcome {
    let tools = build(&Build {
        profile: "dist",
        packages: &["coldpath-analyzer"],
        ..Build::default()
    })?;
    let mut script = Command::new("python3");
    script
        .arg("-B")
        .arg(root().join("tests/browser/bench_report.py"));
    script.arg(program(&tools, "analyze")?);
    script.arg(target_dir().join("bench-page"));
    script.arg(rounds.to_string());
    say(&output(&mut script)?)
}
