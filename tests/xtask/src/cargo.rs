//! Building the workspace's programs and finding them.
//!
//! The paths come from cargo's own messages: guessing them breaks under a
//! configured build folder and silently takes a stale program otherwise.

use crate::steps::{Outcome, output};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

/// Programs by name.
pub(crate) type Programs = BTreeMap<String, PathBuf>;

/// How to build.
#[derive(Debug, Default)]
pub(crate) struct Build<'a> {
    pub(crate) profile: &'a str,
    pub(crate) packages: &'a [&'a str],
    /// `--target`, needed where flags must not reach build scripts and macros.
    pub(crate) target: Option<&'a str>,
    pub(crate) rustflags: &'a [&'a str],
    /// Features, `PACKAGE/FEATURE`.
    pub(crate) features: &'a [&'a str],
    /// Variables of cargo's environment, such as settings of a profile.
    pub(crate) env: &'a [(&'a str, &'a str)],
}

/// Cargo, as it runs this task.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Builds the packages' programs.
pub(crate) fn build(build: &Build<'_>) -> Outcome<Programs> {
    let mut command = cargo();
    command.args([
        "build",
        "--locked",
        "--bins",
        "--message-format=json-render-diagnostics",
    ]);
    command.args(["--profile", build.profile]);
    for package in build.packages {
        command.args(["-p", package]);
    }
    for feature in build.features {
        command.args(["--features", feature]);
    }
    if let Some(target) = build.target {
        command.args(["--target", target]);
    }
    if !build.rustflags.is_empty() {
        command.env("CARGO_ENCODED_RUSTFLAGS", build.rustflags.join("\u{1f}"));
    }
    command.envs(build.env.iter().copied());
    let programs: Programs = output(&mut command)?
        .lines()
        .filter_map(executable)
        .collect();
    if programs.is_empty() {
        Err("cargo built no program".to_owned())
    } else {
        Ok(programs)
    }
}

/// One program of a built set.
pub(crate) fn program<'a>(programs: &'a Programs, name: &str) -> Outcome<&'a PathBuf> {
    programs
        .get(name)
        .ok_or_else(|| format!("cargo did not build `{name}`"))
}

/// The executable of one of cargo's JSON messages. Its paths hold no characters
/// that JSON escapes, or the build has failed long before.
fn executable(message: &str) -> Option<(String, PathBuf)> {
    let path = message
        .split_once(r#""executable":""#)?
        .1
        .split_once('"')?
        .0;
    if path.contains('\\') {
        return None;
    }
    let path = PathBuf::from(path);
    Some((path.file_stem()?.to_str()?.to_owned(), path))
}

/// The host's target triple.
pub(crate) fn host() -> Outcome<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let text = output(Command::new(rustc).arg("-vV"))?;
    text.lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
        .ok_or_else(|| "rustc -vV names no host".to_owned())
}
