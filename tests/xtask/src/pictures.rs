//! `cargo xtask pictures`: the README's pictures, made anew from the bundled captures.
//!
//! Needs Chromium. What is drawn comes from files of this repository, so a picture
//! only changes with what draws it.

use crate::cargo::{Build, build, program};
use crate::demo::write_page;
use crate::steps::{Outcome, output, root, say, target_dir};
use std::path::PathBuf;
use std::process::Command;

/// Writes `docs/pictures/report-light.png` and `report-dark.png`.
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
    say(&format!("{}\n", folder.display()))
}

fn make(folder: &PathBuf) -> Outcome {
    std::fs::create_dir_all(folder)
        .map_err(|error| format!("cannot make {}: {error}", folder.display()))
}
