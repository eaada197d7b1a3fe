//! The policy: what must not be on which start path of which program.
//!
//! [`load`] reads and validates; what comes out needs no further checks against
//! itself. Whether the workspace and the binary fit it is for the layers to say.

mod date;
mod file;
mod pattern;
mod validate;

pub(crate) use date::Date;
pub(crate) use pattern::{NamePattern, SymbolPattern, fold_name};
pub(crate) use validate::parse;

use crate::layer::Layer;
use semver::VersionReq;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Largest policy that is read: far above any that a person writes.
const POLICY_BYTES_MAX: u64 = 1 << 20;

/// A valid policy.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    pub(crate) paths: Vec<StartPath>,
}

/// One start path of one program.
#[derive(Debug, Clone)]
pub(crate) struct StartPath {
    pub(crate) name: String,
    pub(crate) program: Program,
    /// Functions from which reachability starts; empty: the program's entry.
    pub(crate) roots: Vec<String>,
    /// The innermost layer that must say absent.
    pub(crate) level: Layer,
    pub(crate) deny: Vec<DenyRule>,
    pub(crate) lazy: Vec<LazyEdge>,
}

/// The program as it is built for release.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Program {
    pub(crate) package: String,
    pub(crate) bin: String,
    pub(crate) features: Vec<String>,
    pub(crate) default_features: DefaultFeatures,
    /// Target triple; none: the host's.
    pub(crate) target: Option<String>,
    pub(crate) profile: String,
    pub(crate) rustflags: Vec<String>,
    /// Other packages of the same `cargo build`; their features unify with the program's.
    pub(crate) together_with: Vec<String>,
}

/// Whether the package's default features are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DefaultFeatures {
    /// As cargo does by itself.
    On,
    /// `--no-default-features`.
    Off,
}

/// Something that must not be there.
#[derive(Debug, Clone)]
pub(crate) struct DenyRule {
    pub(crate) what: Denied,
    pub(crate) reason: Option<String>,
    /// Whether a rule that matches nothing is right (a ban on what may come).
    pub(crate) unmatched: Unmatched,
}

/// What a rule denies.
#[derive(Debug, Clone)]
pub(crate) enum Denied {
    /// Packages by package or library name.
    Crate {
        pattern: NamePattern,
        version: Option<VersionReq>,
    },
    /// Code by its path; judged in the binary only.
    Symbol { pattern: SymbolPattern },
}

/// What a rule that matches nothing means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unmatched {
    /// A mistake, the default.
    Fails,
    /// A ban on what may come.
    Allowed,
}

impl DenyRule {
    /// The rule as a person would name it.
    pub(crate) fn label(&self) -> String {
        match &self.what {
            Denied::Crate { pattern, version } => match version {
                Some(version) => format!("crate {} {version}", pattern.text()),
                None => format!("crate {}", pattern.text()),
            },
            Denied::Symbol { pattern } => format!("symbol {}", pattern.text()),
        }
    }
}

/// An allowed way to denied code that is not taken at start.
#[derive(Debug, Clone)]
pub(crate) struct LazyEdge {
    pub(crate) what: Lazy,
    pub(crate) reason: String,
    /// Last day on which the edge holds.
    pub(crate) expires: Option<Date>,
}

/// How denied code may be reached later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lazy {
    /// A call, both functions by their exact path; `from` may end in `*`, for drop glue
    /// that is called from many places of one module.
    Call { from: String, to: String },
    /// A library that is opened while running, never needed at link time.
    Dlopen { library: String },
    /// Another program.
    Exec { program: String },
}

impl LazyEdge {
    /// The edge as a person would name it.
    pub(crate) fn label(&self) -> String {
        match &self.what {
            Lazy::Call { from, to } => format!("{from} -> {to}"),
            Lazy::Dlopen { library } => format!("dlopen {library}"),
            Lazy::Exec { program } => format!("exec {program}"),
        }
    }
}

/// Why there is no policy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PolicyError {
    #[error(
        "cannot read policy {file}: {source}\nhint: run in the root of the workspace, or name one with --policy FILE"
    )]
    Unreadable {
        file: PathBuf,
        source: std::io::Error,
    },
    #[error("policy {file} is larger than 1 MiB")]
    TooLarge { file: PathBuf },
    #[error("policy {file}: {message}")]
    Syntax { file: PathBuf, message: String },
    #[error("policy {file}: path `{path}`: {message}")]
    Invalid {
        file: PathBuf,
        path: String,
        message: String,
    },
}

/// Reads the policy at `file`.
///
/// # Errors
/// When it cannot be read, is too large, is not TOML of this schema, or
/// contradicts itself.
pub(crate) fn load(file: &Path) -> Result<Policy, PolicyError> {
    let unreadable = |source| PolicyError::Unreadable {
        file: file.to_owned(),
        source,
    };
    // A pipe is fine as a policy, and has no length to ask for.
    let mut text = String::new();
    let opened = std::fs::File::open(file).map_err(unreadable)?;
    opened
        .take(POLICY_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .map_err(unreadable)?;
    if text.len() as u64 > POLICY_BYTES_MAX {
        return Err(PolicyError::TooLarge {
            file: file.to_owned(),
        });
    }
    parse(file, &text)
}
