//! The bodies of `/capabilities` and `/daemon/status`, the same in both loops.
//!
//! Pure: facts in, JSON out. What is not implemented is absent from `features`.

use crate::config::Config;
use serde_json::{Value, json};
use std::time::Duration;

/// What this daemon implements, by the tags of the v1 contract.
pub(crate) const FEATURES: [&str; 7] = [
    "health",
    "daemon_status",
    "capabilities",
    "session_create",
    "session_scope_override",
    "workspace_acp_preheat",
    "workspace_acp_status",
];

/// How far the daemon is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Only the bootstrap loop runs.
    Starting,
    /// Everything runs.
    Running(RuntimeFacts),
    /// The runtime could not start; the listener stays.
    Failed(String),
}

/// What only the runtime knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuntimeFacts {
    pub(crate) sessions: usize,
    pub(crate) channel_live: bool,
    pub(crate) preheat: Preheat,
}

/// State of the preheat that follows the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Preheat {
    #[default]
    Scheduled,
    Running,
    Succeeded(Duration),
    Failed(Duration, String),
}

/// Facts of the start-up, as instants turned into what clients read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StartupFacts {
    pub(crate) process_started_at: String,
    pub(crate) listener_ready_at: String,
    /// Unknown to a process whose parent did not say when it was spawned.
    pub(crate) process_to_listen: Option<Duration>,
    pub(crate) main_to_listen: Duration,
    pub(crate) uptime: Duration,
    pub(crate) now: String,
}

/// Body of `GET /capabilities`.
pub(crate) fn capabilities(config: &Config) -> Value {
    let mut limits = json!({});
    if let Some(max) = config.max_sessions {
        limits["maxSessionsPerWorkspace"] = max.into();
    }
    json!({
        "v": 1,
        "protocolVersions": protocol_versions(),
        "coldpathVersion": crate::VERSION,
        "mode": "http-bridge",
        "features": features(config),
        "modelServices": [],
        "workspaceCwd": workspace(config),
        "transports": ["rest"],
        "limits": limits,
        "workspaces": [{
            "id": crate::config::workspace_hash(&config.workspace),
            "cwd": workspace(config),
            "primary": true,
            "trusted": true,
        }],
    })
}

/// Body of `GET /daemon/status`.
pub(crate) fn status(
    config: &Config,
    detail: &str,
    startup: &StartupFacts,
    phase: &Phase,
) -> Value {
    let issues = issues(phase);
    let status = match phase {
        Phase::Failed(_) => "error",
        _ if issues.is_empty() => "ok",
        _ => "warning",
    };
    let (sessions, live, preheat) = match phase {
        Phase::Running(facts) => (facts.sessions, facts.channel_live, preheat(&facts.preheat)),
        Phase::Starting => (0, false, json!({ "status": "scheduled" })),
        Phase::Failed(_) => (0, false, json!({ "status": "failed" })),
    };
    let mut runtime = json!({
        "sessions": { "active": sessions },
        "channel": { "live": live },
        "transport": "rest",
    });
    match phase {
        Phase::Starting => runtime["loading"] = true.into(),
        Phase::Failed(message) => runtime["error"] = message.as_str().into(),
        Phase::Running(_) => {}
    }
    json!({
        "v": 1,
        "detail": detail,
        "generatedAt": startup.now,
        "status": status,
        "issues": issues,
        "daemon": {
            "pid": std::process::id(),
            "uptimeMs": millis(startup.uptime),
            "mode": "http-bridge",
            "workspaceCwd": workspace(config),
            "startup": {
                "processStartedAt": startup.process_started_at,
                "listenerReadyAt": startup.listener_ready_at,
                "processToListenMs": startup.process_to_listen.map(fraction_ms),
                "mainToListenMs": fraction_ms(startup.main_to_listen),
                "preheat": preheat,
            },
            "coldpathVersion": crate::VERSION,
            "daemonId": format!("daemon:{}", std::process::id()),
        },
        "security": {
            "tokenConfigured": config.access.token.is_some(),
            "requireAuth": config.access.require_auth,
            "loopbackBind": config.access.is_loopback(),
            "allowOriginConfigured": !config.access.allowed_origins.is_empty(),
        },
        "limits": {
            "maxSessions": config.max_sessions,
            "initializeTimeoutMs": millis(config.initialize_timeout),
        },
        "capabilities": { "protocolVersions": protocol_versions(), "features": features(config) },
        "runtime": runtime,
    })
}

fn issues(phase: &Phase) -> Vec<Value> {
    let issue = |code: &str, severity: &str, message: &str| json!({ "code": code, "severity": severity, "message": message });
    match phase {
        Phase::Starting => vec![issue(
            "daemon_runtime_starting",
            "warning",
            "the runtime is still starting",
        )],
        Phase::Failed(message) => vec![issue("daemon_runtime_failed", "error", message)],
        Phase::Running(RuntimeFacts {
            preheat: Preheat::Failed(_, error),
            channel_live: false,
            ..
        }) => {
            vec![issue("acp_channel_down", "warning", error)]
        }
        Phase::Running(_) => Vec::new(),
    }
}

fn preheat(preheat: &Preheat) -> Value {
    match preheat {
        Preheat::Scheduled => json!({ "status": "scheduled" }),
        Preheat::Running => json!({ "status": "running" }),
        Preheat::Succeeded(took) => {
            json!({ "status": "succeeded", "durationMs": fraction_ms(*took) })
        }
        Preheat::Failed(took, error) => {
            json!({ "status": "failed", "durationMs": fraction_ms(*took), "error": error })
        }
    }
}

fn features(config: &Config) -> Vec<&'static str> {
    let mut features = FEATURES.to_vec();
    if config.access.require_auth {
        features.push("require_auth");
    }
    if !config.access.allowed_origins.is_empty() {
        features.push("allow_origin");
    }
    features
}

fn protocol_versions() -> Value {
    json!({ "current": "v1", "supported": ["v1"] })
}

fn workspace(config: &Config) -> &str {
    // Judged to be UTF-8 when the configuration was made.
    config.workspace.to_str().unwrap_or_default()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Milliseconds to the microsecond: whole ones would say 0 for most of this daemon.
fn fraction_ms(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1e3
}
