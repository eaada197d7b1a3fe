//! Bounds of the trace contract, each with its reason.

/// Phases of one profile. qwen has eleven; three times that leaves room.
pub const PROFILE_PHASES_MAX: usize = 32;
/// Bytes of a phase name: it becomes part of an attribute key.
pub const PHASE_NAME_MAX_BYTES: usize = 48;
/// Longest phase, milliseconds: ten minutes, the bound that qwen's daemon uses.
pub const PHASE_MS_MAX: f64 = 600_000.0;
/// Bytes of one profile record: one page, so that an append is one write.
pub const PROFILE_RECORD_MAX_BYTES: usize = 4_096;
/// Bytes of a profile file before it rotates: about 8,000 records.
pub const PROFILE_FILE_MAX_BYTES: u64 = 8 * 1024 * 1024;
/// Profile files kept by one process.
pub const PROFILE_FILES_KEPT: u32 = 4;
/// Milliseconds by which a profile's phases may differ from its total, for each
/// phase: the values are rounded to 0.01 ms by whoever made them.
pub const PROFILE_SUM_TOLERANCE_MS: f64 = 0.01;

/// Bytes of a trace file before it rotates.
pub const TRACE_FILE_MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Bytes at which the live view of a process ends: what viewers still open.
pub const CHROME_FILE_MAX_BYTES: u64 = 256 * 1024 * 1024;
/// Longest wait for the live view's end: its writer joins, and a disk may be dead.
pub const CHROME_CLOSE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(2);
/// Trace files kept by one process.
pub const TRACE_FILES_KEPT: u32 = 8;
/// Spans that wait for the writer. A cold start makes about 30; the rest is for bursts.
pub const TRACE_QUEUE_SPANS: usize = 512;

/// Oldest spawn stamp that is believed, nanoseconds: a minute, longer than any
/// exec takes and shorter than a stale environment lives.
pub const SPAWN_AGE_MAX_NS: u64 = 60_000_000_000;
/// Difference of wall clock and anchor at which a new channel renews the anchor, nanoseconds.
pub const ANCHOR_DRIFT_MAX_NS: u64 = 1_000_000_000;
