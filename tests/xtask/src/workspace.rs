//! The workspace that demo and benchmarks run in: 300 small files under git.

use crate::steps::{Outcome, fresh_dir, output};
use std::path::Path;
use std::process::Command;

/// Source files in it.
const FILES: u32 = 300;

/// Makes it anew.
pub(crate) fn make(dir: &Path) -> Outcome {
    fresh_dir(dir)?;
    let write = |name: &str, text: &str| {
        let path = dir.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)
                .map_err(|error| format!("cannot make {}: {error}", parent.display()))?;
        }
        std::fs::write(&path, text)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))
    };
    write(
        "AGENTS.md",
        "# Instructions\n\nKeep functions short. Run the tests before you say that it works.\n",
    )?;
    for file in 0..FILES {
        let text = format!("//! Module {file}.\n\npub fn value() -> u32 {{\n    {file}\n}}\n");
        write(
            &format!("src/part_{:02}/module_{file:03}.rs", file / 20),
            &text,
        )?;
    }
    let git = |arguments: &[&str]| {
        let identity = [
            "-c",
            "user.name=demo",
            "-c",
            "user.email=demo@localhost",
            "-c",
            "commit.gpgsign=false",
        ];
        output(
            Command::new("git")
                .arg("-C")
                .arg(dir)
                .args(identity)
                .args(arguments),
        )
        .map(|_| ())
    };
    git(&["init", "-q", "-b", "main"])?;
    git(&["add", "."])?;
    git(&["commit", "-q", "-m", "Start"])
}
