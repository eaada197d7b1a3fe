//! The stdio shim: stands between a client and any ACP agent, passes every line on,
//! and holds some of them up as `COLDPATH_INJECT` says.
//!
//! For agents that have no injection points of their own. An arm without a delay
//! runs through it as well, so that both pay what it costs. It understands only
//! which line answers which request, and never changes one.

use coldpath_trace_format::emit::inject::{SIGN, asked_at, wait_exactly};
use coldpath_trace_format::emit::{MonoNanos, SpawnEnv, SpawnStamp};
use coldpath_trace_format::env;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Name of the subcommand.
pub const SUBCOMMAND: &str = "shim";
/// Longest line that is passed on; beyond, the connection is no ACP.
const LINE_MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Before the agent is started.
const SPAWN: &str = "agent.spawn";
/// Before the answer to `initialize` is passed on.
const STARTUP: &str = "agent.startup";
/// Before an answer to `session/new` is passed on.
const SESSION_START: &str = "agent.session_start";
/// After an answer to `session/new` was passed on: nothing else passes meanwhile.
const AFTER_SESSION: &str = "agent.after_session";

/// What a request asks, where its answer may be held up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Initialize,
    NewSession,
}

/// Requests without an answer yet, by the text of their id.
type Open = Arc<Mutex<BTreeMap<String, Asked>>>;

/// The delays that are asked for.
#[derive(Clone, Debug)]
struct Delays {
    text: String,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<std::borrow::Cow<'a, str>>,
}

/// Runs the agent and passes its lines on until it ends; gives its exit code, or
/// 128 + the signal that ended it.
///
/// # Errors
/// The agent cannot be started, or its lines cannot be passed on.
pub fn run(words: &[OsString]) -> io::Result<u8> {
    let delays = Delays {
        text: std::env::var(env::INJECT).unwrap_or_default(),
    };
    delays.hold_up(SPAWN);
    let (program, arguments) = words
        .split_first()
        .ok_or_else(|| io::Error::other("no agent is named"))?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Its delays are ours to make.
        .env_remove(env::INJECT);
    if let Some(stamp) = own_stamp() {
        command.env(env::SPAWN, stamp.to_string());
    }
    let mut agent = command.spawn()?;
    let open = Open::default();
    if let Some(input) = agent.stdin.take() {
        let open = Arc::clone(&open);
        // Ends with our own input, or with us.
        std::thread::Builder::new().spawn(move || pass_requests(io::stdin(), input, &open))?;
    }
    if let Some(output) = agent.stdout.take() {
        pass_answers(output, &mut io::stdout(), &open, &delays)?;
    }
    let status = agent.wait()?;
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    Ok(code
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(crate::exit::INTERNAL))
}

/// The stamp that was handed to us, with us as the spawner: the agent's start-up
/// counts from where ours did.
fn own_stamp() -> Option<SpawnStamp> {
    match SpawnStamp::from_env(MonoNanos::now()) {
        SpawnEnv::Accepted(stamp) => Some(SpawnStamp {
            spawner: std::process::id(),
            ..stamp
        }),
        _ => None,
    }
}

/// Passes the client's lines on until its end or the agent's.
fn pass_requests(from: impl Read, mut to: impl Write, open: &Open) -> io::Result<()> {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while next_line(&mut from, &mut line)? {
        if let Some((id, asked)) = asked_by(&line) {
            let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
            open.insert(id, asked);
        }
        to.write_all(&line)?;
        to.flush()?;
    }
    Ok(())
}

/// Passes the agent's lines on until its end, and holds up what is to be.
fn pass_answers(
    from: impl Read,
    to: &mut impl Write,
    open: &Open,
    delays: &Delays,
) -> io::Result<()> {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while next_line(&mut from, &mut line)? {
        let answered = answers(&line).and_then(|id| {
            let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
            open.remove(&id)
        });
        match answered {
            Some(Asked::Initialize) => delays.hold_up(STARTUP),
            Some(Asked::NewSession) => delays.hold_up(SESSION_START),
            None => {}
        }
        to.write_all(&line)?;
        to.flush()?;
        if answered == Some(Asked::NewSession) {
            delays.hold_up(AFTER_SESSION);
        }
    }
    Ok(())
}

/// Reads a line with its end; `false` at the end of the stream.
fn next_line(from: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let read = from.take(LINE_MAX_BYTES).read_until(b'\n', line)?;
    if read as u64 == LINE_MAX_BYTES {
        return Err(io::Error::other("a line is too long"));
    }
    Ok(read > 0)
}

fn asked_by(line: &[u8]) -> Option<(String, Asked)> {
    let head: Head<'_> = serde_json::from_slice(line).ok()?;
    let asked = match head.method.as_deref()? {
        "initialize" => Asked::Initialize,
        "session/new" => Asked::NewSession,
        _ => return None,
    };
    Some((head.id?.get().to_owned(), asked))
}

/// The id of the request that a line answers.
fn answers(line: &[u8]) -> Option<String> {
    let head: Head<'_> = serde_json::from_slice(line).ok()?;
    head.method.is_none().then_some(head.id?.get().to_owned())
}

impl Delays {
    fn at(&self, stage: &str) -> Option<Duration> {
        asked_at(&self.text, stage)
    }

    /// Holds the calling thread up, and says so.
    fn hold_up(&self, stage: &str) {
        if let Some(delay) = self.at(stage) {
            wait_exactly(delay);
            let _ = io::stderr().write_all(format!("{SIGN}{stage}\n").as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_known_by_the_id_of_its_request() {
        assert_eq!(
            asked_by(br#"{"id":1,"method":"session/new","params":{}}"#),
            Some(("1".to_owned(), Asked::NewSession))
        );
        assert_eq!(asked_by(br#"{"id":1,"method":"session/prompt"}"#), None);
        assert_eq!(asked_by(br#"{"method":"initialize"}"#), None);
        assert_eq!(
            answers(br#"{"id":"a","result":{}}"#),
            Some("\"a\"".to_owned())
        );
        assert_eq!(answers(br#"{"id":1,"method":"fs/read_text_file"}"#), None);
        assert_eq!(answers(b"noise"), None);
    }

    #[test]
    fn every_line_passes_as_it_was() {
        let text = b"{\"id\":1,\"method\":\"initialize\"}\nnoise\n{\"id\":1}\nlast without an end";
        let open = Open::default();
        let mut passed = Vec::new();
        pass_requests(&text[..], &mut passed, &open).unwrap();
        assert_eq!(passed, text);
        assert_eq!(open.lock().unwrap().len(), 1);
        let mut passed = Vec::new();
        let delays = Delays {
            text: String::new(),
        };
        pass_answers(&text[..], &mut passed, &open, &delays).unwrap();
        assert_eq!(passed, text);
        assert!(open.lock().unwrap().is_empty(), "the answer was known");
    }
}
