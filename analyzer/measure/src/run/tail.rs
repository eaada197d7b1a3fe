//! The last part of a program's output, for the record of a failed run.

/// Bytes that are kept of each stream.
pub(super) const TAIL_MAX_BYTES: usize = 64 * 1024;

/// Memory that is set aside before the spawn: small enough to come from memory
/// that was used before, whose pages need not be faulted in.
const START_BYTES: usize = 8 * 1024;

/// The end of a stream of any length, in bounded memory.
#[derive(Debug)]
pub(super) struct Tail {
    bytes: Vec<u8>,
}

impl Tail {
    /// Sets memory aside for what a program usually says.
    pub(super) fn new() -> Self {
        Self {
            bytes: Vec::with_capacity(START_BYTES),
        }
    }

    /// Takes the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let new = &bytes[bytes.len().saturating_sub(TAIL_MAX_BYTES)..];
        if self.bytes.len() + new.len() > 2 * TAIL_MAX_BYTES {
            let keep = TAIL_MAX_BYTES - new.len();
            self.bytes.drain(..self.bytes.len() - keep);
        }
        self.bytes.extend_from_slice(new);
    }

    /// The last [`TAIL_MAX_BYTES`], with what is no UTF-8 replaced.
    pub(super) fn text(&self) -> String {
        let from = self.bytes.len().saturating_sub(TAIL_MAX_BYTES);
        String::from_utf8_lossy(&self.bytes[from..]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(piece: usize) {
        let stream: Vec<u8> = (0..500_000_u32)
            .map(|n| b'a' + u8::try_from(n % 23).unwrap())
            .collect();
        let mut tail = Tail::new();
        for part in stream.chunks(piece) {
            tail.push(part);
        }
        let last = &stream[stream.len() - TAIL_MAX_BYTES..];
        assert!(tail.text().as_bytes() == last, "pieces of {piece}");
        assert!(tail.bytes.len() <= 2 * TAIL_MAX_BYTES);
    }

    #[test]
    fn the_last_64_kib_are_kept_whatever_the_pieces() {
        for piece in [1_000, 4_096, 65_536, 70_000, 131_072, 400_000] {
            check(piece);
        }
    }

    #[test]
    fn a_short_stream_is_kept_whole() {
        let mut tail = Tail::new();
        tail.push(b"a\xff");
        tail.push(b"b");
        assert_eq!(tail.text(), "a\u{fffd}b");
    }
}
