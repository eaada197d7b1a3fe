//! What the agent says of itself in the answer to `initialize`.

use crate::startup::StartupProfile;
use coldpath_acp::messages::{Implementation, PROTOCOL_VERSION};
use serde::Serialize;
use serde_json::value::RawValue;

/// Result of `initialize`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InitializeResult<'a> {
    protocol_version: u16,
    agent_info: Implementation,
    agent_capabilities: AgentCapabilities<'a>,
    auth_methods: [(); 0],
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<InitializeMeta<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AgentCapabilities<'a> {
    load_session: bool,
    prompt_capabilities: PromptCapabilities,
    mcp_capabilities: McpCapabilities,
    #[serde(rename = "_meta")]
    meta: CapabilitiesMeta<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PromptCapabilities {
    image: bool,
    audio: bool,
    embedded_context: bool,
}

#[derive(Serialize)]
struct McpCapabilities {
    http: bool,
    sse: bool,
}

#[derive(Serialize)]
struct CapabilitiesMeta<'a> {
    #[serde(rename = "coldpath.tools")]
    tools: &'a RawValue,
}

#[derive(Serialize)]
struct InitializeMeta<'a> {
    #[serde(rename = "coldpath.startupProfile")]
    profile: &'a StartupProfile,
}

impl<'a> InitializeResult<'a> {
    /// The answer of an agent with these tools, and the profile where it was
    /// asked for.
    pub(crate) fn new(tools: &'a RawValue, profile: Option<&'a StartupProfile>) -> Self {
        Self {
            protocol_version: PROTOCOL_VERSION,
            agent_info: Implementation {
                name: "coldpath-agent".to_owned(),
                title: Some("Coldpath".to_owned()),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
            agent_capabilities: AgentCapabilities {
                load_session: false,
                prompt_capabilities: PromptCapabilities {
                    image: false,
                    audio: false,
                    embedded_context: false,
                },
                mcp_capabilities: McpCapabilities {
                    http: false,
                    sse: false,
                },
                meta: CapabilitiesMeta { tools },
            },
            auth_methods: [],
            meta: profile.map(|profile| InitializeMeta { profile }),
        }
    }
}
