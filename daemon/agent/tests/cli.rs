//! The real program over its real pipes.
//!
//! Each module starts `coldpath-agent` with a home of its own and speaks to it as
//! a client does; what git says comes from the real `git`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a panic is how a test reports"
)]

mod cli {
    pub(crate) mod client;
    mod program;
    mod protocol;
    mod sessions;
    mod trace;
}
