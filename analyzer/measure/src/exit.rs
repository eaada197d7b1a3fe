//! Exit codes of `measure`. One place, so that scripts and tests agree on them.

/// Every measured run succeeded, or the reader of our output went away.
pub const OK: u8 = 0;
/// At least one measured run failed.
pub const RUN_FAILED: u8 = 1;
/// Wrong usage, or an environment in which nothing can be measured.
pub const USAGE: u8 = 2;
/// No measured run came as far as a running program.
pub const NOT_MEASURED: u8 = 3;
/// A defect of this program.
pub const INTERNAL: u8 = 4;

/// Exit code after a signal ended the experiment early: 128 + its number, as
/// shells report it (130 for SIGINT, 143 for SIGTERM, 129 for SIGHUP).
#[must_use]
pub fn interrupted_by(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(INTERNAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_documented_ones() {
        assert_eq!(
            [OK, RUN_FAILED, USAGE, NOT_MEASURED, INTERNAL],
            [0, 1, 2, 3, 4]
        );
        assert_eq!([2, 15, 1].map(interrupted_by), [130, 143, 129]);
    }
}
