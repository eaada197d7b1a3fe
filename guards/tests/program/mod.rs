//! Runs the guard's program on fixtures, each time with a folder of its own.
#![allow(dead_code, reason = "each test program uses its part")]

use sha2::Digest;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file of the guard's fixtures.
pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fixtures/guards")
        .join(name)
}

/// The program and a folder that is removed in the end.
pub(crate) struct Guard {
    folder: tempfile::TempDir,
}

impl Guard {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A command for `verb` with policy and evidence set.
    pub(crate) fn verb(&self, verb: &str, policy: &Path) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_guard"));
        command
            .arg(verb)
            .arg("--policy")
            .arg(policy)
            .arg("--evidence")
            .arg(self.folder().join("evidence"));
        command
    }

    /// Exit code and everything that was written.
    pub(crate) fn check(&self, policy: &Path, arguments: &[&str]) -> (i32, String) {
        let done = self.verb("check", policy).args(arguments).output().unwrap();
        let text = [done.stdout, done.stderr].concat();
        (
            done.status.code().unwrap(),
            String::from_utf8(text).unwrap(),
        )
    }
}

/// Prebuilt cells of the matrix.
impl Guard {
    /// Lays a prebuilt cell out where the guard looks for it; `edit` may change each
    /// file, which is then recorded as it is. Returns the folder.
    pub(crate) fn unpack(&self, cell: &str, mut edit: impl FnMut(&str, &mut Vec<u8>)) -> PathBuf {
        let folder = self.evidence_folder(cell);
        std::fs::create_dir_all(&folder).unwrap();
        let source = fixture("prebuilt").join(cell);
        let text = std::fs::read(source.join("build.json")).unwrap();
        let mut record: serde_json::Value = serde_json::from_slice(&text).unwrap();
        for role in [
            "metadata",
            "artifacts",
            "link_args",
            "unstripped",
            "shipped",
        ] {
            let name = record[role]["name"].as_str().unwrap().to_owned();
            let mut content = Self::read_packed(cell, &name);
            edit(&name, &mut content);
            record[role]["bytes"] = content.len().into();
            record[role]["sha256"] = sha256(&content).into();
            std::fs::write(folder.join(&name), content).unwrap();
        }
        std::fs::write(folder.join("build.json"), record.to_string()).unwrap();
        folder
    }

    /// One file of a prebuilt cell.
    pub(crate) fn read_packed(cell: &str, name: &str) -> Vec<u8> {
        let file = fixture("prebuilt").join(cell).join(format!("{name}.gz"));
        let file = std::fs::File::open(&file)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let mut content = Vec::new();
        flate2::read::GzDecoder::new(file)
            .read_to_end(&mut content)
            .unwrap();
        content
    }

    /// Where the guard looks for the build of a path: it says so when there is none.
    fn evidence_folder(&self, cell: &str) -> PathBuf {
        let (code, text) = self.check(&fixture("matrix/policy.toml"), &["--path", cell]);
        assert_eq!(code, 3, "{text}");
        let (_, rest) = text.split_once("there is no build at ").unwrap();
        PathBuf::from(rest.lines().next().unwrap())
    }
}

fn sha256(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    for byte in sha2::Sha256::digest(bytes) {
        write!(text, "{byte:02x}").unwrap();
    }
    text
}
