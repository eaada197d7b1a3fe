//! Programs of others that a task needs, installed once below the target folder.
//!
//! Versions are exact: figures and fuzz runs name what they were made with. Nothing
//! is taken from `PATH`, and nothing is put where cargo keeps a person's own tools.

use crate::cargo::cargo;
use crate::steps::{Outcome, root, say, target_dir};
use std::path::PathBuf;
use std::process::Stdio;

/// A program and the package, with its version, that it is installed from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tool {
    pub(crate) package: &'static str,
    pub(crate) version: &'static str,
}

/// Path of the tool's program; builds it first when it is not there.
pub(crate) fn installed(tool: Tool) -> Outcome<PathBuf> {
    let Tool { package, version } = tool;
    let folder = target_dir()
        .join("tools")
        .join(format!("{package}-{version}"));
    let program = folder.join("bin").join(package);
    if program.exists() {
        return Ok(program);
    }
    say(&format!(
        "installing {package} {version} below {}\n",
        folder.display()
    ))?;
    let status = cargo()
        .args([
            "install",
            "--quiet",
            "--locked",
            package,
            "--version",
            version,
        ])
        .arg("--root")
        .arg(&folder)
        // Without this cargo builds in the temporary folder, which may be small.
        .arg("--target-dir")
        .arg(target_dir().join("tools").join("build"))
        .current_dir(root())
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("cannot run cargo install: {error}"))?;
    if status.success() && program.exists() {
        Ok(program)
    } else {
        Err(format!(
            "cannot install {package} {version}: {status}\nhint: it comes from the crates registry, so that must be reached once"
        ))
    }
}
