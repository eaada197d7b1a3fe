//! Fault points: a build with feature `fault-points` stops for ever inside the
//! span that `COLDPATH_FAULT` names, so that a test can end it there.
//!
//! Without the feature nothing is compiled in.

/// Says on stderr that the named span is reached, when it is the one asked for.
/// The caller then waits for ever in the way that suits it.
#[cfg(feature = "fault-points")]
#[must_use]
pub fn reached(span: &str) -> bool {
    use std::io::Write as _;
    if std::env::var_os(crate::env::FAULT).is_none_or(|wanted| wanted != span) {
        return false;
    }
    // One write, so that a reader never sees half a line.
    let _ = std::io::stderr().write_all(format!("fault {span}\n").as_bytes());
    true
}

/// Never reached in a build without the feature.
#[cfg(not(feature = "fault-points"))]
#[must_use]
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "the point must vanish from the start-up path"
)]
pub fn reached(_span: &str) -> bool {
    false
}

/// Stops the calling thread for ever when the named span is the one asked for.
#[inline]
pub fn block(span: &str) {
    if reached(span) {
        loop {
            std::thread::park();
        }
    }
}
