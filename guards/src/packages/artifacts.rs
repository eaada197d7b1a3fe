//! The artifact stream of `cargo build --message-format=json`: what was built.

use super::{Closure, PackagesError, Workspace};
use cargo_metadata::{Artifact, CrateType, Message, TargetKind};
use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::path::{Path, PathBuf};

/// What one cargo invocation built for the target.
#[derive(Debug, Clone, Default)]
pub(crate) struct Built {
    /// Library packages and packages of programs by id.
    pub(crate) packages: BTreeMap<String, BuiltPackage>,
    /// Programs by name.
    pub(crate) programs: BTreeMap<String, PathBuf>,
    /// Names of the programs that cargo did not build again.
    pub(crate) fresh: BTreeSet<String>,
    /// Whether cargo said that the build succeeded.
    pub(crate) finished: bool,
}

/// One package of the stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BuiltPackage {
    pub(crate) features: BTreeSet<String>,
    /// Files of its library, sorted.
    pub(crate) files: BTreeSet<PathBuf>,
}

/// How the predicted closure differs from what was built; all empty when it does not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) only_predicted: Vec<String>,
    pub(crate) only_built: Vec<String>,
    /// `name version: predicted {…}, built {…}`.
    pub(crate) features: Vec<String>,
}

impl Difference {
    /// Whether prediction and build agree.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Reads a stream; `target` tells the target's artifacts from the host's, so the
/// build must have been given `--target`.
///
/// Lines that are no JSON objects are text of build tools and are skipped.
///
/// # Errors
/// When a line begins like a message and is none.
pub(crate) fn read_stream(stream: impl BufRead, target: &str) -> Result<Built, PackagesError> {
    let mut built = Built::default();
    for (index, line) in stream.lines().enumerate() {
        let broken = |message: String| PackagesError::Stream {
            line: index + 1,
            message,
        };
        let line = line.map_err(|error| broken(error.to_string()))?;
        if !line.starts_with('{') {
            continue;
        }
        match serde_json::from_str(&line).map_err(|error| broken(error.to_string()))? {
            Message::CompilerArtifact(artifact) => built.add(&artifact, target),
            Message::BuildFinished(end) => built.finished = end.success,
            _ => {}
        }
    }
    Ok(built)
}

impl Built {
    fn add(&mut self, artifact: &Artifact, target: &str) {
        let for_target = artifact
            .filenames
            .iter()
            .any(|file| is_in_folder(file.as_std_path(), target));
        let host_only = artifact
            .target
            .kind
            .iter()
            .any(|kind| matches!(kind, TargetKind::CustomBuild | TargetKind::ProcMacro));
        if !for_target || host_only {
            return;
        }
        let package = self
            .packages
            .entry(artifact.package_id.repr.clone())
            .or_default();
        package.features.extend(artifact.features.iter().cloned());
        if artifact.target.crate_types.contains(&CrateType::Bin) {
            if let Some(file) = &artifact.executable {
                let name = artifact.target.name.clone();
                if artifact.fresh {
                    self.fresh.insert(name.clone());
                }
                self.programs.insert(name, file.as_std_path().to_owned());
            }
        } else {
            let files = artifact.filenames.iter();
            package
                .files
                .extend(files.map(|file| file.as_std_path().to_owned()));
        }
    }
}

fn is_in_folder(file: &Path, folder: &str) -> bool {
    file.components()
        .any(|part| part.as_os_str().to_str() == Some(folder))
}

/// Compares the closure of the whole invocation with what it built.
pub(crate) fn compare(workspace: &Workspace, closure: &Closure, built: &Built) -> Difference {
    let label = |id: &String| {
        workspace
            .known
            .get(id)
            .map_or_else(|| id.clone(), super::Package::label)
    };
    let mut difference = Difference::default();
    for (id, features) in &closure.invocation {
        match built.packages.get(id) {
            None => difference.only_predicted.push(label(id)),
            Some(package) if package.features != *features => {
                difference.features.push(format!(
                    "{}: predicted {}, built {}",
                    label(id),
                    braces(features),
                    braces(&package.features)
                ));
            }
            Some(_) => {}
        }
    }
    let extra = |id: &&String| !closure.invocation.contains_key(*id);
    difference.only_built = built.packages.keys().filter(extra).map(label).collect();
    difference.only_built.sort();
    difference.only_predicted.sort();
    difference.features.sort();
    difference
}

fn braces(features: &BTreeSet<String>) -> String {
    let list: Vec<&str> = features.iter().map(String::as_str).collect();
    format!("{{{}}}", list.join(", "))
}
