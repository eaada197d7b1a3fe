//! The file that a report is written to: never one of its inputs, and never half
//! a report.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::report::render::opens_report;

/// Where the operating system shows what standard input is.
const STDIN: &str = "/dev/stdin";
/// Symbolic links that are followed, as many as Linux follows.
const LINKS_MAX: usize = 40;
/// Names tried for the new file; each is free unless a process of the same id
/// was killed while it wrote into the same folder.
const DRAFTS_MAX: u32 = 100;
/// A report says within these bytes what it is.
const REPORT_START_BYTES: u64 = 256;

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

/// Whether `path` is a report that this program wrote before, or holds nothing:
/// a folder that is read may hold the very file that the report goes to, and no
/// trace is lost with it.
#[must_use]
pub fn is_report(path: &Path) -> bool {
    // To open a pipe would wait for its other end.
    if !fs::metadata(path).is_ok_and(|found| found.is_file()) {
        return false;
    }
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| {
        let mut start_of = file.take(REPORT_START_BYTES);
        start_of.read_to_end(&mut start)
    });
    read.is_ok() && (start.is_empty() || opens_report(&start))
}

/// Whether two names are of one file, links followed.
#[must_use]
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    let identity = |path| {
        let found = fs::metadata(path).ok()?;
        Some((found.dev(), found.ino()))
    };
    identity(one).is_some_and(|one| identity(other) == Some(one))
}

/// Writes what `render` writes to `path`, whole or not at all: to a new file in
/// the same folder, which then takes the name. As with `>` of a shell, a link
/// stays a link, also one to a file that is not there yet, and a file that may
/// not be written is refused.
///
/// What has to keep its identity is written directly: a descriptor such as
/// `/dev/stdout` (behind what it holds already), a pipe or a device, and a file
/// whose folder takes no new names, once the whole report is in memory.
///
/// # Errors
/// Those of the operating system and of `render`; the old file is then as it was,
/// unless its folder takes no new names and the disk is full.
pub fn write(path: &Path, render: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    if let Some(found) = links(path).find_map(|link| descriptor(&link)) {
        return fill(&found?, render);
    }
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(found) if !found.is_file() => fill(&File::create(path)?, render),
        Ok(old) => replace(&fs::canonicalize(path)?, &old, render),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let target = links(path).last().unwrap_or_else(|| path.to_owned());
            let draft = Draft::new(&target)?;
            fill(&draft.file, render)?;
            fs::rename(&draft.path, &target)
        }
        Err(error) => Err(error),
    }
}

/// A path, what it links to, what that links to, and so on.
fn links(path: &Path) -> impl Iterator<Item = PathBuf> {
    let next = |link: &PathBuf| {
        let target = fs::read_link(link).ok()?;
        Some(link.parent()?.join(target))
    };
    std::iter::successors(Some(path.to_owned()), next).take(LINKS_MAX)
}

/// The open file of a path that names a descriptor of a process.
///
/// To open such a path with truncation would empty a file that somebody else is
/// writing, so the own standard streams are duplicated and others appended to.
fn descriptor(path: &Path) -> Option<io::Result<File>> {
    let folder = fs::canonicalize(path.parent()?).ok()?;
    if !(folder.starts_with("/proc") && folder.file_name()? == "fd") {
        return None;
    }
    let number = path.file_name()?.to_str()?;
    let is_own = fs::canonicalize("/proc/self/fd").is_ok_and(|own| own == folder);
    let owned = match number {
        "1" if is_own => io::stdout().as_fd().try_clone_to_owned(),
        "2" if is_own => io::stderr().as_fd().try_clone_to_owned(),
        _ => return Some(OpenOptions::new().append(true).open(path)),
    };
    Some(owned.map(File::from))
}

/// Replaces a regular file by a report.
fn replace(
    target: &Path,
    old: &Metadata,
    render: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    // Its folder may allow what the file itself does not.
    let mut file = OpenOptions::new().write(true).open(target)?;
    let bytes = match Draft::like(target, old) {
        Ok(draft) => {
            fill(&draft.file, render)?;
            match fs::rename(&draft.path, target) {
                Err(error) if is_of_folder(&error) => fs::read(&draft.path)?,
                renamed => return renamed,
            }
        }
        Err(error) if is_of_folder(&error) => {
            let mut bytes = Vec::new();
            render(&mut bytes)?;
            bytes
        }
        Err(error) => return Err(error),
    };
    file.set_len(0)?;
    file.write_all(&bytes)
}

/// Whether names in the folder cannot be changed: it is not writable, belongs to
/// others (as `/tmp` does), or the file is mounted by itself.
fn is_of_folder(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::ResourceBusy
    )
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
    /// Its name does not grow with the target's, which may be as long as names
    /// can be.
    fn new(target: &Path) -> io::Result<Self> {
        target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut taken = io::Error::from(io::ErrorKind::AlreadyExists);
        // A leftover of a killed process with the same id is not ours to judge.
        for attempt in 0..DRAFTS_MAX {
            let name = format!(".analyze.{}.{attempt}.new", std::process::id());
            let path = target.with_file_name(name);
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => return Ok(Self { path, file }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => taken = error,
                Err(error) => return Err(error),
            }
        }
        Err(taken)
    }

    /// One that has the owner and the permissions of the file that it replaces.
    fn like(target: &Path, old: &Metadata) -> io::Result<Self> {
        let draft = Self::new(target)?;
        let own = draft.file.metadata()?;
        if (own.uid(), own.gid()) != (old.uid(), old.gid()) {
            fchown(&draft.file, Some(old.uid()), Some(old.gid()))?;
        }
        draft.file.set_permissions(old.permissions())?;
        Ok(draft)
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
