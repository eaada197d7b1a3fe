//! The same lines to a collector: OTLP over HTTP with JSON bodies.
//!
//! One thread behind a bounded queue, so that a collector that is slow or gone
//! delays neither the process nor its trace file. What cannot be delivered is
//! dropped and counted; the file stays the record.

use std::fmt;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Lines that wait for the collector: some seconds of a busy daemon.
const QUEUE_LINES: usize = 64;
/// Longest wait for a connection and for each part of an exchange.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Longest wait at close for what is queued.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Failures in a row after which a line is not even tried until one in ten is due:
/// a collector that is gone costs one connection attempt now and then.
const GIVE_UP_AFTER: u32 = 3;
/// The path of the protocol's specification.
const DEFAULT_PATH: &str = "/v1/traces";

/// Where a collector listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    authority: String,
    address: SocketAddr,
    path: String,
}

/// Why a text names no collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointError(String);

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not a collector's address\nhint: write it as http://127.0.0.1:4318",
            self.0
        )
    }
}

impl std::error::Error for EndpointError {}

impl Endpoint {
    /// Reads `http://HOST:PORT` with an optional path; the default is `/v1/traces`.
    /// The host is an IP address or `localhost`: a static program has no name service.
    ///
    /// # Errors
    /// Another scheme, a name, no port.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        let wrong = || EndpointError(text.to_owned());
        let rest = text.strip_prefix("http://").ok_or_else(wrong)?;
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, "/"),
        };
        let address = match authority.strip_prefix("localhost:") {
            Some(port) => SocketAddr::new(
                IpAddr::V4(Ipv4Addr::LOCALHOST),
                port.parse().map_err(|_| wrong())?,
            ),
            None => authority.parse().map_err(|_| wrong())?,
        };
        if path
            .bytes()
            .any(|byte| byte.is_ascii_whitespace() || byte.is_ascii_control())
        {
            return Err(wrong());
        }
        let path = if path == "/" { DEFAULT_PATH } else { path };
        Ok(Self {
            authority: authority.to_owned(),
            address,
            path: path.to_owned(),
        })
    }

    /// Sends one line as one request.
    fn post(&self, line: &[u8]) -> io::Result<()> {
        let mut stream = TcpStream::connect_timeout(&self.address, TIMEOUT)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.path,
            self.authority,
            line.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(line)?;
        let mut status = String::new();
        BufReader::new(io::Read::take(&stream, 256)).read_line(&mut status)?;
        match status.split(' ').nth(1) {
            Some(code) if code.starts_with('2') => Ok(()),
            _ => Err(io::Error::other(format!(
                "answered `{}`",
                status.trim_end()
            ))),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.path)
    }
}

/// The sending side.
#[derive(Debug)]
pub(super) struct Collector {
    queue: SyncSender<Message>,
    lost: Arc<AtomicU64>,
}

enum Message {
    Line(Vec<u8>),
    Close(SyncSender<()>),
}

impl Collector {
    /// Starts the thread; nothing is connected yet.
    pub(super) fn start(endpoint: Endpoint) -> io::Result<Self> {
        let (queue, lines) = sync_channel(QUEUE_LINES);
        let lost = Arc::new(AtomicU64::new(0));
        let theirs = Arc::clone(&lost);
        std::thread::Builder::new()
            .name("otlp".to_owned())
            .stack_size(256 * 1024)
            .spawn(move || deliver(&endpoint, &lines, &theirs))?;
        Ok(Self { queue, lost })
    }

    /// Queues a line, or counts it as lost.
    pub(super) fn send(&self, line: Vec<u8>) {
        if self.queue.try_send(Message::Line(line)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits for what is queued, bounded; returns how many lines were lost.
    pub(super) fn close(&self) -> u64 {
        let (done, finished) = mpsc::sync_channel(1);
        // A full queue at the end: what is in it was not delivered in time anyway.
        if self.queue.try_send(Message::Close(done)).is_ok() {
            let _ = finished.recv_timeout(CLOSE_TIMEOUT);
        }
        self.lost.load(Ordering::Relaxed)
    }
}

fn deliver(endpoint: &Endpoint, lines: &Receiver<Message>, lost: &AtomicU64) {
    let mut failures = 0_u32;
    while let Ok(message) = lines.recv() {
        match message {
            Message::Close(done) => {
                // Whoever closes may have given up.
                let _ = done.try_send(());
                return;
            }
            Message::Line(line) => {
                let due = failures < GIVE_UP_AFTER || failures.is_multiple_of(10);
                if due && endpoint.post(&line).is_ok() {
                    failures = 0;
                } else {
                    failures = failures.saturating_add(1);
                    lost.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_plain_http_address() {
        let parse = |text: &str| Endpoint::parse(text).map(|endpoint| endpoint.to_string());
        assert_eq!(
            parse("http://127.0.0.1:4318"),
            Ok("http://127.0.0.1:4318/v1/traces".to_owned())
        );
        assert_eq!(
            parse("http://localhost:4318/"),
            Ok("http://localhost:4318/v1/traces".to_owned())
        );
        assert_eq!(
            parse("http://[::1]:1/x/y"),
            Ok("http://[::1]:1/x/y".to_owned())
        );
        for bad in [
            "",
            "https://127.0.0.1:4318",
            "http://collector:4318",
            "http://127.0.0.1",
            "127.0.0.1:4318",
            "http://127.0.0.1:1/a b",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
