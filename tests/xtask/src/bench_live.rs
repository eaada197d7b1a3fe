//! `bench live`: how far the times of the live view are from those of the trace.
//!
//! Each run has a daemon with both; a script compares them span by span.

use crate::cargo::{Build, build, program};
use crate::steps::{self, Outcome, fresh_dir, quoted, root, say, target_dir};
use crate::workspace;

/// Runs `runs` cold starts and prints the differences.
pub(crate) fn run(runs: u32) -> Outcome {
    let programs = build(&Build {
        profile: "release",
        packages: &["coldpath-daemon", "coldpath-agent", "coldpath-measure"],
        ..Build::default()
    })?;
    let bench = target_dir().join("bench-live");
    fresh_dir(&bench)?;
    let files = bench.join("workspace");
    workspace::make(&files)?;
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_else(|_| "unknown".to_owned());
    say(&format!("load before: {}\n", load.trim()))?;
    let script = root().join("tests/xtask/control/live.py");
    let mut words = vec![script.into_os_string()];
    for run in 0..runs {
        let folder = bench.join(format!("run-{run}"));
        fresh_dir(&folder)?;
        let daemon = format!(
            "live={} --port 0 --workspace {} --chrome {}",
            quoted(program(&programs, "coldpathd")?)?,
            quoted(&files)?,
            quoted(&folder.join("live.json"))?
        );
        steps::run(
            program(&programs, "measure")?,
            &[
                "run".as_ref(),
                "--runs".as_ref(),
                "1".as_ref(),
                "--warmup".as_ref(),
                "0".as_ref(),
                "--workspace".as_ref(),
                files.as_ref(),
                "--out".as_ref(),
                folder.join("traces").as_ref(),
                "--arm".as_ref(),
                daemon.as_ref(),
            ],
        )?;
        words.push(folder.into_os_string());
    }
    let words: Vec<_> = words.iter().map(AsRef::as_ref).collect();
    steps::run(std::path::Path::new("python3"), &words)
}
