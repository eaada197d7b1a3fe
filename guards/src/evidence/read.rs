//! Reads a folder of evidence and holds its files against their digests.

use super::record::{FileRecord, Record, SCHEMA, sha256_of};
use crate::binary::{self, ImageError, Loaded};
use std::path::{Path, PathBuf};

/// Largest text file of a build that is read; nushell's metadata has 4 MB.
const TEXT_BYTES_MAX: u64 = 512 << 20;

/// A build's files, read.
pub(crate) struct Evidence {
    pub(crate) record: Record,
    pub(crate) metadata: String,
    pub(crate) artifacts: Vec<u8>,
    pub(crate) link_args: Option<String>,
    pub(crate) link_map: Option<String>,
    pub(crate) unstripped: Vec<u8>,
    /// What ships, reduced to what it has in common with the unstripped program.
    pub(crate) shipped: Result<Loaded, ImageError>,
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
    // The one that ships is dropped before the other is read.
    let shipped = {
        let bytes = read_program(folder, &record.shipped)?;
        binary::read(&bytes).map(|image| Loaded::of(&image))
    };
    Ok(Evidence {
        metadata: read_text(folder, &record.metadata)?,
        artifacts: read_checked(folder, &record.artifacts, TEXT_BYTES_MAX)?,
        link_args: text(&record.link_args)?,
        link_map: text(&record.link_map)?,
        unstripped: read_program(folder, &record.unstripped)?,
        shipped,
        record,
    })
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
        list.extend(record.link_map.as_ref().map(|file| ("link-map", file)));
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

fn read_bounded(file: &Path, limit: u64) -> Result<Vec<u8>, EvidenceError> {
    let unreadable = |source| EvidenceError::Unreadable {
        file: file.to_owned(),
        source,
    };
    if std::fs::metadata(file).map_err(unreadable)?.len() > limit {
        return Err(EvidenceError::TooLarge {
            file: file.to_owned(),
            limit,
        });
    }
    std::fs::read(file).map_err(unreadable)
}
