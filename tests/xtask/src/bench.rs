//! Benchmarks: arms side by side in one interleaved run of `measure`, judged by
//! `analyze`. Out of CI, because a shared machine's times are nobody's verdict.

use crate::cargo::{Build, build, program};
use crate::steps::{self, Outcome, fresh_dir, output, quoted, root, say, target_dir};
use crate::{dist, workspace};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Process start to listener, `/health` and first session of the shipped daemon,
/// with traces and without, against a static C program.
pub(crate) fn start(runs: u32) -> Outcome {
    let shipped = dist::build(&dist::PROGRAMS[..2])?;
    let tools = build(&Build {
        profile: "release",
        packages: &["coldpath-measure", "coldpath-analyzer"],
        ..Build::default()
    })?;
    let bench = target_dir().join("bench-start");
    fresh_dir(&bench)?;
    let files = bench.join("workspace");
    workspace::make(&files)?;
    let control = compile_control(&bench)?;
    let daemon = format!(
        "{} --port 0 --workspace {}",
        quoted(program(&shipped, "coldpathd")?)?,
        quoted(&files)?
    );

    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_else(|_| "unknown".to_owned());
    say(&format!("load before: {}\n", load.trim()))?;
    let count = runs.to_string();
    let traces = bench.join("traces");
    let mut words: Vec<String> = ["run", "--warmup", "3", "--runs", &count]
        .map(str::to_owned)
        .to_vec();
    words.extend([
        "--workspace".to_owned(),
        text(&files)?,
        "--out".to_owned(),
        text(&traces)?,
    ]);
    if let Some(control) = &control {
        words.extend(["--arm".to_owned(), format!("control={}", quoted(control)?)]);
        words.extend(["--stop-at".to_owned(), "control=health".to_owned()]);
    }
    words.extend([
        "--arm".to_owned(),
        format!("off={daemon}"),
        "--scenario".to_owned(),
        "off=no-telemetry".to_owned(),
    ]);
    words.extend(["--arm".to_owned(), format!("on={daemon}")]);
    let words: Vec<_> = words.iter().map(AsRef::as_ref).collect();
    steps::run(program(&tools, "measure")?, &words)?;
    steps::run(program(&tools, "analyze")?, &[traces.as_ref()])
}

/// The control, where there is a C compiler with a static libc.
fn compile_control(dir: &Path) -> Outcome<Option<PathBuf>> {
    let source = root().join("tests/xtask/control/health.c");
    let program = dir.join("control");
    let built = output(
        Command::new("cc")
            .args(["-O2", "-static", "-o"])
            .arg(&program)
            .arg(source),
    );
    match built {
        Ok(_) => Ok(Some(program)),
        Err(error) => {
            say(&format!("no control: {error}\n"))?;
            Ok(None)
        }
    }
}

fn text(path: &Path) -> Outcome<String> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| format!("{} is not UTF-8", path.display()))
}
