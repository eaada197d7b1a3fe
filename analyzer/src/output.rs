//! The file that a report is written to: never one of its inputs, and never half
//! a report.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Where the operating system shows what standard input is.
const STDIN: &str = "/dev/stdin";

/// Why a report cannot go where it was asked to.
#[derive(Debug, Error)]
pub enum OutputError {
    /// The file is read for this very report.
    #[error(
        "{name} is one of the inputs and would be overwritten\nhint: write the report to another file, outside of the folders that are read"
    )]
    IsInput {
        /// The file as it was named.
        name: String,
    },
}

/// Refuses an output that is one of `inputs`, or standard input where that is read:
/// the same file by device and inode, or the same name.
///
/// # Errors
/// [`OutputError::IsInput`].
pub fn refuse_inputs<'p>(
    output: &Path,
    inputs: impl IntoIterator<Item = &'p Path>,
    reads_stdin: bool,
) -> Result<(), OutputError> {
    let file = |path: &Path| fs::metadata(path).ok().filter(Metadata::is_file);
    let identity = |found: Metadata| (found.dev(), found.ino());
    let own = file(output).map(identity);
    let is_output = |path: &Path| {
        // What is no regular file, such as /dev/null, may be read and written.
        let same = file(path).map(identity);
        same.is_some() && (same == own || path == output)
    };
    let stdin = reads_stdin.then(|| Path::new(STDIN));
    if inputs.into_iter().chain(stdin).any(is_output) {
        return Err(OutputError::IsInput {
            name: output.display().to_string(),
        });
    }
    Ok(())
}

/// Writes what `render` writes to `path`, whole or not at all: to a new file in
/// the same folder, which then takes the name. What exists and is no regular
/// file, such as a pipe or /dev/null, is written directly.
///
/// # Errors
/// Those of the operating system and of `render`; the old file is then as it was.
pub fn write(path: &Path, render: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let old = match fs::metadata(path) {
        Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(found) if !found.is_file() => return fill(&File::create(path)?, render),
        Ok(found) => Some(found),
        Err(_) => None,
    };
    // A symbolic link stays one, and what it points to is replaced.
    let target = match &old {
        Some(_) => fs::canonicalize(path)?,
        None => path.to_owned(),
    };
    let draft = Draft::new(&target)?;
    if let Some(old) = old {
        draft.file.set_permissions(old.permissions())?;
    }
    fill(&draft.file, render)?;
    draft.rename(&target)
}

fn fill(file: &File, render: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    render(&mut out)?;
    out.flush()
}

/// A file beside its target; removed unless it was renamed.
struct Draft {
    path: PathBuf,
    file: File,
}

impl Draft {
    fn new(target: &Path) -> io::Result<Self> {
        let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut draft = std::ffi::OsString::from(".");
        draft.push(name);
        draft.push(format!(".{}.new", std::process::id()));
        let path = target.with_file_name(draft);
        // A leftover of a killed process with the same id is not ours to judge.
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)?;
        Ok(Self { path, file })
    }

    fn rename(self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After the rename there is nothing left of this name.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn a_failed_report_leaves_the_old_one_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report");
        fs::write(&path, "old").unwrap();
        let failed = write(&path, |out| {
            out.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert!(failed.is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(entries(folder.path()), 1);
        write(&path, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(entries(folder.path()), 1);
    }

    #[test]
    fn a_link_stays_a_link_and_permissions_stay() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("report"), folder.path().join("link"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("report", &link).unwrap();
        write(&link, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
    }

    #[test]
    fn what_is_no_regular_file_is_written_directly() {
        assert!(write(Path::new("/dev/null"), |out| out.write_all(b"x")).is_ok());
        let null = Path::new("/dev/null");
        assert!(refuse_inputs(null, [null], false).is_ok());
        let folder = tempfile::tempdir().unwrap();
        assert!(write(folder.path(), |_| Ok(())).is_err());
    }
}
