//! `coldpath`, the person's client of a running `coldpathd`.
//!
//! `top` shows a daemon live: health, agent channel, how it started, sessions.
//! Everything comes from the daemon's HTTP contract; this crate depends on no
//! other of the workspace and nothing depends on it, because it is the only home
//! of UI crates.
//!
//! Read → model → draw stay apart: [`http`] fetches, [`snapshot`] understands,
//! [`view`] draws a value, `top` is the loop around them.

mod cli;
pub mod http;
pub mod snapshot;
mod top;
pub mod view;

use std::process::ExitCode;

/// Exit codes of `coldpath`.
pub mod exit {
    /// Done as asked.
    pub const CLEAN: u8 = 0;
    /// The daemon or the terminal refused.
    pub const REFUSED: u8 = 1;
    /// Bad arguments.
    pub const USAGE: u8 = 2;
}

/// Runs the client with this process's arguments.
#[must_use]
pub fn run() -> ExitCode {
    cli::run()
}
