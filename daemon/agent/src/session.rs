//! A session: what is asked for, what is kept of it, and what the client is told.
//!
//! The order of the steps is that of their stages. It sends nothing.

use crate::git::{Head, Repository};
use crate::instructions::{self, Instructions};
use crate::session_stages::{SessionStage, Stages};
use coldpath_acp::message::{self, INTERNAL_ERROR, INVALID_PARAMS, RpcError};
use coldpath_acp::messages::{NewSessionRequest, method};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Sessions of one agent: each keeps less than a kilobyte beside its instruction
/// files, and a client that opens more has lost count.
const SESSIONS_MAX: usize = 16_384;

/// A session that was opened.
#[derive(Debug)]
pub(crate) struct Session {
    /// Working directory, with its links resolved.
    pub(crate) directory: PathBuf,
    /// What is checked out there; `None` outside of a repository.
    pub(crate) head: Option<Head>,
    /// Whether anything differs from the commit; `None` while unknown.
    pub(crate) dirty: Option<bool>,
    /// Instruction files that hold there.
    pub(crate) instructions: Instructions,
    /// Tools that a turn offers.
    pub(crate) tools: Vec<&'static str>,
}

/// A session that can be opened: its request checked, its workspace looked at.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// How many MCP servers were named.
    pub(crate) mcp_servers: usize,
    directory: PathBuf,
    head: Option<Head>,
    instructions: Instructions,
}

impl Prepared {
    /// Checks the request of a client that has `open` sessions, then reads branch,
    /// commit and instruction files; those that `known` holds unchanged are not
    /// read again.
    ///
    /// # Errors
    /// Invalid parameters: no absolute path of a directory that can be opened, or
    /// `mcpServers` that is no array; internal error: too many sessions.
    pub(crate) fn new(
        request: &NewSessionRequest,
        open: usize,
        options: &instructions::Options,
        known: &Instructions,
        stages: &mut Stages<'_>,
    ) -> Result<Self, RpcError> {
        stages.enter(SessionStage::Validate);
        if open >= SESSIONS_MAX {
            let reason = format!("{SESSIONS_MAX} sessions are open, the most of one agent");
            return Err(RpcError::new(INTERNAL_ERROR, reason));
        }
        let invalid = |reason: String| RpcError::new(INVALID_PARAMS, reason);
        let mcp_servers = request.mcp_servers.as_array().map(Vec::len);
        let mcp_servers =
            mcp_servers.ok_or_else(|| invalid("`mcpServers` is not an array".to_owned()))?;
        let directory = resolve_directory(&request.cwd).map_err(invalid)?;
        stages.enter(SessionStage::GitHead);
        let repository = Repository::find(&directory);
        let head = repository.as_ref().map(Repository::head);
        stages.enter(SessionStage::Instructions);
        let root = repository.as_ref().map(Repository::root);
        let instructions = Instructions::discover(&directory, root, options, Some(known));
        Ok(Self {
            mcp_servers,
            directory,
            head,
            instructions,
        })
    }

    /// The session, offering these tools.
    pub(crate) fn into_session(self, tools: Vec<&'static str>) -> Session {
        Session {
            directory: self.directory,
            head: self.head,
            dirty: None,
            instructions: self.instructions,
            tools,
        }
    }
}

/// The directory that `cwd` names, with its links resolved, or why there is none.
fn resolve_directory(cwd: &str) -> Result<PathBuf, String> {
    let path = Path::new(cwd);
    if !path.is_absolute() {
        return Err(format!("`cwd` is not an absolute path: `{cwd}`"));
    }
    let directory = path
        .canonicalize()
        .map_err(|error| format!("`cwd` cannot be opened: `{cwd}`: {error}"))?;
    if directory.is_dir() {
        Ok(directory)
    } else {
        Err(format!("`cwd` is not a directory: `{cwd}`"))
    }
}

/// Result of `session/new`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NewSessionResult<'a> {
    session_id: &'a str,
    #[serde(rename = "_meta")]
    meta: SessionMeta<'a>,
}

#[derive(Serialize)]
struct SessionMeta<'a> {
    #[serde(rename = "coldpath.workspace")]
    workspace: Workspace<'a>,
    #[serde(rename = "coldpath.instructions")]
    instructions: Vec<InstructionsMeta<'a>>,
    #[serde(rename = "coldpath.tools")]
    tools: &'a [&'static str],
}

/// State of a session's workspace under `_meta["coldpath.workspace"]`; null is
/// unknown or, of branch and commit, none.
#[derive(Serialize)]
struct Workspace<'a> {
    branch: Option<&'a str>,
    commit: Option<&'a str>,
    dirty: Option<bool>,
}

#[derive(Serialize)]
struct InstructionsMeta<'a> {
    path: &'a str,
    bytes: usize,
    truncated: bool,
}

impl Session {
    /// What the client is told when the session is opened as `id`. A file whose
    /// path is not text is left out.
    pub(crate) fn result<'a>(&'a self, id: &'a str) -> NewSessionResult<'a> {
        let instructions = self.instructions.files().iter().filter_map(|file| {
            Some(InstructionsMeta {
                path: file.path.to_str()?,
                bytes: file.text.len(),
                truncated: file.is_cut(),
            })
        });
        NewSessionResult {
            session_id: id,
            meta: SessionMeta {
                workspace: self.workspace(),
                instructions: instructions.collect(),
                tools: &self.tools,
            },
        }
    }

    /// The notification that tells what has become known of the workspace: ACP's
    /// `session_info_update`, in which every field but the kind is optional.
    pub(crate) fn workspace_update(&self, id: &str) -> Vec<u8> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            session_id: &'a str,
            update: Update<'a>,
        }
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Update<'a> {
            session_update: &'static str,
            #[serde(rename = "_meta")]
            meta: UpdateMeta<'a>,
        }
        #[derive(Serialize)]
        struct UpdateMeta<'a> {
            #[serde(rename = "coldpath.workspace")]
            workspace: Workspace<'a>,
        }
        message::notification(
            method::SESSION_UPDATE,
            &Params {
                session_id: id,
                update: Update {
                    session_update: "session_info_update",
                    meta: UpdateMeta {
                        workspace: self.workspace(),
                    },
                },
            },
        )
    }

    fn workspace(&self) -> Workspace<'_> {
        let head = self.head.as_ref();
        Workspace {
            branch: head.and_then(|head| head.branch.as_deref()),
            commit: head.and_then(|head| head.commit.as_deref()),
            dirty: self.dirty,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn prepare(cwd: &Path, open: usize) -> Result<Prepared, RpcError> {
        let request = serde_json::from_value(json!({"cwd": cwd, "mcpServers": [{}, {}]})).unwrap();
        let options = instructions::Options::default();
        let known = Instructions::discover(Path::new("/nonexistent"), None, &options, None);
        Prepared::new(&request, open, &options, &known, &mut Stages::off())
    }

    #[test]
    fn one_session_more_than_the_bound_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let prepared = prepare(dir.path(), SESSIONS_MAX - 1).unwrap();
        assert_eq!(prepared.mcp_servers, 2);
        let error = prepare(dir.path(), SESSIONS_MAX).unwrap_err();
        assert_eq!(error.code, INTERNAL_ERROR);
        assert!(
            error.message.starts_with("16384 sessions are open"),
            "{error}"
        );
    }
}
