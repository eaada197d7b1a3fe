//! What one look at a daemon says, as a value.
//!
//! Text from the daemon is data: control characters never reach the terminal.

use crate::http::{Answer, Endpoint, HttpError};
use serde::Deserialize;

/// One look at a daemon.
#[derive(Clone, Debug, PartialEq)]
pub enum Snapshot {
    /// It answered with its status.
    Up(Box<Status>),
    /// It answered with something else: a wrong token, another program.
    Refused {
        /// Status code.
        status: u16,
        /// What it said, shortened.
        said: String,
    },
    /// Nobody answered.
    Down(String),
}

/// The parts of `GET /daemon/status` that are shown.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// `ok`, `warning` or `error`.
    pub status: String,
    /// What is wrong.
    #[serde(default)]
    pub issues: Vec<Issue>,
    /// The process.
    pub daemon: Daemon,
    /// What runs in it.
    #[serde(default)]
    pub runtime: Runtime,
    /// Bounds.
    #[serde(default)]
    pub limits: Limits,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Issue {
    /// Stable name.
    pub code: String,
    /// One sentence.
    #[serde(default)]
    pub message: String,
}

/// The daemon's process.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Daemon {
    /// Process id.
    pub pid: u32,
    /// Milliseconds since it started.
    #[serde(default)]
    pub uptime_ms: u64,
    /// The directory it serves.
    #[serde(default)]
    pub workspace_cwd: String,
    /// How it started.
    #[serde(default)]
    pub startup: Startup,
    /// Version, where it is this project's daemon.
    #[serde(default)]
    pub coldpath_version: Option<String>,
}

/// How the daemon started.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Startup {
    /// Calendar time of the start.
    #[serde(default)]
    pub process_started_at: Option<String>,
    /// Milliseconds from process start to listener.
    #[serde(default)]
    pub process_to_listen_ms: Option<f64>,
    /// Milliseconds from the first clock reading of the program to listener.
    #[serde(default)]
    pub main_to_listen_ms: Option<f64>,
    /// The agent's start ahead of the first session.
    #[serde(default)]
    pub preheat: Preheat,
}

/// The agent's start ahead of the first session.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Preheat {
    /// `scheduled`, `running`, `succeeded`, `failed` or `not_scheduled`.
    #[serde(default)]
    pub status: String,
    /// Milliseconds, once it is over.
    #[serde(default)]
    pub duration_ms: Option<f64>,
    /// Why it failed.
    #[serde(default)]
    pub error: Option<String>,
}

/// What runs in the daemon.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Runtime {
    /// Whether it is still being built.
    #[serde(default)]
    pub loading: bool,
    /// Why it could not be built.
    #[serde(default)]
    pub error: Option<String>,
    /// Sessions.
    #[serde(default)]
    pub sessions: Sessions,
    /// The agent's channel.
    #[serde(default)]
    pub channel: Channel,
}

/// Live sessions.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Sessions {
    /// How many.
    #[serde(default)]
    pub active: u64,
}

/// The agent's channel.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Channel {
    /// Whether an agent is connected.
    #[serde(default)]
    pub live: bool,
}

/// Bounds of the daemon.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Sessions at most; absent means no limit.
    #[serde(default)]
    pub max_sessions: Option<u64>,
}

/// Longest quotation of an answer that is not understood.
const QUOTE_MAX_CHARS: usize = 200;

impl Snapshot {
    /// Looks at the daemon once.
    #[must_use]
    pub fn take(endpoint: &Endpoint) -> Self {
        Self::of(endpoint.get("/daemon/status"))
    }

    /// Understands an answer to `GET /daemon/status`.
    #[must_use]
    pub fn of(answer: Result<Answer, HttpError>) -> Self {
        match answer {
            Err(error) => Self::Down(plain(&error.to_string())),
            Ok(answer) if answer.status == 200 => match serde_json::from_str(&answer.body) {
                Ok(status) => Self::Up(Box::new(status)),
                Err(error) => Self::Refused {
                    status: 200,
                    said: plain(&format!("not a daemon's status: {error}")),
                },
            },
            Ok(answer) => Self::Refused {
                status: answer.status,
                said: plain(&answer.body),
            },
        }
    }
}

/// Shortened text without control characters.
#[must_use]
pub fn plain(text: &str) -> String {
    text.chars()
        .take(QUOTE_MAX_CHARS)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_of_a_daemon_do_not_pass() {
        assert_eq!(plain("\u{1b}]0;x\u{7}a\nb"), " ]0;x a b");
        assert_eq!(plain(&"a".repeat(500)).len(), QUOTE_MAX_CHARS);
    }

    #[test]
    fn anything_but_a_status_is_told_apart() {
        let of = |status, body: &str| {
            Snapshot::of(Ok(Answer {
                status,
                body: body.to_owned(),
            }))
        };
        assert!(matches!(
            of(200, "[]"),
            Snapshot::Refused { status: 200, .. }
        ));
        assert_eq!(
            of(401, r#"{"error":"Unauthorized"}"#),
            Snapshot::Refused {
                status: 401,
                said: r#"{"error":"Unauthorized"}"#.to_owned()
            }
        );
    }

    #[test]
    fn a_status_of_the_daemon_this_contract_comes_from_is_understood() {
        // Shortened from an answer of `qwen serve` 0.24.4.
        let body = r#"{"v":1,"detail":"summary","status":"ok","issues":[],"daemon":{"pid":12979,"uptimeMs":8843,
            "mode":"http-bridge","workspaceCwd":"x/ws","startup":{"processStartedAt":"2026-11-30T19:33:30.879Z",
            "processToListenMs":1814,"preheat":{"status":"succeeded","durationMs":2907}},"qwenCodeVersion":"0.24.4"},
            "limits":{"maxSessions":32},"runtime":{"sessions":{"active":2},"channel":{"live":true}}}"#;
        let Snapshot::Up(status) = Snapshot::of(Ok(Answer {
            status: 200,
            body: body.to_owned(),
        })) else {
            panic!("not understood");
        };
        assert_eq!(status.daemon.startup.preheat.duration_ms, Some(2907.0));
        assert_eq!(
            (status.runtime.sessions.active, status.limits.max_sessions),
            (2, Some(32))
        );
    }
}
