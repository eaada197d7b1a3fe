//! Reading: bytes to spans, profiles and client records, with problems beside them.
//!
//! A file is opened ([`sources`]), decompressed ([`decode`]), cut into top-level
//! JSON values ([`split`]), each value told apart by its keys ([`record`]) and
//! read by the module of its kind. A [`batch::Batch`] takes the results; it owns
//! all it needs, so that several can be filled by several threads and merged.
//! Content decides everything; names of files are only printed.

pub mod batch;
pub mod blocks;
pub mod canonical;
pub mod chrome;
pub mod client;
pub mod decode;
pub mod jaeger;
pub mod js_sdk;
pub mod lenient;
pub mod manifest;
pub mod merge;
pub mod otlp;
pub mod profile;
pub mod record;
mod room;
pub mod sources;
pub mod split;

use std::io::Read;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, ScopedJoinHandle};

use sha2::{Digest, Sha256};

use crate::problems::{Code, Place};
use batch::Batch;
use blocks::{Block, Blocks, Next, Spare};
use sources::{Source, SourceError};
use split::{Piece, Splitter};

/// Threads that parse a large file, beside the one that reads and cuts it: the
/// machines that this is run on have two processors.
const READERS: usize = 2;
/// Larger manifests are not read: one of 10,000 runs has a tenth of it.
const MANIFEST_MAX_BYTES: u64 = 64 * 1024 * 1024;

/// What is known about one input, for the report's provenance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFile {
    /// Name as the user gave it or a folder or glob produced it.
    pub name: String,
    /// Bytes as they stand on disk.
    pub bytes: u64,
    /// SHA-256 of those bytes, lower-case hex, where it was asked for.
    pub sha256: Option<String>,
}

/// Whether the checksum of each file is taken: at 2 GB/s it costs as much as a
/// third of the parsing, and only some reports show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksums {
    /// It is.
    Taken,
    /// It is not.
    Left,
}

/// Reads every source into one batch.
///
/// # Errors
/// [`SourceError`] when a source cannot be opened or read; bad contents are
/// problems in the batch, never an error.
pub fn read_all(
    sources: &[Source],
    stdin: &mut dyn Read,
    checksums: Checksums,
) -> Result<(Vec<InputFile>, Batch), SourceError> {
    let mut batch = Batch::default();
    let mut files = Vec::new();
    for (index, source) in sources.iter().enumerate() {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        let problems = std::mem::take(&mut batch.problems);
        let before = batch.holdings();
        files.push(source.with_bytes(stdin, |name, reader| {
            read_one(name, index, reader, checksums, &mut batch)
        })?);
        let own = std::mem::replace(&mut batch.problems, problems);
        if matches!(source, Source::Listed(_))
            && batch.holdings() == before
            && own.iter().all(|(code, _)| is_no_trace(code))
        {
            batch.counts.not_traces += 1;
        } else {
            batch.problems.merge(own);
        }
    }
    for path in sources::manifests_beside(sources) {
        read_manifest(&path, &mut batch);
    }
    Ok((files, batch))
}

/// Whether a problem says that a file is something else, not that it is damaged.
fn is_no_trace(code: Code) -> bool {
    matches!(code, Code::Garbage | Code::UnknownRecord)
}

/// Reads a manifest that nobody named; what is wrong with it is nobody's problem.
fn read_manifest(path: &std::path::Path, batch: &mut Batch) {
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path)
        .and_then(|file| file.take(MANIFEST_MAX_BYTES).read_to_end(&mut bytes));
    if read.is_ok() && record::is_manifest(&bytes) {
        // A manifest that cannot be read leaves provenance as it was.
        let _ = manifest::read(&bytes, batch);
    }
}

/// Reads one stream of bytes as file number `file`.
fn read_one(
    name: &str,
    file: u32,
    reader: &mut dyn Read,
    checksums: Checksums,
    batch: &mut Batch,
) -> Result<InputFile, SourceError> {
    let mut hashed = Hashed {
        inner: reader,
        hash: (checksums == Checksums::Taken).then(Sha256::new),
        bytes: 0,
    };
    let unreadable = |source| SourceError::Unreadable {
        name: name.to_owned(),
        source,
    };
    {
        let mut plain = decode::Decoded::new(&mut hashed).map_err(unreadable)?;
        read_values(file, &mut plain, batch).map_err(unreadable)?;
        if let Some(reason) = plain.damage() {
            batch.problems.add(
                Code::DamagedCompression,
                Some(Place {
                    file,
                    byte: 0,
                    line: 1,
                }),
                reason,
            );
        }
    }
    // The tail behind damaged data belongs to the checksum all the same.
    std::io::copy(&mut hashed, &mut std::io::sink()).map_err(unreadable)?;
    Ok(InputFile {
        name: name.to_owned(),
        bytes: hashed.bytes,
        sha256: hashed.hash.map(|hash| format!("{:x}", hash.finalize())),
    })
}

/// Reads all of `reader` into `batch`: what fits into one block here, more than
/// that on [`READERS`] threads.
///
/// # Errors
/// Whatever the reader fails with.
pub fn read_values(file: u32, reader: &mut dyn Read, batch: &mut Batch) -> std::io::Result<()> {
    read_from(file, Blocks::new(reader), batch)
}

/// As [`read_values`], with blocks of about this many bytes; for tests of what
/// must not depend on it.
///
/// # Errors
/// Whatever the reader fails with.
#[doc(hidden)]
pub fn read_in_blocks(
    file: u32,
    reader: &mut dyn Read,
    bytes: usize,
    batch: &mut Batch,
) -> std::io::Result<()> {
    read_from(file, Blocks::of(reader, bytes), batch)
}

/// As [`read_values`], value by value and without blocks.
///
/// # Errors
/// Whatever the reader fails with.
#[doc(hidden)]
pub fn read_in_sequence(
    file: u32,
    reader: &mut dyn Read,
    batch: &mut Batch,
) -> std::io::Result<()> {
    if !read_pieces(file, &mut Splitter::new(reader), batch)? {
        add_empty(file, batch);
    }
    Ok(())
}

fn read_from(
    file: u32,
    mut blocks: Blocks<&mut dyn Read>,
    batch: &mut Batch,
) -> std::io::Result<()> {
    let first = match blocks.next_block()? {
        Next::Block(first) => first,
        Next::TooLong => return read_rest(file, blocks, batch),
        Next::End => {
            add_empty(file, batch);
            return Ok(());
        }
    };
    if blocks.is_done() {
        read_block(file, first, &blocks.spare(), batch);
        Ok(())
    } else {
        read_on_threads(file, first, blocks, batch)
    }
}

/// Reads the blocks on several threads, each into a batch of its own.
fn read_on_threads(
    file: u32,
    first: Block,
    mut blocks: Blocks<&mut dyn Read>,
    batch: &mut Batch,
) -> std::io::Result<()> {
    let spare = blocks.spare();
    let (sender, receiver) = sync_channel(READERS * 2);
    // Readers own the receiver: when the last of them ends, be it in a panic,
    // sending ends too.
    let receiver = Arc::new(Mutex::new(receiver));
    let (outcome, batches) = thread::scope(|scope| {
        let start = |_| {
            let (receiver, spare) = (Arc::clone(&receiver), Arc::clone(&spare));
            let work = move || read_received(file, &receiver, &spare);
            thread::Builder::new().spawn_scoped(scope, work).ok()
        };
        let readers: Vec<_> = (0..READERS).filter_map(start).collect();
        drop(receiver);
        // Where the system has no thread to give, this one reads.
        let outcome = if readers.is_empty() {
            each_block(first, &mut blocks, |block| {
                read_block(file, block, &spare, batch);
                true
            })
        } else {
            each_block(first, &mut blocks, |block| sender.send(block).is_ok())
        };
        drop(sender);
        let batches: Vec<_> = readers.into_iter().map(ScopedJoinHandle::join).collect();
        (outcome, batches)
    });
    for own in batches {
        match own {
            Ok(own) => batch.merge(own),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    match outcome? {
        Next::TooLong => read_rest(file, blocks, batch),
        Next::Block(_) | Next::End => Ok(()),
    }
}

/// Gives all blocks to `take` until there are none, none that can be cut, or
/// none are taken: readers end only in a panic that their join shows.
fn each_block(
    first: Block,
    blocks: &mut Blocks<&mut dyn Read>,
    mut take: impl FnMut(Block) -> bool,
) -> std::io::Result<Next> {
    let mut next = Next::Block(first);
    while let Next::Block(block) = next {
        if !take(block) {
            return Ok(Next::End);
        }
        next = blocks.next_block()?;
    }
    Ok(next)
}

/// Reads blocks until no more come.
fn read_received(file: u32, receiver: &Mutex<Receiver<Block>>, spare: &Spare) -> Batch {
    let mut batch = Batch::default();
    loop {
        let next = receiver.lock().map(|receiver| receiver.recv());
        match next {
            Ok(Ok(block)) => read_block(file, block, spare, &mut batch),
            _ => return batch,
        }
    }
}

fn read_block(file: u32, block: Block, spare: &Spare, batch: &mut Batch) {
    let mut splitter = Splitter::over(block.bytes, block.byte, block.line);
    // Reading from memory cannot fail.
    if let Ok(false) = read_pieces(file, &mut splitter, batch)
        && block.byte == 0
    {
        add_empty(file, batch);
    }
    spare.give(splitter.into_buffer());
}

/// Reads what has no places to cut, in sequence.
fn read_rest(file: u32, blocks: Blocks<&mut dyn Read>, batch: &mut Batch) -> std::io::Result<()> {
    let (reader, byte, line) = blocks.into_rest();
    read_pieces(file, &mut Splitter::resume(reader, byte, line), batch).map(|_| ())
}

/// Reads every piece of a splitter; whether there was any.
fn read_pieces<R: Read>(
    file: u32,
    splitter: &mut Splitter<R>,
    batch: &mut Batch,
) -> std::io::Result<bool> {
    let mut any = false;
    loop {
        if let Some((bytes, byte, line)) = splitter.whole_line()
            && record::read_line(bytes, Place { file, byte, line }, batch)
        {
            any = true;
            splitter.pass_line();
            continue;
        }
        let Some(piece) = splitter.next_piece()? else {
            return Ok(any);
        };
        any = true;
        match piece {
            Piece::Value { bytes, byte, line } => {
                let place = Place { file, byte, line };
                if let Err(reason) = record::read(bytes, place, batch)
                    && !splitter.reject()
                {
                    batch.problems.add(Code::InvalidRecord, Some(place), reason);
                }
            }
            Piece::Broken {
                code,
                reason,
                byte,
                line,
            } => {
                let place = Place { file, byte, line };
                batch.problems.add(code, Some(place), reason);
            }
        }
    }
}

fn add_empty(file: u32, batch: &mut Batch) {
    let place = Place {
        file,
        byte: 0,
        line: 1,
    };
    batch
        .problems
        .add(Code::EmptyFile, Some(place), "the file holds no record");
}

/// A reader that counts what passes, and hashes it where that is wanted.
struct Hashed<'a> {
    inner: &'a mut dyn Read,
    hash: Option<Sha256>,
    bytes: u64,
}

impl Read for Hashed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        if let Some(hash) = &mut self.hash {
            hash.update(&buffer[..count]);
        }
        self.bytes += count as u64;
        Ok(count)
    }
}
