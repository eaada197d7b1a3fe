//! Small bounded `GET` requests to one daemon; blocking.
//!
//! Plain HTTP/1.1 on one connection a request: the daemon listens on loopback
//! and its answers are a few kilobytes. Every wait and every size has a bound.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

/// Longest wait for a connection, and for each part of an answer.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Largest answer: a hundred times what the daemon's status has.
const ANSWER_MAX_BYTES: usize = 1024 * 1024;
/// Most header fields of an answer.
const HEADERS_MAX: usize = 64;

/// A bearer token; never printed.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Takes the token's text.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

/// Where a daemon listens.
#[derive(Clone, Debug)]
pub struct Endpoint {
    authority: String,
    address: SocketAddr,
    token: Option<Token>,
}

/// Why a URL or an answer cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The URL is not one of a daemon.
    #[error("`{0}` is not a daemon's address\nhint: write it as http://127.0.0.1:4170")]
    Url(String),
    /// Nobody answers there.
    #[error("no daemon answers at {0}: {1}")]
    Connect(String, io::Error),
    /// The answer is not HTTP, too large, or ended early.
    #[error("the answer of {0} cannot be read: {1}")]
    Answer(String, String),
}

/// A whole answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Body, as text.
    pub body: String,
}

impl Endpoint {
    /// Reads `http://HOST:PORT`, a trailing slash tolerated.
    ///
    /// # Errors
    /// Another scheme, a path, no port, or a host that has no address.
    pub fn parse(url: &str, token: Option<Token>) -> Result<Self, HttpError> {
        let authority = url
            .strip_prefix("http://")
            .map(|rest| rest.strip_suffix('/').unwrap_or(rest));
        let authority = authority
            .filter(|text| !text.contains('/'))
            .ok_or_else(|| HttpError::Url(url.to_owned()))?;
        let address = authority
            .to_socket_addrs()
            .ok()
            .and_then(|mut addresses| addresses.next());
        let address = address.ok_or_else(|| HttpError::Url(url.to_owned()))?;
        Ok(Self {
            authority: authority.to_owned(),
            address,
            token,
        })
    }

    /// `HOST:PORT`.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Gets a path.
    ///
    /// # Errors
    /// No connection, no HTTP, too large, or not in time.
    pub fn get(&self, path: &str) -> Result<Answer, HttpError> {
        let connect = |error| HttpError::Connect(self.authority.clone(), error);
        let mut stream = TcpStream::connect_timeout(&self.address, TIMEOUT).map_err(connect)?;
        stream.set_read_timeout(Some(TIMEOUT)).map_err(connect)?;
        stream.set_write_timeout(Some(TIMEOUT)).map_err(connect)?;
        let authorization = self.token.as_ref().map_or_else(String::new, |token| {
            format!("Authorization: Bearer {}\r\n", token.0)
        });
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\n{authorization}Connection: close\r\n\r\n",
            self.authority
        );
        stream.write_all(request.as_bytes()).map_err(connect)?;
        let mut bytes = Vec::new();
        let limit = ANSWER_MAX_BYTES as u64 + 1;
        let read = (&mut stream).take(limit).read_to_end(&mut bytes);
        let wrong = |what: String| HttpError::Answer(self.authority.clone(), what);
        read.map_err(|error| wrong(error.to_string()))?;
        if bytes.len() > ANSWER_MAX_BYTES {
            return Err(wrong(format!("it is larger than {ANSWER_MAX_BYTES} bytes")));
        }
        parse(&bytes).map_err(wrong)
    }
}

/// Reads an answer whose connection was closed behind it.
fn parse(bytes: &[u8]) -> Result<Answer, String> {
    let mut fields = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Response::new(&mut fields);
    let length = match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Err("it ended early".to_owned()),
        Err(error) => return Err(error.to_string()),
    };
    let body = &bytes[length..];
    let announced = head
        .headers
        .iter()
        .find(|field| field.name.eq_ignore_ascii_case("content-length"))
        .and_then(|field| {
            std::str::from_utf8(field.value)
                .ok()?
                .trim()
                .parse::<usize>()
                .ok()
        });
    let body = match announced {
        Some(announced) => body.get(..announced).ok_or("it ended early")?,
        None => body,
    };
    Ok(Answer {
        status: head.code.unwrap_or(0),
        body: String::from_utf8_lossy(body).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_cut_at_its_announced_length() {
        let answer = parse(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}trailing").unwrap();
        assert_eq!(
            answer,
            Answer {
                status: 200,
                body: "{}".to_owned()
            }
        );
        assert!(parse(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}").is_err());
        assert!(parse(b"HTTP/1.1 200").is_err());
        assert!(parse(b"SSH-2.0-x\r\n\r\n").is_err());
    }

    #[test]
    fn only_a_plain_daemon_url_is_taken() {
        assert!(Endpoint::parse("http://127.0.0.1:4170/", None).is_ok());
        for bad in [
            "https://127.0.0.1:4170",
            "127.0.0.1:4170",
            "http://127.0.0.1",
            "http://127.0.0.1:1/x",
            "http://:x",
        ] {
            assert!(Endpoint::parse(bad, None).is_err(), "{bad}");
        }
    }

    #[test]
    fn nobody_there_is_said_with_the_address() {
        // Bound and dropped: nobody listens on that port now.
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let endpoint = Endpoint::parse(&format!("http://127.0.0.1:{port}"), None).unwrap();
        let error = endpoint.get("/health").unwrap_err().to_string();
        assert!(error.contains(&format!("127.0.0.1:{port}")), "{error}");
    }
}
