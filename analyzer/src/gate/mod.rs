//! Gates: whether a comparison satisfies a policy, in three values.
//!
//! [`policy`] reads what is demanded, [`rule`] is the decision itself, a pure
//! function of an interval and a margin whose error rates the test suite
//! measures, [`judge`] applies it with everything that forbids a verdict,
//! [`old`] says what a gate on point figures would have said and how often that
//! is wrong, [`placebo`] keeps what identical arms differ by. Nothing here reads
//! traces or the environment.

pub mod judge;
pub mod layout;
pub mod old;
pub mod placebo;
pub mod plan;
pub mod policy;
pub mod rule;

pub use judge::{GateReport, Judgement, judge};
pub use rule::{Kind, Verdict};

/// Value of `schema` in the JSON of a judgement.
pub const SCHEMA: &str = "coldpath.gate/1";
