//! Lines for people on stderr, each with one write so that they never interleave.
//!
//! Nothing here fails: a closed stderr is no reason to stop serving.

use std::io::Write as _;

/// Says that something happened.
pub(crate) fn info(text: &str) {
    line("", text);
}

/// Says that something is wrong and the daemon goes on.
pub(crate) fn warn(text: &str) {
    line("warning: ", text);
}

/// Says why the daemon stops or a part of it failed.
pub(crate) fn error(text: &str) {
    line("error: ", text);
}

fn line(level: &str, text: &str) {
    let _ = std::io::stderr().write_all(format!("coldpathd: {level}{text}\n").as_bytes());
}
