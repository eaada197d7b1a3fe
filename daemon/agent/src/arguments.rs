//! The command line, read by hand: the agent starts with every channel, and a
//! parser that builds its help before it reads costs more than the rest of this
//! program's start-up together.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

const HELP: &str = "\
The default agent of Coldpath: speaks the Agent Client Protocol, version 1, over
stdin and stdout, one JSON-RPC message a line. Started by a client; ends with
exit code 0 when stdin ends.

Usage: coldpath-agent [OPTIONS]

Options:
      --trace-dir DIR  Write OTLP JSON lines and session profiles into DIR
                       [environment: COLDPATH_TRACE_DIR]
      --chrome FILE    Show session starts live in a Chrome trace: FILE with
                       .agent-PID before its extension; needs a trace directory
                       [environment: COLDPATH_CHROME]
  -h, --help           Print help
  -V, --version        Print version

Settings: $XDG_CONFIG_HOME/coldpath/agent.toml, else
~/.config/coldpath/agent.toml
  [instructions]
  files = [\"AGENTS.md\", …]  names that are looked for from the working directory
                            up to the root of its repository
  max_bytes = 65536         bytes that are read of each
  [tools]
  disabled = []             names of tools that are never offered
  [git]
  status = true             ask `git status` after a session was opened

Exit codes: 0 stdin ended; 1 stdin cannot be read; 2 bad arguments
";

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Serve a client.
    Run(Arguments),
    /// Print a text and end.
    Print(String),
}

/// Arguments of a serving agent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// `--trace-dir`: goes before the environment.
    pub(crate) trace_dir: Option<PathBuf>,
    /// `--chrome`: goes before the environment.
    pub(crate) chrome: Option<PathBuf>,
}

impl Command {
    /// Reads the arguments that follow the program's name.
    ///
    /// # Errors
    /// One sentence and a hint: an unknown argument, an option without its value
    /// or given twice.
    pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, String> {
        let mut parsed = Arguments::default();
        let mut rest = arguments.into_iter();
        while let Some(argument) = rest.next() {
            let (name, value) = split(&argument);
            match name.to_str() {
                Some("-h" | "--help") if value.is_none() => {
                    return Ok(Self::Print(HELP.to_owned()));
                }
                Some("-V" | "--version") if value.is_none() => {
                    return Ok(Self::Print(format!(
                        "coldpath-agent {}\n",
                        env!("CARGO_PKG_VERSION")
                    )));
                }
                Some(option @ ("--trace-dir" | "--chrome")) => {
                    let (place, what) = match option {
                        "--chrome" => (&mut parsed.chrome, "file"),
                        _ => (&mut parsed.trace_dir, "directory"),
                    };
                    let value = value.map(OsStr::to_owned).or_else(|| rest.next());
                    let value = value
                        .filter(|value| !value.is_empty())
                        .ok_or_else(|| refuse(&format!("`{option}` needs a {what}")))?;
                    if place.replace(PathBuf::from(value)).is_some() {
                        return Err(refuse(&format!("`{option}` is given twice")));
                    }
                }
                _ => {
                    return Err(refuse(&format!(
                        "unknown argument `{}`",
                        argument.to_string_lossy()
                    )));
                }
            }
        }
        Ok(Self::Run(parsed))
    }
}

/// `--name=value` in its two parts.
fn split(argument: &OsStr) -> (&OsStr, Option<&OsStr>) {
    let bytes = argument.as_bytes();
    match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) if bytes.starts_with(b"--") => (
            OsStr::from_bytes(&bytes[..at]),
            Some(OsStr::from_bytes(&bytes[at + 1..])),
        ),
        _ => (argument, None),
    }
}

fn refuse(reason: &str) -> String {
    format!("{reason}\nhint: `coldpath-agent --help` lists the arguments")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Command, String> {
        Command::parse(arguments.iter().map(OsString::from))
    }

    #[track_caller]
    fn check_dir(arguments: &[&str], dir: Option<&str>) {
        let trace_dir = dir.map(PathBuf::from);
        let expected = Command::Run(Arguments {
            trace_dir,
            chrome: None,
        });
        assert_eq!(parse(arguments), Ok(expected));
    }

    #[test]
    fn the_trace_directory_is_the_next_argument_or_follows_an_equals_sign() {
        check_dir(&[], None);
        check_dir(&["--trace-dir", "a=b"], Some("a=b"));
        check_dir(&["--trace-dir=a=b"], Some("a=b"));
        check_dir(&["--trace-dir", "--help"], Some("--help"));
    }

    #[test]
    fn bad_arguments_are_named() {
        for (arguments, reason) in [
            (&["--trace-dir"][..], "needs a directory"),
            (&["--trace-dir="], "needs a directory"),
            (&["--trace-dir=a", "--trace-dir=b"], "given twice"),
            (&["--chrome"], "`--chrome` needs a file"),
            (
                &["--chrome=a", "--chrome", "b"],
                "`--chrome` is given twice",
            ),
            (&["--acp"], "unknown argument `--acp`"),
            (&["--help=yes"], "unknown argument `--help=yes`"),
            (&["x"], "unknown argument `x`"),
            (&["-h=1"], "unknown argument `-h=1`"),
        ] {
            let error = parse(arguments).unwrap_err();
            assert!(error.contains(reason), "{error}");
            assert!(error.contains("\nhint: "), "{error}");
        }
    }

    #[test]
    fn help_names_every_option() {
        let Ok(Command::Print(help)) = parse(&["--help"]) else {
            panic!("no help");
        };
        for option in [
            "--trace-dir DIR",
            "--chrome FILE",
            "COLDPATH_CHROME",
            "--help",
            "--version",
            "COLDPATH_TRACE_DIR",
        ] {
            assert!(help.contains(option), "{option}");
        }
        assert!(help.lines().all(|line| line.chars().count() <= 80));
    }
}
