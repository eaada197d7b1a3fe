//! `coldpathd`, a daemon for ACP agents that answers `/health` first.
//!
//! Read [`run`] for the order of a cold start: clock, arguments, bind, one line
//! on stdout, then a bootstrap loop on the main thread that answers three paths
//! while nothing else exists. Telemetry, store, async runtime and agent come
//! behind the first answer, on a thread of their own ([`runtime`]).
//!
//! This crate never prints reports, never analyses, and keeps no global state.

mod boot;
mod channel;
mod config;
mod contract;
mod http;
mod log;
mod runtime;
mod session;
mod signals;
mod store;

use coldpath_trace_format::emit::{MonoNanos, fault, inject};
use std::process::ExitCode;

/// Exit codes of `coldpathd`.
pub mod exit {
    /// Stopped cleanly.
    pub const CLEAN: u8 = 0;
    /// The environment refused: the port, the state directory, the runtime.
    pub const REFUSED: u8 = 1;
    /// Bad arguments or settings.
    pub const USAGE: u8 = 2;
}

/// Version that the daemon reports.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Runs the daemon with this process's arguments and environment until it is stopped.
#[must_use]
pub fn run() -> ExitCode {
    let main = MonoNanos::now();
    let config = match config::from_process() {
        Ok(config) => config,
        Err(refusal) => return refusal.print(),
    };
    let mut record = boot::BootRecord::begin(main, &config);
    inject::hold_up("", "boot.args");
    record.args_done = MonoNanos::now();
    fault::block("boot.bind");
    let bound = match boot::bind(&config) {
        Ok(bound) => bound,
        Err(error) => {
            log::error(&error.to_string());
            return ExitCode::from(exit::REFUSED);
        }
    };
    record.bound = MonoNanos::now();
    boot::announce(&config, &bound);
    boot::serve(config, bound, record)
}
