//! The Agent Client Protocol over stdio, as far as Coldpath speaks it.
//!
//! [`framing`] cuts a byte stream into bounded lines, [`message`] reads and
//! writes JSON-RPC 2.0 envelopes with opaque ids, [`messages`] holds the ACP
//! version 1 messages. Nothing here performs I/O, waits, or needs a runtime: the
//! daemon drives it from an async loop, the agent from a blocking one.

pub mod framing;
pub mod message;
pub mod messages;
