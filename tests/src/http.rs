//! HTTP/1.1 as bytes over a socket, so that a test decides what is in a packet.

use crate::WAIT;
use serde_json::Value;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};

/// A request to be sent.
#[derive(Clone, Debug)]
pub struct Request {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    host: Option<String>,
    body: Option<Vec<u8>>,
}

/// An answer that was read whole.
#[derive(Clone, Debug)]
pub struct Response {
    /// Status code.
    pub status: u16,
    /// Fields in their order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Body as it came.
    pub body: Vec<u8>,
}

/// One connection.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    port: u16,
    read: Vec<u8>,
}

impl Request {
    /// A request without a body.
    #[must_use]
    pub fn new(method: &str, target: &str) -> Self {
        Self {
            method: method.to_owned(),
            target: target.to_owned(),
            headers: Vec::new(),
            host: None,
            body: None,
        }
    }

    /// `GET target`.
    #[must_use]
    pub fn get(target: &str) -> Self {
        Self::new("GET", target)
    }

    /// `POST target` with a body; an empty one is sent as such.
    #[must_use]
    pub fn post(target: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            body: Some(body.into()),
            ..Self::new("POST", target).header("Content-Type", "application/json")
        }
    }

    /// `POST /session` with a scope.
    #[must_use]
    pub fn session(scope: &str) -> Self {
        Self::post("/session", format!(r#"{{"sessionScope":"{scope}"}}"#))
    }

    /// The same request with one more field.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same request with a bearer token.
    #[must_use]
    pub fn bearer(self, token: &str) -> Self {
        self.header("Authorization", &format!("Bearer {token}"))
    }

    /// The same request to another `Host` than the daemon's own address.
    #[must_use]
    pub fn host(mut self, host: &str) -> Self {
        self.host = Some(host.to_owned());
        self
    }

    /// The request's bytes, for a daemon on `port`.
    #[must_use]
    pub fn to_bytes(&self, port: u16) -> Vec<u8> {
        let host = self
            .host
            .clone()
            .unwrap_or_else(|| format!("127.0.0.1:{port}"));
        let mut head = format!(
            "{} {} HTTP/1.1\r\nHost: {host}\r\n",
            self.method, self.target
        );
        for (name, value) in &self.headers {
            head += &[name, ": ", value, "\r\n"].concat();
        }
        if let Some(body) = &self.body {
            head += &["Content-Length: ", &body.len().to_string(), "\r\n"].concat();
        }
        let body = self.body.as_deref().unwrap_or_default();
        [head.as_bytes(), b"\r\n", body].concat()
    }
}

impl Response {
    /// Value of a field by its lower-case name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// It is none.
    #[must_use]
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error} in the body of {self:?}"))
    }

    /// The same answer, whose status is as expected.
    ///
    /// # Panics
    /// It is another one; the body is in the message.
    #[track_caller]
    pub fn expect_status(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }
}

impl Client {
    /// Connects to a daemon on this machine.
    ///
    /// # Panics
    /// Nobody listens there.
    #[must_use]
    #[track_caller]
    pub fn connect(port: u16) -> Self {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
            .unwrap_or_else(|error| panic!("cannot connect to port {port}: {error}"));
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(WAIT)).unwrap();
        stream.set_write_timeout(Some(WAIT)).unwrap();
        Self {
            stream,
            port,
            read: Vec::new(),
        }
    }

    /// Sends bytes as they are.
    ///
    /// # Panics
    /// The peer is gone, or takes nothing for [`WAIT`].
    #[track_caller]
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.try_send_bytes(bytes)
            .unwrap_or_else(|error| panic!("cannot send: {error}"));
    }

    /// Sends bytes; a peer that is gone is an error.
    ///
    /// # Errors
    /// What the socket says.
    pub fn try_send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Sends a request with one write.
    ///
    /// # Panics
    /// As [`Self::send_bytes`].
    #[track_caller]
    pub fn send(&mut self, request: &Request) {
        let bytes = request.to_bytes(self.port);
        self.send_bytes(&bytes);
    }

    /// Sends a request and reads its answer.
    ///
    /// # Panics
    /// There is none within [`WAIT`].
    #[track_caller]
    pub fn ask(&mut self, request: &Request) -> Response {
        self.send(request);
        if request.method == "HEAD" {
            return self.read_head();
        }
        self.read()
    }

    /// Reads the next answer with its body.
    ///
    /// # Panics
    /// The connection ends before that, or [`WAIT`] passes.
    #[track_caller]
    pub fn read(&mut self) -> Response {
        let mut response = self.read_head();
        let length = response
            .header("content-length")
            .map_or(0, |value| value.parse().expect("a length"));
        while self.read.len() < length {
            self.more("the body of an answer");
        }
        response.body = self.read.drain(..length).collect();
        response
    }

    /// Reads the next answer, which has no body whatever its length says.
    ///
    /// # Panics
    /// As [`Self::read`].
    #[track_caller]
    pub fn read_head(&mut self) -> Response {
        let end = loop {
            if let Some(end) = find(&self.read, b"\r\n\r\n") {
                break end;
            }
            self.more("the head of an answer");
        };
        let head: Vec<u8> = self.read.drain(..end + 4).collect();
        parse_head(&String::from_utf8_lossy(&head[..end]))
    }

    /// Reads the next answer, after which the daemon closes the connection.
    ///
    /// # Panics
    /// The status is another one, or the connection stays open.
    #[track_caller]
    pub fn expect_answer_and_end(mut self, status: u16) {
        self.read().expect_status(status);
        self.expect_end();
    }

    /// Waits until the daemon closes the connection, with nothing more to say.
    ///
    /// # Panics
    /// It says more, or keeps it open for [`WAIT`].
    #[track_caller]
    pub fn expect_end(mut self) {
        let mut buffer = [0; 1024];
        match self.stream.read(&mut buffer) {
            Ok(0) => {}
            // The daemon closed without having read everything.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
            other => panic!("the connection did not end: {other:?}"),
        }
        assert!(self.read.is_empty(), "{:?}", self.read);
    }

    #[track_caller]
    fn more(&mut self, what: &str) {
        let mut buffer = [0; 16 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(0) => panic!(
                "the connection ended before {what}; read: {:?}",
                self.so_far()
            ),
            Ok(length) => self.read.extend_from_slice(&buffer[..length]),
            // With a timeout the kernel does not take the call up again by itself.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => panic!("no {what}: {error}; read: {:?}", self.so_far()),
        }
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.read).into_owned()
    }
}

#[track_caller]
fn parse_head(head: &str) -> Response {
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap_or_default();
    let code = status
        .strip_prefix("HTTP/1.")
        .and_then(|rest| rest.get(2..5)?.parse().ok())
        .unwrap_or_else(|| panic!("no status line: {status:?}"));
    let headers = lines.map(|line| {
        let (name, value) = line
            .split_once(':')
            .unwrap_or_else(|| panic!("no field: {line:?}"));
        (name.to_ascii_lowercase(), value.trim().to_owned())
    });
    Response {
        status: code,
        headers: headers.collect(),
        body: Vec::new(),
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}
