//! HTTP/1.1 as a client that times it needs it: request bytes that are built
//! ahead, and a response that knows when it is complete.
//!
//! Works on buffers; connects to nothing, waits for nothing, reads no clock.

use std::ops::Range;

/// Longest response head: what the servers of this field send is under 1 KiB.
pub const HEAD_MAX_BYTES: usize = 32 * 1024;
/// Longest response body; the largest known answer of the v1 contract has 6 KB.
pub const BODY_MAX_BYTES: usize = 4 * 1024 * 1024;
/// Room that is set aside for a response before the timed window.
const RESPONSE_CAPACITY: usize = 16 * 1024;
/// Most headers in a response head.
const HEADERS_MAX: usize = 64;
/// Room for `HOST:PORT` in a request, so that filling it in allocates nothing.
const AUTHORITY_ROOM: usize = 256;

/// A request that lacks only the host.
#[derive(Clone, Debug)]
pub struct PreparedRequest {
    before_host: String,
    after_host: String,
    bytes: Vec<u8>,
}

/// The bytes of a response as they arrive.
#[derive(Debug)]
pub struct ResponseBuffer {
    /// What has been read; append to it, then ask [`ResponseBuffer::progress`].
    pub bytes: Vec<u8>,
}

/// How far a response is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More bytes belong to it.
    Incomplete,
    /// It is complete.
    Complete(Response),
}

/// A complete response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Status code.
    pub status: u16,
    /// The body, its transfer coding undone.
    pub body: Vec<u8>,
}

/// Why bytes are no response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError {
    /// Not HTTP/1.
    #[error("the response is not HTTP/1.1: {0}")]
    Syntax(String),
    /// Head or body over their bounds.
    #[error("the response {0} is longer than {1} bytes")]
    TooLong(&'static str, usize),
    /// The connection ended inside the response.
    #[error("the connection was closed inside the response, after {0} bytes")]
    Truncated(usize),
}

impl PreparedRequest {
    /// Builds the request with its `traceparent`. One connection carries one
    /// request, and it says so.
    #[must_use]
    pub fn new(method: &str, path: &str, body: Option<&str>, traceparent: &str) -> Self {
        let mut after_host = format!("\r\ntraceparent: {traceparent}\r\nConnection: close\r\n");
        if let Some(body) = body {
            after_host.push_str("Content-Type: application/json\r\nContent-Length: ");
            after_host.push_str(&body.len().to_string());
            after_host.push_str("\r\n\r\n");
            after_host.push_str(body);
        } else {
            after_host.push_str("\r\n");
        }
        let before_host = format!("{method} {path} HTTP/1.1\r\nHost: ");
        let room = before_host.len() + AUTHORITY_ROOM + after_host.len();
        Self {
            before_host,
            after_host,
            bytes: Vec::with_capacity(room),
        }
    }

    /// Fills in the host.
    pub fn fill_in(&mut self, authority: &str) {
        self.bytes.clear();
        self.bytes.extend_from_slice(self.before_host.as_bytes());
        self.bytes.extend_from_slice(authority.as_bytes());
        self.bytes.extend_from_slice(self.after_host.as_bytes());
    }

    /// The whole request, once the host is filled in.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Default for ResponseBuffer {
    fn default() -> Self {
        Self {
            bytes: Vec::with_capacity(RESPONSE_CAPACITY),
        }
    }
}

impl ResponseBuffer {
    /// Judges what has been read so far. The end of the body is found by
    /// `Transfer-Encoding: chunked`, by `Content-Length`, by the status where it
    /// forbids a body, or else only at the end of the stream
    /// (RFC 9112, section 6.3).
    ///
    /// # Errors
    /// What was read can never become a response.
    pub fn progress(&self) -> Result<Progress, ResponseError> {
        let Some(head) = Head::parse(&self.bytes)? else {
            return if self.bytes.len() > HEAD_MAX_BYTES {
                Err(ResponseError::TooLong("head", HEAD_MAX_BYTES))
            } else {
                Ok(Progress::Incomplete)
            };
        };
        let body = &self.bytes[head.length..];
        let end = match head.framing {
            Framing::Length(length) => {
                if length > BODY_MAX_BYTES {
                    return Err(ResponseError::TooLong("body", BODY_MAX_BYTES));
                }
                (body.len() >= length).then(|| body[..length].to_vec())
            }
            Framing::Chunked => dechunk(body)?,
            Framing::UntilClosed => None,
        };
        match end {
            Some(body) => Ok(Progress::Complete(Response {
                status: head.status,
                body,
            })),
            None if body.len() > BODY_MAX_BYTES => {
                Err(ResponseError::TooLong("body", BODY_MAX_BYTES))
            }
            None => Ok(Progress::Incomplete),
        }
    }

    /// Judges what was read when the peer has closed the connection.
    ///
    /// # Errors
    /// The response is not complete, or none.
    pub fn finish(&self) -> Result<Response, ResponseError> {
        if let Progress::Complete(response) = self.progress()? {
            return Ok(response);
        }
        match Head::parse(&self.bytes)? {
            Some(head) if head.framing == Framing::UntilClosed => Ok(Response {
                status: head.status,
                body: self.bytes[head.length..].to_vec(),
            }),
            _ => Err(ResponseError::Truncated(self.bytes.len())),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunked,
    UntilClosed,
}

struct Head {
    status: u16,
    length: usize,
    framing: Framing,
}

impl Head {
    fn parse(bytes: &[u8]) -> Result<Option<Self>, ResponseError> {
        let mut interim = 0;
        loop {
            let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
            let mut head = httparse::Response::new(&mut headers);
            let length = match head.parse(&bytes[interim..]) {
                Ok(httparse::Status::Complete(length)) => interim + length,
                Ok(httparse::Status::Partial) => return Ok(None),
                Err(error) => return Err(ResponseError::Syntax(error.to_string())),
            };
            let status = head.code.unwrap_or_default();
            // What comes before the answer (RFC 9110, section 15.2) is not it.
            if matches!(status, 100 | 102..=199) {
                interim = length;
                continue;
            }
            return Ok(Some(Self {
                status,
                length,
                framing: framing(status, head.headers)?,
            }));
        }
    }
}

fn framing(status: u16, headers: &[httparse::Header<'_>]) -> Result<Framing, ResponseError> {
    if matches!(status, 100..=199 | 204 | 304) {
        return Ok(Framing::Length(0));
    }
    let mut length = None;
    for header in headers {
        let value = || std::str::from_utf8(header.value).unwrap_or_default().trim();
        if header.name.eq_ignore_ascii_case("transfer-encoding") {
            return if value().eq_ignore_ascii_case("chunked") {
                Ok(Framing::Chunked)
            } else {
                Err(ResponseError::Syntax(format!(
                    "transfer coding `{}` is not known",
                    value()
                )))
            };
        }
        if header.name.eq_ignore_ascii_case("content-length") {
            let number = value().bytes().all(|byte| byte.is_ascii_digit());
            length = Some(
                number
                    .then(|| value().parse().ok())
                    .flatten()
                    .ok_or_else(|| ResponseError::Syntax("Content-Length is no number".into()))?,
            );
        }
    }
    Ok(length.map_or(Framing::UntilClosed, Framing::Length))
}

/// Undoes the chunked coding; `None` while the last chunk is not there.
fn dechunk(bytes: &[u8]) -> Result<Option<Vec<u8>>, ResponseError> {
    let mut rest = bytes;
    let mut body = Vec::new();
    loop {
        let (head, size) = match httparse::parse_chunk_size(rest) {
            Ok(httparse::Status::Complete((head, size))) => (head, size),
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(ResponseError::Syntax("bad chunk size".into())),
        };
        let size = usize::try_from(size)
            .ok()
            .filter(|size| body.len().saturating_add(*size) <= BODY_MAX_BYTES)
            .ok_or(ResponseError::TooLong("body", BODY_MAX_BYTES))?;
        rest = &rest[head..];
        if size == 0 {
            return Ok(trailers_end(rest).then_some(body));
        }
        let Some(chunk) = rest.get(Range {
            start: 0,
            end: size,
        }) else {
            return Ok(None);
        };
        body.extend_from_slice(chunk);
        match rest.get(size..size + 2) {
            Some(b"\r\n") => rest = &rest[size + 2..],
            Some(_) => return Err(ResponseError::Syntax("chunk without its end".into())),
            None => return Ok(None),
        }
    }
}

/// Whether the empty line behind the last chunk and its trailers is there.
fn trailers_end(rest: &[u8]) -> bool {
    rest.starts_with(b"\r\n") || rest.windows(4).any(|part| part == b"\r\n\r\n")
}

#[cfg(test)]
mod tests;
