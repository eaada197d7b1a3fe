//! Whose file a path in a panic location is.
//!
//! Paths are classified by their folders. Packages of the workspace and its
//! dependencies are recognised by where Cargo says they are; the rest by the forms
//! in which Cargo, distributions and vendoring lay packages out.

use crate::packages::{Package, Workspace};
use semver::Version;
use std::collections::HashMap;
use std::path::Path;

/// Form of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PathClass {
    /// In a folder that Cargo names for a package of this workspace.
    Known,
    /// `…/registry/src/INDEX/NAME-VERSION/…`, also with a remapped front.
    Registry,
    /// `…/git/checkouts/NAME-HASH/REV/…`.
    Git,
    /// `…/vendor/NAME[-VERSION]/…`.
    Vendor,
    /// The standard library and its own dependencies.
    Std,
    /// None of these.
    Other,
}

/// Owner of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner {
    pub(crate) class: PathClass,
    /// Package name; the repository's for git checkouts of unknown packages.
    pub(crate) name: String,
    pub(crate) version: Option<Version>,
}

impl Owner {
    /// `name version`, as far as known.
    pub(crate) fn label(&self) -> String {
        match &self.version {
            Some(version) => format!("{} {version}", self.name),
            None => self.name.clone(),
        }
    }

    fn new(class: PathClass, name: &str, version: Option<Version>) -> Self {
        Self {
            class,
            name: name.to_owned(),
            version,
        }
    }
}

/// Where the packages of a workspace and its dependencies are.
pub(crate) struct Folders<'w> {
    root: &'w Path,
    packages: HashMap<&'w Path, &'w Package>,
}

impl<'w> Folders<'w> {
    /// Those that Cargo named. Of two packages in one folder the last by id counts.
    pub(crate) fn of(workspace: &'w Workspace) -> Self {
        let mut packages: HashMap<&Path, &Package> = HashMap::new();
        for package in workspace.known.values() {
            let there = packages.entry(&package.dir).or_insert(package);
            if there.id < package.id {
                *there = package;
            }
        }
        Self {
            root: &workspace.root,
            packages,
        }
    }
}

/// Classifies `path`; `folders` says where packages are.
pub(crate) fn owner_of(path: &str, folders: Option<&Folders<'_>>) -> Owner {
    let parts: Vec<&str> = path.split('/').collect();
    std_owner(&parts)
        .or_else(|| folders.and_then(|folders| known_owner(path, folders)))
        .or_else(|| registry_owner(&parts))
        .or_else(|| git_owner(&parts))
        .or_else(|| vendor_owner(&parts))
        .or_else(|| versioned_owner(&parts))
        .unwrap_or_else(|| Owner::new(PathClass::Other, "", None))
}

/// `/rustc/HASH/library/CRATE/…` and `/rust/deps/NAME-VERSION/…`.
fn std_owner(parts: &[&str]) -> Option<Owner> {
    if let Some(at) = position(parts, &["rust", "deps"]) {
        let (name, version) = name_and_version(parts.get(at + 2)?)?;
        return Some(Owner::new(PathClass::Std, name, Some(version)));
    }
    let at = parts.iter().position(|part| *part == "library")?;
    let in_rustc = at >= 2 && parts[at - 2] == "rustc";
    let in_source = position(parts, &["rustlib", "src", "rust", "library"]).is_some();
    (in_rustc || in_source)
        .then(|| Owner::new(PathClass::Std, parts.get(at + 1).unwrap_or(&"std"), None))
}

/// The package with the longest folder that holds the path. Paths of workspace
/// members are relative to the workspace.
fn known_owner(path: &str, folders: &Folders<'_>) -> Option<Owner> {
    let whole = if path.starts_with('/') {
        std::path::PathBuf::from(path)
    } else {
        folders.root.join(path)
    };
    let package = whole
        .ancestors()
        .find_map(|folder| folders.packages.get(folder))?;
    Some(Owner::new(
        PathClass::Known,
        &package.name,
        Some(package.version.clone()),
    ))
}

/// `registry/src/INDEX/NAME-VERSION`, and `registry/NAME-VERSION` of distributions
/// and remapped builds.
fn registry_owner(parts: &[&str]) -> Option<Owner> {
    let at = parts.iter().position(|part| *part == "registry")?;
    let near = parts.get(at + 1..)?.iter().take(3);
    near.filter_map(|part| name_and_version(part))
        .map(|(name, version)| Owner::new(PathClass::Registry, name, Some(version)))
        .next()
}

fn git_owner(parts: &[&str]) -> Option<Owner> {
    let at = position(parts, &["git", "checkouts"])?;
    let (name, hash) = parts.get(at + 2)?.rsplit_once('-')?;
    let is_hash = hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| Owner::new(PathClass::Git, name, None))
}

fn vendor_owner(parts: &[&str]) -> Option<Owner> {
    let at = parts.iter().rposition(|part| *part == "vendor")?;
    // A file right below `vendor` is no package.
    parts.get(at + 2)?;
    let folder = *parts.get(at + 1)?;
    let (name, version) = match name_and_version(folder) {
        Some((name, version)) => (name, Some(version)),
        None => (folder, None),
    };
    Some(Owner::new(PathClass::Vendor, name, version))
}

/// `NAME-VERSION/src/…` behind a front that was remapped.
fn versioned_owner(parts: &[&str]) -> Option<Owner> {
    let at = parts.iter().position(|part| *part == "src")?;
    let (name, version) = name_and_version(parts.get(at.checked_sub(1)?)?)?;
    Some(Owner::new(PathClass::Registry, name, Some(version)))
}

fn position(parts: &[&str], wanted: &[&str]) -> Option<usize> {
    parts.windows(wanted.len()).position(|part| part == wanted)
}

/// Splits `NAME-VERSION` at the first `-` behind which a whole version stands.
fn name_and_version(folder: &str) -> Option<(&str, Version)> {
    folder.match_indices('-').find_map(|(at, _)| {
        let version = Version::parse(&folder[at + 1..]).ok()?;
        (at > 0).then_some((&folder[..at], version))
    })
}

#[cfg(test)]
mod tests {
    use super::{PathClass, owner_of};

    #[track_caller]
    fn check(path: &str, class: PathClass, name: &str, version: &str) {
        let owner = owner_of(path, None);
        let found = owner.version.map(|v| v.to_string()).unwrap_or_default();
        assert_eq!(
            (owner.class, owner.name.as_str(), found.as_str()),
            (class, name, version)
        );
    }

    #[test]
    fn packages_are_found_in_every_layout() {
        use PathClass::{Git, Registry, Vendor};
        let index = "/home/u/.cargo/registry/src/index.example-1949cf8c6b5b557f";
        check(
            &format!("{index}/ratatui-0.29.0/src/terminal.rs"),
            Registry,
            "ratatui",
            "0.29.0",
        );
        check(
            &format!("{index}/a-b-1.0.0-rc.1/src/l.rs"),
            Registry,
            "a-b",
            "1.0.0-rc.1",
        );
        check(
            &format!("{index}/x-1.0.0+spec-1.1/src/l.rs"),
            Registry,
            "x",
            "1.0.0+spec-1.1",
        );
        check(
            "/usr/share/cargo/registry/clap-4.0.32/src/lib.rs",
            Registry,
            "clap",
            "4.0.32",
        );
        check(
            "registry/ratatui-0.29.0/src/a.rs",
            Registry,
            "ratatui",
            "0.29.0",
        );
        check("/r/ratatui-0.29.0/src/a.rs", Registry, "ratatui", "0.29.0");
        check(
            "/h/.cargo/git/checkouts/tui-rs-0123456789abcdef/1a2b3c4/src/l.rs",
            Git,
            "tui-rs",
            "",
        );
        check("vendor/ratatui/src/l.rs", Vendor, "ratatui", "");
        check(
            "third/vendor/ratatui-0.29.0/src/l.rs",
            Vendor,
            "ratatui",
            "0.29.0",
        );
    }

    #[test]
    fn the_standard_librarys_copies_are_its_own() {
        check(
            "/rust/deps/gimli-0.32.3/src/read/unit.rs",
            PathClass::Std,
            "gimli",
            "0.32.3",
        );
        check(
            "/rustc/59807616e1fa/library/core/src/option.rs",
            PathClass::Std,
            "core",
            "",
        );
    }

    #[test]
    fn other_paths_have_no_owner() {
        for path in [
            "src/main.rs",
            "crates/x/src/lib.rs",
            "vendor/x.rs",
            "a-b/src/l.rs",
            "",
        ] {
            check(path, PathClass::Other, "", "");
        }
    }
}
