//! What `guard build` writes down about a build: `build.json`.

use crate::policy::{DefaultFeatures, Program};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// Schema of `build.json`; another one is refused.
pub(crate) const SCHEMA: &str = "coldpath.guard-build/1";

/// A build, as written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    pub(crate) schema: String,
    pub(crate) package: String,
    pub(crate) bin: String,
    pub(crate) features: Vec<String>,
    pub(crate) default_features: bool,
    pub(crate) together_with: Vec<String>,
    pub(crate) profile: String,
    pub(crate) rustflags: Vec<String>,
    pub(crate) target: String,
    pub(crate) host: String,
    /// Output of `rustc -V`.
    pub(crate) rustc: String,
    /// Digest of the lock file that the build used.
    pub(crate) lock_sha256: String,
    /// Output of `cargo metadata --all-features`.
    pub(crate) metadata: FileRecord,
    /// The artifact stream.
    pub(crate) artifacts: FileRecord,
    /// Arguments of the linker; none where several programs were built at once.
    pub(crate) link_args: Option<FileRecord>,
    /// Map of the linker, for people; it is not read again.
    pub(crate) link_map: Option<FileRecord>,
    /// Bytes of each library by that map.
    #[serde(default)]
    pub(crate) link_bytes: Option<FileRecord>,
    /// The program as it was linked.
    pub(crate) unstripped: FileRecord,
    /// The stripped copy of the same file: what ships.
    pub(crate) shipped: FileRecord,
}

/// A file of the folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileRecord {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
    /// For programs that have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) build_id: Option<String>,
}

impl Record {
    /// Whether the record is of a build of `program`.
    pub(crate) fn is_of(&self, program: &Program) -> bool {
        self.package == program.package
            && self.bin == program.bin
            && self.features == program.features
            && self.default_features == (program.default_features == DefaultFeatures::On)
            && self.together_with == program.together_with
            && self.profile == program.profile
            && self.rustflags == program.rustflags
            && program
                .target
                .as_ref()
                .is_none_or(|target| *target == self.target)
    }
}

/// SHA-256 in lower-case hexadecimal.
pub(crate) fn sha256_of(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .fold(String::with_capacity(64), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}
