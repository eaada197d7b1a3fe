//! Layer `packages`: the feature-accurate closure of one program.
//!
//! guppy answers Cargo's own question, which features does this program get on
//! this target; the artifact stream says what was really built. Where they
//! differ, the layer says so instead of trusting either. Plain `cargo metadata`
//! is used for names and declarations only: its closure is the workspace's.

mod artifacts;
mod judge;
mod openers;
mod routes;
mod simulate;

pub(crate) use artifacts::{Built, Difference, compare, read_stream};
pub(crate) use judge::{Routes, judge, matching_known};
pub(crate) use routes::{all_routes, shortest_route};
pub(crate) use simulate::{Workspace, check_names, read_metadata, simulate};

use semver::Version;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Where a package comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    Workspace,
    Path,
    Registry,
    Git,
}

impl Origin {
    /// Stable name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Workspace => "workspace",
            Self::Path => "path",
            Self::Registry => "registry",
            Self::Git => "git",
        }
    }
}

/// A package as Cargo knows it.
#[derive(Debug, Clone)]
pub(crate) struct Package {
    /// Cargo's identity; distinguishes two sources of one version.
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: Version,
    /// Name of the library as code sees it; none for programs without one.
    pub(crate) lib_name: Option<String>,
    pub(crate) origin: Origin,
    /// Folder of the manifest.
    pub(crate) dir: PathBuf,
}

impl Package {
    /// `name version`.
    pub(crate) fn label(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    /// Whether `matches` holds for the package's or the library's name.
    pub(crate) fn answers_to(&self, mut matches: impl FnMut(&str) -> bool) -> bool {
        matches(&self.name) || self.lib_name.as_deref().is_some_and(matches)
    }
}

/// A dependency between two packages of the closure, as it is taken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Edge {
    /// Id of the dependant.
    pub(crate) from: String,
    /// Id of the dependency.
    pub(crate) to: String,
    /// The name that the dependant gives it, when that is another.
    pub(crate) rename: Option<String>,
    /// Whether some feature has to open it.
    pub(crate) optional: bool,
    /// Name in the dependant's manifest, by which features speak of it.
    pub(crate) dependency_name: String,
}

/// The packages that are compiled into one program.
#[derive(Debug, Clone)]
pub(crate) struct Closure {
    /// Id of the program's own package.
    pub(crate) program: String,
    /// Ids of everything that the same cargo invocation builds for the target.
    pub(crate) invocation: BTreeMap<String, BTreeSet<String>>,
    /// Packages of the program with their enabled named features, by id.
    pub(crate) packages: BTreeMap<String, BTreeSet<String>>,
    /// Sorted.
    pub(crate) edges: Vec<Edge>,
}

/// Why there is no closure.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PackagesError {
    #[error("cannot read cargo's metadata: {message}")]
    Metadata { message: String },
    #[error(
        "package `{name}` is not a member of the workspace at {root}\nhint: correct `package` or `together-with` in the policy, or name another workspace with `guard build --manifest-path FILE`"
    )]
    UnknownPackage { name: String, root: String },
    #[error(
        "package `{package}` has no program `{bin}`\nhint: correct `bin` in the policy; without it, it is the package's name"
    )]
    UnknownProgram { package: String, bin: String },
    #[error(
        "package `{package}` has no feature `{feature}`\nhint: correct `features` in the policy"
    )]
    UnknownFeature { package: String, feature: String },
    #[error("target `{target}` is not known: {message}")]
    UnknownTarget { target: String, message: String },
    #[error("cannot resolve features: {message}")]
    Resolve { message: String },
    #[error("line {line} of the artifact stream is not a cargo message: {message}")]
    Stream { line: usize, message: String },
}
