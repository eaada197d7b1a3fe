//! The directory of one run: its state, and its traces until they are whole.
//!
//! `OUT/state/N/`, in which `run` becomes the program's state directory and
//! `traces` holds what is moved into `OUT` when the run is over. Until then nothing
//! of it matches `OUT/*.jsonl`.

use super::RunError;
use coldpath_trace_format::emit::file::make_private_dir;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// The directory of a run.
#[derive(Debug)]
pub(super) struct Staging {
    out: PathBuf,
    dir: PathBuf,
    index: usize,
}

/// The files of a run before they are put in place.
#[derive(Debug, Default)]
pub(super) struct Contents {
    own: Vec<Move>,
    program: Vec<Move>,
}

#[derive(Debug)]
struct Move {
    from: PathBuf,
    to: PathBuf,
    name: String,
}

impl Contents {
    /// Names that our own files will have, sorted.
    pub(super) fn own(&self) -> Vec<String> {
        self.own.iter().map(|one| one.name.clone()).collect()
    }

    /// Names that the program's files will have, sorted.
    pub(super) fn program(&self) -> Vec<String> {
        self.program.iter().map(|one| one.name.clone()).collect()
    }

    /// Moves all of them into the output directory.
    pub(super) fn publish(&self) -> Result<(), RunError> {
        self.own.iter().chain(&self.program).try_for_each(|one| {
            std::fs::rename(&one.from, &one.to)
                .map_err(|error| RunError::Staging(one.to.clone(), error))
        })
    }
}

/// Most entries of a state directory that are looked at: a daemon's fresh one has
/// some ten.
const STRAYS_LOOK_MAX: usize = 10_000;
/// How much of a file is looked at; a trace says on its first line what it is.
const STRAY_LOOK_BYTES: u64 = 4 * 1024;
/// Words of a trace's first line, and of a profile's.
const TRACE_WORDS: [&str; 2] = ["\"resourceSpans\"", "\"coldpath.profile/"];

fn is_trace(path: &Path) -> bool {
    let mut head = Vec::new();
    let file = std::fs::File::open(path);
    let read = file.and_then(|file| file.take(STRAY_LOOK_BYTES).read_to_end(&mut head));
    let text = String::from_utf8_lossy(&head);
    read.is_ok() && TRACE_WORDS.iter().any(|word| text.contains(word))
}

/// Directory that holds those of all runs.
pub(super) fn root(out: &Path) -> PathBuf {
    out.join("state")
}

/// Removes the directory of a run that was not finished.
pub(super) fn forget(out: &Path, index: usize) -> io::Result<()> {
    match std::fs::remove_dir_all(dir(out, index)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn dir(out: &Path, index: usize) -> PathBuf {
    root(out).join(index.to_string())
}

impl Staging {
    /// Makes it, empty.
    pub(super) fn make(out: &Path, index: usize) -> Result<Self, RunError> {
        let dir = dir(out, index);
        let made = forget(out, index)
            .map_err(|error| RunError::Staging(dir.clone(), error))
            .map(|()| Self {
                out: out.to_owned(),
                dir,
                index,
            })?;
        for path in [made.state(), made.traces(), made.own_traces()] {
            make_private_dir(&path).map_err(|error| RunError::Staging(path, error))?;
        }
        Ok(made)
    }

    /// The program's state directory.
    pub(super) fn state(&self) -> PathBuf {
        self.dir.join("run")
    }

    /// Trace files and profiles that the program put among its state, as paths in it,
    /// sorted: where one looks that was told of no trace directory.
    pub(super) fn strays(&self) -> Vec<String> {
        let state = self.state();
        let mut found = Vec::new();
        let mut pending = vec![state.clone()];
        let mut looked_at = 0;
        while let Some(dir) = pending.pop() {
            for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
                looked_at += 1;
                if looked_at > STRAYS_LOOK_MAX {
                    break;
                }
                let Ok(kind) = entry.file_type() else {
                    continue;
                };
                if kind.is_dir() {
                    pending.push(entry.path());
                } else if kind.is_file() && is_trace(&entry.path()) {
                    let path = entry.path();
                    let name = path.strip_prefix(&state).unwrap_or(&path);
                    found.push(name.to_string_lossy().into_owned());
                }
            }
        }
        found.sort();
        found
    }

    /// Where the program's traces go.
    pub(super) fn traces(&self) -> PathBuf {
        self.dir.join("traces")
    }

    /// Where our own trace goes, apart, so that what the program wrote is known.
    pub(super) fn own_traces(&self) -> PathBuf {
        self.dir.join("own")
    }

    /// The one that an earlier `measure` made.
    pub(super) fn of_earlier(out: &Path, index: usize) -> Self {
        Self {
            out: out.to_owned(),
            dir: dir(out, index),
            index,
        }
    }

    /// What is to be moved, and where to. A name that is taken in the output
    /// directory gets the run's number in front.
    pub(super) fn contents(&self) -> Result<Contents, RunError> {
        Ok(Contents {
            own: self.moves(&self.own_traces())?,
            program: self.moves(&self.traces())?,
        })
    }

    fn moves(&self, from: &Path) -> Result<Vec<Move>, RunError> {
        let refused = |error| RunError::Staging(from.to_owned(), error);
        let entries = match std::fs::read_dir(from) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(refused)?,
        };
        let mut moves = Vec::new();
        for entry in entries {
            let entry = entry.map_err(refused)?;
            let mut name = entry.file_name().to_string_lossy().into_owned();
            if self.out.join(&name).symlink_metadata().is_ok() {
                name = format!("run-{}-{name}", self.index);
            }
            moves.push(Move {
                from: entry.path(),
                to: self.out.join(&name),
                name,
            });
        }
        moves.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(moves)
    }

    /// Removes it, with the state in it. What cannot be removed is only in the way
    /// of the next look at it.
    pub(super) fn remove(&self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_are_put_in_place_whole_and_never_over_another() {
        let out = tempfile::tempdir().unwrap();
        std::fs::write(out.path().join("a.jsonl"), "first").unwrap();
        let staging = Staging::make(out.path(), 7).unwrap();
        std::fs::write(staging.own_traces().join("measure-1.jsonl"), "").unwrap();
        for name in ["b.jsonl", "a.jsonl"] {
            std::fs::write(staging.traces().join(name), "second").unwrap();
        }
        let contents = staging.contents().unwrap();
        assert_eq!(contents.program(), ["b.jsonl", "run-7-a.jsonl"]);
        assert_eq!(contents.own(), ["measure-1.jsonl"]);
        contents.publish().unwrap();
        let read = |name: &str| std::fs::read_to_string(out.path().join(name)).unwrap();
        assert_eq!(
            [read("a.jsonl"), read("run-7-a.jsonl")],
            ["first", "second"]
        );
        assert!(out.path().join("measure-1.jsonl").exists());
        staging.remove();
        assert!(!dir(out.path(), 7).exists());
    }

    #[test]
    fn a_trace_among_the_state_is_found_and_other_files_are_not() {
        let out = tempfile::tempdir().unwrap();
        let staging = Staging::make(out.path(), 0).unwrap();
        let write = |name: &str, text: &str| {
            let path = staging.state().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("sessions/s.jsonl", "{\"id\":1}\n");
        write("lock", "");
        assert_eq!(staging.strays(), [""; 0]);
        write("a/b.jsonl", "{\"resourceSpans\":[]}\n");
        write("p.jsonl", "{\"schema\":\"coldpath.profile/1\"}\n");
        assert_eq!(staging.strays(), ["a/b.jsonl", "p.jsonl"]);
    }

    #[test]
    fn an_unfinished_run_s_directory_is_emptied_before_it_is_made_again() {
        let out = tempfile::tempdir().unwrap();
        let staging = Staging::make(out.path(), 0).unwrap();
        std::fs::write(staging.traces().join("half.jsonl"), "").unwrap();
        let again = Staging::make(out.path(), 0).unwrap();
        assert_eq!(again.contents().unwrap().program(), [""; 0]);
        forget(out.path(), 0).unwrap();
        forget(out.path(), 0).unwrap();
        assert!(!dir(out.path(), 0).exists());
    }
}
