//! The token by which the processes of a run are known.
//!
//! `<32 hex digits of the experiment>-<number of the run>-`: random, so that no
//! other process holds it by chance or by design; common to an experiment in
//! front, so that one text finds what is left of all its runs. It stands in no
//! output: who knows it could have a process of theirs ended by the next sweep.

use rustix::rand::{GetRandomFlags, getrandom};
use std::fmt;

/// Bytes of randomness in a prefix.
const RANDOM_BYTES: usize = 16;

/// What all tokens of one `measure` begin with.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenPrefix(String);

/// A text that the tokens of one run, or of a whole experiment, begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenPattern<'a>(&'a str);

/// The token of one run.
#[derive(Clone, PartialEq, Eq)]
pub struct RunToken(String);

impl TokenPrefix {
    /// Draws a new one.
    ///
    /// # Errors
    /// The kernel gives no random bytes; nothing may be started then.
    pub fn random() -> std::io::Result<Self> {
        let mut bytes = [0_u8; RANDOM_BYTES];
        let drawn = getrandom(&mut bytes[..], GetRandomFlags::empty())?;
        if drawn != RANDOM_BYTES {
            return Err(std::io::Error::other("too few random bytes"));
        }
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self(hex.concat()))
    }

    /// Takes a prefix that was handed over; `None` unless it is 32 lower-case hex
    /// digits, so that nothing shorter is ever searched for.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (text.len() == 2 * RANDOM_BYTES && text.bytes().all(hex)).then(|| Self(text.to_owned()))
    }

    /// The token of a run.
    #[must_use]
    pub fn run(&self, index: usize) -> RunToken {
        RunToken(format!("{}-{index}-", self.0))
    }

    /// Finds every run.
    #[must_use]
    pub fn pattern(&self) -> TokenPattern<'_> {
        TokenPattern(&self.0)
    }

    /// The text, for the watchdog.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl RunToken {
    /// Finds the processes of this run.
    #[must_use]
    pub fn pattern(&self) -> TokenPattern<'_> {
        TokenPattern(&self.0)
    }

    /// The text, for the environment of the run.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TokenPattern<'_> {
    /// Whether an environment (`NAME=value`, each ended by a zero byte) holds a
    /// token of this pattern.
    #[must_use]
    pub fn is_in(self, environ: &[u8]) -> bool {
        environ.split(|&byte| byte == 0).any(|entry| {
            entry
                .strip_prefix(coldpath_trace_format::env::RUN_TOKEN.as_bytes())
                .and_then(|rest| rest.strip_prefix(b"="))
                .is_some_and(|value| value.starts_with(self.0.as_bytes()))
        })
    }
}

impl fmt::Debug for TokenPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenPrefix(…)")
    }
}

impl fmt::Debug for RunToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunToken(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFIX: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn a_run_is_found_by_its_own_token_and_by_its_experiment_s() {
        let prefix = TokenPrefix::parse(PREFIX).unwrap();
        let environ = format!(
            "PATH=/bin\0COLDPATH_RUN_TOKEN={}\0HOME=/\0",
            prefix.run(1).as_str()
        );
        assert!(prefix.pattern().is_in(environ.as_bytes()));
        assert!(prefix.run(1).pattern().is_in(environ.as_bytes()));
        // Run 1 is no part of run 11, nor the other way round.
        assert!(!prefix.run(11).pattern().is_in(environ.as_bytes()));
        let eleven = format!("COLDPATH_RUN_TOKEN={}", prefix.run(11).as_str());
        assert!(!prefix.run(1).pattern().is_in(eleven.as_bytes()));
    }

    #[test]
    fn other_variables_that_hold_the_text_do_not_count() {
        let prefix = TokenPrefix::parse(PREFIX).unwrap();
        for environ in [
            format!("X={PREFIX}\0"),
            format!("X=COLDPATH_RUN_TOKEN={PREFIX}\0"),
            format!("COLDPATH_RUN_TOKEN2={PREFIX}\0"),
            format!("COLDPATH_RUN_TOKEN=x{PREFIX}\0"),
            String::new(),
        ] {
            assert!(!prefix.pattern().is_in(environ.as_bytes()), "{environ}");
        }
    }

    #[test]
    fn only_a_whole_prefix_is_taken() {
        for text in ["", "01", &PREFIX.to_uppercase(), &format!("{PREFIX}0")] {
            assert_eq!(TokenPrefix::parse(text), None);
        }
        let drawn = TokenPrefix::random().unwrap();
        assert_eq!(TokenPrefix::parse(drawn.as_str()), Some(drawn.clone()));
        assert_ne!(drawn, TokenPrefix::random().unwrap());
    }
}
