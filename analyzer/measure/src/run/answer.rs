//! What an answer is worth: whether it is the success that a step wants, and what
//! it says. Pure.

use super::failure::{Failure, FailureCode};
use crate::driver::{Message, RequestStep};
use std::collections::BTreeSet;
use std::time::Duration;

/// How long after a broken connection the end of the program counts as its cause:
/// the kernel closes the sockets of a process a moment before it is a zombie.
pub(super) const END_PATIENCE: Duration = Duration::from_millis(100);
/// Bytes of an unexpected body that an error quotes.
const QUOTE_MAX_BYTES: usize = 300;
/// Bytes of a session's answer that are kept for later checks.
const KEPT_MAX_BYTES: usize = 64 * 1024;

/// An answer over HTTP, or the result of a call.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// Status code, of HTTP.
    pub(super) status: Option<u16>,
    /// Body, or the result's JSON text.
    pub(super) body: Vec<u8>,
}

/// The session id of a successful answer that must have one; why it is none.
pub(super) fn judge(step: &RequestStep, answer: &Answer) -> Result<Option<String>, Failure> {
    let asked = match &step.message {
        Message::Http { method, path, .. } => format!("{method} {path}"),
        Message::Call { method, .. } => method.clone(),
    };
    if let Some(status) = answer.status.filter(|status| !step.expect.contains(status)) {
        let quoted = quote(&answer.body);
        let message = format!("{asked} answered {status}: {quoted}");
        return Err(Failure::new(FailureCode::HttpStatus, message));
    }
    let Some(key) = &step.session else {
        return Ok(None);
    };
    session_id(&answer.body, key).map(Some).ok_or_else(|| {
        let quoted = quote(&answer.body);
        let message = format!("{asked} answered without a `{key}`: {quoted}");
        Failure::new(FailureCode::BadBody, message)
    })
}

/// The texts of a list in an object; none where there is no such list.
pub(super) fn texts(body: &[u8], key: &str) -> BTreeSet<String> {
    let body: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let list = body.as_ref().and_then(|body| body.get(key)?.as_array());
    let texts = list.into_iter().flatten();
    texts
        .filter_map(|one| one.as_str().map(str::to_owned))
        .collect()
}

/// A body that is short enough to be kept.
pub(super) fn kept(body: Vec<u8>) -> Option<Vec<u8>> {
    (body.len() <= KEPT_MAX_BYTES).then_some(body)
}

fn session_id(body: &[u8], key: &str) -> Option<String> {
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    let id = body.get(key)?.as_str()?;
    (!id.is_empty()).then(|| id.to_owned())
}

fn quote(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(QUOTE_MAX_BYTES)]);
    let more = if body.len() > QUOTE_MAX_BYTES {
        "…"
    } else {
        ""
    };
    format!("`{}{more}`", text.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_id(body: &str, expected: Option<&str>) {
        let found = session_id(body.as_bytes(), "sessionId");
        assert_eq!(found.as_deref(), expected, "{body}");
    }

    #[test]
    fn a_session_is_an_object_with_a_session_id() {
        check_id(r#"{"sessionId":"s-1","attached":false}"#, Some("s-1"));
        for body in [
            "",
            "null",
            "[]",
            "{",
            r#"{"sessionId":1}"#,
            r#"{"sessionId":""}"#,
            r#"{"id":"s"}"#,
        ] {
            check_id(body, None);
        }
    }

    #[test]
    fn a_long_body_is_quoted_in_part() {
        assert_eq!(quote(b" x\n"), "`x`");
        let long = "y".repeat(QUOTE_MAX_BYTES + 1);
        assert_eq!(quote(long.as_bytes()), format!("`{}…`", "y".repeat(300)));
    }

    #[test]
    fn feature_tags_are_the_texts_of_a_list() {
        let tags = |body: &str| {
            texts(body.as_bytes(), "features")
                .into_iter()
                .collect::<Vec<_>>()
        };
        assert_eq!(tags(r#"{"features":["b","a",1]}"#), ["a", "b"]);
        for body in ["", "{}", r#"{"features":"a"}"#, "not found"] {
            assert_eq!(tags(body), [""; 0], "{body}");
        }
    }
}
