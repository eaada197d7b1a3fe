//! Exit codes of `analyze`. One place, so that scripts and tests agree on them.
//!
//! Code 1 belongs to gates, which say no; the report itself never uses it.

/// The report was written.
pub const OK: u8 = 0;
/// A gate says no.
pub const GATE_FAILED: u8 = 1;
/// Wrong usage, or an input that cannot be read at all.
pub const USAGE: u8 = 2;
/// Nothing to judge: no runs, or problems or incomplete chains under `--strict`.
pub const CANNOT_JUDGE: u8 = 3;
/// A defect of this program.
pub const INTERNAL: u8 = 4;
