//! Plain bytes out of plain or gzip bytes, told apart by magic number.
//!
//! All members of a gzip file are read. Damaged or cut compressed data ends the
//! stream early with a remark; what came before it is kept.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
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
}

impl<R: Read> Decoded<R> {
    /// Looks at the first bytes and chooses the decoder.
    ///
    /// # Errors
    /// What the reader fails with, and a clear one for zstd, which is not read.
    pub fn new(reader: R) -> io::Result<Self> {
        let mut buffered = BufReader::with_capacity(BUFFER_BYTES, reader);
        let head = buffered.fill_buf()?;
        if head.starts_with(&ZSTD_MAGIC) {
            let reason = "zstd is not read in this version; decompress it first (`zstd -d`)";
            return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
        }
        let inner = if head.starts_with(&GZIP_MAGIC) {
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
            Inner::Gzip(_) if self.damage.is_some() => Ok(0),
            Inner::Gzip(reader) => match reader.read(buffer) {
                Err(error) if is_damage(&error) => {
                    self.damage = Some(format!("compressed data is damaged or cut: {error}"));
                    Ok(0)
                }
                other => other,
            },
        }
    }
}

fn is_damage(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    matches!(error.kind(), InvalidData | InvalidInput | UnexpectedEof)
}
