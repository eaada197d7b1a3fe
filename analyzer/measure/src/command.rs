//! From the text of a command to the program and arguments of one run.
//!
//! Words are quoted as in a POSIX shell and no shell is run: no variables, no
//! globbing, no `~`. The program is resolved to an absolute path here, because a
//! search in the child would make the standard library fork instead of spawn.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// Why a command cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// A quote or a backslash is not finished.
    #[error("`{0}` has an unfinished quote\nhint: words are quoted as in a POSIX shell")]
    Quoting(String),
    /// A byte that no argument can hold.
    #[error("the command holds a zero byte")]
    Nul,
    /// There is no word.
    #[error("the command is empty")]
    Empty,
    /// There is no such program.
    #[error(
        "program `{}` is not found{}\nhint: give a path, or a name that is in PATH",
        .0.display(), if is_bare(.0) { " in PATH" } else { "" }
    )]
    NotFound(PathBuf),
    /// The file is there and cannot be executed.
    #[error("program `{}` is not an executable file", .0.display())]
    NotExecutable(PathBuf),
}

/// Values of the placeholders of one run.
#[derive(Clone, Copy, Debug)]
pub struct Placeholders<'a> {
    /// `{workspace}`: absolute path of the workspace.
    pub workspace: &'a Path,
    /// `{traces}`: absolute path of the directory for the run's traces.
    pub traces: &'a Path,
    /// `{port}`: a free port; needed only when [`uses_port`] says so.
    pub port: Option<u16>,
}

/// Splits a command into words.
///
/// # Errors
/// Unfinished quoting, a zero byte, or no word at all.
pub fn split_words(text: &str) -> Result<Vec<OsString>, CommandError> {
    if text.contains('\0') {
        return Err(CommandError::Nul);
    }
    let words = shlex::split(text).ok_or_else(|| CommandError::Quoting(text.to_owned()))?;
    if words.is_empty() {
        return Err(CommandError::Empty);
    }
    Ok(words.into_iter().map(OsString::from).collect())
}

/// Finds the program: a word with a slash is a path from the current directory,
/// any other is searched in `search_path`, empty elements meaning the current
/// directory as in POSIX. The result is absolute and not otherwise resolved, so
/// that a program that looks at its own name sees the one that was given.
///
/// # Errors
/// Nothing of that name, or only files that may not be executed.
pub fn resolve_program(
    word: &OsStr,
    current_dir: &Path,
    search_path: &OsStr,
) -> Result<PathBuf, CommandError> {
    let given = Path::new(word);
    if word.is_empty() {
        return Err(CommandError::Empty);
    }
    if !is_bare(given) {
        let path = current_dir.join(given);
        return match executable(&path) {
            Found::Executable => Ok(path),
            Found::Other => Err(CommandError::NotExecutable(path)),
            Found::Nothing => Err(CommandError::NotFound(path)),
        };
    }
    let mut refused = None;
    for dir in std::env::split_paths(search_path) {
        let path = current_dir.join(dir).join(given);
        match executable(&path) {
            Found::Executable => return Ok(path),
            Found::Other => refused = refused.or(Some(path)),
            Found::Nothing => {}
        }
    }
    Err(refused.map_or_else(
        || CommandError::NotFound(given.to_owned()),
        CommandError::NotExecutable,
    ))
}

/// Whether any word asks for a port.
#[must_use]
pub fn uses_port(words: &[OsString]) -> bool {
    words
        .iter()
        .any(|word| find(word.as_bytes(), b"{port}").is_some())
}

/// Replaces `{workspace}`, `{traces}` and `{port}` in a word; everything else stays, other
/// braces included.
#[must_use]
pub fn fill_in(word: &OsStr, values: Placeholders<'_>) -> OsString {
    let workspace = values.workspace.as_os_str().as_bytes();
    let mut filled = replace(word.as_bytes(), b"{workspace}", workspace);
    filled = replace(&filled, b"{traces}", values.traces.as_os_str().as_bytes());
    if let Some(port) = values.port {
        filled = replace(&filled, b"{port}", port.to_string().as_bytes());
    }
    OsString::from_vec(filled)
}

enum Found {
    Executable,
    Other,
    Nothing,
}

fn is_bare(path: &Path) -> bool {
    !path.as_os_str().as_bytes().contains(&b'/')
}

fn executable(path: &Path) -> Found {
    if std::fs::metadata(path).is_ok_and(|found| found.is_file()) {
        if rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() {
            Found::Executable
        } else {
            Found::Other
        }
    } else if path.exists() {
        Found::Other
    } else {
        Found::Nothing
    }
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|part| part == wanted)
}

fn replace(text: &[u8], wanted: &[u8], value: &[u8]) -> Vec<u8> {
    let mut rest = text;
    let mut replaced = Vec::with_capacity(text.len());
    while let Some(at) = find(rest, wanted) {
        replaced.extend_from_slice(&rest[..at]);
        replaced.extend_from_slice(value);
        rest = &rest[at + wanted.len()..];
    }
    replaced.extend_from_slice(rest);
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[track_caller]
    fn check_split(text: &str, expected: &[&str]) {
        assert_eq!(split_words(text).unwrap(), expected, "{text}");
    }

    #[test]
    fn words_are_split_as_a_posix_shell_splits_them() {
        // Expectations: `printf '<%s>' …` in dash.
        check_split("a b  c", &["a", "b", "c"]);
        check_split(r#"a 'b c' "d e" f\ g"#, &["a", "b c", "d e", "f g"]);
        check_split(r#"a"b"'c' """#, &["abc", ""]);
        check_split(r"'$HOME' '*'", &["$HOME", "*"]);
        check_split(r#""a\"b" 'c\d'"#, &["a\"b", r"c\d"]);
    }

    #[test]
    fn unfinished_and_empty_commands_are_refused() {
        for text in ["'a", "\"a", "a\\"] {
            assert_eq!(
                split_words(text),
                Err(CommandError::Quoting(text.to_owned()))
            );
        }
        assert_eq!(split_words("  "), Err(CommandError::Empty));
        assert_eq!(split_words("a \0"), Err(CommandError::Nul));
    }

    #[test]
    fn placeholders_are_replaced_wherever_they_stand() {
        let values = Placeholders {
            workspace: Path::new("/w s"),
            traces: Path::new("/t"),
            port: Some(4170),
        };
        let fill = |word: &str| fill_in(OsStr::new(word), values);
        assert_eq!(fill("--dir={workspace}/{workspace}"), "--dir=/w s//w s");
        assert_eq!(fill("{port} {traces}/x"), "4170 /t/x");
        assert_eq!(fill("{other} {} {port"), "{other} {} {port");
        assert!(uses_port(&["x".into(), "127.0.0.1:{port}".into()]));
        assert!(!uses_port(&["{workspace}".into()]));
    }

    #[test]
    fn a_program_is_found_by_path_and_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let (root, bin) = (dir.path(), dir.path().join("bin"));
        std::fs::create_dir(&bin).unwrap();
        for (name, mode) in [("tool", 0o755), ("data", 0o644)] {
            std::fs::write(bin.join(name), "").unwrap();
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(bin.join(name), mode).unwrap();
        }
        let resolve = |word: &str| resolve_program(OsStr::new(word), root, OsStr::new("none:bin"));
        assert_eq!(resolve("bin/tool"), Ok(bin.join("tool")));
        assert_eq!(resolve("tool"), Ok(bin.join("tool")));
        assert_eq!(
            resolve("data"),
            Err(CommandError::NotExecutable(bin.join("data")))
        );
        assert_eq!(
            resolve("./bin"),
            Err(CommandError::NotExecutable(root.join("./bin")))
        );
        assert_eq!(resolve("gone"), Err(CommandError::NotFound("gone".into())));
        let message = resolve("gone").unwrap_err().to_string();
        assert!(message.contains("`gone` is not found in PATH"), "{message}");
    }
}
