//! Cuts a stream into blocks that begin and end between records, so that several
//! threads can read them.
//!
//! A block ends where a line that ends with `}` is followed by one that starts
//! with `{`: there the splitter starts a new value whatever came before, so a
//! block read by itself gives what it gives within its file. A stretch without
//! such a place grows its block; beyond [`BLOCK_MAX_BYTES`] the rest of the
//! stream is left to be read in sequence.

use std::io::{self, Read};
use std::sync::{Arc, Mutex};

use super::split::RECORD_MAX_BYTES;

/// Usual size of a block: large against a line, small against a cache.
const BLOCK_BYTES: usize = 1024 * 1024;
/// A block of one record that is just not too large for the splitter.
const BLOCK_MAX_BYTES: usize = RECORD_MAX_BYTES;

/// Bytes between two places where records begin.
#[derive(Debug)]
pub struct Block {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Offset of the first, from 0.
    pub byte: u64,
    /// Line of the first, from 1.
    pub line: u64,
}

/// The blocks of one stream.
pub struct Blocks<R> {
    reader: R,
    /// Read and not handed out.
    held: Vec<u8>,
    byte: u64,
    line: u64,
    at_end: bool,
    /// Usual size of a block.
    size: usize,
    spare: Arc<Spare>,
}

/// Buffers of blocks that were read, to be filled again: fresh memory costs a
/// page fault for every 4 KiB of a file.
#[derive(Debug, Default)]
pub struct Spare(Mutex<Vec<Vec<u8>>>);

impl Spare {
    /// Gives a buffer back. Those that grew for one large record are let go.
    pub fn give(&self, mut buffer: Vec<u8>) {
        if let Ok(mut buffers) = self.0.lock()
            && buffer.capacity() <= 2 * BLOCK_BYTES
        {
            buffer.clear();
            buffers.push(buffer);
        }
    }

    fn take(&self) -> Vec<u8> {
        let found = self.0.lock().ok().and_then(|mut buffers| buffers.pop());
        found.unwrap_or_default()
    }
}

/// What comes next.
pub enum Next {
    /// A block.
    Block(Block),
    /// No place to cut was found; go on with [`Blocks::into_rest`].
    TooLong,
    /// The end of the stream.
    End,
}

impl<R: Read> Blocks<R> {
    /// Starts at the beginning of `reader`.
    pub fn new(reader: R) -> Self {
        Self::of(reader, BLOCK_BYTES)
    }

    /// Likewise, with blocks of about this many bytes.
    pub fn of(reader: R, size: usize) -> Self {
        Self {
            reader,
            size,
            held: Vec::new(),
            byte: 0,
            line: 1,
            at_end: false,
            spare: Arc::default(),
        }
    }

    /// Where buffers of blocks go when they were read.
    pub fn spare(&self) -> Arc<Spare> {
        Arc::clone(&self.spare)
    }

    /// The next block.
    ///
    /// # Errors
    /// What the reader fails with.
    pub fn next_block(&mut self) -> io::Result<Next> {
        let mut wanted = self.size;
        loop {
            self.fill(wanted)?;
            if self.at_end {
                let bytes = std::mem::take(&mut self.held);
                return Ok(self.hand_out(bytes));
            }
            if let Some(end) = last_border(&self.held) {
                let mut rest = self.spare.take();
                rest.extend_from_slice(&self.held[end..]);
                self.held.truncate(end);
                let bytes = std::mem::replace(&mut self.held, rest);
                return Ok(self.hand_out(bytes));
            }
            if wanted >= BLOCK_MAX_BYTES {
                return Ok(Next::TooLong);
            }
            wanted = (wanted * 2).min(BLOCK_MAX_BYTES);
        }
    }

    /// Whether everything was handed out.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.at_end && self.held.is_empty()
    }

    /// The bytes that are left, with the offset and the line of the first.
    pub fn into_rest(self) -> (impl Read, u64, u64) {
        let held = io::Cursor::new(self.held);
        (held.chain(self.reader), self.byte, self.line)
    }

    fn hand_out(&mut self, bytes: Vec<u8>) -> Next {
        if bytes.is_empty() {
            return Next::End;
        }
        let (byte, line) = (self.byte, self.line);
        self.byte += bytes.len() as u64;
        self.line += memchr::memchr_iter(b'\n', &bytes).count() as u64;
        Next::Block(Block { bytes, byte, line })
    }

    /// Reads until `wanted` bytes are held or the stream ends.
    fn fill(&mut self, wanted: usize) -> io::Result<()> {
        if self.held.len() < wanted && !self.at_end {
            self.held.reserve(wanted - self.held.len());
            let missing = (wanted - self.held.len()) as u64;
            let read = self.reader.by_ref().take(missing);
            self.at_end = read_to(read, &mut self.held)? < missing;
        }
        Ok(())
    }
}

fn read_to(mut reader: impl Read, held: &mut Vec<u8>) -> io::Result<u64> {
    Ok(reader.read_to_end(held)? as u64)
}

/// Where the last record begins that follows a closed one on a line of its own.
fn last_border(bytes: &[u8]) -> Option<usize> {
    memchr::memrchr_iter(b'\n', bytes)
        .find(|end| {
            let line = bytes[..*end].strip_suffix(b"\r").unwrap_or(&bytes[..*end]);
            line.ends_with(b"}") && bytes.get(end + 1) == Some(&b'{')
        })
        .map(|end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_border_lies_between_a_closed_and_an_opened_record() {
        assert_eq!(last_border(b"{}\n{}\n{\"a\":1"), Some(6));
        assert_eq!(last_border(b"{}\r\n{}"), Some(4));
        // An object in a list is no place to cut, nor is the end of what was read.
        assert_eq!(last_border(b"[\n{},\n{}\n"), None);
        assert_eq!(last_border(b""), None);
    }

    #[test]
    fn blocks_are_the_stream_with_places() {
        let line = format!("{{\"x\":\"{}\"}}\n", "y".repeat(700_000));
        let text = line.repeat(3);
        let mut blocks = Blocks::new(text.as_bytes());
        let (mut bytes, mut places) = (Vec::new(), Vec::new());
        while let Next::Block(block) = blocks.next_block().unwrap() {
            places.push((block.byte, block.line));
            bytes.extend(block.bytes);
        }
        assert_eq!(bytes, text.as_bytes());
        let length = line.len() as u64;
        assert_eq!(places, [(0, 1), (length, 2), (2 * length, 3)]);
        assert!(blocks.is_done());
    }
}
