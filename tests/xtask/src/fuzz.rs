//! `cargo xtask fuzz`: the fuzz targets of `tests/fuzz` in turn, an equal part of
//! the time each. New inputs go into the corpus, which the stable tests replay.

use crate::cargo::cargo;
use crate::steps::{Outcome, root, say};

/// The targets: one for each family of input, the splitter, and models.
const TARGETS: [&str; 7] = [
    "otlp", "js_sdk", "records", "jaeger", "chrome", "stream", "model",
];
/// Minutes in all, unless said otherwise.
const MINUTES: u32 = 20;

/// Runs `fuzz [--minutes N]`.
pub(crate) fn run(options: &[&str]) -> Outcome {
    let minutes = match options {
        [] => MINUTES,
        ["--minutes", number] => match number.parse() {
            Ok(minutes @ 1..) => minutes,
            _ => {
                return Err(format!(
                    "--minutes takes a whole number from 1, not `{number}`"
                ));
            }
        },
        _ => {
            return Err(format!(
                "unknown options `{}`; there is only --minutes N",
                options.join(" ")
            ));
        }
    };
    let each = u64::from(minutes) * 60 / TARGETS.len() as u64;
    for target in TARGETS {
        say(&format!("fuzz {target}: {each} s\n"))?;
        let status = cargo()
            .args(["fuzz", "run", "--fuzz-dir", ".", target, "--"])
            .arg(format!("-max_total_time={each}"))
            // Documents are built from the bytes, so longer ones say nothing new.
            .args(["-max_len=4096", "-timeout=20", "-rss_limit_mb=2048"])
            .current_dir(root().join("tests/fuzz"))
            // The sanitizers are unstable options of the compiler.
            .env("RUSTC_BOOTSTRAP", "1")
            .status()
            .map_err(|error| format!("cannot run cargo fuzz: {error}"))?;
        if !status.success() {
            return Err(format!(
                "fuzz target {target} failed: {status}\nhint: `cargo install cargo-fuzz`; what broke it lies in tests/fuzz/artifacts/{target}"
            ));
        }
    }
    Ok(())
}
