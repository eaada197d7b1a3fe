//! A session: what is asked for, what is kept of it, and what the client is told.
//!
//! Holds values only; finding them is the business of the modules it names.

use crate::git::Head;
use crate::instructions::Instructions;
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

/// A session request whose values can be used.
pub(crate) struct Asked {
    /// Working directory, with its links resolved.
    pub(crate) directory: PathBuf,
    /// How many MCP servers were named.
    pub(crate) mcp_servers: usize,
}

impl Asked {
    /// Checks a request of a client that has `open` sessions.
    ///
    /// # Errors
    /// Invalid parameters: no absolute path of a directory that can be opened, or
    /// `mcpServers` that is no array; internal error: too many sessions.
    pub(crate) fn check(request: &NewSessionRequest, open: usize) -> Result<Self, RpcError> {
        let refuse = |reason: String| RpcError::new(INVALID_PARAMS, reason);
        let mcp_servers = request
            .mcp_servers
            .as_array()
            .map(Vec::len)
            .ok_or_else(|| refuse("`mcpServers` is not an array".to_owned()))?;
        let cwd = Path::new(&request.cwd);
        if !cwd.is_absolute() {
            return Err(refuse(format!(
                "`cwd` is not an absolute path: `{}`",
                request.cwd
            )));
        }
        let directory = cwd.canonicalize().map_err(|error| {
            refuse(format!(
                "`cwd` cannot be opened: `{}`: {error}",
                request.cwd
            ))
        })?;
        if !directory.is_dir() {
            return Err(refuse(format!(
                "`cwd` is not a directory: `{}`",
                request.cwd
            )));
        }
        if open >= SESSIONS_MAX {
            let reason = format!("{SESSIONS_MAX} sessions are open, the most of one agent");
            return Err(RpcError::new(INTERNAL_ERROR, reason));
        }
        Ok(Self {
            directory,
            mcp_servers,
        })
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
