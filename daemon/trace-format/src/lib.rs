//! The wire contract of Coldpath: what one process writes and another reads.
//!
//! Span names, attribute keys, bounds, phase profiles and W3C trace context
//! stand here, with serde as the only dependency, so that the analyzer can know
//! the contract without linking the emitting side. Feature `emit` adds that
//! side: the clock, the [`emit::Stage`] guard, `COLDPATH_SPAWN`, the span
//! processor and the file writer. `docs/trace-contract.md` carries the same
//! tables for people; a test holds the two together.
//!
//! Compatibility: the resource attribute `coldpath.trace.version` is the major
//! version of the contract. A reader takes unknown attributes and spans of a
//! known version; a writer never changes the meaning of a name within one.

pub mod attributes;
pub mod limits;
pub mod profile;
pub mod spans;
pub mod traceparent;

#[cfg(feature = "emit")]
pub mod emit;

/// Version of the trace contract, the value of [`attributes::TRACE_VERSION`].
pub const TRACE_VERSION: i64 = 1;

/// Environment variables that carry the contract from a process to its child.
pub mod env {
    /// W3C trace context of the span that started this process.
    pub const TRACEPARENT: &str = "TRACEPARENT";
    /// W3C vendor state that travels with [`TRACEPARENT`].
    pub const TRACESTATE: &str = "TRACESTATE";
    /// Clock anchor and spawn instant: `v1:<anchor wall ns>:<anchor monotonic ns>:<spawn monotonic ns>:<spawner pid>`.
    pub const SPAWN: &str = "COLDPATH_SPAWN";
    /// Directory for trace and profile files; unset means that no trace is made.
    pub const TRACE_DIR: &str = "COLDPATH_TRACE_DIR";
    /// Collector that gets the same spans: `http://HOST:PORT`.
    pub const OTLP_ENDPOINT: &str = "COLDPATH_OTLP_ENDPOINT";
    /// File of the daemon's live view; an agent writes beside it.
    pub const CHROME: &str = "COLDPATH_CHROME";
    /// Random token of one experiment run; passed on, so that leftovers can be found.
    pub const RUN_TOKEN: &str = "COLDPATH_RUN_TOKEN";
    /// Channel id of the agent that a process belongs to; inherited by what it starts,
    /// so that a killed daemon's leftovers can be found.
    pub const CHANNEL: &str = "COLDPATH_CHANNEL";
    /// Span in which a build with `fault-points` stops for ever.
    pub const FAULT: &str = "COLDPATH_FAULT";
    /// Stages that a build with `fault-points` holds up, `STAGE=NANOSECONDS;…`.
    pub const INJECT: &str = "COLDPATH_INJECT";
}
