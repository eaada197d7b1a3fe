//! `cargo xtask guard-selftest`: cells of the guard's matrix, built anew and judged, and
//! what is planted in a copy of this workspace.
//!
//! The recipes are `fixtures/guards/selftest.py` and `planted.py`, which people also run
//! by hand; here the guard is built for them. Expectations stand there, never here.

use crate::cargo::{Build, build, program};
use crate::steps::{Outcome, root, run, target_dir};
use std::ffi::OsStr;
use std::path::Path;

/// The word for what is planted, beside names of cells.
const PLANTED: &str = "planted";

/// Runs `guard-selftest [planted] [CELL…]`; without words, everything.
pub(crate) fn run_words(words: &[&str]) -> Outcome {
    if let Some(option) = words.iter().find(|word| word.starts_with('-')) {
        return Err(format!(
            "unknown option `{option}`; guard-selftest takes names of cells, such as `hook.small`"
        ));
    }
    let built = build(&Build {
        profile: "release",
        packages: &["coldpath-guards"],
        ..Build::default()
    })?;
    let guard = program(&built, "guard")?;
    let is_planted = words.is_empty() || words.contains(&PLANTED);
    let cells: Vec<&str> = words
        .iter()
        .copied()
        .filter(|word| *word != PLANTED)
        .collect();
    if words.is_empty() || !cells.is_empty() {
        run_recipe("selftest.py", guard, "guard-selftest", &cells)?;
    }
    if is_planted {
        run_recipe("planted.py", guard, "guard-planted", &[])?;
    }
    Ok(())
}

fn run_recipe(script: &str, guard: &Path, scratch: &str, cells: &[&str]) -> Outcome {
    let script = root().join("fixtures/guards").join(script);
    let scratch = target_dir().join(scratch);
    let mut arguments: Vec<&OsStr> =
        vec![script.as_os_str(), guard.as_os_str(), scratch.as_os_str()];
    arguments.extend(cells.iter().map(OsStr::new));
    run("python3", &arguments).map_err(|error| {
        format!("{error}\nhint: it needs python3, a C linker with its static libc, and binutils")
    })
}
