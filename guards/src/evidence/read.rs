//! Reads a folder of evidence and holds its files against their digests.

use super::record::{FileRecord, Record, SCHEMA, sha256_of};
use crate::binary::{ImageError, Loaded, Unlike, check_twins};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Largest text file of a build that is read; nushell's metadata has 4 MB.
const TEXT_BYTES_MAX: u64 = 512 << 20;

/// A build's files, read.
pub(crate) struct Evidence {
    pub(crate) record: Record,
    pub(crate) metadata: String,
    pub(crate) artifacts: Vec<u8>,
    pub(crate) link_args: Option<String>,
    pub(crate) link_bytes: Option<String>,
    pub(crate) unstripped: Vec<u8>,
    /// How what ships differs from it.
    pub(crate) twins: Result<Option<Unlike>, BadProgram>,
}

/// A recorded file that is no program to judge.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{role} program {name} {source}")]
pub(crate) struct BadProgram {
    role: &'static str,
    name: String,
    source: ImageError,
}

impl BadProgram {
    /// Of a file with this role in the record.
    pub(crate) fn new(role: &'static str, file: &FileRecord, source: ImageError) -> Self {
        Self {
            role,
            name: file.name.clone(),
            source,
        }
    }
}

/// A file that a report rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InputFile {
    pub(crate) role: &'static str,
    pub(crate) file: FileRecord,
}

/// Why there is no evidence.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EvidenceError {
    #[error("there is no build at {folder}")]
    Missing { folder: PathBuf },
    #[error("cannot read {file}: {source}")]
    Unreadable {
        file: PathBuf,
        source: std::io::Error,
    },
    #[error("{file} is no file of bytes: a folder, a pipe or a device")]
    NoFile { file: PathBuf },
    #[error("{file} is larger than {limit} bytes")]
    TooLarge { file: PathBuf, limit: u64 },
    #[error("{file} is not a record of `guard build`: {message}")]
    Record { file: PathBuf, message: String },
    #[error("{file} is not the file that was built: its sha256 differs")]
    Changed { file: PathBuf },
    #[error("{file} is not text")]
    NotText { file: PathBuf },
}

/// Reads the evidence in `folder`.
///
/// # Errors
/// When it is missing, unreadable, or not what was recorded.
pub(crate) fn read_evidence(folder: &Path) -> Result<Evidence, EvidenceError> {
    let file = folder.join("build.json");
    if !file.exists() {
        return Err(EvidenceError::Missing {
            folder: folder.to_owned(),
        });
    }
    let broken = |message: String| EvidenceError::Record {
        file: file.clone(),
        message,
    };
    let bytes = read_bounded(&file, TEXT_BYTES_MAX)?;
    let record: Record =
        serde_json::from_slice(&bytes).map_err(|error| broken(error.to_string()))?;
    if record.schema != SCHEMA {
        return Err(broken(format!("its schema is `{}`", record.schema)));
    }
    let text = |file: &Option<FileRecord>| {
        file.as_ref()
            .map(|file| read_text(folder, file))
            .transpose()
    };
    let (shipped, unstripped) = read_programs(folder, &record)?;
    let twins = compare(&record, &shipped, &unstripped);
    drop(shipped);
    Ok(Evidence {
        metadata: read_text(folder, &record.metadata)?,
        artifacts: read_checked(folder, &record.artifacts, TEXT_BYTES_MAX)?,
        link_args: text(&record.link_args)?,
        link_bytes: text(&record.link_bytes)?,
        unstripped,
        twins,
        record,
    })
}

/// Both programs, at once: digests of large ones take most of the time.
fn read_programs(folder: &Path, record: &Record) -> Result<(Vec<u8>, Vec<u8>), EvidenceError> {
    std::thread::scope(|scope| {
        let shipped = scope.spawn(|| read_program(folder, &record.shipped));
        let unstripped = read_program(folder, &record.unstripped);
        // A thread that panics has ended the program before this.
        let shipped = shipped.join().unwrap_or_else(|_| {
            Err(EvidenceError::Changed {
                file: folder.join(&record.shipped.name),
            })
        });
        Ok((shipped?, unstripped?))
    })
}

fn compare(
    record: &Record,
    shipped: &[u8],
    unstripped: &[u8],
) -> Result<Option<Unlike>, BadProgram> {
    let shipped = Loaded::read(shipped)
        .map_err(|source| BadProgram::new("shipped", &record.shipped, source))?;
    let unstripped = Loaded::read(unstripped)
        .map_err(|source| BadProgram::new("unstripped", &record.unstripped, source))?;
    Ok(check_twins(&shipped, &unstripped).err())
}

impl Evidence {
    /// The files in the order in which reports name them.
    pub(crate) fn inputs(&self) -> Vec<InputFile> {
        let record = &self.record;
        let mut list = vec![
            ("shipped", &record.shipped),
            ("unstripped", &record.unstripped),
        ];
        list.push(("artifacts", &record.artifacts));
        list.push(("metadata", &record.metadata));
        list.extend(record.link_args.as_ref().map(|file| ("link-args", file)));
        list.extend(record.link_bytes.as_ref().map(|file| ("link-bytes", file)));
        list.into_iter()
            .map(|(role, file)| InputFile {
                role,
                file: file.clone(),
            })
            .collect()
    }
}

fn read_program(folder: &Path, file: &FileRecord) -> Result<Vec<u8>, EvidenceError> {
    read_checked(folder, file, crate::binary::FILE_BYTES_MAX)
}

fn read_text(folder: &Path, file: &FileRecord) -> Result<String, EvidenceError> {
    String::from_utf8(read_checked(folder, file, TEXT_BYTES_MAX)?).map_err(|_| {
        EvidenceError::NotText {
            file: folder.join(&file.name),
        }
    })
}

fn read_checked(folder: &Path, file: &FileRecord, limit: u64) -> Result<Vec<u8>, EvidenceError> {
    let path = folder.join(&file.name);
    let bytes = read_bounded(&path, limit)?;
    if sha256_of(&bytes) == file.sha256 {
        Ok(bytes)
    } else {
        Err(EvidenceError::Changed { file: path })
    }
}

/// Reads the workspace's lock file; `None` when it cannot be read.
pub(crate) fn read_lock(file: &Path) -> Option<Vec<u8>> {
    read_bounded(file, TEXT_BYTES_MAX).ok()
}

fn read_bounded(file: &Path, limit: u64) -> Result<Vec<u8>, EvidenceError> {
    let unreadable = |source| EvidenceError::Unreadable {
        file: file.to_owned(),
        source,
    };
    let found = std::fs::metadata(file).map_err(unreadable)?;
    // A pipe would be waited for, and a device has no end.
    if !found.is_file() {
        return Err(EvidenceError::NoFile {
            file: file.to_owned(),
        });
    }
    let too_large = || EvidenceError::TooLarge {
        file: file.to_owned(),
        limit,
    };
    if found.len() > limit {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(found.len()).unwrap_or(0));
    let file = std::fs::File::open(file).map_err(unreadable)?;
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > limit {
        return Err(too_large());
    }
    Ok(bytes)
}
