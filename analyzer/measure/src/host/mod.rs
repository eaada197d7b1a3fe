//! What the kernel says about this host and about a tree of processes.
//!
//! Reads files under `/proc` and `/sys` and nothing else; parsing is apart from
//! reading, so that it is tested on text. A figure that cannot be had is absent
//! with a reason, never zero.

pub mod covariates;
pub mod describe;
pub mod page_cache;
pub mod process;
pub mod sampler;
pub mod tree;
