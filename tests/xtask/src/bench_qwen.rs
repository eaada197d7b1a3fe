//! `bench qwen`: a real `qwen serve`, `coldpathd` over the same agent, and that agent
//! raw, side by side in one interleaved experiment.
//!
//! Measures nothing itself.

use crate::cargo::{Build, build, program};
use crate::figures::{self, Range};
use crate::qwen::{self, Installed};
use crate::steps::{self, Outcome, fresh_dir, output, quoted, say, target_dir};
use crate::{dist, workspace};
use std::path::Path;
use std::process::Command;

/// The arm of the daemon.
const OWN: &str = "coldpathd";
/// The arm of its agent, driven raw.
const RAW: &str = "agent-raw";
/// The session's metric.
const METRIC: &str = "process_to_session";
/// Stages in which the daemon waits for the agent.
const AGENT_TIME: [&str; 2] = ["channel.initialize", "session.new"];
/// Most that the daemon's own share is to be.
const REACH_MS: f64 = 3.0;

/// Measures `runs` of each arm and prints the report.
pub(crate) fn run(runs: u32) -> Outcome {
    let installed = qwen::install()?;
    let shipped = dist::build(&dist::PROGRAMS[..2])?;
    let tools = build(&Build {
        profile: "release",
        packages: &["coldpath-measure", "coldpath-analyzer"],
        ..Build::default()
    })?;
    let bench = target_dir().join("bench-qwen");
    fresh_dir(&bench)?;
    let files = bench.join("workspace");
    workspace::make(&files)?;
    let home = bench.join("home");
    fresh_dir(&home)?;
    let endpoint = qwen::serve_model()?;
    let experiment = bench.join("experiment.toml");
    let daemon = program(&shipped, "coldpathd")?;
    let text = experiment_text(&installed, daemon, &home, &endpoint, runs)?;
    std::fs::write(&experiment, text)
        .map_err(|error| format!("cannot write {}: {error}", experiment.display()))?;

    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_else(|_| "unknown".to_owned());
    say(&format!("load before: {}\n", load.trim()))?;
    let traces = bench.join("traces");
    steps::run(
        program(&tools, "measure")?,
        &[
            "run".as_ref(),
            "--experiment".as_ref(),
            experiment.as_ref(),
            "--workspace".as_ref(),
            files.as_ref(),
            "--out".as_ref(),
            traces.as_ref(),
        ],
    )?;
    let analyze = program(&tools, "analyze")?;
    steps::run(analyze, &[traces.as_ref()])?;
    own_share(analyze, &traces)
}

/// Prints what of a cold session is the daemon's own: the pairs' difference to the
/// agent that is driven raw, and the session with what it waits for the agent taken
/// as nothing. The first is what is asked for, and as noisy as two starts of the
/// agent; the second is without their noise, and an upper bound: the agent's spawn is
/// in it, and what the client waits for a processor that the agent holds.
fn own_share(analyze: &Path, traces: &Path) -> Outcome {
    let mut command = Command::new(analyze);
    command.args(["--format", "json"]);
    for wait in AGENT_TIME {
        command.args(["--what-if", &format!("{wait}=0")]);
    }
    let report = output(command.arg(traces))?;
    let pairs = figures::shift_between(&report, METRIC, RAW, OWN);
    let without = figures::prediction(&report, OWN, METRIC, "predicted_p50", "predicted_ci");
    let row = |one: Option<Range>| {
        one.map_or_else(
            || "too few runs for an interval".to_owned(),
            |one| {
                let Range { middle, low, high } = one;
                let verdict = verdict(&one);
                format!("{middle:.3} ms ({low:.3} … {high:.3}), reach {REACH_MS} ms: {verdict}")
            },
        )
    };
    say(&format!(
        "\nthe daemon's own share of process start → first session, with 95 % intervals:\n  \
         {OWN} − {RAW}, Hodges–Lehmann over the pairs: {}\n  \
         {OWN} without {}, P50 of the traces: {}\n",
        row(pairs),
        AGENT_TIME.join(" and "),
        row(without)
    ))
}

/// What an interval says of the reach.
fn verdict(one: &Range) -> &'static str {
    if one.high <= REACH_MS {
        "kept"
    } else if one.low > REACH_MS {
        "MISSED"
    } else {
        "not shown by this many pairs"
    }
}

/// The three arms in one set, so that each block holds every one of them.
fn experiment_text(
    installed: &Installed,
    daemon: &Path,
    home: &Path,
    endpoint: &str,
    runs: u32,
) -> Outcome<String> {
    let (node, cli) = (quoted(&installed.node)?, quoted(&installed.cli)?);
    let agent = installed.agent()?;
    let serve = format!(
        "{node} {cli} serve --port 0 --hostname 127.0.0.1 --workspace {{workspace}} --no-open"
    );
    let behind = format!(
        "{} --port 0 --workspace {{workspace}} --agent {}",
        quoted(daemon)?,
        quoted(Path::new(&agent))?
    );
    let env: Vec<String> = qwen::variables(home, endpoint)
        .iter()
        .map(|(name, value)| format!("{name} = {}", toml_text(value)))
        .collect();
    let env = env.join(", ");
    let files = toml_text(&installed.cli.display().to_string());
    let arm = |(name, command, driver): (&str, String, &str)| {
        let command = toml_text(&command);
        format!(
            "[[set.arm]]\nname = \"{name}\"\ncommand = {command}\ndriver = \"{driver}\"\nenv = {{ {env} }}\nfiles = [{files}]\n"
        )
    };
    let arms = [
        ("control-qwen-serve", serve, "http"),
        (OWN, behind, "http"),
        (RAW, agent, "acp-stdio"),
    ];
    Ok(format!(
        "schema = 1\ntimeout = \"60s\"\n\n[[set]]\nname = \"qwen\"\nruns = {runs}\nwarmup = 1\n\n{}",
        arms.map(arm).join("\n")
    ))
}

/// Text as a TOML basic string; paths hold no control characters.
fn toml_text(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reach_is_kept_or_missed_only_by_a_whole_interval() {
        let check = |low: f64, high: f64, expected: &str| {
            let middle = low.midpoint(high);
            let verdict = verdict(&Range { middle, low, high });
            assert_eq!(verdict, expected, "{low} … {high}");
        };
        check(2.0, 3.0, "kept");
        check(-9.0, 2.0, "kept");
        check(3.1, 4.0, "MISSED");
        check(-150.0, 120.0, "not shown by this many pairs");
    }
}
