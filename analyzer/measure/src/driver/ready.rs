//! Finds the ready line in the bytes of a program's stdout.
//!
//! Fed in pieces as they arrive; looks only at complete lines. Never waits and
//! never reads a clock: the caller dates the piece that completed the line.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Longest line that is looked at: a ready line has some hundred bytes, and a
/// program that never ends a line must not fill the memory.
pub const LINE_MAX_BYTES: usize = 16 * 1024;

/// Memory that is set aside for a line before the timed window.
const USUAL_LINE_BYTES: usize = 1024;

/// Where a program listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// `HOST:PORT` as the program printed it, for the `Host` header.
    pub authority: String,
    /// The address to connect to.
    pub address: SocketAddr,
}

/// The ready line names no address that can be connected to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the ready line names no `HOST:PORT` that can be connected to: `{0}`")]
pub struct BadListener(pub String);

/// A search for the ready line.
#[derive(Debug)]
pub struct ReadyScanner {
    marker: String,
    line: Vec<u8>,
    cut: bool,
}

impl ReadyScanner {
    /// Starts a search for a line that holds `marker`.
    #[must_use]
    pub fn new(marker: &str) -> Self {
        Self {
            marker: marker.to_owned(),
            line: Vec::with_capacity(USUAL_LINE_BYTES),
            cut: false,
        }
    }

    /// Takes the next bytes; the listener once its line is complete. A line that
    /// is longer than [`LINE_MAX_BYTES`] is passed over.
    ///
    /// # Errors
    /// The marker is there and no usable address behind it.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Option<Listener>, BadListener> {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let room = LINE_MAX_BYTES - self.line.len();
            self.cut |= piece.len() > room;
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                let found = (!self.cut)
                    .then(|| listener_in(&self.line, &self.marker))
                    .flatten();
                self.line.clear();
                self.cut = false;
                if let Some(found) = found {
                    return found.map(Some);
                }
            }
        }
        Ok(None)
    }
}

fn listener_in(line: &[u8], marker: &str) -> Option<Result<Listener, BadListener>> {
    let at = line
        .windows(marker.len())
        .position(|part| part == marker.as_bytes())?;
    let rest = &line[at + marker.len()..];
    let end = rest
        .iter()
        .position(|byte| !matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b':' | b'[' | b']' | b'-' | b'_' | b'%'))
        .unwrap_or(rest.len());
    // Only ASCII passes the filter above.
    let authority = std::str::from_utf8(&rest[..end]).unwrap_or_default();
    Some(match parse_address(authority) {
        Some(address) => Ok(Listener {
            authority: authority.to_owned(),
            address,
        }),
        None => Err(BadListener(
            String::from_utf8_lossy(line).trim_end().to_owned(),
        )),
    })
}

/// Numeric addresses and `localhost`: a name would have to be looked up inside
/// the timed window. An unspecified address is reached through loopback.
fn parse_address(authority: &str) -> Option<SocketAddr> {
    let authority = authority.trim_end_matches('.');
    let mut address: SocketAddr = match authority.strip_prefix("localhost:") {
        Some(port) => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port.parse().ok()?),
        None => authority.parse().ok()?,
    };
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    (address.port() != 0).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKER: &str = "listening on http://";

    #[track_caller]
    fn check(pieces: &[&str], expected: Option<(&str, &str)>) {
        let mut scanner = ReadyScanner::new(MARKER);
        let mut found = None;
        for piece in pieces {
            assert_eq!(found, None, "found before {piece:?}");
            found = scanner.push(piece.as_bytes()).unwrap();
        }
        let expected = expected.map(|(authority, address)| Listener {
            authority: authority.to_owned(),
            address: address.parse().unwrap(),
        });
        assert_eq!(found, expected, "{pieces:?}");
    }

    #[test]
    fn the_ready_lines_of_known_daemons_are_found() {
        check(
            &["coldpathd listening on http://127.0.0.1:4170 (workspace=/w)\n"],
            Some(("127.0.0.1:4170", "127.0.0.1:4170")),
        );
        check(
            &[
                "qwen serve listening on http://127.0.0.1:41809 (mode=http-bridge, workspace=/srv)\n",
            ],
            Some(("127.0.0.1:41809", "127.0.0.1:41809")),
        );
        check(
            &["listening on http://[::1]:80/\r\n"],
            Some(("[::1]:80", "[::1]:80")),
        );
        check(
            &["x listening on http://localhost:99\n"],
            Some(("localhost:99", "127.0.0.1:99")),
        );
        check(
            &["listening on http://0.0.0.0:7, bye\n"],
            Some(("0.0.0.0:7", "127.0.0.1:7")),
        );
    }

    #[test]
    fn a_line_counts_only_when_it_is_complete() {
        check(&["listening on http://127.0.0.1:41"], None);
        check(
            &["boot\nlistening o", "n http://127.0.0.1:41", "70\nmore"],
            Some(("127.0.0.1:4170", "127.0.0.1:4170")),
        );
        check(&["\n\n", "not yet\n", ""], None);
    }

    #[test]
    fn an_endless_line_is_passed_over_and_bounded() {
        let long = "x".repeat(LINE_MAX_BYTES);
        check(&[&long, " listening on http://127.0.0.1:1\n"], None);
        check(
            &[&long, &long, "\nlistening on http://127.0.0.1:2\n"],
            Some(("127.0.0.1:2", "127.0.0.1:2")),
        );
    }

    #[test]
    fn a_ready_line_without_a_usable_address_is_an_error() {
        for line in [
            "listening on http://\n",
            "listening on http://example.org:80\n",
            "listening on http://127.0.0.1\n",
            "listening on http://127.0.0.1:0\n",
            "listening on http://127.0.0.1:70000\n",
            "listening on http://\u{fffd}:1\n",
        ] {
            let error = ReadyScanner::new(MARKER).push(line.as_bytes()).unwrap_err();
            assert_eq!(error, BadListener(line.trim_end().to_owned()));
        }
    }
}
