//! Whether predictions hold: delays are injected at stages, and the shift that is
//! measured is held against what `analyze --what-if` predicts from the control
//! runs alone.
//!
//! Each seed is one interleaved experiment of pairs. The control's runs give the
//! prediction of `process_to_session` and the range in which a repeat would find
//! it at 95 %; the pairs give the measured shift. A figure of one seed proves
//! nothing; all of them are printed.

use crate::cargo::{Build, build, program};
use crate::steps::{Outcome, fresh_dir, output, quoted, root, say, target_dir};
use crate::workspace;
use std::path::Path;
use std::process::Command;

/// Stages that are held up: in the agent, in the daemon's runtime, in a request.
const STAGES: [&str; 3] = ["agent.phase.settings", "runtime.start", "session.new"];
/// How long: more than the noise of a start of some milliseconds.
const DELAY: &str = "5ms";
/// Metric that is predicted and measured.
const METRIC: &str = "process_to_session";
/// Experiments of each stage.
const SEEDS: u32 = 10;
/// How many of them must lie within.
const WITHIN: u32 = 9;

/// Runs all experiments and prints each.
pub(crate) fn run(pairs: u32) -> Outcome {
    let programs = build(&Build {
        profile: "release",
        packages: &[
            "coldpath-daemon",
            "coldpath-agent",
            "coldpath-measure",
            "coldpath-analyzer",
        ],
        features: &[
            "coldpath-daemon/fault-points",
            "coldpath-agent/fault-points",
        ],
        ..Build::default()
    })?;
    let dir = target_dir().join("inject-check");
    fresh_dir(&dir)?;
    let files = dir.join("workspace");
    workspace::make(&files)?;
    let daemon = format!(
        "{} --port 0 --workspace {}",
        quoted(program(&programs, "coldpathd")?)?,
        quoted(&files)?
    );
    let tools = Tools {
        measure: program(&programs, "measure")?,
        analyze: program(&programs, "analyze")?,
        daemon: &daemon,
        files: &files,
    };
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_else(|_| "unknown".to_owned());
    say(&format!(
        "{pairs} pairs a seed, +{DELAY}, {METRIC} in ms; load before: {}\n",
        load.trim()
    ))?;
    let mut short = Vec::new();
    for stage in STAGES {
        let mut within = 0;
        for seed in 1..=SEEDS {
            let traces = dir.join(format!("{stage}-{seed}"));
            let found = tools.experiment(stage, seed, pairs, &traces)?;
            let lies = found.low <= found.measured && found.measured <= found.high;
            within += u32::from(lies);
            say(&format!(
                "{stage} seed {seed}: predicted {:+.3} ({:+.3} … {:+.3}), measured {:+.3}: {}\n",
                found.predicted,
                found.low,
                found.high,
                found.measured,
                if lies { "within" } else { "OUTSIDE" }
            ))?;
        }
        say(&format!("{stage}: {within} of {SEEDS} within\n"))?;
        if within < WITHIN {
            short.push(stage);
        }
    }
    if short.is_empty() {
        say(&format!(
            "PASS: at least {WITHIN} of {SEEDS} within for each stage\n"
        ))
    } else {
        Err(format!(
            "fewer than {WITHIN} of {SEEDS} within for {}",
            short.join(", ")
        ))
    }
}

struct Tools<'a> {
    measure: &'a Path,
    analyze: &'a Path,
    daemon: &'a str,
    files: &'a Path,
}

/// Milliseconds.
struct Found {
    predicted: f64,
    low: f64,
    high: f64,
    measured: f64,
}

impl Tools<'_> {
    fn experiment(&self, stage: &str, seed: u32, pairs: u32, traces: &Path) -> Outcome<Found> {
        let change = format!("{stage}=+{DELAY}");
        let (seed, pairs) = (seed.to_string(), pairs.to_string());
        let mut measure = Command::new(self.measure);
        measure.args(["pair", "--pairs", &pairs, "--seed", &seed]);
        measure.args(["--control", self.daemon, "--candidate", self.daemon]);
        measure
            .args(["--inject", &change, "--workspace"])
            .arg(self.files);
        output(measure.arg("--out").arg(traces))?;
        let mut analyze = Command::new(self.analyze);
        analyze.args(["--format", "json", "--what-if", &change]);
        read(&output(analyze.arg(traces))?).ok_or_else(|| {
            format!(
                "the report of {} has no prediction or no shift of {METRIC}\nhint: analyze {} --what-if {change}",
                relative(traces),
                relative(traces)
            )
        })
    }
}

/// A path as one types it in the workspace's root.
fn relative(path: &Path) -> String {
    path.strip_prefix(root())
        .unwrap_or(path)
        .display()
        .to_string()
}

/// Reads the few figures from a report, whose keys stand in a stated order.
fn read(report: &str) -> Option<Found> {
    let metric = format!("\"name\": \"{METRIC}\"");
    let control = behind(
        report,
        &[
            "\"dependency\": [",
            "\"cohort\": \"control\"",
            "\"predictions\"",
            &metric,
        ],
    )?;
    let range = behind(control, &["\"repeat_ci\": ["])?;
    let (low, rest) = range.split_once(',')?;
    let compared = format!("\"metric\": \"{METRIC}\"");
    let shift = behind(
        report,
        &[
            "\"comparisons\": [",
            "\"kind\": \"metric\"",
            &compared,
            "\"shift\"",
        ],
    )?;
    Some(Found {
        predicted: number(behind(control, &["\"change_p50\":"])?)?,
        low: number(low)?,
        high: number(rest)?,
        measured: number(behind(shift, &["\"estimate\":"])?)?,
    })
}

/// What stands behind the last of some words, each looked for behind the one before.
fn behind<'t>(text: &'t str, words: &[&str]) -> Option<&'t str> {
    words
        .iter()
        .try_fold(text, |text, word| Some(text.split_once(word)?.1))
}

/// The number at the start of a text.
fn number(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let end = text
        .find(|char: char| !(char.is_ascii_digit() || "+-.eE".contains(char)))
        .unwrap_or(text.len());
    text[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"{
  "comparisons": [
    { "kind": "metric", "metric": "health", "shift": { "estimate": 9.0, "low": 1.0 } },
    { "kind": "metric", "metric": "process_to_session", "shift": { "estimate": 5.25, "low": 4.5 } }
  ],
  "dependency": [
    { "cohort": "control", "predictions": [
      { "kind": "metric", "name": "health", "change_p50": 0.0, "repeat_ci": [ -1.0, 1.0 ] },
      { "kind": "metric", "name": "process_to_session", "change_p50": 5.0,
        "change_ci": [ 5.0, 5.0 ], "repeat_ci": [
          4.125,
          -1.5e1
        ] } ] },
    { "cohort": "candidate", "predictions": [
      { "kind": "metric", "name": "process_to_session", "change_p50": 7.0, "repeat_ci": [ 1.0, 2.0 ] } ] }
  ]
}"#;

    #[test]
    fn the_figures_are_those_of_the_control_and_of_the_metric() {
        let found = read(REPORT).unwrap();
        let figures = [found.predicted, found.low, found.high, found.measured];
        assert_eq!(format!("{figures:?}"), "[5.0, 4.125, -15.0, 5.25]");
        assert!(read("{}").is_none());
    }
}
