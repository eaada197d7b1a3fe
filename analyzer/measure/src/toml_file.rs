//! Files that people write (drivers, experiments): TOML of one shape, and errors
//! that name file, line and key. Knows no particular shape.

use serde::de::DeserializeOwned;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Largest file that is read: an experiment of hundreds of arms has some 50 KB.
pub const FILE_MAX_BYTES: u64 = 1024 * 1024;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("cannot read {path}: {source}", path = .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        #[source]
        source: io::Error,
    },
    /// Too long to be one.
    #[error("{path} is longer than {FILE_MAX_BYTES} bytes", path = .0.display())]
    TooLong(PathBuf),
    /// Not TOML, or a key or value that its shape does not have.
    #[error("{file}:{line}: {reason}")]
    Invalid {
        /// The file, or the name of a built-in one.
        file: String,
        /// Line, from 1.
        line: usize,
        /// The key and what is wrong with it.
        reason: String,
    },
    /// The shape is right and what it says is not.
    #[error("{file}: {reason}")]
    Meaning {
        /// The file, or the name of a built-in one.
        file: String,
        /// The key and what is wrong with it.
        reason: String,
    },
}

/// Reads a file's text.
///
/// # Errors
/// It cannot be read, is no UTF-8 or is too long.
pub fn read(path: &Path) -> Result<String, FileError> {
    let unreadable = |source| FileError::Unreadable {
        path: path.to_owned(),
        source,
    };
    // Not by the length that the file claims: a device has none.
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let read = file.take(FILE_MAX_BYTES + 1).read_to_string(&mut text);
    if text.len() as u64 > FILE_MAX_BYTES {
        return Err(FileError::TooLong(path.to_owned()));
    }
    read.map_err(unreadable)?;
    Ok(text)
}

/// Reads text as `T`, which must refuse unknown keys. `file` is for errors.
///
/// # Errors
/// [`FileError::Invalid`], with the line.
pub fn parse<T: DeserializeOwned>(text: &str, file: &str) -> Result<T, FileError> {
    toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        FileError::Invalid {
            file: file.to_owned(),
            line: 1 + text[..at].matches('\n').count(),
            reason: error.message().trim().replace('\n', "; "),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its reading is looked at")]
    struct Shape {
        runs: u32,
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let error = parse::<Shape>(text, "e.toml").unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }

    #[test]
    fn no_more_is_read_than_a_file_may_have() {
        let error = read(Path::new("/dev/zero")).unwrap_err();
        assert!(matches!(error, FileError::TooLong(_)), "{error}");
        assert_eq!(read(Path::new("/dev/null")).unwrap(), "");
        assert!(read(Path::new("/")).is_err());
    }

    #[test]
    fn an_error_names_file_line_and_key() {
        check("runs = 1\n\nrusn = 2\n", "e.toml:3: unknown field `rusn`");
        check("# x\nruns = \"1\"\n", "e.toml:2: invalid type: string");
        check("runs = = 1", "e.toml:1: ");
        check("", "e.toml:1: missing field `runs`");
    }
}
