//! The head of a request: the few fields that decide who may do what.

use super::{HEAD_MAX_BYTES, HEADERS_MAX};

/// What both loops need to know of a request, borrowed from wherever it was parsed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head<'a> {
    pub(crate) method: &'a str,
    /// Path without the query.
    pub(crate) path: &'a str,
    /// Query without its question mark.
    pub(crate) query: Option<&'a str>,
    pub(crate) host: Option<&'a str>,
    pub(crate) origin: Option<&'a str>,
    pub(crate) authorization: Option<&'a str>,
    pub(crate) traceparent: Option<&'a str>,
    pub(crate) tracestate: Option<&'a str>,
    /// A field that decides who is let in and stands more than once.
    pub(crate) repeated: Option<&'static str>,
    /// Whether a body follows.
    pub(crate) has_body: bool,
    /// Whether the peer keeps the connection open after the answer.
    pub(crate) keep_alive: bool,
    /// Whether a field said `close`, which no later one takes back.
    pub(crate) closes: bool,
}

/// What is at the front of a connection's bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Scanned<'a> {
    /// A whole head of this many bytes.
    Complete(Head<'a>, usize),
    /// More bytes are needed.
    Partial,
}

/// Why the bytes are no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadError {
    /// Not HTTP/1.
    Malformed,
    /// More than 8 KiB or 64 fields.
    TooLarge,
}

impl<'a> Head<'a> {
    /// Splits a request target; absolute-form targets keep only their path.
    pub(crate) fn with_target(mut self, target: &'a str) -> Self {
        let origin_form = match target.split_once("://") {
            Some((_, rest)) if !target.starts_with('/') => {
                rest.find('/').map_or("/", |at| &rest[at..])
            }
            _ => target,
        };
        let (path, query) = match origin_form.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (origin_form, None),
        };
        self.path = path;
        self.query = query;
        self
    }

    /// Takes one field in. Both loops read their fields with this, so that the same
    /// bytes mean the same to both.
    ///
    /// A value that is not UTF-8 cannot match anything: it counts as absent, which
    /// for host and token means that the request is refused; as an origin it is an
    /// opaque one.
    pub(crate) fn note(&mut self, name: &str, value: &'a [u8]) {
        let value = std::str::from_utf8(value).ok().map(str::trim);
        let is = |wanted: &str| name.eq_ignore_ascii_case(wanted);
        if is("host") {
            self.note_single("Host", |head| &mut head.host, Some(value.unwrap_or("")));
        } else if is("origin") {
            let origin = Some(value.unwrap_or("null"));
            self.note_single("Origin", |head| &mut head.origin, origin);
        } else if is("authorization") {
            let offer = Some(value.unwrap_or(""));
            self.note_single("Authorization", |head| &mut head.authorization, offer);
        } else if is("traceparent") {
            self.traceparent = value;
        } else if is("tracestate") {
            self.tracestate = value;
        } else if is("content-length") {
            self.has_body |= value != Some("0");
        } else if is("transfer-encoding") {
            self.has_body = true;
        } else if is("connection") {
            self.note_connection(value.unwrap_or_default());
        }
    }

    fn note_single(
        &mut self,
        name: &'static str,
        place: fn(&mut Self) -> &mut Option<&'a str>,
        value: Option<&'a str>,
    ) {
        if place(self).is_some() {
            self.repeated = Some(name);
        }
        *place(self) = value;
    }

    /// A list; `close` beats `keep-alive`, and the rest is none of our business.
    fn note_connection(&mut self, list: &str) {
        let has = |wanted: &str| {
            list.split(',')
                .any(|option| option.trim().eq_ignore_ascii_case(wanted))
        };
        if has("close") {
            self.closes = true;
        } else if has("keep-alive") {
            self.keep_alive = true;
        }
        self.keep_alive &= !self.closes;
    }

    /// Whether this asks whether the daemon is there: the one path that may be open.
    pub(crate) fn is_health(&self) -> bool {
        matches!((self.method, self.route()), ("GET" | "HEAD", "/health"))
    }

    /// The path with one trailing slash tolerated.
    pub(crate) fn route(&self) -> &'a str {
        match self.path.strip_suffix('/') {
            Some(stripped) if !stripped.is_empty() => stripped,
            _ => self.path,
        }
    }

    /// Whether the query has `name` with a value that means yes: `1`, `true` or none.
    pub(crate) fn query_flag(&self, name: &str) -> bool {
        self.query_value(name)
            .is_some_and(|value| matches!(value, "" | "1" | "true"))
    }

    /// First value of a query parameter, not percent-decoded; empty when bare.
    pub(crate) fn query_value(&self, name: &str) -> Option<&'a str> {
        self.query?.split('&').find_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (key == name).then_some(value)
        })
    }
}

/// Looks for a request head at the front of `bytes`.
pub(crate) fn scan(bytes: &[u8]) -> Result<Scanned<'_>, HeadError> {
    let mut fields = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut fields);
    let length = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) if length <= HEAD_MAX_BYTES => length,
        Ok(httparse::Status::Complete(_)) | Err(httparse::Error::TooManyHeaders) => {
            return Err(HeadError::TooLarge);
        }
        Ok(httparse::Status::Partial) if bytes.len() >= HEAD_MAX_BYTES => {
            return Err(HeadError::TooLarge);
        }
        Ok(httparse::Status::Partial) => return Ok(Scanned::Partial),
        Err(_) => return Err(HeadError::Malformed),
    };
    let mut head = Head {
        method: request.method.unwrap_or_default(),
        keep_alive: request.version == Some(1),
        ..Head::default()
    }
    .with_target(request.path.unwrap_or("/"));
    for field in request.headers.iter() {
        head.note(field.name, field.value);
    }
    Ok(Scanned::Complete(head, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(text: &str) -> (Head<'_>, usize) {
        match scan(text.as_bytes()) {
            Ok(Scanned::Complete(head, length)) => (head, length),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_head_ends_where_the_next_request_begins() {
        let text = "GET /health?deep=1 HTTP/1.1\r\nHost: a\r\n\r\nGET /x HTTP/1.1\r\n\r\n";
        let (head, length) = complete(text);
        assert_eq!(
            (head.path, head.query, head.host),
            ("/health", Some("deep=1"), Some("a"))
        );
        assert!(text[length..].starts_with("GET /x"));
    }

    #[test]
    fn one_trailing_slash_and_absolute_targets_are_tolerated() {
        for (target, route) in [
            ("/health/", "/health"),
            ("/", "/"),
            ("http://h:1/health", "/health"),
            ("http://h", "/"),
            ("//", "//"),
        ] {
            let text = format!("GET {target} HTTP/1.1\r\n\r\n");
            let (head, _) = complete(&text);
            let expected = if target == "//" { "/" } else { route };
            assert_eq!(head.route(), expected, "{target}");
        }
    }

    #[test]
    fn keep_alive_follows_version_and_field() {
        assert!(complete("GET / HTTP/1.1\r\n\r\n").0.keep_alive);
        assert!(!complete("GET / HTTP/1.0\r\n\r\n").0.keep_alive);
        assert!(
            !complete("GET / HTTP/1.1\r\nConnection: Close\r\n\r\n")
                .0
                .keep_alive
        );
        assert!(
            complete("GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n")
                .0
                .keep_alive
        );
        for fields in [
            "Connection: close, x",
            "Connection: x ,CLOSE",
            "Connection: x\r\nConnection: close",
            "Connection: close\r\nConnection: keep-alive",
        ] {
            let text = format!("GET / HTTP/1.1\r\n{fields}\r\n\r\n");
            assert!(!complete(&text).0.keep_alive, "{fields}");
        }
        let text = "GET / HTTP/1.0\r\nConnection: x, Keep-Alive\r\n\r\n";
        assert!(complete(text).0.keep_alive);
    }

    #[test]
    fn a_field_that_decides_and_stands_twice_is_named() {
        for name in ["Host", "Origin", "Authorization"] {
            let text = format!("GET / HTTP/1.1\r\n{name}: a\r\n{name}: a\r\n\r\n");
            assert_eq!(complete(&text).0.repeated, Some(name));
        }
        let text = "GET / HTTP/1.1\r\nHost: a\r\nAccept: b\r\nAccept: b\r\n\r\n";
        assert_eq!(complete(text).0.repeated, None);
    }

    #[test]
    fn a_value_that_is_not_utf_8_matches_nothing() {
        let mut head = Head::default();
        for name in ["host", "origin", "authorization"] {
            head.note(name, b"\xff");
        }
        let found = (head.host, head.origin, head.authorization);
        assert_eq!(found, (Some(""), Some("null"), Some("")));
    }

    #[test]
    fn a_body_is_seen() {
        assert!(
            complete("POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n")
                .0
                .has_body
        );
        assert!(
            complete("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
                .0
                .has_body
        );
        assert!(
            !complete("POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
                .0
                .has_body
        );
    }

    #[test]
    fn heads_are_bounded_and_garbage_is_named() {
        assert_eq!(scan(b"GET / HT"), Ok(Scanned::Partial));
        assert_eq!(scan(b"\x16\x03\x01garbage"), Err(HeadError::Malformed));
        let long = format!("GET / HTTP/1.1\r\nX: {}\r\n", "a".repeat(HEAD_MAX_BYTES));
        assert_eq!(scan(long.as_bytes()), Err(HeadError::TooLarge));
        assert_eq!(
            scan(format!("{long}\r\n").as_bytes()),
            Err(HeadError::TooLarge)
        );
        let many = format!(
            "GET / HTTP/1.1\r\n{}\r\n",
            "a: b\r\n".repeat(HEADERS_MAX + 1)
        );
        assert_eq!(scan(many.as_bytes()), Err(HeadError::TooLarge));
    }

    #[test]
    fn query_flags_are_bare_one_or_true() {
        let flag = |query| {
            Head {
                query,
                ..Head::default()
            }
            .query_flag("deep")
        };
        assert!(flag(Some("deep")) && flag(Some("a=b&deep=1")) && flag(Some("deep=true")));
        assert!(!flag(None) && !flag(Some("deep=0")) && !flag(Some("deeper=1")));
    }
}
