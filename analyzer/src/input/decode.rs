//! Plain bytes out of plain, gzip or zstd bytes, told apart by magic number.
//!
//! All members of a gzip file and all frames of a zstd file are read; a zstd
//! frame may ask for a window of 128 MiB at most. Damaged or cut compressed data ends the
//! stream early with a remark; what came before it is kept.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Skippable frames of zstd are 0x184d2a50 to 0x184d2a5f, little-endian.
const SKIPPABLE_FIRST: u8 = 0x50;
const SKIPPABLE_TAIL: [u8; 3] = [0x2a, 0x4d, 0x18];
/// Read-ahead: large enough that system calls do not show, small enough to stay in cache.
const BUFFER_BYTES: usize = 256 * 1024;

/// A reader of decompressed bytes.
pub struct Decoded<R: Read> {
    inner: Inner<R>,
    damage: Option<String>,
}

enum Inner<R: Read> {
    Plain(BufReader<R>),
    Gzip(Box<MultiGzDecoder<BufReader<R>>>),
    Zstd(Box<Frames<R>>),
}

impl<R: Read> Decoded<R> {
    /// Looks at the first bytes and chooses the decoder.
    ///
    /// # Errors
    /// What the reader fails with.
    pub fn new(reader: R) -> io::Result<Self> {
        let mut buffered = BufReader::with_capacity(BUFFER_BYTES, reader);
        let head = buffered.fill_buf()?;
        let inner = if is_zstd(head) {
            Inner::Zstd(Box::new(Frames::Between(buffered)))
        } else if head.starts_with(&GZIP_MAGIC) {
            Inner::Gzip(Box::new(MultiGzDecoder::new(buffered)))
        } else {
            Inner::Plain(buffered)
        };
        Ok(Self {
            inner,
            damage: None,
        })
    }

    /// Why decompression ended early, if it did.
    #[must_use]
    pub fn damage(&self) -> Option<String> {
        self.damage.clone()
    }
}

impl<R: Read> Read for Decoded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.inner {
            Inner::Plain(reader) => reader.read(buffer),
            _ if self.damage.is_some() => Ok(0),
            Inner::Gzip(reader) => keep_damage(reader.read(buffer), &mut self.damage),
            Inner::Zstd(frames) => keep_damage(frames.read(buffer), &mut self.damage),
        }
    }
}

/// Damaged data ends the stream; what the disk says stays an error.
fn keep_damage(read: io::Result<usize>, damage: &mut Option<String>) -> io::Result<usize> {
    match read {
        Err(error) if is_damage(&error) => {
            *damage = Some(format!("compressed data is damaged or cut: {error}"));
            Ok(0)
        }
        other => other,
    }
}

/// The frames of a zstd file, one after the other.
enum Frames<R: Read> {
    Between(BufReader<R>),
    Within(Box<StreamingDecoder<BufReader<R>, FrameDecoder>>),
    Done,
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(self, Self::Done) {
                Self::Done => return Ok(0),
                Self::Between(mut source) => {
                    if source.fill_buf()?.is_empty() {
                        return Ok(0);
                    }
                    *self = begin_frame(source)?;
                }
                Self::Within(mut decoder) => match decoder.read(buffer)? {
                    0 if !buffer.is_empty() => *self = Self::Between(decoder.into_inner()),
                    count => {
                        *self = Self::Within(decoder);
                        return Ok(count);
                    }
                },
            }
        }
    }
}

/// Starts the next frame, or passes over one that holds no data.
fn begin_frame<R: Read>(mut source: BufReader<R>) -> io::Result<Frames<R>> {
    let head = source.fill_buf()?;
    // A magic number across two reads is not told apart here; the decoder says so.
    if head.len() >= 4 && head[1..4] == SKIPPABLE_TAIL && head[0] & 0xf0 == SKIPPABLE_FIRST {
        let mut header = [0; 8];
        source.read_exact(&mut header)?;
        let length = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
        let skipped = io::copy(
            &mut source.by_ref().take(u64::from(length)),
            &mut io::sink(),
        )?;
        if skipped < u64::from(length) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        return Ok(Frames::Between(source));
    }
    match StreamingDecoder::new(source) {
        Ok(decoder) => Ok(Frames::Within(Box::new(decoder))),
        Err(error) => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            error.to_string(),
        )),
    }
}

fn is_zstd(head: &[u8]) -> bool {
    head.starts_with(&ZSTD_MAGIC)
        || head.len() >= 4 && head[1..4] == SKIPPABLE_TAIL && head[0] & 0xf0 == SKIPPABLE_FIRST
}

/// What a decoder says; an error of the operating system carries its number.
fn is_damage(error: &io::Error) -> bool {
    error.raw_os_error().is_none() && error.kind() != io::ErrorKind::Interrupted
}
