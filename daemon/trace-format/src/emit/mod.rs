//! The emitting side of the trace contract.
//!
//! A process takes its clock [`Anchor`] (its own or the spawner's), opens a
//! [`Telemetry`] when it can afford to, and wraps each step in a [`Stage`].
//! Nothing here is global: what emits is handed a `Telemetry`. Switched off, no
//! span is made, no file appears and no clock is read.

pub mod clock;
pub mod collector;
pub mod fault;
pub mod file;
pub mod inject;
pub mod live;
pub mod profile_file;
mod reserve;
pub mod sched;
pub mod spawn;
mod stage;
mod telemetry;
pub mod uuid;
mod writer;

pub use clock::{Anchor, MonoNanos, WallNanos};
pub use opentelemetry::trace::SpanContext;
pub use reserve::ReservedSpan;
pub use spawn::{SpawnEnv, SpawnStamp};
pub use stage::{Stage, StageKind, remote_context};
pub use telemetry::{CloseReport, ProcessStart, Telemetry, TelemetryConfig, TelemetryError};
