//! `cargo xtask pictures`: the README's pictures, made anew from the bundled captures.
//!
//! Needs Chromium and npm, of which it installs the viewer `speedscope` below the target
//! folder. What is drawn comes from files of this repository, so a picture
//! only changes with what draws it.

use crate::cargo::{Build, build, program};
use crate::demo::{draw, write_page};
use crate::steps::{Outcome, output, root, say, target_dir};
use std::path::PathBuf;
use std::process::Command;

/// The viewer that a trace is shown in, as npm names it.
const VIEWER: &str = "speedscope@1.25.0";

/// Writes `docs/pictures/report-light.png`, `report-dark.png` and `cold-start.png`.
pub(crate) fn run() -> Outcome {
    let folder = root().join("docs/pictures");
    make(&folder)?;
    make(&target_dir())?;
    let programs = build(&Build {
        profile: "release",
        packages: &["coldpath-analyzer"],
        ..Build::default()
    })?;
    let page = target_dir().join("picture.html");
    // Named from the root, so that no path of this machine is in a picture.
    let captures = PathBuf::from("fixtures/qwen-serve-0.24.4/cold");
    write_page(program(&programs, "analyze")?, &captures, &page)?;
    let mut script = Command::new("python3");
    script.arg("-B").arg("tests/browser/report.py");
    script.arg("--pictures").arg(&page).arg(&folder);
    output(&mut script)?;
    let trace = target_dir().join("picture.trace.json");
    draw(program(&programs, "analyze")?, &captures, &trace)?;
    let mut script = Command::new("python3");
    script.env("COLDPATH_SPEEDSCOPE", viewer()?);
    script.arg("-B").arg("tests/browser/speedscope.py");
    script.arg(&trace).arg(folder.join("cold-start.png"));
    output(&mut script)?;
    say(&format!("{}\n", folder.display()))
}

/// Installs the viewer; its folder.
fn viewer() -> Result<PathBuf, String> {
    let prefix = target_dir().join("speedscope");
    make(&prefix)?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"]);
    output(npm.arg(&prefix).arg(VIEWER))?;
    Ok(prefix.join("node_modules/speedscope"))
}

fn make(folder: &PathBuf) -> Outcome {
    std::fs::create_dir_all(folder)
        .map_err(|error| format!("cannot make {}: {error}", folder.display()))
}
