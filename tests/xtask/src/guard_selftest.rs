//! `cargo xtask guard-selftest`: cells of the guard's matrix, built anew and judged.
//!
//! The recipe is `fixtures/guards/selftest.py`, which people also run by hand; here
//! the guard is built for it. Expectations stand in `matrix/expected.txt`, never here.

use crate::cargo::{Build, build, program};
use crate::steps::{Outcome, root, run, target_dir};
use std::ffi::OsStr;

/// Runs `guard-selftest [CELL…]`; without cells, all of them.
pub(crate) fn run_cells(cells: &[&str]) -> Outcome {
    if let Some(option) = cells.iter().find(|cell| cell.starts_with('-')) {
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
    let script = root().join("fixtures/guards/selftest.py");
    let scratch = target_dir().join("guard-selftest");
    let mut arguments: Vec<&OsStr> =
        vec![script.as_os_str(), guard.as_os_str(), scratch.as_os_str()];
    arguments.extend(cells.iter().map(OsStr::new));
    run("python3", &arguments).map_err(|error| {
        format!("{error}\nhint: it needs python3, a C linker with its static libc, and binutils")
    })
}
