//! Whether predictions hold: delays are injected at stages, and the shift that is
//! measured is held against what `analyze --what-if` predicts from the control
//! runs alone.
//!
//! Each seed is one interleaved experiment of pairs. A sleep takes longer than it
//! was asked to, so the delay that is predicted with is the one that was made: the
//! shift of the stage itself. The control's runs give the prediction of
//! `process_to_session` and the range in which a repeat would find it at 95 %;
//! the pairs give the measured shift and its interval. All seeds are printed.

use crate::cargo::{Build, build, program};
use crate::figures::{self, Range, behind, shift};
use crate::steps::{Outcome, fresh_dir, output, quoted, root, runs, say, target_dir};
use crate::workspace;
use std::path::Path;
use std::process::Command;

/// A stage that is held up.
struct Held {
    /// Its name for `measure` and for `--what-if`.
    name: &'static str,
    /// Window in which the report compares it.
    window: &'static str,
    /// Its name there; the window itself where that is the stage.
    stage: Option<&'static str>,
}

/// One in the agent, one in the daemon's runtime, one in a request.
const STAGES: [Held; 3] = [
    Held {
        name: "agent.phase.settings_load",
        window: "agent.startup",
        stage: Some("settings_load"),
    },
    Held {
        name: "runtime.start",
        window: "runtime.start",
        stage: None,
    },
    Held {
        name: "session.new",
        window: "request",
        stage: Some("session.new"),
    },
];
/// How long: more than the noise of a start of some milliseconds.
const DELAY: &str = "5ms";
/// Metric that is predicted and measured.
const METRIC: &str = "process_to_session";
/// Experiments of each stage.
const SEEDS: u32 = 10;
/// The first of their seeds.
const FIRST_SEED: u32 = 1;
/// Pairs of each.
const PAIRS: u32 = 20;
/// How many of them must lie within.
const WITHIN: u32 = 9;

/// Reads `--runs N` and `--from SEED`, and runs all experiments.
pub(crate) fn run(options: &[&str]) -> Outcome {
    let (pairs, first) = asked(options)?;
    check(pairs, first)
}

/// Pairs of each experiment and the first seed.
fn asked(options: &[&str]) -> Outcome<(u32, u32)> {
    match options {
        [rest @ .., "--from", seed] | ["--from", seed, rest @ ..] => {
            let first = seed
                .parse()
                .map_err(|_| format!("--from takes a seed, not `{seed}`"))?;
            Ok((runs(rest, PAIRS)?, first))
        }
        rest => Ok((runs(rest, PAIRS)?, FIRST_SEED)),
    }
}

/// Runs all experiments and prints each.
fn check(pairs: u32, first: u32) -> Outcome {
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
    for stage in &STAGES {
        let (mut within, mut meet, mut above) = (0, 0, 0);
        for seed in first..first.saturating_add(SEEDS) {
            let traces = dir.join(format!("{}-{seed}", stage.name));
            let found = tools.experiment(stage, seed, pairs, &traces)?;
            within += u32::from(found.lies_within());
            meet += u32::from(found.meets());
            above += u32::from(found.measured.middle > found.predicted.middle);
            say(&format!("{} seed {seed}: {}\n", stage.name, found.words()))?;
        }
        say(&format!(
            "{}: measured within the prediction's range in {within} of {SEEDS}, its interval meets it in {meet}; more than predicted in {above}\n",
            stage.name
        ))?;
        if within < WITHIN {
            short.push(stage.name);
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

/// What one experiment found.
struct Found {
    made: f64,
    predicted: Range,
    measured: Range,
}

impl Found {
    fn lies_within(&self) -> bool {
        self.predicted.low <= self.measured.middle && self.measured.middle <= self.predicted.high
    }

    /// Whether the two intervals have anything in common.
    fn meets(&self) -> bool {
        self.predicted.low <= self.measured.high && self.measured.low <= self.predicted.high
    }

    fn words(&self) -> String {
        let words =
            |one: &Range| format!("{:+.3} ({:+.3} … {:+.3})", one.middle, one.low, one.high);
        let verdict = match (self.lies_within(), self.meets()) {
            (true, _) => "within",
            (false, true) => "OUTSIDE, intervals meet",
            (false, false) => "OUTSIDE",
        };
        format!(
            "made {:+.3}, predicted {}, measured {}: {verdict}",
            self.made,
            words(&self.predicted),
            words(&self.measured)
        )
    }
}

impl Tools<'_> {
    fn experiment(&self, stage: &Held, seed: u32, pairs: u32, traces: &Path) -> Outcome<Found> {
        let (seed, pairs) = (seed.to_string(), pairs.to_string());
        let mut measure = Command::new(self.measure);
        measure.args(["pair", "--pairs", &pairs, "--seed", &seed]);
        measure.args(["--control", self.daemon, "--candidate", self.daemon]);
        measure.args(["--inject", &format!("{}=+{DELAY}", stage.name)]);
        measure.arg("--workspace").arg(self.files);
        output(measure.arg("--out").arg(traces))?;
        let report = |more: &[&str]| {
            let mut analyze = Command::new(self.analyze);
            output(analyze.args(["--format", "json"]).args(more).arg(traces))
        };
        let lacks = |what: &str| format!("the report of {} has no {what}", relative(traces));
        let compared = report(&[])?;
        let made = made(&compared, stage).ok_or_else(|| lacks("shift of the stage"))?;
        let change = format!("{}=+{:.0}ns", stage.name, (made * 1e6).max(0.0));
        let predicted = predicted(&report(&["--what-if", &change])?);
        Ok(Found {
            made,
            predicted: predicted.ok_or_else(|| lacks("prediction"))?,
            measured: measured(&compared).ok_or_else(|| lacks("measured shift"))?,
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

/// The shift of the stage itself. Figures are read behind words of the report,
/// whose keys stand in a stated order.
fn made(report: &str, stage: &Held) -> Option<f64> {
    let window = format!("\"metric\": \"{}\"", stage.window);
    let window = behind(
        report,
        &["\"comparisons\": [", "\"kind\": \"window\"", &window],
    )?;
    let own = match stage.stage {
        None => window,
        Some(name) => behind(window, &["\"stages\": [", &format!("\"name\": \"{name}\"")])?,
    };
    Some(shift(own)?.middle)
}

/// The measured shift of the metric.
fn measured(report: &str) -> Option<Range> {
    let metric = format!("\"metric\": \"{METRIC}\"");
    let own = ["\"comparisons\": [", "\"kind\": \"metric\"", &metric];
    shift(behind(report, &own)?)
}

/// The prediction of the metric from the control's runs, and where a repeat would
/// find it.
fn predicted(report: &str) -> Option<Range> {
    figures::prediction(report, "control", METRIC, "change_p50", "repeat_ci")
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"{
  "comparisons": [
    { "kind": "metric", "metric": "health", "shift": { "estimate": 9.0, "low": 1.0, "high": 10.0 } },
    { "kind": "metric", "metric": "process_to_session",
      "shift": { "estimate": 5.25, "low": 4.5, "high": 6.5 } },
    { "kind": "window", "metric": "agent.startup", "shift": { "estimate": 7.0, "low": 1.0, "high": 8.0 },
      "stages": [ { "name": "exec", "shift": { "estimate": 0.5, "low": 0.25, "high": 0.75 } },
        { "name": "settings_load", "shift": { "estimate": 5.125, "low": 5.0, "high": 5.5 } } ] }
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

    #[track_caller]
    fn check(found: Option<Range>, expected: &str) {
        let found = found.map(|one| [one.middle, one.low, one.high]);
        assert_eq!(format!("{found:?}"), expected);
    }

    #[test]
    fn pairs_and_the_first_seed_may_be_given_in_either_order() {
        assert_eq!(asked(&[]), Ok((20, 1)));
        assert_eq!(asked(&["--runs", "5", "--from", "11"]), Ok((5, 11)));
        assert_eq!(asked(&["--from", "11", "--runs", "5"]), Ok((5, 11)));
        assert!(asked(&["--from", "x"]).is_err());
        assert!(asked(&["--seeds", "1"]).is_err());
    }

    #[test]
    fn figures_are_those_of_the_metric_the_stage_and_the_control() {
        check(measured(REPORT), "Some([5.25, 4.5, 6.5])");
        check(predicted(REPORT), "Some([5.0, 4.125, -15.0])");
        check(predicted("{}"), "None");
        let [settings, runtime, _] = STAGES;
        assert_eq!(format!("{:?}", made(REPORT, &settings)), "Some(5.125)");
        assert_eq!(made(REPORT, &runtime), None);
    }
}
