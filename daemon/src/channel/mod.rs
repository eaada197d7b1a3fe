//! The agent channel: one agent process with its ACP connection, made once for
//! everybody who asks at the same time.
//!
//! `manager` decides (reuse, join, spawn), `live` speaks ACP, `process` owns the
//! child and everything it leaves behind. A failed start-up is told to every
//! waiter alike, and the next request tries again.

mod command;
mod error;
mod handshake;
mod live;
mod manager;
mod outbox;
mod process;

pub(crate) use command::AgentCommand;
pub(crate) use error::{Attempt, ChannelError, Failure};
pub(crate) use handshake::trace_meta;
pub(crate) use live::Channel;
pub(crate) use manager::{Channels, Services};
pub(crate) use process::{EOF_GRACE, KILL_GRACE, TERM_GRACE};
