//! Says where cold-start time goes, what explains the slow runs and whether a
//! change is real.
//!
//! Reading ([`input`], [`trace`]), computing ([`chain`], [`breakdown`], [`stats`])
//! and rendering ([`report`], [`chrome`]) stay apart: the first yields records and problems,
//! the second is pure, the third writes to a given writer. What a span means is
//! data in a [`model`], never code. `docs/analyze.md` is the guide.

pub mod app;
pub mod breakdown;
pub mod chain;
pub mod chrome;
pub mod cli;
mod commands;
pub mod compare;
pub mod exit;
#[doc(hidden)]
pub mod fuzzing;
pub mod gate;
mod halves;
pub mod html;
pub mod input;
pub mod inspect;
pub mod model;
pub mod output;
pub mod problems;
pub mod report;
pub mod retime;
pub mod stats;
pub mod trace;
pub mod units;
