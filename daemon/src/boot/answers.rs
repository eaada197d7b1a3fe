//! Answers that need no runtime. Pure.

use crate::http::{Answer, Head, HeadError};
use serde_json::json;

/// The answer to bytes that are no request.
pub(super) fn unreadable(error: HeadError) -> Answer {
    match error {
        HeadError::Malformed => {
            Answer::error(400, "malformed HTTP request", Some("malformed_request"))
        }
        HeadError::TooLarge => Answer::error(
            431,
            "request head is larger than 8 KiB or 64 fields",
            Some("head_too_large"),
        ),
    }
}

/// The answer to `/health`, with the message of a runtime that failed to start.
pub(super) fn health(head: &Head<'_>, failed: Option<&str>) -> Answer {
    match failed {
        Some(message) => Answer::json(503, &json!({ "status": "degraded", "error": message })),
        None if head.query_flag("deep") => {
            Answer::json(503, &json!({ "status": "degraded", "reason": "bootstrap" }))
                .with_header("Retry-After", "1")
        }
        None => Answer::json(200, &json!({ "status": "ok" })),
    }
}

/// The answer to what needs a runtime that failed to start.
pub(super) fn runtime_failed(message: &str) -> Answer {
    Answer::error(
        503,
        &format!("the runtime failed to start: {message}"),
        Some("daemon_runtime_failed"),
    )
}

/// The answer to what needs the runtime when as many wait for it as may.
pub(super) fn runtime_starting() -> Answer {
    Answer::error(
        503,
        "the runtime is still starting and too many requests wait for it",
        Some("daemon_runtime_starting"),
    )
    .with_header("Retry-After", "1")
}
