//! `HEAD`: which branch, and through loose and packed refs which commit.

use super::{SMALL_FILE_MAX_BYTES, packed_refs};
use crate::regular_file;
use std::path::Path;

/// Symbolic refs followed in a chain; git's own bound.
const CHAIN_MAX: usize = 5;
/// Bytes of a ref's name; git's loose refs are files, whose paths end at 4,096.
const NAME_MAX_BYTES: usize = 4_096;
/// What `HEAD` says in a repository whose refs are in a reftable, which is not read.
const REFTABLE: &str = "refs/heads/.invalid";
/// Refs that every worktree has for itself; `HEAD` is read apart from them.
const PER_WORKTREE: [&str; 3] = ["refs/bisect/", "refs/worktree/", "refs/rewritten/"];

/// What is checked out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// Branch without `refs/heads/`, another ref in full; `None` when detached
    /// or unknown.
    pub(crate) branch: Option<String>,
    /// Commit id, 40 or 64 hex digits; `None` on an unborn branch or unknown.
    pub(crate) commit: Option<String>,
}

enum Target {
    Commit(String),
    Ref(String),
}

/// Reads the head of a repository whose own files are in `git_dir` and whose
/// shared refs are in `common_dir`.
pub(super) fn read(git_dir: &Path, common_dir: &Path) -> Head {
    match read_target(&git_dir.join("HEAD")) {
        None => Head::default(),
        Some(Target::Commit(commit)) => Head {
            branch: None,
            commit: Some(commit),
        },
        Some(Target::Ref(name)) if name == REFTABLE => Head::default(),
        Some(Target::Ref(name)) => Head {
            commit: resolve(git_dir, common_dir, &name),
            branch: Some(match name.strip_prefix("refs/heads/") {
                Some(branch) => branch.to_owned(),
                None => name,
            }),
        },
    }
}

fn resolve(git_dir: &Path, common_dir: &Path, name: &str) -> Option<String> {
    let mut name = name.to_owned();
    for _ in 0..CHAIN_MAX {
        let own = PER_WORKTREE.iter().any(|prefix| name.starts_with(prefix));
        let dir = if own { git_dir } else { common_dir };
        match read_target(&dir.join(&name)) {
            Some(Target::Commit(commit)) => return Some(commit),
            Some(Target::Ref(next)) => name = next,
            None => return packed_refs::find(&common_dir.join("packed-refs"), &name),
        }
    }
    None
}

/// A file of the refs database: an id, or `ref: ` and a name, or a link that
/// stands for the name.
fn read_target(path: &Path) -> Option<Target> {
    if let Ok(link) = std::fs::read_link(path) {
        // The oldest form of a symbolic ref; a link to anything else is followed.
        let name = link.to_str()?;
        if is_ref_name(name) {
            return Some(Target::Ref(name.to_owned()));
        }
    }
    let bytes = regular_file::read_whole(path, SMALL_FILE_MAX_BYTES).ok()?;
    let text = std::str::from_utf8(&bytes).ok()?.trim_ascii_end();
    match text.strip_prefix("ref:") {
        Some(name) => {
            let name = name.trim_ascii_start();
            is_ref_name(name).then(|| Target::Ref(name.to_owned()))
        }
        None => is_object_id(text).then(|| Target::Commit(text.to_owned())),
    }
}

/// Whether a name stays under `refs/` when it is joined to a directory. Of the
/// rules of git-check-ref-format(1) only those that keep a path inside.
fn is_ref_name(name: &str) -> bool {
    name.starts_with("refs/")
        && name.len() <= NAME_MAX_BYTES
        && !name.contains('\0')
        && name.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// SHA-1 or SHA-256, in lower-case hex as git writes it.
pub(super) fn is_object_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64)
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
