//! `coldpath`: see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    coldpath_client::run()
}
