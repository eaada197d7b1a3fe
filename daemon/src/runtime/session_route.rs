//! `POST /session`: the request whose cold path this project is about.

use super::body;
use super::server::App;
use crate::channel::ChannelError;
use crate::http::{Answer, Head};
use crate::session::{Granted, Outcome, Scope, SessionError, client_id};
use coldpath_trace_format::attributes as keys;
use coldpath_trace_format::emit::Stage;
use hyper::HeaderMap;
use hyper::body::Incoming;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::rc::Rc;

/// Header by which a client names itself.
const CLIENT_ID: &str = "x-qwen-client-id";
/// Bytes of a client's name.
const CLIENT_ID_MAX_BYTES: usize = 128;

/// What a request asks for.
#[derive(Debug, PartialEq)]
struct Wanted {
    scope: Scope,
    mcp_servers: Value,
    client_id: String,
}

/// Answers the request and gives its span back, still open.
pub(super) async fn create(
    app: &Rc<App>,
    head: &Head<'_>,
    headers: &HeaderMap,
    body: Incoming,
    mut stage: Stage,
) -> (Answer, Stage) {
    debug_assert_eq!(head.route(), "/session");
    let wanted = body::read(body, &app.bodies)
        .await
        .and_then(|(bytes, share)| Ok((read_wanted(&bytes, headers, app)?, share)));
    let (wanted, share) = match wanted {
        Ok(wanted) => wanted,
        Err(answer) => {
            stage.set(keys::SESSION_OUTCOME, "rejected");
            return (answer, stage);
        }
    };
    let sessions = Rc::clone(&app.parts.sessions);
    let parent = stage.context();
    // A task of its own: a client that leaves does not cancel what others may share.
    let (scope, mcp_servers) = (wanted.scope, wanted.mcp_servers);
    let made = tokio::task::spawn_local(async move {
        let made = sessions.get(scope, mcp_servers, parent).await;
        // What the body held is in memory until now.
        drop(share);
        made
    })
    .await;
    let made = made.unwrap_or(Err(ChannelError::Stopping.into()));
    let answer = match made {
        Ok(granted) => {
            stage.set(keys::SESSION_ID, granted.session_id.clone());
            stage.set(keys::SESSION_OUTCOME, granted.outcome.name());
            stage.set(keys::CHANNEL_ID, granted.channel_id.clone());
            Answer::json(200, &body_of(&granted, app, &wanted.client_id))
        }
        Err(SessionError::Full { limit }) => {
            stage.set(keys::SESSION_OUTCOME, "rejected");
            stage.fail(
                "session_limit_exceeded",
                format!("{limit} sessions are live"),
            );
            full(limit)
        }
        Err(SessionError::Channel(failure)) => {
            stage.set(keys::SESSION_OUTCOME, "failed");
            failure.mark(&mut stage);
            failure.error.answer()
        }
    };
    (answer, stage)
}

fn read_wanted(bytes: &[u8], headers: &HeaderMap, app: &App) -> Result<Wanted, Answer> {
    let workspace = app.parts.config.workspace.to_str().unwrap_or_default();
    let client = match headers.get(CLIENT_ID) {
        None => client_id(),
        Some(value) => value
            .to_str()
            .ok()
            .filter(|text| is_client_id(text))
            .map(str::to_owned)
            .ok_or_else(|| {
                Answer::error(
                    400,
                    "`X-Qwen-Client-Id` must be 1 to 128 of A-Z a-z 0-9 . _ : -",
                    Some("invalid_client_id"),
                )
            })?,
    };
    parse(bytes, workspace, client)
}

fn is_client_id(text: &str) -> bool {
    (1..=CLIENT_ID_MAX_BYTES).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':' | b'-'))
}

fn parse(bytes: &[u8], workspace: &str, client_id: String) -> Result<Wanted, Answer> {
    let body: Map<String, Value> = if bytes.is_empty() {
        Map::new()
    } else {
        serde_json::from_slice(bytes)
            .map_err(|_| Answer::error(400, "Invalid JSON in request body", None))?
    };
    match body.get("cwd") {
        None | Some(Value::Null) => {}
        Some(Value::String(cwd)) if is_workspace(cwd, workspace) => {}
        Some(cwd) => return Err(mismatch(workspace, cwd)),
    }
    let scope = match body.get("sessionScope") {
        None => Scope::Single,
        Some(Value::String(scope)) if scope == "single" => Scope::Single,
        Some(Value::String(scope)) if scope == "thread" => Scope::Thread,
        Some(_) => {
            return Err(Answer::error(
                400,
                "`sessionScope` must be \"single\" or \"thread\" when provided",
                Some("invalid_session_scope"),
            ));
        }
    };
    if body.contains_key("sessionId") {
        return Err(Answer::error(
            400,
            "`sessionId` cannot be chosen in this version",
            Some("session_id_unsupported"),
        ));
    }
    let mcp_servers = match body.get("mcpServers") {
        None | Some(Value::Null) => json!([]),
        Some(servers @ Value::Array(_)) => servers.clone(),
        Some(_) => {
            return Err(Answer::error(
                400,
                "`mcpServers` must be an array",
                Some("invalid_mcp_servers"),
            ));
        }
    };
    Ok(Wanted {
        scope,
        mcp_servers,
        client_id,
    })
}

/// The workspace by its canonical path, but for slashes and dots that mean nothing.
/// The file system is not asked: a path of a client's choosing may hang.
fn is_workspace(cwd: &str, workspace: &str) -> bool {
    let parts = |path: &str| -> Vec<String> {
        path.split('/')
            .filter(|part| !part.is_empty() && *part != ".")
            .map(str::to_owned)
            .collect()
    };
    cwd.starts_with('/') && parts(cwd) == parts(workspace)
}

fn mismatch(workspace: &str, requested: &Value) -> Answer {
    Answer::json(
        400,
        &json!({
            "error": format!("this daemon serves workspace {workspace} and no other; symbolic links and `..` are not followed"),
            "code": "workspace_mismatch",
            "boundWorkspace": workspace,
            "requestedWorkspace": requested,
        }),
    )
}

fn full(limit: usize) -> Answer {
    let body = json!({
        "error": format!("{limit} sessions are live, which is the limit"),
        "code": "session_limit_exceeded",
        "limit": limit,
        "scope": "workspace",
    });
    Answer::json(503, &body).with_header("Retry-After", "5")
}

/// The body of a success, with its keys in the documented order.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SessionBody<'a> {
    session_id: &'a str,
    workspace_cwd: &'a str,
    attached: bool,
    client_id: &'a str,
    created_at: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    has_active_prompt: Option<bool>,
}

fn body_of<'a>(granted: &'a Granted, app: &'a App, client_id: &'a str) -> SessionBody<'a> {
    let attached = granted.outcome != Outcome::Created;
    SessionBody {
        session_id: &granted.session_id,
        workspace_cwd: app.parts.config.workspace.to_str().unwrap_or_default(),
        attached,
        client_id,
        created_at: &granted.created_at,
        has_active_prompt: attached.then_some(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &str, expected: Result<Scope, (u16, &str)>) {
        let parsed = parse(body.as_bytes(), "/usr", "client".to_owned());
        match (parsed, expected) {
            (Ok(wanted), Ok(scope)) => assert_eq!(wanted.scope, scope, "{body}"),
            (Err(answer), Err((status, text))) => {
                let (found, _, body) = answer.into_parts();
                let body = body.unwrap();
                assert!(found == status && body.contains(text), "{found} {body}");
            }
            (found, _) => panic!("{body}: {found:?}"),
        }
    }

    #[test]
    fn every_field_is_optional() {
        check("", Ok(Scope::Single));
        check("{}", Ok(Scope::Single));
        check(
            r#"{"cwd":null,"sessionScope":"thread","modelServiceId":"x"}"#,
            Ok(Scope::Thread),
        );
        check(
            r#"{"cwd":"//usr/./","mcpServers":[{"name":"a"}]}"#,
            Ok(Scope::Single),
        );
    }

    #[test]
    fn bad_bodies_are_refused_by_the_documented_codes() {
        check("{", Err((400, "Invalid JSON in request body")));
        check("[]", Err((400, "Invalid JSON in request body")));
        check("\u{0}", Err((400, "Invalid JSON in request body")));
        check(r#"{"cwd":"/other"}"#, Err((400, "workspace_mismatch")));
        check(r#"{"cwd":7}"#, Err((400, "workspace_mismatch")));
        check(r#"{"cwd":"usr"}"#, Err((400, "workspace_mismatch")));
        check(
            r#"{"cwd":"/usr/bin/.."}"#,
            Err((400, "symbolic links and `..` are not followed")),
        );
        check(
            r#"{"sessionScope":"bogus"}"#,
            Err((400, "invalid_session_scope")),
        );
        check(
            r#"{"sessionScope":null}"#,
            Err((400, "invalid_session_scope")),
        );
        check(r#"{"sessionId":"a"}"#, Err((400, "session_id_unsupported")));
        check(r#"{"mcpServers":{}}"#, Err((400, "invalid_mcp_servers")));
    }

    #[test]
    fn client_ids_are_bounded() {
        assert!(is_client_id("cli-test:1.x_Y") && is_client_id(&"a".repeat(128)));
        assert!(!is_client_id("") && !is_client_id("a b") && !is_client_id(&"a".repeat(129)));
    }
}
