//! Behaviour of the real programs, one module a subject.

mod boot;
mod bootstrap;

/// `fake-agent` with these words, as a command line for `--agent`.
pub(crate) fn fake_agent(words: &str) -> String {
    format!("'{}' {words}", env!("CARGO_BIN_EXE_fake-agent"))
}
