//! The program: arguments in, report out, exit code back.

use crate::exit;
use std::ffi::OsString;
use std::io::Write;

/// Runs the program with the arguments of the command line, its name first.
pub fn run(
    _args: impl IntoIterator<Item = OsString>,
    _stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> u8 {
    let _ = writeln!(stderr, "error: no subcommand is ready");
    exit::USAGE
}
