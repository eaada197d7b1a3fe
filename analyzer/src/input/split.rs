//! Cuts a stream of bytes into top-level JSON values.
//!
//! Takes JSON lines, concatenated pretty-printed objects, and one array of
//! objects, all with or without CRLF. A value that was cut off costs itself and
//! nothing behind it: a line that starts with `{` in the first column starts a
//! new value, because no printer puts a nested object there except directly
//! behind `[`, `,` or `:`. Every byte is looked at no more than twice. Values
//! are not validated here; that is the reader's part.

use std::io::{self, Read};

use crate::problems::Code;

/// Largest record that is held in memory: a whole-file OTLP document is one
/// record. Larger ones are skipped and reported.
pub const RECORD_MAX_BYTES: usize = 256 * 1024 * 1024;
/// How much is read at a time.
const CHUNK_BYTES: usize = 256 * 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What the splitter hands out.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Bytes from `{` to its matching `}`.
    Value {
        /// The value.
        bytes: &'a [u8],
        /// Offset of its first byte, from 0.
        byte: u64,
        /// Line of its first byte, from 1.
        line: u64,
    },
    /// Bytes that were left out.
    Broken {
        /// What is wrong with them.
        code: Code,
        /// Why, in words.
        reason: String,
        /// Offset of the first of them, from 0.
        byte: u64,
        /// Line of the first of them, from 1.
        line: u64,
    },
}

/// Where the scan of one value stands; indices are into the buffer.
#[derive(Default)]
struct Scan {
    position: usize,
    depth: usize,
    in_string: bool,
    /// Last byte outside of strings that is not white space.
    significant: u8,
    /// First place where a new value may have begun inside this one.
    suspect: Option<usize>,
}

enum Outcome {
    Closed(usize),
    Torn(usize),
    NeedMore,
}

/// The splitter over one stream.
pub struct Splitter<R> {
    reader: R,
    buffer: Vec<u8>,
    /// Start of the unread bytes in `buffer`.
    start: usize,
    /// Offset in the stream of `buffer[0]`.
    base: u64,
    /// Line of `buffer[start]`.
    line: u64,
    at_end: bool,
    at_line_start: bool,
    began: bool,
    /// Up to here every first-column `{` starts a value.
    strict_until: u64,
    /// The value handed out last: its start, its line and its suspect, as offsets.
    last: Option<(u64, u64, u64)>,
}

impl Splitter<io::Empty> {
    /// Reads bytes that are all there, from a place where a value begins.
    #[must_use]
    pub fn over(bytes: Vec<u8>, byte: u64, line: u64) -> Self {
        Self {
            buffer: bytes,
            at_end: true,
            ..Self::resume(io::empty(), byte, line)
        }
    }
}

impl<R: Read> Splitter<R> {
    /// Starts at the beginning of `reader`.
    pub fn new(reader: R) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            start: 0,
            base: 0,
            line: 1,
            at_end: false,
            at_line_start: true,
            began: false,
            strict_until: 0,
            last: None,
        }
    }

    /// Starts at a place within a stream where a value begins.
    pub fn resume(reader: R, byte: u64, line: u64) -> Self {
        Self {
            base: byte,
            line,
            began: byte > 0,
            ..Self::new(reader)
        }
    }

    /// The buffer, when nothing more is wanted of it.
    pub fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// The line that starts here or behind a line end, when it is all there and
    /// opens and closes with braces: most likely one whole value. It is not
    /// passed over yet.
    pub fn whole_line(&mut self) -> Option<(&[u8], u64, u64)> {
        self.pass_line_ends();
        let rest = &self.buffer[self.start..];
        if !self.at_line_start || rest.first() != Some(&b'{') {
            return None;
        }
        let end = memchr::memchr(b'\n', rest);
        let line = &rest[..end.or_else(|| self.at_end.then_some(rest.len()))?];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let place = (self.base + self.start as u64, self.line);
        line.ends_with(b"}").then_some((line, place.0, place.1))
    }

    /// Passes over the end of a line whose value was handed out.
    fn pass_line_ends(&mut self) {
        // What begins with a brace has no byte order mark before it.
        self.began = self.began || self.buffer.get(self.start) == Some(&b'{');
        loop {
            let rest = &self.buffer[self.start..];
            let length = match rest {
                [b'\n', ..] => 1,
                [b'\r', b'\n', ..] => 2,
                _ => return,
            };
            self.advance(length);
            self.last = None;
        }
    }

    /// Passes over the line that [`Splitter::whole_line`] gave.
    pub fn pass_line(&mut self) {
        let rest = &self.buffer[self.start..];
        let length = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        self.start += length;
        self.line += 1;
        self.last = None;
        self.at_line_start = true;
    }

    /// The next value or broken stretch; `None` at the end of the stream.
    ///
    /// # Errors
    /// What the reader fails with.
    pub fn next_piece(&mut self) -> io::Result<Option<Piece<'_>>> {
        self.last = None;
        self.drop_consumed();
        if !self.began {
            self.began = true;
            if let Some(reason) = self.skip_byte_order_mark()? {
                return Ok(Some(Piece::Broken {
                    code: Code::ByteOrderMark,
                    reason,
                    byte: 0,
                    line: 1,
                }));
            }
        }
        loop {
            let Some(byte) = self.peek()? else {
                return Ok(None);
            };
            match byte {
                b'{' => return self.value().map(Some),
                b' ' | b'\t' | b'\r' | b'\n' | b'[' | b']' | b',' => self.advance(1),
                _ => return self.garbage().map(Some),
            }
        }
    }

    /// Says that the value handed out last is not valid JSON. Where another
    /// value may have begun inside it, reading goes on there and the answer is
    /// true: the broken part will come out as a piece of its own.
    pub fn reject(&mut self) -> bool {
        let Some((start, line, suspect)) = self.last.take() else {
            return false;
        };
        let end = self.base + self.start as u64;
        if suspect >= end {
            return false;
        }
        self.start = usize::try_from(start - self.base).unwrap_or(self.start);
        self.line = line;
        self.strict_until = end;
        true
    }

    /// Reads the value that starts at the current byte.
    fn value(&mut self) -> io::Result<Piece<'_>> {
        let mut scan = Scan {
            position: self.start,
            ..Scan::default()
        };
        let (end, closed) = loop {
            let strict_until =
                usize::try_from(self.strict_until.saturating_sub(self.base)).unwrap_or(0);
            match scan.run(&self.buffer, strict_until) {
                Outcome::Closed(end) => break (end, true),
                Outcome::Torn(end) => break (self.torn_at(&scan, end), false),
                Outcome::NeedMore if self.buffer.len() - self.start > RECORD_MAX_BYTES => {
                    return self.oversized();
                }
                Outcome::NeedMore => {
                    if !self.fill()? {
                        break (self.torn_at(&scan, self.buffer.len()), false);
                    }
                }
            }
        };
        let (byte, line) = (self.base + self.start as u64, self.line);
        let from = self.start;
        if !closed {
            let nul = self.buffer[from..end].contains(&0);
            self.advance(end - from);
            self.skip_to_line_start()?;
            let (code, reason) = if nul {
                (Code::NulBytes, "the record is filled with NUL bytes")
            } else {
                (
                    Code::TruncatedRecord,
                    "the record is cut off before its closing bracket",
                )
            };
            return Ok(Piece::Broken {
                code,
                reason: reason.to_owned(),
                byte,
                line,
            });
        }
        let suspect = scan
            .suspect
            .map_or(u64::MAX, |index| self.base + index as u64);
        self.last = Some((byte, line, suspect));
        self.advance(end - from);
        Ok(Piece::Value {
            bytes: &self.buffer[from..end],
            byte,
            line,
        })
    }

    /// Where a torn value ends: where another may have begun inside it, which
    /// is then tried on its own, else where the tear shows.
    fn torn_at(&mut self, scan: &Scan, end: usize) -> usize {
        let Some(suspect) = scan.suspect else {
            return end;
        };
        self.strict_until = self.strict_until.max(self.base + end as u64);
        suspect
    }

    fn oversized(&mut self) -> io::Result<Piece<'_>> {
        let (byte, line) = (self.base + self.start as u64, self.line);
        self.advance(1);
        self.skip_to_line_start()?;
        let reason = format!("the record is larger than {} MiB", RECORD_MAX_BYTES >> 20);
        Ok(Piece::Broken {
            code: Code::OversizedRecord,
            reason,
            byte,
            line,
        })
    }

    /// Skips bytes that start no value, to the next first-column `{`.
    fn garbage(&mut self) -> io::Result<Piece<'_>> {
        let (byte, line) = (self.base + self.start as u64, self.line);
        let nul = self.peek()? == Some(0);
        while nul && self.peek()? == Some(0) {
            self.advance(1);
        }
        if nul {
            self.at_line_start = true;
            let reason = "a run of NUL bytes stands between records".to_owned();
            return Ok(Piece::Broken {
                code: Code::NulBytes,
                reason,
                byte,
                line,
            });
        }
        self.advance(1);
        self.skip_to_line_start()?;
        let reason = "these bytes start no JSON object".to_owned();
        Ok(Piece::Broken {
            code: Code::Garbage,
            reason,
            byte,
            line,
        })
    }

    /// Goes on to the next line that starts with `{`, or to the end.
    fn skip_to_line_start(&mut self) -> io::Result<()> {
        loop {
            match self.peek()? {
                None => return Ok(()),
                Some(b'{') if self.at_line_start => return Ok(()),
                Some(_) => {}
            }
            let rest = &self.buffer[self.start..];
            let step = memchr::memchr(b'\n', rest).map_or(rest.len(), |index| index + 1);
            self.advance(step);
            self.drop_consumed();
        }
    }

    fn skip_byte_order_mark(&mut self) -> io::Result<Option<String>> {
        while self.buffer.len() < BYTE_ORDER_MARK.len() && self.fill()? {}
        if !self.buffer.starts_with(BYTE_ORDER_MARK) {
            return Ok(None);
        }
        self.start = BYTE_ORDER_MARK.len();
        Ok(Some(
            "the file starts with a byte order mark; it is skipped".to_owned(),
        ))
    }

    fn peek(&mut self) -> io::Result<Option<u8>> {
        while self.start == self.buffer.len() {
            self.drop_consumed();
            if !self.fill()? {
                return Ok(None);
            }
        }
        Ok(Some(self.buffer[self.start]))
    }

    fn advance(&mut self, count: usize) {
        let passed = &self.buffer[self.start..self.start + count];
        self.line += memchr::memchr_iter(b'\n', passed).count() as u64;
        if let Some(last) = passed.last() {
            self.at_line_start = *last == b'\n';
        }
        self.start += count;
    }

    /// Frees the bytes that were handed out; never moves them while borrowed.
    fn drop_consumed(&mut self) {
        // Nothing comes behind the end, so nothing needs the room.
        if self.at_end && self.start < self.buffer.len() {
            return;
        }
        if self.start >= CHUNK_BYTES || self.start == self.buffer.len() {
            self.buffer.drain(..self.start);
            self.base += self.start as u64;
            self.start = 0;
        }
    }

    fn fill(&mut self) -> io::Result<bool> {
        if self.at_end {
            return Ok(false);
        }
        let old = self.buffer.len();
        self.buffer.resize(old + CHUNK_BYTES, 0);
        let count = loop {
            match self.reader.read(&mut self.buffer[old..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.buffer.truncate(old);
                    return Err(error);
                }
                Ok(count) => break count,
            }
        };
        self.buffer.truncate(old + count);
        self.at_end = count == 0;
        Ok(count > 0)
    }
}

impl Scan {
    /// Goes on until the value closes, is found torn, or `bytes` are used up.
    fn run(&mut self, bytes: &[u8], strict_until: usize) -> Outcome {
        while self.position < bytes.len() {
            if self.in_string {
                match self.skip_string(bytes) {
                    Some(outcome) => return outcome,
                    None => continue,
                }
            }
            let index = self.position;
            let byte = bytes[index];
            self.position += 1;
            match byte {
                b'"' => self.in_string = true,
                b'{' if self.depth > 0 && index > 0 && bytes[index - 1] == b'\n' => {
                    let expected = matches!(self.significant, b'[' | b',' | b':');
                    if !expected || index < strict_until {
                        return Outcome::Torn(index);
                    }
                    self.suspect.get_or_insert(index);
                    self.depth += 1;
                }
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Outcome::Closed(self.position);
                    }
                }
                _ => {}
            }
            if !byte.is_ascii_whitespace() {
                self.significant = byte;
            }
        }
        Outcome::NeedMore
    }

    /// Goes on inside a string; `None` when it ended or `bytes` are used up.
    fn skip_string(&mut self, bytes: &[u8]) -> Option<Outcome> {
        let rest = &bytes[self.position..];
        let Some(step) = memchr::memchr3(b'"', b'\\', b'\n', rest) else {
            self.position = bytes.len();
            return None;
        };
        let index = self.position + step;
        match bytes[index] {
            b'"' => self.in_string = false,
            // A string holds no raw line end: it was cut.
            b'\n' => return Some(Outcome::Torn(index)),
            _ if index + 1 == bytes.len() => {
                // The escaped byte is not read yet; look at the backslash again then.
                self.position = index;
                return Some(Outcome::NeedMore);
            }
            _ => {
                self.position = index + 2;
                return None;
            }
        }
        self.position = index + 1;
        None
    }
}

#[cfg(test)]
mod tests;
