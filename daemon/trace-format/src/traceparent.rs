//! W3C trace context: the `traceparent` header, strictly.
//!
//! Source: W3C Trace Context, section 3.2. Version `00` must be exactly 55
//! bytes; a higher version is read by its first 55 bytes when they are followed
//! by the end or a dash; version `ff`, upper-case hex and all-zero ids are invalid.

use std::fmt;

/// A valid trace context: who the parent is and whether it is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceParent {
    trace_id: [u8; 16],
    span_id: [u8; 8],
    flags: u8,
}

/// Why a `traceparent` is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceParentError {
    /// Shorter than 55 bytes, or longer than its version allows.
    Length,
    /// Version `ff`, or a version that is not two lower-case hex digits.
    Version,
    /// An id or the flags are not lower-case hex, or a dash is missing.
    Syntax,
    /// The trace id or the span id is all zeros.
    ZeroId,
}

impl fmt::Display for TraceParentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Length => "traceparent has the wrong length",
            Self::Version => "traceparent has an invalid version",
            Self::Syntax => "traceparent is not lower-case hex with dashes",
            Self::ZeroId => "traceparent has an all-zero id",
        })
    }
}

impl std::error::Error for TraceParentError {}

impl TraceParent {
    /// Makes a context of its parts.
    ///
    /// # Errors
    /// [`TraceParentError::ZeroId`] when either id is all zeros.
    pub fn from_parts(
        trace_id: [u8; 16],
        span_id: [u8; 8],
        flags: u8,
    ) -> Result<Self, TraceParentError> {
        if trace_id == [0; 16] || span_id == [0; 8] {
            return Err(TraceParentError::ZeroId);
        }
        Ok(Self {
            trace_id,
            span_id,
            flags,
        })
    }

    /// Reads a header or environment value, without surrounding white space.
    ///
    /// # Errors
    /// One [`TraceParentError`] for each rule of the standard.
    pub fn parse(text: &str) -> Result<Self, TraceParentError> {
        let bytes = text.as_bytes();
        if bytes.len() < 55 {
            return Err(TraceParentError::Length);
        }
        let version = hex::<1>(&bytes[..2]).ok_or(TraceParentError::Version)?[0];
        match version {
            0xff => return Err(TraceParentError::Version),
            0 if bytes.len() != 55 => return Err(TraceParentError::Length),
            _ if bytes.len() > 55 && bytes[55] != b'-' => return Err(TraceParentError::Length),
            _ => {}
        }
        if bytes[2] != b'-' || bytes[35] != b'-' || bytes[52] != b'-' {
            return Err(TraceParentError::Syntax);
        }
        let trace_id = hex(&bytes[3..35]).ok_or(TraceParentError::Syntax)?;
        let span_id = hex(&bytes[36..52]).ok_or(TraceParentError::Syntax)?;
        let flags = hex::<1>(&bytes[53..55]).ok_or(TraceParentError::Syntax)?[0];
        Self::from_parts(trace_id, span_id, flags)
    }

    /// The trace id, never all zeros.
    #[must_use]
    pub fn trace_id(&self) -> [u8; 16] {
        self.trace_id
    }

    /// The parent's span id, never all zeros.
    #[must_use]
    pub fn span_id(&self) -> [u8; 8] {
        self.span_id
    }

    /// The flags; bit 0 is `sampled`.
    #[must_use]
    pub fn flags(&self) -> u8 {
        self.flags
    }

    /// Whether the `sampled` flag is set.
    #[must_use]
    pub fn sampled(&self) -> bool {
        self.flags & 1 == 1
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("00-")?;
        for byte in self.trace_id {
            write!(f, "{byte:02x}")?;
        }
        f.write_str("-")?;
        for byte in self.span_id {
            write!(f, "{byte:02x}")?;
        }
        write!(f, "-{:02x}", self.flags)
    }
}

fn hex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut out = [0; N];
    for (byte, pair) in out.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    (text.len() == 2 * N).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[track_caller]
    fn check(text: &str, expected: Result<&str, TraceParentError>) {
        let read = TraceParent::parse(text).map(|context| context.to_string());
        assert_eq!(read, expected.map(str::to_owned), "{text}");
    }

    #[test]
    fn the_example_of_the_standard_is_read_and_written_back() {
        check(VALID, Ok(VALID));
        assert!(TraceParent::parse(VALID).unwrap().sampled());
    }

    #[test]
    fn a_higher_version_is_read_by_its_first_55_bytes() {
        check(&VALID.replace("00-4b", "01-4b"), Ok(VALID));
        check(
            &format!("{}-more", VALID.replace("00-4b", "cc-4b")),
            Ok(VALID),
        );
        check(
            &format!("{}.more", VALID.replace("00-4b", "cc-4b")),
            Err(TraceParentError::Length),
        );
    }

    #[test]
    fn what_the_standard_forbids_is_refused() {
        check("", Err(TraceParentError::Length));
        check(&format!("{VALID}-more"), Err(TraceParentError::Length));
        check(
            &VALID.replace("00-4b", "ff-4b"),
            Err(TraceParentError::Version),
        );
        check(&VALID.to_uppercase(), Err(TraceParentError::Syntax));
        check(&VALID.replace('-', "_"), Err(TraceParentError::Syntax));
        check(
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            Err(TraceParentError::ZeroId),
        );
        check(
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            Err(TraceParentError::ZeroId),
        );
        check(
            "é0-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            Err(TraceParentError::Version),
        );
    }
}
