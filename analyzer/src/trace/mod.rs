//! Spans in memory and how they hang together.
//!
//! [`names`] interns every text, [`span`] holds the records, [`dataset`] puts
//! them into one order that no order of reading can change, [`tree`] finds
//! parents and children, [`clock`] how coarse the times are. Nothing here knows a model or reads a file.

pub mod attributes;
pub mod clock;
pub mod dataset;
pub mod names;
pub mod slots;
pub mod span;
pub mod tree;
