//! JSON-RPC 2.0 envelopes: one line in, one message out, and back.
//!
//! Ids are opaque: they are kept as the text that the peer wrote and only ever
//! compared as text, because peers use integers, UUID strings and null. Reading
//! is lenient where real agents differ (order of keys, no `jsonrpc`, unknown
//! fields); parameters and results stay unparsed until somebody wants them.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// The line is not JSON.
pub const PARSE_ERROR: i64 = -32_700;
/// JSON, but no request that is allowed here.
pub const INVALID_REQUEST: i64 = -32_600;
/// No such method.
pub const METHOD_NOT_FOUND: i64 = -32_601;
/// The method's parameters are wrong.
pub const INVALID_PARAMS: i64 = -32_602;
/// The peer failed.
pub const INTERNAL_ERROR: i64 = -32_603;
/// ACP: the agent needs credentials first.
pub const AUTH_REQUIRED: i64 = -32_000;

/// One message of the peer, borrowed from its line.
#[derive(Debug)]
pub enum Incoming<'a> {
    /// Wants an answer under `id`.
    Request {
        /// The peer's id; `null` where it wrote that.
        id: &'a RawValue,
        /// Method name.
        method: Cow<'a, str>,
        /// Parameters; `None` when absent or null.
        params: Option<&'a RawValue>,
    },
    /// Wants no answer.
    Notification {
        /// Method name.
        method: Cow<'a, str>,
        /// Parameters; `None` when absent or null.
        params: Option<&'a RawValue>,
    },
    /// Answers one of our requests.
    Response {
        /// Our id as the peer echoed it; `null` when it could not read ours.
        id: &'a RawValue,
        /// Result, or the peer's error.
        outcome: Result<&'a RawValue, RpcError>,
    },
}

/// A JSON-RPC error object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RpcError {
    /// One of the codes of this module, or the peer's own.
    pub code: i64,
    /// One sentence for people.
    #[serde(default)]
    pub message: String,
    /// Whatever the peer adds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl RpcError {
    /// An error without data.
    #[must_use]
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (code {})", self.message, self.code)
    }
}

impl std::error::Error for RpcError {}

/// Why a line is no message.
#[derive(Debug)]
pub enum ParseError {
    /// Not UTF-8 or not JSON; with the reader's reason.
    Json(String),
    /// JSON, but neither request, notification nor response.
    Shape {
        /// The message's id where it has a usable one, so that it can be answered.
        id: Option<Box<RawValue>>,
        /// What is wrong.
        reason: String,
    },
}

impl ParseError {
    /// The id and the error to answer with.
    #[must_use]
    pub fn to_rpc(&self) -> (Option<&RawValue>, RpcError) {
        match self {
            Self::Json(_) => (None, RpcError::new(PARSE_ERROR, self.to_string())),
            Self::Shape { id, .. } => (
                id.as_deref(),
                RpcError::new(INVALID_REQUEST, self.to_string()),
            ),
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(reason) => write!(f, "not JSON: {reason}"),
            Self::Shape { reason, .. } => write!(f, "not a JSON-RPC message: {reason}"),
        }
    }
}

impl std::error::Error for ParseError {}

/// Reads one line.
///
/// # Errors
/// [`ParseError::Json`] for text that is not JSON, [`ParseError::Shape`] for
/// JSON that is no message (a batch, no method and no result, a method that is
/// not text).
pub fn parse(line: &[u8]) -> Result<Incoming<'_>, ParseError> {
    let text = std::str::from_utf8(line).map_err(|error| ParseError::Json(error.to_string()))?;
    // serde would read an array as the fields in their order.
    if !text.trim_start().starts_with('{') {
        return Err(refuse(text, "it is not an object"));
    }
    let envelope: Envelope<'_> =
        serde_json::from_str(text).map_err(|error| refuse(text, &error.to_string()))?;
    match envelope {
        Envelope {
            method: Some(Method(method)),
            id: Some(id),
            params,
            ..
        } => Ok(Incoming::Request { id, method, params }),
        Envelope {
            method: Some(Method(method)),
            params,
            ..
        } => Ok(Incoming::Notification { method, params }),
        Envelope {
            id,
            error: Some(error),
            ..
        } => Ok(Incoming::Response {
            id: id.unwrap_or(RawValue::NULL),
            outcome: Err(read_error(error)),
        }),
        Envelope {
            id: Some(id),
            result: Some(result),
            ..
        } => Ok(Incoming::Response {
            id,
            outcome: Ok(result),
        }),
        Envelope { id, .. } => Err(ParseError::Shape {
            id: id.map(ToOwned::to_owned),
            reason: "it has neither method, result nor error".to_owned(),
        }),
    }
}

/// A request line with its newline. Ids are ours, so they are numbers.
///
/// Parameters that cannot be JSON (a map with keys that are not text) are sent
/// as null; none of this crate's types can do that.
#[must_use]
pub fn request(id: u64, method: &str, params: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Line<'a, P> {
        jsonrpc: Version,
        id: u64,
        method: &'a str,
        params: &'a P,
    }
    to_line(&Line {
        jsonrpc: Version::Two,
        id,
        method,
        params,
    })
    .unwrap_or_else(|_| request(id, method, &()))
}

/// A notification line with its newline; parameters as in [`request`].
#[must_use]
pub fn notification(method: &str, params: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Line<'a, P> {
        jsonrpc: Version,
        method: &'a str,
        params: &'a P,
    }
    to_line(&Line {
        jsonrpc: Version::Two,
        method,
        params,
    })
    .unwrap_or_else(|_| notification(method, &()))
}

/// A successful response line with its newline. A result that cannot be JSON
/// becomes an internal error.
#[must_use]
pub fn response(id: &RawValue, result: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Line<'a, R> {
        jsonrpc: Version,
        id: &'a RawValue,
        result: &'a R,
    }
    to_line(&Line {
        jsonrpc: Version::Two,
        id,
        result,
    })
    .unwrap_or_else(|error| {
        error_response(Some(id), &RpcError::new(INTERNAL_ERROR, error.to_string()))
    })
}

/// An error response line with its newline; `None` answers what had no readable id.
#[must_use]
pub fn error_response(id: Option<&RawValue>, error: &RpcError) -> Vec<u8> {
    #[derive(Serialize)]
    struct Line<'a> {
        jsonrpc: Version,
        id: &'a RawValue,
        error: &'a RpcError,
    }
    to_line(&Line {
        jsonrpc: Version::Two,
        id: id.unwrap_or(RawValue::NULL),
        error,
    })
    // An error object is text, a number and a JSON value: always JSON.
    .unwrap_or_default()
}

#[derive(Serialize)]
enum Version {
    #[serde(rename = "2.0")]
    Two,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Method<'a>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

// serde borrows text only for a field that is itself a Cow.
#[derive(Deserialize)]
struct Method<'a>(#[serde(borrow)] Cow<'a, str>);

/// Null as a value: an id and a result may be null, which is not the same as absent.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// Error objects of real peers lack a code or are plain text; none of them may
/// turn an answer into silence.
fn read_error(raw: &RawValue) -> RpcError {
    serde_json::from_str(raw.get()).unwrap_or_else(|_| RpcError::new(INTERNAL_ERROR, raw.get()))
}

fn refuse(text: &str, reason: &str) -> ParseError {
    #[derive(Deserialize)]
    struct OnlyId<'a> {
        #[serde(borrow, default, deserialize_with = "present")]
        id: Option<&'a RawValue>,
    }
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
        return ParseError::Json(error.to_string());
    }
    let id = text
        .trim_start()
        .starts_with('{')
        .then(|| serde_json::from_str::<OnlyId<'_>>(text).ok()?.id);
    ParseError::Shape {
        id: id.flatten().map(ToOwned::to_owned),
        reason: reason.to_owned(),
    }
}

fn to_line(message: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    // Strings escape their line ends; only white space inside a raw value that
    // came from elsewhere can break the line.
    for byte in &mut line {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests;
