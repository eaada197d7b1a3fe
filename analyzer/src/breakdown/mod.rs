//! Breakdowns: windows of a run cut exactly into stages and a remainder.
//!
//! [`partition`] is the arithmetic, [`windows`] finds the windows and stages of
//! a run by the model, [`client`] the client's own window, [`drill`] lays one
//! window's stages over a stage of another, [`self_time`] is the time a span
//! does not share with its children. Integer nanoseconds throughout.

pub mod client;
pub mod drill;
pub mod partition;
pub mod self_time;
mod stages;
pub mod store;
pub mod windows;
