//! What the user named: files, folders, globs and standard input.
//!
//! Only names are handled here; nothing looks at an extension except the
//! listing of a folder, which takes `*.json`, `*.jsonl`, `*.gz` and `*.zst`.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::{InputFile, manifest};

/// Extensions that a folder's listing takes.
const FOLDER_EXTENSIONS: [&str; 4] = ["json", "jsonl", "gz", "zst"];

/// Folders within folders that a listing enters: an experiment has two levels.
const FOLDER_DEPTH_MAX: usize = 8;

/// One input to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Standard input, written `-`.
    Stdin,
    /// A file that was named, by itself or through a glob.
    File(PathBuf),
    /// A file that the listing of a folder found: nobody said that it holds traces.
    Listed(PathBuf),
}

/// Why the inputs cannot be read at all.
#[derive(Debug, Error)]
pub enum SourceError {
    /// A name that is no file, folder or matching glob.
    #[error(
        "no such file, folder or match: {name}\nhint: quote a glob, or name the folder that holds the traces; `analyze --help` names the commands"
    )]
    NotFound {
        /// The name as given.
        name: String,
    },
    /// A folder in which there is nothing to read.
    #[error("no *.json, *.jsonl, *.gz or *.zst in folder: {name}\nhint: name the files themselves")]
    EmptyFolder {
        /// The folder as given.
        name: String,
    },
    /// A pattern that is not a valid glob.
    #[error("invalid glob: {name}: {reason}")]
    Glob {
        /// The pattern as given.
        name: String,
        /// What the parser says.
        reason: String,
    },
    /// Standard input named twice.
    #[error("standard input `-` is named twice\nhint: it can be read only once")]
    StdinTwice,
    /// The operating system refuses to open or read it.
    #[error("cannot read {name}: {source}")]
    Unreadable {
        /// The file.
        name: String,
        /// The operating system's reason.
        #[source]
        source: std::io::Error,
    },
}

/// Turns the arguments into sources, folders and globs expanded in sorted order.
/// A file that is named twice, also through a folder or by another name, is read once.
///
/// # Errors
/// [`SourceError`] for a name that leads to nothing.
pub fn expand(names: &[PathBuf]) -> Result<Vec<Source>, SourceError> {
    let mut sources: Vec<Source> = Vec::new();
    let mut seen = BTreeSet::new();
    for name in names {
        for source in expand_one(name)? {
            if !seen.insert(Identity::of(&source)) {
                if source == Source::Stdin {
                    return Err(SourceError::StdinTwice);
                }
                continue;
            }
            sources.push(source);
        }
    }
    Ok(sources)
}

/// What makes two names the same source.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Identity {
    Stdin,
    /// Device and number of a regular file.
    File(u64, u64),
    /// Anything else: of a pipe that has two names each gives something.
    Path(PathBuf),
}

impl Identity {
    fn of(source: &Source) -> Self {
        let Some(path) = source.path() else {
            return Self::Stdin;
        };
        match std::fs::metadata(path) {
            Ok(found) if found.is_file() => Self::File(found.dev(), found.ino()),
            _ => Self::Path(path.to_owned()),
        }
    }
}

fn expand_one(name: &Path) -> Result<Vec<Source>, SourceError> {
    if name.as_os_str() == "-" {
        return Ok(vec![Source::Stdin]);
    }
    if name.is_dir() {
        return folder(name);
    }
    if name.exists() {
        return Ok(vec![Source::File(name.to_owned())]);
    }
    let text = name.display().to_string();
    if !text.contains(['*', '?', '[']) {
        return Err(SourceError::NotFound { name: text });
    }
    let paths = glob::glob(&text).map_err(|error| SourceError::Glob {
        name: text.clone(),
        reason: error.to_string(),
    })?;
    let mut found: Vec<_> = paths.flatten().filter(|path| path.is_file()).collect();
    found.sort();
    if found.is_empty() {
        return Err(SourceError::NotFound { name: text });
    }
    Ok(found.into_iter().map(Source::File).collect())
}

/// Every matching file below a folder, sorted by path. Symbolic links to
/// folders are not followed, so there is no way round in a circle.
fn folder(name: &Path) -> Result<Vec<Source>, SourceError> {
    let mut paths = Vec::new();
    let mut open = vec![(name.to_owned(), 0)];
    while let Some((folder, depth)) = open.pop() {
        let unreadable = |source| SourceError::Unreadable {
            name: folder.display().to_string(),
            source,
        };
        for entry in std::fs::read_dir(&folder).map_err(unreadable)?.flatten() {
            let path = entry.path();
            let extension = path.extension().and_then(|extension| extension.to_str());
            let wanted = extension.is_some_and(|found| FOLDER_EXTENSIONS.contains(&found));
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if depth < FOLDER_DEPTH_MAX {
                    open.push((path, depth + 1));
                }
            } else if wanted && path.is_file() {
                paths.push(path);
            }
        }
    }
    paths.sort();
    if paths.is_empty() {
        let name = name.display().to_string();
        return Err(SourceError::EmptyFolder { name });
    }
    Ok(paths.into_iter().map(Source::Listed).collect())
}

/// Manifests that lie beside files which were named without them.
#[must_use]
pub fn manifests_beside(sources: &[Source]) -> Vec<PathBuf> {
    let read: BTreeSet<&Path> = sources.iter().filter_map(Source::path).collect();
    let folders: BTreeSet<&Path> = read.iter().filter_map(|path| path.parent()).collect();
    let manifests = folders
        .into_iter()
        .map(|folder| folder.join(manifest::FILE_NAME));
    manifests
        .filter(|path| !read.contains(path.as_path()) && path.is_file())
        .collect()
}

impl Source {
    /// The file's path; none for standard input.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Stdin => None,
            Self::File(path) | Self::Listed(path) => Some(path),
        }
    }

    /// Opens the source and hands its name and bytes to `read`.
    ///
    /// # Errors
    /// [`SourceError::Unreadable`] when it cannot be opened, and what `read` returns.
    pub fn with_bytes(
        &self,
        stdin: &mut dyn Read,
        read: impl FnOnce(&str, &mut dyn Read) -> Result<InputFile, SourceError>,
    ) -> Result<InputFile, SourceError> {
        match self {
            Self::Stdin => read("-", stdin),
            Self::File(path) | Self::Listed(path) => {
                let name = path.display().to_string();
                match File::open(path) {
                    Ok(mut file) => read(&name, &mut file),
                    Err(source) => Err(SourceError::Unreadable { name, source }),
                }
            }
        }
    }
}
