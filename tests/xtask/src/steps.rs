//! Running programs and saying so.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A task's outcome; the message is for people.
pub(crate) type Outcome<T = ()> = Result<T, String>;

/// Writes text to stdout.
pub(crate) fn say(text: &str) -> Outcome {
    std::io::stdout()
        .write_all(text.as_bytes())
        .map_err(|error| format!("cannot write to stdout: {error}"))
}

/// Reads `--runs N`.
pub(crate) fn runs(options: &[&str], default: u32) -> Outcome<u32> {
    match options {
        [] => Ok(default),
        ["--runs", number] => match number.parse() {
            Ok(runs @ 1..) => Ok(runs),
            _ => Err(format!(
                "--runs takes a whole number from 1, not `{number}`"
            )),
        },
        _ => Err(format!(
            "unknown options `{}`; there is only --runs N",
            options.join(" ")
        )),
    }
}

/// The workspace's root: this package lies two folders below it.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// The folder for everything that is built or left behind.
pub(crate) fn target_dir() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR").filter(|dir| !dir.is_empty()) {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// Runs a program with this process's own output.
pub(crate) fn run(program: impl AsRef<OsStr>, arguments: &[&OsStr]) -> Outcome {
    let name = Path::new(program.as_ref()).display().to_string();
    let status = Command::new(&program)
        .args(arguments)
        .current_dir(root())
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("cannot run {name}: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{name} failed: {status}"))
    }
}

/// Runs a program and returns its stdout; its stderr is this process's.
pub(crate) fn output(command: &mut Command) -> Outcome<String> {
    let name = Path::new(command.get_program()).display().to_string();
    let output = command
        .current_dir(root())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot run {name}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{name} failed: {}", output.status));
    }
    String::from_utf8(output.stdout)
        .map_err(|_| format!("{name} wrote something that is not UTF-8"))
}

/// Makes a folder that is empty, removing what an earlier task left there.
pub(crate) fn fresh_dir(dir: &Path) -> Outcome {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(format!("cannot remove {}: {error}", dir.display()));
        }
        _ => {}
    }
    std::fs::create_dir_all(dir).map_err(|error| format!("cannot make {}: {error}", dir.display()))
}

/// A path as one word of a command line in POSIX quoting.
pub(crate) fn quoted(path: &Path) -> Outcome<String> {
    let text = path
        .to_str()
        .ok_or_else(|| format!("{} is not UTF-8", path.display()))?;
    Ok(format!("'{}'", text.replace('\'', r"'\''")))
}
