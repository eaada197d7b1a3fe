//! A whole answer as a value: status, a few fields, a JSON body.

use serde::Serialize;
use serde_json::json;

/// Methods and fields that a browser may use, for preflights.
const CORS_METHODS: &str = "GET, POST, PATCH, DELETE, OPTIONS";
const CORS_HEADERS: &str =
    "Authorization, Content-Type, X-Qwen-Client-Id, Last-Event-ID, X-Qwen-Event-Epoch";

/// An answer with a JSON body, or with none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Option<String>,
}

impl Answer {
    /// An answer with a JSON body.
    pub(crate) fn json(status: u16, body: &impl Serialize) -> Self {
        Self {
            status,
            headers: Vec::new(),
            // Our own values of maps with text keys always serialise.
            body: Some(serde_json::to_string(body).unwrap_or_default()),
        }
    }

    /// `{"error": …}` with the code where there is one.
    pub(crate) fn error(status: u16, message: &str, code: Option<&str>) -> Self {
        let mut body = json!({ "error": message });
        if let Some(code) = code {
            body["code"] = code.into();
        }
        Self::json(status, &body)
    }

    /// The answer to a browser's preflight from an admitted origin.
    pub(crate) fn preflight() -> Self {
        Self {
            status: 204,
            headers: Vec::new(),
            body: None,
        }
        .with_header("Access-Control-Allow-Methods", CORS_METHODS)
        .with_header("Access-Control-Allow-Headers", CORS_HEADERS)
        .with_header("Access-Control-Max-Age", "86400")
    }

    /// The same answer with one more field.
    #[must_use]
    pub(crate) fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The same answer, readable by a page of that origin.
    #[must_use]
    pub(crate) fn for_origin(self, origin: Option<&str>) -> Self {
        match origin {
            None => self,
            Some(origin) => self
                .with_header("Access-Control-Allow-Origin", origin)
                .with_header(
                    "Access-Control-Expose-Headers",
                    "Retry-After, X-Qwen-Event-Epoch, X-Qwen-SSE-Stream-Id",
                )
                .with_header("Vary", "Origin"),
        }
    }

    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    /// The answer's parts, for a server library.
    pub(crate) fn into_parts(self) -> (u16, Vec<(&'static str, String)>, Option<String>) {
        (self.status, self.headers, self.body)
    }

    /// The answer as HTTP/1.1 bytes. `head_only` leaves the body out and keeps
    /// its length, as HEAD asks.
    pub(crate) fn to_bytes(&self, keep_alive: bool, head_only: bool) -> Vec<u8> {
        use std::fmt::Write as _;
        let mut text = String::with_capacity(256);
        // Writing to a String cannot fail.
        let _ = write!(text, "HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        for (name, value) in &self.headers {
            let _ = write!(text, "{name}: {value}\r\n");
        }
        if !keep_alive {
            text.push_str("Connection: close\r\n");
        }
        if let Some(body) = &self.body {
            let _ = write!(
                text,
                "Content-Type: application/json; charset=utf-8\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            if !head_only {
                text.push_str(body);
            }
        } else {
            text.push_str("\r\n");
        }
        text.into_bytes()
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        408 => "Request Timeout",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_plain_http() {
        let bytes = Answer::json(200, &json!({"status": "ok"})).to_bytes(true, false);
        assert_eq!(
            String::from_utf8(bytes).unwrap(),
            "HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: 15\r\n\r\n{\"status\":\"ok\"}"
        );
    }

    #[test]
    fn close_and_head_are_honoured() {
        let bytes = Answer::error(503, "x", Some("c"))
            .with_header("Retry-After", "1")
            .to_bytes(false, true);
        assert_eq!(
            String::from_utf8(bytes).unwrap(),
            "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: 24\r\n\r\n"
        );
    }
}
