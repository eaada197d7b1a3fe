//! The user's settings: `$XDG_CONFIG_HOME/coldpath/agent.toml`.
//!
//! Never read from a workspace: it decides what the agent offers. A missing file
//! means the defaults; a broken one is a problem that is told, and the defaults.

use crate::instructions;
use crate::regular_file;
use crate::tools;
use serde::Deserialize;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// Bytes of a settings file; a hundred times what all keys need.
const FILE_MAX_BYTES: usize = 64 * 1024;
/// Names of instruction files that are looked for in each directory; each costs
/// one failed open a directory.
const INSTRUCTION_NAMES_MAX: usize = 16;

/// Settings in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// `[instructions]`.
    pub(crate) instructions: instructions::Options,
    /// `tools.disabled`: tools that are never offered.
    pub(crate) disabled_tools: Vec<String>,
    /// `git.status`.
    pub(crate) git_status: GitStatus,
}

/// Whether the dirty state of a workspace is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum GitStatus {
    /// By `git status`, after the session was opened.
    #[default]
    Ask,
    /// Never; it stays unknown.
    Never,
}

/// Settings and what is wrong with their file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Loaded {
    /// The settings; defaults for whatever could not be read.
    pub(crate) value: Settings,
    /// One sentence each, with the file's path.
    pub(crate) problems: Vec<String>,
}

/// Where the settings stand, from the environment; `None` without a home.
pub(crate) fn path_from_env() -> Option<PathBuf> {
    path_for(
        std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from),
        std::env::var_os("HOME").map(PathBuf::from),
    )
}

/// XDG base directory specification: a relative value is ignored.
fn path_for(config_home: Option<PathBuf>, home: Option<PathBuf>) -> Option<PathBuf> {
    config_home
        .filter(|dir| dir.is_absolute())
        .or_else(|| {
            home.filter(|dir| dir.is_absolute())
                .map(|dir| dir.join(".config"))
        })
        .map(|dir| dir.join("coldpath/agent.toml"))
}

impl Settings {
    /// Reads the file at `path`; without one the defaults are in force.
    pub(crate) fn load(path: Option<&Path>) -> Loaded {
        let Some(path) = path else {
            return Loaded::default();
        };
        let text = match regular_file::read_whole(path, FILE_MAX_BYTES) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Loaded::default();
            }
            Err(error) => return Loaded::broken(path, &error.to_string()),
        };
        match toml::from_str::<File>(&text) {
            Ok(file) => file.into_settings(path),
            Err(error) => {
                let line = error
                    .span()
                    .map_or(0, |span| text[..span.start].matches('\n').count() + 1);
                Loaded::broken(path, &format!("line {line}: {}", error.message()))
            }
        }
    }
}

impl Loaded {
    fn broken(path: &Path, reason: &str) -> Self {
        Self {
            value: Settings::default(),
            problems: vec![format!(
                "{}: {reason}; the defaults are used\nhint: `coldpath-agent --help` lists the keys",
                path.display()
            )],
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct File {
    instructions: InstructionsTable,
    tools: ToolsTable,
    git: GitTable,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct InstructionsTable {
    files: Option<Vec<String>>,
    max_bytes: Option<usize>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct ToolsTable {
    disabled: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct GitTable {
    status: Option<bool>,
}

impl File {
    fn into_settings(self, path: &Path) -> Loaded {
        let mut value = Settings::default();
        let mut problems = Vec::new();
        let mut refuse = |key: &str, reason: String| {
            problems.push(format!("{}: `{key}`: {reason}", path.display()));
        };
        if let Some(files) = self.instructions.files {
            match check_names(&files) {
                Ok(()) => value.instructions.names = files.into_iter().map(PathBuf::from).collect(),
                Err(reason) => refuse("instructions.files", reason),
            }
        }
        if let Some(bytes) = self.instructions.max_bytes {
            if bytes <= instructions::TOTAL_MAX_BYTES {
                value.instructions.max_bytes = bytes;
            } else {
                let most = instructions::TOTAL_MAX_BYTES;
                refuse(
                    "instructions.max_bytes",
                    format!("{bytes} is more than {most}"),
                );
            }
        }
        for name in self.tools.disabled {
            if tools::is_tool(&name) {
                value.disabled_tools.push(name);
            } else {
                let known = tools::NAMES.join("`, `");
                refuse(
                    "tools.disabled",
                    format!("there is no tool `{name}`\nhint: the tools are `{known}`"),
                );
            }
        }
        if self.git.status == Some(false) {
            value.git_status = GitStatus::Never;
        }
        Loaded { value, problems }
    }
}

/// Names are joined to directories of a workspace and may not leave them.
fn check_names(names: &[String]) -> Result<(), String> {
    if names.len() > INSTRUCTION_NAMES_MAX {
        return Err(format!("more than {INSTRUCTION_NAMES_MAX} names"));
    }
    for name in names {
        let stays = Path::new(name)
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if name.is_empty() || !stays {
            return Err(format!("`{name}` is not a relative path without `..`"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn load(text: &str) -> Loaded {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.toml");
        std::fs::write(&path, text).unwrap();
        Settings::load(Some(&path))
    }

    #[test]
    fn a_missing_file_means_the_defaults() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(
            Settings::load(Some(&dir.path().join("none/agent.toml"))),
            Loaded::default()
        );
        assert_eq!(Settings::load(None), Loaded::default());
        assert_eq!(load(""), Loaded::default());
    }

    #[test]
    fn every_key_is_read() {
        let loaded = load(
            "[instructions]\nfiles = ['RULES.md', 'doc/x.md']\nmax_bytes = 10\n\
             [tools]\ndisabled = ['run_command']\n[git]\nstatus = false\n",
        );
        assert_eq!(loaded.problems, Vec::<String>::new());
        let settings = loaded.value;
        assert_eq!(
            settings.instructions.names,
            ["RULES.md", "doc/x.md"].map(PathBuf::from)
        );
        assert_eq!(settings.instructions.max_bytes, 10);
        assert_eq!(settings.disabled_tools, ["run_command"]);
        assert_eq!(settings.git_status, GitStatus::Never);
    }

    #[track_caller]
    fn check_problem(text: &str, problem: &str) {
        let loaded = load(text);
        assert_eq!(loaded.problems.len(), 1, "{loaded:?}");
        assert!(loaded.problems[0].contains(problem), "{loaded:?}");
        assert_eq!(loaded.value, Settings::default());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place_and_the_defaults_are_used() {
        check_problem(
            "[tools]\n\ndisabled = 5",
            "agent.toml: line 3: invalid type",
        );
        check_problem("[tols]", "line 1: unknown field `tols`");
        check_problem("\n[tools", "line 2: ");
        check_problem("[git]\nstatus = 'no'", "line 2: ");
        check_problem(
            "[tools]\ndisabled = ['rm']",
            "`tools.disabled`: there is no tool `rm`",
        );
        for name in ["", "/etc/passwd", "../x", "a/../b", "./a"] {
            check_problem(
                &format!("instructions.files = ['{name}']"),
                "`instructions.files`",
            );
        }
        let many = vec!["'a'"; 17].join(",");
        check_problem(
            &format!("instructions.files = [{many}]"),
            "more than 16 names",
        );
        check_problem("instructions.max_bytes = 262145", "more than 262144");
        check_problem(
            &format!("#{}", "x".repeat(FILE_MAX_BYTES)),
            "longer than 65536 bytes",
        );
    }

    #[test]
    fn the_path_is_the_one_of_the_xdg_specification() {
        let path = |config: Option<&str>, home: Option<&str>| {
            path_for(config.map(PathBuf::from), home.map(PathBuf::from))
                .map(|path| path.to_str().unwrap().to_owned())
        };
        let expected = Some("/c/coldpath/agent.toml".to_owned());
        assert_eq!(path(Some("/c"), Some("/h")), expected);
        let expected = Some("/h/.config/coldpath/agent.toml".to_owned());
        assert_eq!(path(Some("relative"), Some("/h")), expected);
        assert_eq!(path(Some(""), Some("/h")), expected);
        assert_eq!(path(None, Some("relative")), None);
    }
}
