//! Branch and commit of a workspace, read from `.git` without a subprocess.
//!
//! A subprocess costs more than all the rest of a new session; these are a few
//! opens of small files, each bounded. What git itself would refuse or follow
//! further than is needed here (bare repositories, reftable storage) counts as
//! unknown, never as an error. [`status`] asks git for the dirty state later.
//! Source: gitrepository-layout(5), `refs` and `packed-refs` of git 2.47.

mod head;
mod packed_refs;
pub(crate) mod status;

pub(crate) use head::Head;

use crate::regular_file;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Bytes of `.git`, `HEAD`, `commondir` and loose refs: a path and a word.
const SMALL_FILE_MAX_BYTES: usize = 8 * 1024;

/// Where the parts of a repository stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repository {
    root: PathBuf,
    git_dir: PathBuf,
}

impl Repository {
    /// Finds the repository that `directory` lies in, by its own path: links in
    /// it are not resolved. `None` outside of one, and where a `.git` file does
    /// not lead to a repository, as git does not look further either.
    pub(crate) fn find(directory: &Path) -> Option<Self> {
        for root in directory.ancestors() {
            let dot_git = root.join(".git");
            // One call tells a directory, a file and nothing apart.
            let git_dir = match rustix::fs::lstat(dot_git.join("HEAD")) {
                Ok(_) => dot_git,
                Err(rustix::io::Errno::NOTDIR) => linked_git_dir(root, &dot_git)?,
                Err(_) => continue,
            };
            return Some(Self {
                root: root.to_owned(),
                git_dir,
            });
        }
        None
    }

    /// The directory that holds `.git`.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Branch and commit; see [`Head`].
    pub(crate) fn head(&self) -> Head {
        head::read(&self.git_dir, &self.common_dir())
    }

    /// Where the refs shared by all worktrees stand: the git directory, or what
    /// its `commondir` names.
    fn common_dir(&self) -> PathBuf {
        let named = regular_file::read_whole(&self.git_dir.join("commondir"), SMALL_FILE_MAX_BYTES);
        match named.as_deref().map(|text| path_of(text)) {
            Ok(Some(path)) => self.git_dir.join(path),
            _ => self.git_dir.clone(),
        }
    }
}

/// `gitdir: PATH` of a worktree or submodule; relative to the directory of the file.
fn linked_git_dir(root: &Path, dot_git: &Path) -> Option<PathBuf> {
    let text = regular_file::read_whole(dot_git, SMALL_FILE_MAX_BYTES).ok()?;
    let git_dir = root.join(path_of(text.strip_prefix(b"gitdir: ")?)?);
    rustix::fs::lstat(git_dir.join("HEAD")).ok()?;
    Some(git_dir)
}

/// A path alone on its line; `None` when it is empty or holds a zero byte.
fn path_of(text: &[u8]) -> Option<&Path> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    (!text.is_empty() && !text.contains(&0)).then(|| Path::new(std::ffi::OsStr::from_bytes(text)))
}

#[cfg(test)]
mod tests;
