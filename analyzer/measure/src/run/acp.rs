//! Calls to an agent that is driven raw: a line to its input, and lines from its
//! output until the answer is among them.
//!
//! An agent may say anything before the answer: notifications are passed over, and
//! its own requests are refused, so that it need not wait for us. The clock is read
//! just before the line is written and just after the read that completed the
//! answer's line.

use super::child::{Awaited, Running};
use super::failure::{Failure, FailureCode, stopped_waiting};
use super::plan::CallPayload;
use crate::driver::Stream;
use coldpath_trace_format::emit::MonoNanos;
use rustix::io::Errno;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::time::Duration;

/// Longest line that is taken; a real agent sends one of 560 KB after each session.
const LINE_MAX_BYTES: usize = 16 * 1024 * 1024;
/// Bytes taken at once: what a pipe holds.
const READ_BYTES: usize = 64 * 1024;
/// JSON-RPC's code for a method that does not exist.
const METHOD_NOT_FOUND: i32 = -32_601;

/// The lines of one agent.
#[derive(Debug)]
pub(super) struct Lines {
    bytes: Vec<u8>,
    /// How much of `bytes` was already searched for a line's end.
    searched: usize,
    buffer: Vec<u8>,
}

/// A finished call.
#[derive(Debug)]
pub(super) struct Called {
    /// Just before the line was written.
    pub(super) start: MonoNanos,
    /// Just after the answer's line was complete, or when it failed.
    pub(super) end: MonoNanos,
    /// The result's JSON text, or why there is none.
    pub(super) result: Result<Vec<u8>, Failure>,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<serde::de::IgnoredAny>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// What a line means to whoever awaits an answer.
enum Meaning {
    Answer(Result<Vec<u8>, Failure>),
    /// A request of the agent's, with its id.
    Asks(String),
    Nothing,
}

impl Default for Lines {
    fn default() -> Self {
        Self {
            bytes: Vec::with_capacity(READ_BYTES),
            searched: 0,
            buffer: vec![0; READ_BYTES],
        }
    }
}

impl Lines {
    /// Makes a call and awaits its answer.
    pub(super) fn call(
        &mut self,
        call: &CallPayload,
        running: &mut Running<'_>,
        timeout: Duration,
    ) -> Called {
        let start = MonoNanos::now();
        let deadline = start.after(timeout);
        let result = write(running, &call.line, deadline, timeout)
            .and_then(|()| self.answer(call.id, running, deadline, timeout));
        match result {
            Ok((end, result)) => Called { start, end, result },
            Err(failure) => Called {
                start,
                end: MonoNanos::now(),
                result: Err(failure),
            },
        }
    }

    fn answer(
        &mut self,
        id: u64,
        running: &mut Running<'_>,
        deadline: MonoNanos,
        timeout: Duration,
    ) -> Result<(MonoNanos, Result<Vec<u8>, Failure>), Failure> {
        let mut now = MonoNanos::now();
        loop {
            while let Some(line) = self.next_line() {
                match meaning(&line, id) {
                    Meaning::Answer(result) => return Ok((now, result)),
                    Meaning::Asks(asked) => {
                        write(running, refusal(&asked).as_bytes(), deadline, timeout)?;
                    }
                    Meaning::Nothing => {}
                }
            }
            if self.bytes.len() > LINE_MAX_BYTES {
                let message = format!("a line of more than {LINE_MAX_BYTES} bytes");
                return Err(Failure::new(FailureCode::BadResponse, message));
            }
            let wake = running.wait(Awaited::Output(Stream::Stdout), deadline);
            if wake != super::child::Wake::Ready {
                let code = FailureCode::RequestTimeout;
                return Err(stopped_waiting(wake, "for the answer", timeout, code));
            }
            let read = running.read_output(Stream::Stdout, &mut self.buffer);
            now = MonoNanos::now();
            self.bytes
                .extend_from_slice(&self.buffer[..read.unwrap_or(0)]);
        }
    }

    fn next_line(&mut self) -> Option<Vec<u8>> {
        let found = self.bytes[self.searched..]
            .iter()
            .position(|&byte| byte == b'\n');
        let Some(end) = found.map(|at| self.searched + at) else {
            self.searched = self.bytes.len();
            return None;
        };
        let rest = self.bytes.split_off(end + 1);
        let line = std::mem::replace(&mut self.bytes, rest);
        self.searched = 0;
        Some(line)
    }
}

/// A line that is no JSON is noise of a program that prints where it should not.
fn meaning(line: &[u8], awaited: u64) -> Meaning {
    let Ok(line) = serde_json::from_slice::<Line<'_>>(line) else {
        return Meaning::Nothing;
    };
    match (line.id, line.method) {
        (Some(id), None) if id.get() == awaited.to_string() => {
            Meaning::Answer(match (line.result, line.error) {
                (_, Some(error)) if error.get() != "null" => Err(Failure::new(
                    FailureCode::RpcError,
                    format!("the agent answered with an error: {}", error.get()),
                )),
                (Some(result), _) => Ok(result.get().as_bytes().to_vec()),
                _ => Err(Failure::new(
                    FailureCode::BadResponse,
                    "an answer with neither result nor error",
                )),
            })
        }
        (Some(id), Some(_)) if id.get() != "null" => Meaning::Asks(id.get().to_owned()),
        _ => Meaning::Nothing,
    }
}

fn refusal(id: &str) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":{METHOD_NOT_FOUND},\"message\":\"not offered\"}}}}\n"
    )
}

fn write(
    running: &mut Running<'_>,
    mut bytes: &[u8],
    deadline: MonoNanos,
    timeout: Duration,
) -> Result<(), Failure> {
    while !bytes.is_empty() {
        let written = match running.input() {
            Some(input) => rustix::io::write(input, bytes),
            None => Err(Errno::PIPE),
        };
        match written {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let wake = running.wait(Awaited::Input, deadline);
                if wake != super::child::Wake::Ready {
                    let code = FailureCode::RequestTimeout;
                    return Err(stopped_waiting(wake, "to send", timeout, code));
                }
            }
            Err(error) => {
                let message = format!("cannot write to the agent: {error}");
                return Err(Failure::new(FailureCode::BadResponse, message));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &str) {
        let said = match meaning(line.as_bytes(), 1) {
            Meaning::Answer(Ok(result)) => String::from_utf8(result).unwrap(),
            Meaning::Answer(Err(failure)) => failure.to_string(),
            Meaning::Asks(id) => format!("asks {id}"),
            Meaning::Nothing => "nothing".to_owned(),
        };
        assert_eq!(said, expected, "{line}");
    }

    #[test]
    fn only_the_answer_to_the_call_is_one() {
        check(
            r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}"#,
            r#"{"sessionId":"s"}"#,
        );
        check(r#"{"id":2,"result":{}}"#, "nothing");
        check(r#"{"id":"1","result":{}}"#, "nothing");
        check(r#"{"method":"session/update","params":{}}"#, "nothing");
        check(
            r#"{"id":1,"method":"fs/read_text_file","params":{}}"#,
            "asks 1",
        );
        check(r#"{"id":"a","method":"x"}"#, r#"asks "a""#);
        check("warning: noise", "nothing");
        check(
            r#"{"id":1}"#,
            "bad_response: an answer with neither result nor error",
        );
        check(
            r#"{"id":1,"error":{"code":-32000,"message":"Authentication required"}}"#,
            r#"rpc_error: the agent answered with an error: {"code":-32000,"message":"Authentication required"}"#,
        );
    }

    #[test]
    fn lines_are_cut_wherever_the_pieces_end() {
        let mut lines = Lines::default();
        lines.bytes.extend_from_slice(b"a\nb");
        assert_eq!(lines.next_line().as_deref(), Some(&b"a\n"[..]));
        assert_eq!(lines.next_line(), None);
        lines.bytes.extend_from_slice(b"c\n\nd");
        assert_eq!(lines.next_line().as_deref(), Some(&b"bc\n"[..]));
        assert_eq!(lines.next_line().as_deref(), Some(&b"\n"[..]));
        assert_eq!(lines.next_line(), None);
    }

    #[test]
    fn a_refusal_is_one_json_line_under_the_id_that_was_asked() {
        let line = refusal("\"a\"");
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["id"], "a");
        assert_eq!(value["error"]["code"], -32_601);
        assert!(line.ends_with('\n') && line.matches('\n').count() == 1);
    }
}
