//! Instruction files of a workspace: `AGENTS.md` and its relatives.
//!
//! Looked for in every directory from the root of the repository down to the
//! working directory, so that the nearer file comes later and has the last word.
//! Outside a repository only the working directory is searched. Files are read
//! with a bound each and one for all; links may not leave the repository.

use crate::regular_file::{RegularFile, Rest, Stamp};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of all instruction files of one workspace: about 64,000 tokens, more
/// than a model can follow.
pub(crate) const TOTAL_MAX_BYTES: usize = 256 * 1024;
/// Directories searched, from the working directory upwards; deeper ones than
/// this below their repository's root are searched alone.
const DIRECTORIES_MAX: usize = 32;

/// What is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// Relative names, in order of reading within one directory.
    pub(crate) names: Vec<PathBuf>,
    /// Bytes read of one file.
    pub(crate) max_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        let names = [
            "AGENTS.md",
            "CLAUDE.md",
            "QWEN.md",
            "GEMINI.md",
            ".github/copilot-instructions.md",
        ];
        Self {
            names: names.map(PathBuf::from).to_vec(),
            max_bytes: 64 * 1024,
        }
    }
}

/// Instruction files of one working directory, outermost first.
#[derive(Clone, Debug)]
pub(crate) struct Instructions {
    files: Vec<InstructionFile>,
}

/// One instruction file.
#[derive(Clone, Debug)]
pub(crate) struct InstructionFile {
    /// Absolute path.
    pub(crate) path: PathBuf,
    /// Its text up to the bound; bytes that are not UTF-8 are replaced.
    pub(crate) text: Arc<str>,
    rest: Rest,
    stamp: Stamp,
}

impl InstructionFile {
    /// Whether a bound cut the text.
    pub(crate) fn is_cut(&self) -> bool {
        self.rest == Rest::More
    }
}

impl Instructions {
    /// Searches for the files of `directory`, up to `root` of its repository. A
    /// file that `previous` holds and that has not changed since is not read
    /// again. What cannot be opened or is no regular file is passed over.
    pub(crate) fn discover(
        directory: &Path,
        root: Option<&Path>,
        options: &Options,
        previous: Option<&Self>,
    ) -> Self {
        let root = root.unwrap_or(directory);
        let mut search = Search {
            options,
            previous: previous.map_or(&[][..], |previous| &previous.files),
            files: Vec::new(),
            left: TOTAL_MAX_BYTES,
        };
        let inside: Vec<_> = directory
            .ancestors()
            .take_while(|ancestor| ancestor.starts_with(root))
            .take(DIRECTORIES_MAX + 1)
            .collect();
        let inside = if inside.len() > DIRECTORIES_MAX {
            &inside[..1]
        } else {
            &inside[..]
        };
        if let Ok(root_fd) = std::fs::File::open(root) {
            for ancestor in inside.iter().rev() {
                let relative = ancestor.strip_prefix(root).unwrap_or(Path::new(""));
                search.directory(root_fd.as_fd(), root, relative);
            }
        }
        Self {
            files: search.files,
        }
    }

    /// The files, outermost first.
    pub(crate) fn files(&self) -> &[InstructionFile] {
        &self.files
    }
}

struct Search<'a> {
    options: &'a Options,
    previous: &'a [InstructionFile],
    files: Vec<InstructionFile>,
    left: usize,
}

impl Search<'_> {
    fn directory(&mut self, root_fd: std::os::fd::BorrowedFd<'_>, root: &Path, relative: &Path) {
        for name in &self.options.names {
            let relative = relative.join(name);
            let Ok(file) = RegularFile::open_beneath(root_fd, &relative) else {
                continue;
            };
            // `CLAUDE.md` is often a link to `AGENTS.md`.
            let stamp = file.stamp();
            if self
                .files
                .iter()
                .any(|known| known.stamp.is_same_file(&stamp))
            {
                continue;
            }
            if let Some(found) = self.take(&file, root.join(relative)) {
                self.left -= found.text.len().min(self.left);
                self.files.push(found);
            }
        }
    }

    fn take(&self, file: &RegularFile, path: PathBuf) -> Option<InstructionFile> {
        let unchanged = |known: &&InstructionFile| {
            known.path == path && known.stamp == file.stamp() && known.text.len() <= self.left
        };
        if let Some(known) = self.previous.iter().find(unchanged) {
            return Some(known.clone());
        }
        let (bytes, rest) = file.read(self.options.max_bytes.min(self.left)).ok()?;
        Some(InstructionFile {
            path,
            text: String::from_utf8_lossy(&bytes).into(),
            rest,
            stamp: file.stamp(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::Repository;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn discover(
        directory: &Path,
        options: &Options,
        previous: Option<&Instructions>,
    ) -> Instructions {
        let repository = Repository::find(directory);
        let root = repository.as_ref().map(Repository::root);
        Instructions::discover(directory, root, options, previous)
    }

    fn found(directory: &Path, options: &Options) -> Vec<(String, String)> {
        discover(directory, options, None)
            .files()
            .iter()
            .map(|file| (file.path.display().to_string(), file.text.to_string()))
            .collect()
    }

    /// A repository with `sub/deep` in it.
    fn repository() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join(".git")).unwrap();
        fs::write(dir.path().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::create_dir_all(dir.path().join("sub/deep")).unwrap();
        fs::create_dir_all(dir.path().join(".github")).unwrap();
        dir
    }

    #[track_caller]
    fn check(directory: &Path, expected: &[(&str, &str)], root: &Path) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(path, text)| (root.join(path).display().to_string(), (*text).to_owned()))
            .collect();
        assert_eq!(found(directory, &Options::default()), expected);
    }

    #[test]
    fn the_nearer_file_comes_later() {
        let repository = repository();
        let root = repository.path();
        fs::write(root.join("AGENTS.md"), "root").unwrap();
        fs::write(root.join("sub/deep/CLAUDE.md"), "deep").unwrap();
        fs::write(root.join("sub/QWEN.md"), "sub").unwrap();
        fs::write(root.join(".github/copilot-instructions.md"), "hub").unwrap();
        check(
            &root.join("sub/deep"),
            &[
                ("AGENTS.md", "root"),
                (".github/copilot-instructions.md", "hub"),
                ("sub/QWEN.md", "sub"),
                ("sub/deep/CLAUDE.md", "deep"),
            ],
            root,
        );
    }

    #[test]
    fn outside_a_repository_only_the_directory_itself_is_searched() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        fs::write(dir.path().join("AGENTS.md"), "above").unwrap();
        fs::write(dir.path().join("sub/GEMINI.md"), "here").unwrap();
        check(
            &dir.path().join("sub"),
            &[("sub/GEMINI.md", "here")],
            dir.path(),
        );
    }

    #[test]
    fn one_file_under_two_names_counts_once_and_links_out_are_passed_over() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "s").unwrap();
        let repository = repository();
        let root = repository.path();
        fs::write(root.join("AGENTS.md"), "a").unwrap();
        symlink("AGENTS.md", root.join("CLAUDE.md")).unwrap();
        symlink(outside.path().join("secret"), root.join("QWEN.md")).unwrap();
        fs::create_dir(root.join("GEMINI.md")).unwrap();
        check(root, &[("AGENTS.md", "a")], root);
    }

    #[test]
    fn each_file_and_all_together_are_bounded() {
        let repository = repository();
        let root = repository.path();
        for name in ["AGENTS.md", "CLAUDE.md", "QWEN.md", "GEMINI.md"] {
            fs::write(root.join(name), "é".repeat(60_000)).unwrap();
        }
        let options = Options {
            max_bytes: 100_000,
            ..Options::default()
        };
        let found = discover(root, &options, None);
        let sizes: Vec<_> = found
            .files()
            .iter()
            .map(|file| (file.text.len(), file.is_cut()))
            .collect();
        // 100,000 twice, then what is left of 262,144, then nothing.
        assert_eq!(
            sizes,
            [(100_000, true), (100_000, true), (62_144, true), (0, true)]
        );
    }

    #[test]
    fn bytes_that_are_not_text_are_replaced() {
        let repository = repository();
        fs::write(repository.path().join("AGENTS.md"), b"a\xffb").unwrap();
        check(
            repository.path(),
            &[("AGENTS.md", "a\u{fffd}b")],
            repository.path(),
        );
    }

    #[test]
    fn an_unchanged_file_is_kept_and_a_changed_one_read_again() {
        let repository = repository();
        let root = repository.path();
        fs::write(root.join("AGENTS.md"), "a").unwrap();
        fs::write(root.join("CLAUDE.md"), "c").unwrap();
        let options = Options::default();
        let first = discover(root, &options, None);
        fs::write(root.join("CLAUDE.md"), "changed").unwrap();
        let second = discover(root, &options, Some(&first));
        let text = |of: &Instructions, index: usize| Arc::clone(&of.files()[index].text);
        assert!(Arc::ptr_eq(&text(&first, 0), &text(&second, 0)));
        assert_eq!(&*text(&second, 1), "changed");
    }

    #[test]
    fn a_directory_too_deep_below_its_root_is_searched_alone() {
        let repository = repository();
        let deep = repository.path().join(vec!["d"; 40].join("/"));
        fs::create_dir_all(&deep).unwrap();
        fs::write(repository.path().join("AGENTS.md"), "root").unwrap();
        fs::write(deep.join("AGENTS.md"), "deep").unwrap();
        let found = found(&deep, &Options::default());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].1, "deep");
    }
}
