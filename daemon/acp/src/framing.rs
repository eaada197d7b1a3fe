//! One JSON-RPC message a line: bytes in, lines out.
//!
//! The buffer never reads by itself and never holds more than one line's bound
//! plus what was pushed since the last line was taken. A line beyond the bound
//! is thrown away as it arrives and reported once, and reading goes on after it.

use memchr::{memchr, memrchr};
use std::fmt;

/// Bound of one line, bytes: real agents send lines of 560 KB (a list of
/// commands), and prompts carry images of 10 MiB in base64 (13.4 MiB); 16 MiB
/// holds both and is still affordable per connection.
pub const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

/// Bytes of an empty buffer that are kept for the next line; more is given back,
/// so that one long line does not stay in memory for the connection's life.
const RETAINED_BYTES: usize = 64 * 1024;

/// A line that was longer than the bound and is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineTooLong {
    /// Length of the line without its newline, bytes.
    pub bytes: u64,
}

impl fmt::Display for LineTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a line of {} bytes is longer than allowed", self.bytes)
    }
}

impl std::error::Error for LineTooLong {}

/// Cuts a byte stream into lines. Use: push a chunk, take lines until `None`.
#[derive(Debug)]
pub struct LineBuffer {
    max_line_bytes: usize,
    buffer: Vec<u8>,
    /// Where the next line begins; `start <= scanned <= buffer.len()`.
    start: usize,
    /// Bytes from `start` up to here hold no newline.
    scanned: usize,
    /// Bytes of the too-long line that is being thrown away.
    skipping: Option<u64>,
    /// A too-long line that has ended and is not reported yet; it stands before
    /// everything in `buffer`.
    ended: Option<LineTooLong>,
}

impl LineBuffer {
    /// An empty buffer for lines of at most `max_line_bytes`, newline excluded.
    #[must_use]
    pub const fn new(max_line_bytes: usize) -> Self {
        Self {
            max_line_bytes,
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            skipping: None,
            ended: None,
        }
    }

    /// Takes the next bytes of the stream, cut anywhere.
    pub fn push(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        if let Some(skipped) = &mut self.skipping {
            let end = memchr(b'\n', rest);
            *skipped += end.unwrap_or(rest.len()) as u64;
            let Some(end) = end else { return };
            self.ended = self.skipping.take().map(|bytes| LineTooLong { bytes });
            rest = &rest[end + 1..];
        }
        self.buffer.extend_from_slice(rest);
    }

    /// The next line without its line end (`\n` or `\r\n`), or a report of one
    /// that was too long; `None` when more bytes are needed. Blank lines are
    /// passed over.
    pub fn next_line(&mut self) -> Option<Result<Vec<u8>, LineTooLong>> {
        if let Some(ended) = self.ended.take() {
            return Some(Err(ended));
        }
        while let Some(offset) = memchr(b'\n', &self.buffer[self.scanned..]) {
            let end = self.scanned + offset;
            let length = end - self.start;
            if length > self.max_line_bytes {
                self.pass(end + 1);
                let bytes = length as u64;
                return Some(Err(LineTooLong { bytes }));
            }
            let line = self.take(end);
            if !is_blank(&line) {
                return Some(Ok(line));
            }
        }
        self.wait_for_more();
        None
    }

    /// The last line where the stream ended without a newline; call it at end of
    /// file, after [`Self::next_line`] returned `None`. A line that was being
    /// thrown away is reported by the next [`Self::next_line`].
    pub fn finish(&mut self) -> Option<Vec<u8>> {
        if let Some(bytes) = self.skipping.take() {
            self.ended = Some(LineTooLong { bytes });
        }
        let begin = memrchr(b'\n', &self.buffer).map_or(self.start, |newline| newline + 1);
        let mut tail = self.buffer.split_off(begin.max(self.start));
        self.scanned = self.scanned.min(self.buffer.len());
        if tail.len() > self.max_line_bytes {
            let bytes = tail.len() as u64;
            self.ended = Some(LineTooLong { bytes });
            return None;
        }
        strip_carriage_return(&mut tail);
        (!is_blank(&tail)).then_some(tail)
    }

    /// Removes the line that ends before `end`; without a copy where it is all there is.
    fn take(&mut self, end: usize) -> Vec<u8> {
        let mut line = if self.start == 0 && end + 1 == self.buffer.len() {
            let mut line = std::mem::take(&mut self.buffer);
            line.truncate(end);
            self.scanned = 0;
            line
        } else {
            let line = self.buffer[self.start..end].to_vec();
            self.pass(end + 1);
            line
        };
        strip_carriage_return(&mut line);
        line
    }

    fn pass(&mut self, next: usize) {
        self.start = next;
        self.scanned = next;
    }

    /// Drops what was taken, and begins to skip when the open line is too long.
    fn wait_for_more(&mut self) {
        let open = self.buffer.len() - self.start;
        if open > self.max_line_bytes {
            self.skipping = Some(open as u64);
            self.buffer.clear();
        } else if self.start > 0 {
            self.buffer.drain(..self.start);
        }
        self.start = 0;
        self.scanned = self.buffer.len();
        if self.buffer.is_empty() && self.buffer.capacity() > RETAINED_BYTES {
            self.buffer = Vec::new();
        }
    }
}

fn strip_carriage_return(line: &mut Vec<u8>) {
    if line.last() == Some(&b'\r') {
        line.pop();
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Lines as text, a too-long one as `!bytes`.
    fn lines(max: usize, chunks: &[&[u8]]) -> Vec<String> {
        let mut buffer = LineBuffer::new(max);
        let mut out = Vec::new();
        for chunk in chunks {
            buffer.push(chunk);
            drain(&mut buffer, &mut out);
        }
        let tail = buffer.finish();
        drain(&mut buffer, &mut out);
        out.extend(tail.map(|tail| String::from_utf8(tail).unwrap()));
        out
    }

    fn drain(buffer: &mut LineBuffer, out: &mut Vec<String>) {
        while let Some(line) = buffer.next_line() {
            out.push(match line {
                Ok(line) => String::from_utf8(line).unwrap(),
                Err(error) => format!("!{}", error.bytes),
            });
        }
    }

    #[track_caller]
    fn check(max: usize, chunks: &[&[u8]], expected: &[&str]) {
        assert_eq!(lines(max, chunks), expected);
    }

    #[test]
    fn lines_end_in_newline_or_crlf_and_blank_ones_are_passed_over() {
        check(9, &[b"a\nb\r\n\n \r\nc"], &["a", "b", "c"]);
        check(9, &[b"a", b"b", b"\r", b"\nc\n"], &["ab", "c"]);
        check(9, &[b"", b"\n"], &[]);
    }

    #[test]
    fn a_line_at_the_bound_passes_and_one_byte_more_is_reported_in_its_place() {
        check(4, &[b"abcd\nabcde\nf\n"], &["abcd", "!5", "f"]);
        check(4, &[b"x\nab", b"cde", b"fgh\nf\n"], &["x", "!8", "f"]);
        check(4, &[b"abcde", b"f"], &["!6"]);
        check(4, &[b"abcd"], &["abcd"]);
    }

    #[test]
    fn two_long_lines_are_two_reports() {
        check(2, &[b"abc", b"d\nefg", b"h", b"\ni\n"], &["!4", "!4", "i"]);
    }

    #[test]
    fn a_tail_pushed_without_taking_lines_keeps_its_place_and_its_bound() {
        let mut buffer = LineBuffer::new(4);
        buffer.push(b"a\nb");
        assert_eq!(buffer.finish(), Some(b"b".to_vec()));
        assert_eq!(buffer.next_line(), Some(Ok(b"a".to_vec())));
        assert_eq!(buffer.next_line(), None);
        buffer.push(b"abcde");
        assert_eq!(buffer.finish(), None);
        assert_eq!(buffer.next_line(), Some(Err(LineTooLong { bytes: 5 })));
    }

    #[test]
    fn a_line_without_end_holds_no_more_than_the_bound_and_a_chunk() {
        let mut buffer = LineBuffer::new(1_000);
        for _ in 0..10_000 {
            buffer.push(&[b'x'; 500]);
            assert_eq!(buffer.next_line(), None);
            assert!(buffer.buffer.len() <= 1_500);
        }
        buffer.push(b"\nnext\n");
        let bytes = 5_000_000;
        assert_eq!(buffer.next_line(), Some(Err(LineTooLong { bytes })));
        assert_eq!(buffer.next_line(), Some(Ok(b"next".to_vec())));
    }

    #[test]
    fn memory_of_a_long_line_is_given_back() {
        let mut buffer = LineBuffer::new(MAX_LINE_BYTES);
        buffer.push(&vec![b'x'; 600_000]);
        buffer.push(b"\n{}\n");
        while buffer.next_line().is_some() {}
        assert!(buffer.buffer.capacity() <= RETAINED_BYTES);
    }

    proptest! {
        #[test]
        fn chunks_never_change_the_lines(
            text in "[ab\r\n]{0,80}",
            cuts in proptest::collection::vec(0_usize..80, 0..12),
            max in 1_usize..9,
        ) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<_> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            prop_assert_eq!(lines(max, &chunks), lines_by_split(max, &text));
        }
    }

    /// The same rule on the whole text at once.
    fn lines_by_split(max: usize, text: &str) -> Vec<String> {
        text.split('\n')
            .filter_map(|line| {
                if line.len() > max {
                    return Some(format!("!{}", line.len()));
                }
                let line = line.strip_suffix('\r').unwrap_or(line);
                (!line.trim().is_empty()).then(|| line.to_owned())
            })
            .collect()
    }
}
