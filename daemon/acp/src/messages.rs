//! The ACP version 1 messages that Coldpath sends or reads.
//!
//! Only what is used has a field. What another side may need is kept: `_meta`
//! maps whole, capabilities as JSON, and of a new session's answer every field
//! that is not named here. Unknown fields elsewhere are passed over.
//! Source: agentclientprotocol.com, protocol version 1.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// The protocol version that is spoken, the value of `protocolVersion`.
pub const PROTOCOL_VERSION: u16 = 1;

/// Method names.
pub mod method {
    /// Client to agent: versions and capabilities.
    pub const INITIALIZE: &str = "initialize";
    /// Client to agent: choose a way to log in.
    pub const AUTHENTICATE: &str = "authenticate";
    /// Client to agent: open a session.
    pub const SESSION_NEW: &str = "session/new";
    /// Client to agent: open a stored session and replay it.
    pub const SESSION_LOAD: &str = "session/load";
    /// Client to agent: a page of the agent's sessions.
    pub const SESSION_LIST: &str = "session/list";
    /// Client to agent: one turn.
    pub const SESSION_PROMPT: &str = "session/prompt";
    /// Client to agent, a notification: end the running turn.
    pub const SESSION_CANCEL: &str = "session/cancel";
    /// Agent to client, a notification: progress of a session.
    pub const SESSION_UPDATE: &str = "session/update";
    /// Agent to client: may a tool run?
    pub const SESSION_REQUEST_PERMISSION: &str = "session/request_permission";
    /// Agent to client: read a text file.
    pub const FS_READ_TEXT_FILE: &str = "fs/read_text_file";
    /// Agent to client: write a text file.
    pub const FS_WRITE_TEXT_FILE: &str = "fs/write_text_file";
}

/// Name and version of a client or an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Implementation {
    /// Name for programs.
    pub name: String,
    /// Name for people; absent means [`Self::name`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Version, free text.
    #[serde(default)]
    pub version: String,
}

/// Parameters of `initialize`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeRequest {
    /// Newest version that the client speaks.
    pub protocol_version: u16,
    /// Who the client is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_info: Option<Implementation>,
    /// What the client does for the agent (`fs`, `terminal`).
    #[serde(default, deserialize_with = "null_is_default")]
    pub client_capabilities: Map<String, Value>,
    /// Extensions; trace context and the request for a startup profile stand here.
    #[serde(
        rename = "_meta",
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Map::is_empty"
    )]
    pub meta: Map<String, Value>,
}

/// Result of `initialize`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResponse {
    /// Version that the agent chose.
    pub protocol_version: u16,
    /// Who the agent is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_info: Option<Implementation>,
    /// What the agent can do, as it says it.
    #[serde(default, deserialize_with = "null_is_default")]
    pub agent_capabilities: Map<String, Value>,
    /// Ways to log in, as the agent says them.
    #[serde(default, deserialize_with = "null_is_default")]
    pub auth_methods: Vec<Value>,
    /// Extensions; the startup profile stands here.
    #[serde(
        rename = "_meta",
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Map::is_empty"
    )]
    pub meta: Map<String, Value>,
}

/// Parameters of `session/new`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewSessionRequest {
    /// Working directory, absolute.
    pub cwd: String,
    /// MCP servers, passed through as they came; an array.
    #[serde(default = "empty_array")]
    pub mcp_servers: Value,
    /// Extensions; trace context stands here.
    #[serde(
        rename = "_meta",
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Map::is_empty"
    )]
    pub meta: Map<String, Value>,
}

/// Result of `session/new`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewSessionResponse {
    /// The agent's name of the session, opaque.
    pub session_id: String,
    /// Extensions.
    #[serde(
        rename = "_meta",
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Map::is_empty"
    )]
    pub meta: Map<String, Value>,
    /// Every other field (`modes`, `models`, `configOptions`, …), for the client.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Parameters of the notification `session/cancel`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelNotification {
    /// Session whose turn ends.
    pub session_id: String,
    /// Extensions.
    #[serde(
        rename = "_meta",
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Map::is_empty"
    )]
    pub meta: Map<String, Value>,
}

/// Parameters of the notification `session/update`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionNotification {
    /// Session that the update is about.
    pub session_id: String,
    /// The update, told apart by its `sessionUpdate`.
    pub update: Value,
    /// Extensions.
    #[serde(
        rename = "_meta",
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Map::is_empty"
    )]
    pub meta: Map<String, Value>,
}

fn null_is_default<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

fn empty_array() -> Value {
    Value::Array(Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_real_initialize_answer_is_read_and_its_profile_kept() {
        // qwen-code 0.24.4, shortened.
        let answer: InitializeResponse = serde_json::from_value(json!({
            "protocolVersion": 1,
            "agentInfo": {"name": "qwen-code", "title": "Qwen Code", "version": "0.24.4"},
            "authMethods": [{"id": "openai", "name": "Use OpenAI API key"}],
            "agentCapabilities": {"loadSession": true, "_meta": {"imageCapability": {}}},
            "_meta": {"qwen.daemon.channelStartupProfile": {"v": 1, "complete": true}},
        }))
        .unwrap();
        assert_eq!(
            answer.agent_info.unwrap().title.as_deref(),
            Some("Qwen Code")
        );
        assert_eq!(answer.agent_capabilities["loadSession"], true);
        assert_eq!(answer.meta["qwen.daemon.channelStartupProfile"]["v"], 1);
    }

    #[test]
    fn an_answer_with_the_least_and_with_nulls_is_read() {
        for least in [
            json!({"protocolVersion": 1}),
            json!({"protocolVersion": 1, "agentInfo": null, "agentCapabilities": null,
                   "authMethods": null, "_meta": null}),
        ] {
            let answer: InitializeResponse = serde_json::from_value(least).unwrap();
            assert_eq!(answer.protocol_version, PROTOCOL_VERSION);
            assert!(answer.auth_methods.is_empty() && answer.meta.is_empty());
        }
    }

    #[test]
    fn requests_have_the_wire_s_names_and_no_empty_meta() {
        let request = InitializeRequest {
            protocol_version: PROTOCOL_VERSION,
            client_info: Some(Implementation {
                name: "coldpathd".to_owned(),
                title: None,
                version: "0.1.0".to_owned(),
            }),
            client_capabilities: Map::new(),
            meta: Map::new(),
        };
        assert_eq!(
            serde_json::to_value(&request).unwrap(),
            json!({"protocolVersion": 1, "clientCapabilities": {},
                   "clientInfo": {"name": "coldpathd", "version": "0.1.0"}})
        );
        let request: NewSessionRequest = serde_json::from_value(json!({"cwd": "/w"})).unwrap();
        assert_eq!(
            serde_json::to_value(&request).unwrap(),
            json!({"cwd": "/w", "mcpServers": []})
        );
    }

    #[test]
    fn a_new_session_s_unknown_fields_are_passed_on() {
        let wire = json!({"sessionId": "s", "modes": {"currentModeId": "auto"},
                          "configOptions": [], "_meta": {"a": 1}});
        let answer: NewSessionResponse = serde_json::from_value(wire.clone()).unwrap();
        assert_eq!(answer.rest.len(), 2);
        assert_eq!(serde_json::to_value(&answer).unwrap(), wire);
    }
}
