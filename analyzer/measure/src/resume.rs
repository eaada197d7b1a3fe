//! Taking up an experiment that did not come to its end.
//!
//! What it left says which runs were made; they are kept, and only the rest of the
//! same schedule is made. Anything that would make the rest another experiment
//! (program, files, driver, host, boot, settings, seed) refuses it.

use crate::journal;
use crate::manifest::Manifest;
use crate::manifest::result::RunResult;
use std::io;
use std::path::{Path, PathBuf};

/// What an earlier `measure` left.
#[derive(Clone, Debug)]
pub struct Earlier {
    dir: PathBuf,
    manifest: Manifest,
    journal: Vec<(usize, RunResult)>,
}

/// Why an experiment cannot be resumed.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// There is nothing to resume from.
    #[error("--resume: {path}: {1}\nhint: --resume takes the --out of an experiment that was begun", path = .0.display())]
    NoManifest(PathBuf, #[source] io::Error),
    /// It would be another experiment.
    #[error(
        "--resume: {0}\nhint: the runs that were made and those to come would not be comparable; use a new --out"
    )]
    Changed(String),
    /// A file of a run that is made again cannot be removed.
    #[error("--resume: cannot remove {path}: {1}", path = .0.display())]
    Remove(PathBuf, #[source] io::Error),
}

impl Earlier {
    /// Reads what is in a directory.
    ///
    /// # Errors
    /// There is no manifest, or one that cannot be read.
    pub fn read(dir: &Path) -> Result<Self, ResumeError> {
        let none = |error| ResumeError::NoManifest(dir.to_owned(), error);
        Ok(Self {
            dir: dir.to_owned(),
            manifest: Manifest::read(dir).map_err(none)?,
            journal: journal::read(dir).map_err(none)?,
        })
    }

    /// The seed that fixed its order.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.manifest.identity().seed
    }

    /// Hands the runs that were made over to the manifest of this sitting. A run
    /// that was interrupted is made again, and its files go.
    ///
    /// # Errors
    /// It was another experiment, or files cannot be removed.
    pub fn hand_over(&self, manifest: &mut Manifest) -> Result<(), ResumeError> {
        if let Some(difference) = self.manifest.identity().difference(manifest.identity()) {
            return Err(ResumeError::Changed(difference));
        }
        manifest.follow(&self.manifest);
        for (index, result) in &self.journal {
            manifest.set_result_at(*index, Some(result.clone()));
        }
        let interrupted: Vec<(usize, Vec<String>)> = manifest
            .results()
            .filter(|(_, result)| result.was_interrupted())
            .map(|(index, result)| (index, result.files.clone()))
            .collect();
        for (index, files) in interrupted {
            // Names are ours; a manifest that was tampered with leads nowhere else.
            let own = files.iter().filter(|name| !name.contains('/'));
            for path in own.map(|name| self.dir.join(name)) {
                match std::fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(ResumeError::Remove(path, error));
                    }
                    _ => {}
                }
            }
            manifest.set_result_at(index, None);
        }
        Ok(())
    }
}
