//! Bounded, private, rotating files: what traces and profiles are written to.
//!
//! Files are created exclusively with mode 0600 in a directory of mode 0700 and
//! never through a symbolic link, so that nobody else can plant or read one.

use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A series of files `<stem><suffix>`, `<stem>.1<suffix>`, …, of which the newest are kept.
#[derive(Debug)]
pub struct RotatingFile {
    stem: PathBuf,
    suffix: &'static str,
    max_bytes: u64,
    kept: u32,
    file: File,
    written: u64,
    index: u32,
    /// Whether the last record was cut by an error.
    torn: bool,
}

impl RotatingFile {
    /// Creates the directory where it is missing, and the first file.
    ///
    /// # Errors
    /// The directory cannot be made, is a symbolic link or is no directory; the
    /// file exists already or cannot be created.
    pub fn create(
        dir: &Path,
        stem: &str,
        suffix: &'static str,
        max_bytes: u64,
        kept: u32,
    ) -> io::Result<Self> {
        make_private_dir(dir)?;
        let stem = dir.join(stem);
        let file = create_private(&path(&stem, 0, suffix))?;
        Ok(Self {
            stem,
            suffix,
            max_bytes,
            kept,
            file,
            written: 0,
            torn: false,
            index: 0,
        })
    }

    /// Path of the file that is written to now.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        path(&self.stem, self.index, self.suffix)
    }

    /// Whether `bytes` more would pass the bound of this file.
    #[must_use]
    pub fn is_full(&self, bytes: usize) -> bool {
        self.written > 0 && self.written + bytes as u64 > self.max_bytes
    }

    /// Appends one record that ends its line. Where the last one was cut by an
    /// error, its rest is ended first, so that only that one is lost.
    ///
    /// # Errors
    /// What the write gives, a full disk above all.
    pub fn append(&mut self, record: &[u8]) -> io::Result<()> {
        if self.torn {
            self.file.write_all(b"\n")?;
            self.torn = false;
        }
        // Until it is written whole.
        self.torn = true;
        self.file.write_all(record)?;
        self.torn = false;
        self.written += record.len() as u64;
        Ok(())
    }

    /// Starts the next file of the series and removes the oldest beyond the bound.
    ///
    /// # Errors
    /// The next file cannot be created; the present one stays in use.
    pub fn rotate(&mut self) -> io::Result<()> {
        let next = self.index + 1;
        self.file = create_private(&path(&self.stem, next, self.suffix))?;
        self.index = next;
        self.written = 0;
        self.torn = false;
        if let Some(oldest) = next.checked_sub(self.kept) {
            // A file that somebody removed already is no loss.
            let _ = std::fs::remove_file(path(&self.stem, oldest, self.suffix));
        }
        Ok(())
    }
}

fn path(stem: &Path, index: u32, suffix: &str) -> PathBuf {
    let mut name = stem.as_os_str().to_owned();
    if index > 0 {
        name.push(format!(".{index}"));
    }
    name.push(suffix);
    name.into()
}

/// Makes a directory of mode 0700 with its parents; an existing one is left as it is.
///
/// # Errors
/// It cannot be made, or what is there is a symbolic link or no directory.
pub fn make_private_dir(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    match std::fs::symlink_metadata(dir) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::NotADirectory,
            format!("{} is not a directory", dir.display()),
        )),
        Err(_) => std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir),
    }
}

/// Creates a file of mode 0600 that did not exist, never through a symbolic link.
///
/// # Errors
/// It exists already, or cannot be created.
pub fn create_private(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY
        | OFlags::CREATE
        | OFlags::EXCL
        | OFlags::APPEND
        | OFlags::NOFOLLOW
        | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn files_are_private_and_only_the_newest_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let traces = dir.path().join("a/b");
        let mut file = RotatingFile::create(&traces, "x", ".jsonl", 10, 2).unwrap();
        for record in [&b"0123456789"[..], b"abcdefghij", b"ABCDEFGHIJ"] {
            if file.is_full(record.len()) {
                file.rotate().unwrap();
            }
            file.append(record).unwrap();
        }
        let mut names: Vec<_> = std::fs::read_dir(&traces)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["x.1.jsonl", "x.2.jsonl"]);
        assert_eq!(file.path(), traces.join("x.2.jsonl"));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&traces), mode(&file.path())), (0o700, 0o600));
    }

    #[test]
    fn an_existing_file_and_a_linked_directory_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("x.jsonl"), "").unwrap();
        assert!(RotatingFile::create(dir.path(), "x", ".jsonl", 10, 2).is_err());
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path(), &link).unwrap();
        assert!(RotatingFile::create(&link, "y", ".jsonl", 10, 2).is_err());
    }

    #[test]
    fn a_record_that_was_cut_costs_only_itself() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = RotatingFile::create(dir.path(), "x", ".jsonl", 100, 2).unwrap();
        let full = std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let real = std::mem::replace(&mut file.file, full);
        assert!(file.append(b"lost\n").is_err());
        file.file = real;
        file.append(b"kept\n").unwrap();
        file.append(b"kept too\n").unwrap();
        assert_eq!(
            std::fs::read_to_string(file.path()).unwrap(),
            "\nkept\nkept too\n"
        );
    }
}
