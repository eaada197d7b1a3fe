//! Why there is no channel, or no answer from one; told to clients.

use crate::http::Answer;
use coldpath_trace_format::attributes as keys;
use coldpath_trace_format::emit::{SpanContext, Stage};
use serde_json::json;
use std::time::Duration;

/// Shared by everybody who waited for the same thing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChannelError {
    /// The agent's program could not be started.
    #[error("cannot start the agent: {0}")]
    Spawn(String),
    /// The agent did not answer in time.
    #[error("the agent did not answer `{method}` within {} ms{}", .timeout.as_millis(), hint(.detail))]
    Timeout {
        method: &'static str,
        timeout: Duration,
        detail: String,
    },
    /// The agent ended, or closed its output.
    #[error("the agent ended before it answered `{method}`: {detail}")]
    Closed {
        method: &'static str,
        detail: String,
    },
    /// The agent answered with an error.
    #[error("the agent refused `{method}`: {message} (code {code})")]
    Refused {
        method: &'static str,
        code: i64,
        message: String,
    },
    /// The agent's answer cannot be used.
    #[error("the agent's answer to `{method}` cannot be used: {detail}")]
    Invalid {
        method: &'static str,
        detail: String,
    },
    /// The daemon stops.
    #[error("the daemon is stopping")]
    Stopping,
}

/// Why somebody who waited for a channel gets none, and of which attempt that is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    pub(crate) error: ChannelError,
    /// The attempt that failed; `None` when there was none.
    pub(crate) attempt: Option<Attempt>,
}

/// One attempt to make a channel, as traces name it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Attempt {
    pub(crate) channel_id: String,
    /// Context of the span that failed: `channel.initialize`, or `channel.spawn`.
    pub(crate) span: Option<SpanContext>,
}

impl From<ChannelError> for Failure {
    fn from(error: ChannelError) -> Self {
        Self {
            error,
            attempt: None,
        }
    }
}

impl Failure {
    /// Marks a stage that waited in vain, and joins it to the attempt.
    pub(crate) fn mark(&self, stage: &mut Stage) {
        stage.fail(self.error.code(), self.error.to_string());
        if let Some(attempt) = &self.attempt {
            stage.set(keys::CHANNEL_ID, attempt.channel_id.clone());
            if let Some(span) = &attempt.span {
                stage.link(span);
            }
        }
    }
}

fn hint(detail: &str) -> String {
    if detail.is_empty() {
        String::new()
    } else {
        format!("; {detail}")
    }
}

/// Seconds after which a client may try again.
const RETRY_AFTER: &str = "5";

impl ChannelError {
    /// Its class, for traces and for clients.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Spawn(_) => "agent_spawn_failed",
            Self::Timeout { .. } => "init_timeout",
            Self::Closed { .. } => "channel_closed",
            Self::Refused { .. } => "agent_error",
            Self::Invalid { .. } => "agent_invalid_response",
            Self::Stopping => "daemon_shutdown",
        }
    }

    /// The answer to a client whose request failed of it.
    pub(crate) fn answer(&self) -> Answer {
        let message = self.to_string();
        match self {
            Self::Timeout {
                method, timeout, ..
            } => {
                let mut body = json!({
                    "error": message,
                    "code": self.code(),
                    "errorKind": self.code(),
                    "retryable": true,
                    "timeoutMs": u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
                });
                // Whether a session exists is known only when none was asked for.
                if *method == "initialize" {
                    body["sideEffectPossible"] = false.into();
                    body["phase"] = "channel.initialize".into();
                }
                Answer::json(504, &body).with_header("Retry-After", RETRY_AFTER)
            }
            Self::Refused { code, .. } => Answer::json(
                502,
                &json!({ "error": message, "code": self.code(), "agentCode": code }),
            ),
            Self::Invalid { .. } => Answer::error(502, &message, Some(self.code())),
            Self::Spawn(_) => Answer::error(500, &message, Some(self.code())),
            Self::Closed { .. } | Self::Stopping => Answer::error(503, &message, Some(self.code()))
                .with_header("Retry-After", RETRY_AFTER),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_of_initialize_is_the_documented_body() {
        let error = ChannelError::Timeout {
            method: "initialize",
            timeout: Duration::from_millis(137),
            detail: String::new(),
        };
        let (status, headers, body) = error.answer().into_parts();
        assert_eq!(status, 504);
        assert_eq!(headers, [("Retry-After", "5".to_owned())]);
        let body: serde_json::Value = serde_json::from_str(&body.unwrap()).unwrap();
        assert_eq!(
            body,
            json!({"error": "the agent did not answer `initialize` within 137 ms", "code": "init_timeout", "errorKind": "init_timeout",
                "retryable": true, "sideEffectPossible": false, "phase": "channel.initialize", "timeoutMs": 137})
        );
    }
}
