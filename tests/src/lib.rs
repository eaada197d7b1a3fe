//! Harness of the end-to-end tests: builds the real programs, starts daemons in
//! sandboxes of their own, and reads what they wrote.
//!
//! It shares no code with the programs: traces are read as plain JSON, so that an
//! expectation never comes from what is under test. Every wait is for an event (a
//! pipe, a socket, a pidfd) and has a deadline that ends in a panic which says
//! what did not happen. Whatever a test starts is ended with it.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    clippy::return_self_not_must_use,
    reason = "a panic is how a test reports, and often the only thing that it wants of a call"
)]

mod browser;
mod chain;
mod daemon;
mod deadline;
mod expect;
mod gate;
mod http;
mod lines;
mod process;
mod programs;
mod sandbox;
mod traces;

pub use browser::in_browser;
pub use chain::{assert_complete_session, assert_process_part};
pub use daemon::{Daemon, Exit, Launch};
pub use deadline::{Deadline, WAIT};
pub use expect::Expected;
pub use gate::{Arrival, Gate};
pub use http::{Client, Request, Response};
pub use lines::Lines;
pub use process::{Watched, end_processes_with_token, processes_with_token};
pub use programs::{Programs, client_program, programs};
pub use sandbox::{Sandbox, reserve_port};
pub use traces::{Link, Span, TraceFile, Traces};

pub use rustix::process::Signal;
