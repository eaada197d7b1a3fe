//! `cargo xtask fuzz`: the fuzz targets of `tests/fuzz` in turn, an equal part of
//! the time each. New inputs go into the corpus, which the stable tests replay.

use crate::cargo::cargo;
use crate::steps::{Outcome, root, say, target_dir};
use crate::tools::{Tool, installed};
use std::path::PathBuf;

/// One target and how it is run.
struct Target {
    name: &'static str,
    /// Longest input in bytes.
    bytes_max: u32,
    /// Folder of inputs to begin with, below the root, where it is not `corpus/NAME`
    /// of the fuzz workspace. What is found is kept beside it only by hand.
    seeds: Option<&'static str>,
}

impl Target {
    /// A reader of traces. Documents are built from the bytes, so longer ones say nothing new.
    const fn of_analyzer(name: &'static str) -> Self {
        Self {
            name,
            bytes_max: 4096,
            seeds: None,
        }
    }

    /// A reader of the guard; its corpus stands beside its other fixtures.
    const fn of_guard(name: &'static str, bytes_max: u32, seeds: &'static str) -> Self {
        Self {
            name,
            bytes_max,
            seeds: Some(seeds),
        }
    }
}

/// The targets: one for each family of traces, the splitter, and models; and what the
/// guard reads.
const TARGETS: [Target; 11] = [
    Target::of_analyzer("otlp"),
    Target::of_analyzer("js_sdk"),
    Target::of_analyzer("records"),
    Target::of_analyzer("jaeger"),
    Target::of_analyzer("chrome"),
    Target::of_analyzer("stream"),
    Target::of_analyzer("model"),
    // A whole program with symbols, unwind tables and relocations fits three times.
    Target::of_guard("guard_object", 20_000, "fixtures/guards/corpus/object"),
    Target::of_guard("guard_policy", 4096, "fixtures/guards/corpus/policy"),
    Target::of_guard("guard_artifacts", 4096, "fixtures/guards/corpus/artifacts"),
    Target::of_guard("guard_names", 4096, "fixtures/guards/corpus/names"),
];
/// Minutes in all, unless said otherwise.
const MINUTES: u32 = 20;
/// The driver of the targets.
const CARGO_FUZZ: Tool = Tool {
    package: "cargo-fuzz",
    version: "0.13.2",
};

/// Runs `fuzz [--minutes N] [TARGET…]`.
pub(crate) fn run(options: &[&str]) -> Outcome {
    let (minutes, names) = match options {
        ["--minutes", number, names @ ..] => match number.parse() {
            Ok(minutes @ 1..) => (minutes, names),
            _ => {
                return Err(format!(
                    "--minutes takes a whole number from 1, not `{number}`"
                ));
            }
        },
        names => (MINUTES, names),
    };
    let is_known = |name: &&&str| TARGETS.iter().any(|target| target.name == **name);
    if let Some(name) = names.iter().find(|name| !is_known(name)) {
        let known: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        return Err(format!(
            "`{name}` is neither --minutes N nor a fuzz target; there are {}",
            known.join(", ")
        ));
    }
    let is_chosen = |target: &&Target| names.is_empty() || names.contains(&target.name);
    let chosen: Vec<&Target> = TARGETS.iter().filter(is_chosen).collect();
    let driver = installed(CARGO_FUZZ)?;
    let seconds = u64::from(minutes) * 60 / chosen.len() as u64;
    for target in chosen {
        run_target(&driver, target, seconds)?;
    }
    Ok(())
}

fn run_target(driver: &PathBuf, target: &Target, seconds: u64) -> Outcome {
    let name = target.name;
    say(&format!("fuzz {name}: {seconds} s\n"))?;
    let mut command = std::process::Command::new(driver);
    command.args(["fuzz", "run", "--fuzz-dir", ".", name]);
    if let Some(seeds) = target.seeds {
        // New inputs go into the first folder.
        let found = target_dir().join("fuzz-corpus").join(name);
        std::fs::create_dir_all(&found)
            .map_err(|error| format!("cannot make {}: {error}", found.display()))?;
        command.arg(found).arg(root().join(seeds));
    }
    let status = command
        .arg("--")
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-max_len={}", target.bytes_max))
        .args(["-timeout=20", "-rss_limit_mb=2048"])
        .current_dir(root().join("tests/fuzz"))
        .env("CARGO", cargo().get_program())
        // The sanitizers are unstable options of the compiler.
        .env("RUSTC_BOOTSTRAP", "1")
        .status()
        .map_err(|error| format!("cannot run cargo-fuzz: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!(
            "fuzz target {name} failed: {status}\nhint: what broke it lies in tests/fuzz/artifacts/{name}"
        ))
    }
}
