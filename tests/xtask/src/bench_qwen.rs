//! `bench qwen`: a real `qwen serve`, `coldpathd` over the same agent, and that agent
//! raw, side by side in one interleaved experiment.
//!
//! Measures nothing itself.

use crate::cargo::{Build, build, program};
use crate::qwen::{self, Installed};
use crate::steps::{self, Outcome, fresh_dir, quoted, say, target_dir};
use crate::{dist, workspace};
use std::path::Path;

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
    steps::run(program(&tools, "analyze")?, &[traces.as_ref()])
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
        ("coldpathd", behind, "http"),
        ("agent-raw", agent, "acp-stdio"),
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
