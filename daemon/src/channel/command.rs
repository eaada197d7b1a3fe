//! Which agent to run: a command line or the embedded agent.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The embedded agent's file name, looked for beside this program.
const EMBEDDED: &str = "coldpath-agent";

/// An agent's program and arguments.
#[derive(Clone, Debug)]
pub(crate) struct AgentCommand {
    program: Program,
    arguments: Vec<OsString>,
}

#[derive(Clone, Debug)]
enum Program {
    /// The file beside this program.
    Embedded,
    /// A path, or a name that is looked up in PATH when it is spawned.
    Named(PathBuf),
}

impl AgentCommand {
    /// Reads a command line in POSIX quoting; none is the embedded agent. Whether
    /// the program exists is found out at the spawn, so that a daemon can start
    /// before its agent is installed.
    pub(crate) fn resolve(command: Option<&str>) -> Result<Self, String> {
        let Some(command) = command else {
            return Ok(Self {
                program: Program::Embedded,
                arguments: Vec::new(),
            });
        };
        let mut words = shlex::split(command)
            .ok_or_else(|| {
                format!("--agent `{command}` has an open quote or a trailing backslash")
            })?
            .into_iter();
        match words.next() {
            Some(program) if !program.is_empty() => Ok(Self {
                program: Program::Named(program.into()),
                arguments: words.map(OsString::from).collect(),
            }),
            _ => Err("--agent is empty\nhint: leave it out to run the embedded agent".to_owned()),
        }
    }

    /// The program as the user named it. Its arguments are told to nobody: they
    /// may hold credentials.
    pub(crate) fn program(&self) -> Cow<'_, str> {
        match &self.program {
            Program::Embedded => EMBEDDED.into(),
            Program::Named(path) => path.to_string_lossy(),
        }
    }

    /// Whether this is the embedded agent, whose spans a complete trace must have.
    pub(crate) fn is_embedded(&self) -> bool {
        match &self.program {
            Program::Embedded => true,
            Program::Named(path) => path.file_name().is_some_and(|name| name == EMBEDDED),
        }
    }

    pub(crate) fn arguments(&self) -> &[OsString] {
        &self.arguments
    }

    /// The program's absolute path. Resolved by us: with a relative name the
    /// standard library may have to fork to find it.
    pub(crate) fn locate(&self, workspace: &Path) -> Result<PathBuf, String> {
        match &self.program {
            Program::Embedded => {
                let own = std::env::current_exe()
                    .map_err(|error| format!("this program's own path is unknown: {error}"))?;
                let beside = own.with_file_name(EMBEDDED);
                if beside.is_file() {
                    Ok(beside)
                } else {
                    Err(format!(
                        "the embedded agent is not at {}\nhint: install it there, or pass --agent",
                        beside.display()
                    ))
                }
            }
            Program::Named(path) if path.components().count() > 1 || path.is_absolute() => {
                // Relative to the workspace, where the agent runs.
                let absolute = workspace.join(path);
                if absolute.is_file() {
                    Ok(absolute)
                } else {
                    Err(format!(
                        "agent program {} does not exist",
                        absolute.display()
                    ))
                }
            }
            Program::Named(name) => std::env::var_os("PATH")
                .iter()
                .flat_map(std::env::split_paths)
                .filter(|dir| dir.is_absolute())
                .map(|dir| dir.join(name))
                .find(|path| is_executable(path))
                .ok_or_else(|| format!("agent program `{}` is not in PATH", name.display())),
        }
    }
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_would_and_nothing_is_expanded() {
        let command = AgentCommand::resolve(Some("node --x='a b' \"$HOME\" c\\ d")).unwrap();
        assert_eq!(command.arguments(), ["--x=a b", "$HOME", "c d"]);
        assert_eq!(command.program(), "node");
    }

    #[test]
    fn an_unusable_command_is_refused() {
        for bad in ["", "  ", "'a", "a\\", "''"] {
            assert!(AgentCommand::resolve(Some(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_program_is_looked_up_in_path_or_in_the_workspace() {
        let workspace = Path::new("/usr");
        assert!(
            AgentCommand::resolve(Some("sh"))
                .unwrap()
                .locate(workspace)
                .unwrap()
                .is_absolute()
        );
        assert_eq!(
            AgentCommand::resolve(Some("bin/env"))
                .unwrap()
                .locate(workspace)
                .unwrap(),
            Path::new("/usr/bin/env")
        );
        let error = AgentCommand::resolve(Some("no-such-agent-here"))
            .unwrap()
            .locate(workspace)
            .unwrap_err();
        assert!(error.contains("not in PATH"), "{error}");
        let error = AgentCommand::resolve(Some("/no/such/agent"))
            .unwrap()
            .locate(workspace)
            .unwrap_err();
        assert!(error.contains("does not exist"), "{error}");
    }
}
