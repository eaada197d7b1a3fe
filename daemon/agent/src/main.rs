//! `coldpath-agent`: reads the clock first, then everything else is the library's.

use coldpath_trace_format::emit::MonoNanos;
use std::process::ExitCode;

fn main() -> ExitCode {
    coldpath_agent::main_impl(MonoNanos::now())
}
