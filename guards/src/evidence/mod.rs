//! Everything that one build left for the layers, in one folder.
//!
//! `guard build` writes it, `guard check` reads it and believes nothing whose digest
//! has changed. Files are named relative to the folder, so that it can be moved.

mod build;
mod read;
mod record;

pub(crate) use build::{BuildError, BuildOptions, build};
pub(crate) use read::{BadProgram, Evidence, EvidenceError, InputFile, read_evidence, read_lock};
pub(crate) use record::sha256_of;

use crate::policy::Program;
use std::path::{Path, PathBuf};

/// Folder of one program's evidence below `root`: its name, and a digest of how it is
/// built, so that two builds of one program stand beside each other.
pub(crate) fn folder_of(root: &Path, program: &Program) -> PathBuf {
    let digest = sha256_of(format!("{program:?}").as_bytes());
    root.join(format!("{}-{}", program.bin, &digest[..8]))
}
