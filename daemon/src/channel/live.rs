//! A connected agent: requests out, answers and notifications in.
//!
//! One task reads its stdout, one its stderr, one watches the process. Answers
//! may come in any order and after any number of notifications; lines that are
//! no JSON-RPC are counted, kept for the error message, and otherwise ignored.

use super::error::ChannelError;
use super::outbox::Outbox;
use super::process::{AgentProcess, Exit, Pipes};
use crate::http::Token;
use coldpath_acp::framing::{LineBuffer, MAX_LINE_BYTES};
use coldpath_acp::message::{self, Incoming, METHOD_NOT_FOUND, RpcError};
use coldpath_trace_format::emit::{MonoNanos, SpanContext, inject};
use serde::Serialize;
use serde_json::value::RawValue;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

/// Bytes read at once: a pipe's default capacity.
const READ_BYTES: usize = 64 * 1024;
/// Longest line of an agent's stderr that is passed on.
const STDERR_LINE_MAX_BYTES: usize = 64 * 1024;
/// Characters of what an agent wrote that are quoted in an error.
const QUOTE_MAX_CHARS: usize = 200;
/// Longest wait for how an agent ended, and for its last words, after its output
/// has ended: both come a moment later.
const LAST_WORDS_GRACE: Duration = Duration::from_millis(200);
/// Unanswered requests in a row that make an agent a hung one. The first may have
/// met a slow one (some load models for 15 s), whose late answer starts the count anew.
const UNANSWERED_MAX: u32 = 2;

type Answered = Result<Box<RawValue>, RpcError>;

/// An agent process with its ACP connection.
#[derive(Debug)]
pub(crate) struct Channel {
    id: String,
    process: Rc<AgentProcess>,
    outbox: OnceCell<Outbox>,
    /// Never shown to anybody who reads what the agent wrote.
    token: Option<Token>,
    /// What the agent did to its end of the connection.
    fault: Cell<Option<&'static str>>,
    waiting: RefCell<HashMap<u64, oneshot::Sender<Answered>>>,
    next_id: Cell<u64>,
    closed: Cell<bool>,
    /// Requests in a row that ran out of time without an answer to anything.
    unanswered: Cell<u32>,
    noise: RefCell<Noise>,
    /// Becomes true when the agent's stderr has ended.
    heard_all: watch::Sender<bool>,
    initialize: RefCell<Option<SpanContext>>,
}

/// What a line of an agent was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Received {
    /// The answer that somebody waits for.
    Answer,
    /// Anything else.
    Other,
}

/// What an agent wrote that is no message.
#[derive(Debug, Default)]
struct Noise {
    lines: u64,
    first: Option<String>,
    stderr: Option<String>,
}

impl Channel {
    /// Connects to a started agent and begins to read it.
    pub(crate) fn connect(
        id: String,
        process: Rc<AgentProcess>,
        pipes: Pipes,
        token: Option<Token>,
    ) -> io::Result<Rc<Self>> {
        let stdin = pipe::Sender::from_owned_fd(OwnedFd::from(pipes.stdin))?;
        let stdout = pipe::Receiver::from_owned_fd(OwnedFd::from(pipes.stdout))?;
        let stderr = pipe::Receiver::from_owned_fd(OwnedFd::from(pipes.stderr))?;
        let channel = Rc::new(Self {
            id,
            process,
            outbox: OnceCell::new(),
            token,
            fault: Cell::new(None),
            waiting: RefCell::default(),
            next_id: Cell::new(0),
            closed: Cell::new(false),
            unanswered: Cell::new(0),
            noise: RefCell::default(),
            heard_all: watch::Sender::new(false),
            initialize: RefCell::default(),
        });
        let theirs = Rc::downgrade(&channel);
        let outbox = Outbox::new(stdin, async move {
            if let Some(channel) = theirs.upgrade() {
                channel.end_for("it closed its input");
            }
        });
        // Set once, just made.
        let _ = channel.outbox.set(outbox);
        tokio::task::spawn_local(Rc::clone(&channel).read_stdout(stdout));
        tokio::task::spawn_local(Rc::clone(&channel).read_stderr(stderr));
        Ok(channel)
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Context of the `channel.initialize` span that made it.
    pub(crate) fn initialize_context(&self) -> Option<SpanContext> {
        self.initialize.borrow().clone()
    }

    pub(crate) fn set_initialize_context(&self, context: Option<SpanContext>) {
        *self.initialize.borrow_mut() = context;
    }

    /// Whether it can take requests.
    pub(crate) fn is_live(&self) -> bool {
        !self.closed.get()
    }

    /// Whether it let so many requests run out of time that nothing is to be hoped of it.
    pub(crate) fn is_hung(&self) -> bool {
        self.unanswered.get() >= UNANSWERED_MAX
    }

    /// Sends a request and waits for its answer until `deadline`; `allowed` is the
    /// budget that the error names.
    pub(crate) async fn call(
        &self,
        method: &'static str,
        params: &impl Serialize,
        deadline: MonoNanos,
        allowed: Duration,
    ) -> Result<Box<RawValue>, ChannelError> {
        let id = self.next_id.replace(self.next_id.get() + 1);
        let (answer, answered) = oneshot::channel();
        self.waiting.borrow_mut().insert(id, answer);
        let exchange = async {
            let line = message::request(id, method, params);
            if self.closed.get() || self.send(line).await.is_err() {
                return Err(self.closed_error(method).await);
            }
            match answered.await {
                Ok(Ok(result)) => Ok(result),
                Ok(Err(error)) => Err(ChannelError::Refused {
                    method,
                    code: error.code,
                    message: self.quote(&error.message),
                }),
                Err(_) => Err(self.closed_error(method).await),
            }
        };
        let outcome = timeout(deadline.since(MonoNanos::now()), exchange).await;
        self.waiting.borrow_mut().remove(&id);
        outcome.unwrap_or_else(|_| {
            self.unanswered.set(self.unanswered.get().saturating_add(1));
            Err(ChannelError::Timeout {
                method,
                timeout: allowed,
                detail: self.noise.borrow().describe(),
            })
        })
    }

    async fn send(&self, line: Vec<u8>) -> io::Result<()> {
        match self.outbox.get() {
            Some(outbox) => outbox.send(line).await,
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// An agent that closed one end is of no use; one that stays is ended.
    fn end_for(self: &Rc<Self>, fault: &'static str) {
        if self.fault.get().is_none() {
            self.fault.set(Some(fault));
        }
        self.close();
        let channel = Rc::clone(self);
        tokio::task::spawn_local(async move { channel.stop().await });
    }

    /// Why the connection is gone: how the agent ended, where it is known soon.
    async fn closed_error(&self, method: &'static str) -> ChannelError {
        let exit = timeout(LAST_WORDS_GRACE, self.process.ended()).await;
        if exit.is_ok() {
            // What it wrote may still be in the pipe; an orphan may keep that open.
            let mut heard_all = self.heard_all.subscribe();
            let _ = timeout(LAST_WORDS_GRACE, heard_all.wait_for(|all| *all)).await;
        }
        let how = match exit {
            Ok(Exit::Unknown) | Err(_) => self.fault.get().unwrap_or("it was ended").to_owned(),
            Ok(exit) => match self.fault.get() {
                // Ended for that by this daemon: its exit says nothing of its own.
                Some(fault) if self.process.was_signalled() => fault.to_owned(),
                _ => exit.to_string(),
            },
        };
        let noise = self.noise.borrow().describe();
        let detail = if noise.is_empty() {
            how
        } else {
            format!("{how}; {noise}")
        };
        ChannelError::Closed { method, detail }
    }

    /// Closes the connection and ends the process. Bounded.
    pub(crate) async fn stop(&self) {
        self.close();
        if let Some(outbox) = self.outbox.get() {
            outbox.close();
        }
        self.process.stop().await;
    }

    /// Kills the process at once.
    pub(crate) fn kill(&self) {
        self.close();
        self.process.kill();
    }

    /// Takes no more requests and fails those that wait.
    fn close(&self) {
        self.closed.set(true);
        self.waiting.borrow_mut().clear();
    }

    async fn read_stdout(self: Rc<Self>, mut stdout: pipe::Receiver) {
        let mut lines = LineBuffer::new(MAX_LINE_BYTES);
        let mut buffer = vec![0; READ_BYTES];
        while let Ok(length @ 1..) = stdout.read(&mut buffer).await {
            lines.push(&buffer[..length]);
            while let Some(line) = lines.next_line() {
                match line {
                    // Whoever asked goes first: agents send half a megabyte right behind
                    // the answer to `session/new`, and reading it takes a millisecond.
                    Ok(line) if self.receive(&line) == Received::Answer => {
                        tokio::task::yield_now().await;
                    }
                    Ok(_) => {}
                    Err(error) => self.noise.borrow_mut().line(error.to_string()),
                }
            }
        }
        if let Some(line) = lines.finish() {
            self.receive(&line);
        }
        self.end_for("it closed its output");
    }

    fn receive(&self, line: &[u8]) -> Received {
        match message::parse(line) {
            Ok(Incoming::Response { id, outcome }) => {
                self.unanswered.set(0);
                let waiting = id
                    .get()
                    .parse()
                    .ok()
                    .and_then(|id: u64| self.waiting.borrow_mut().remove(&id));
                match (waiting, outcome) {
                    (Some(waiting), outcome) => {
                        // Whoever asked may have given up.
                        drop(waiting.send(outcome.map(RawValue::to_owned)));
                        return Received::Answer;
                    }
                    // An answer to nothing that was asked: the agent did not understand.
                    (None, Err(error)) if id.get() == "null" => {
                        self.noise.borrow_mut().line(self.quote(&error.to_string()));
                    }
                    (None, _) => {}
                }
            }
            Ok(Incoming::Request { id, method, .. }) => {
                let error = RpcError::new(
                    METHOD_NOT_FOUND,
                    format!("`{method}` is not offered by this client"),
                );
                // An agent that asks and does not read gets no answer: reading it must
                // go on.
                if let Some(outbox) = self.outbox.get() {
                    outbox.try_send(message::error_response(Some(id), &error));
                }
            }
            // Session updates get their listeners with the events route.
            Ok(Incoming::Notification { .. }) => {}
            Err(_) => {
                let text = self.quote(&String::from_utf8_lossy(line));
                self.noise.borrow_mut().line(text);
            }
        }
        Received::Other
    }

    async fn read_stderr(self: Rc<Self>, mut stderr: pipe::Receiver) {
        let mut lines = LineBuffer::new(STDERR_LINE_MAX_BYTES);
        let mut buffer = vec![0; 8 * 1024];
        while let Ok(length @ 1..) = stderr.read(&mut buffer).await {
            lines.push(&buffer[..length]);
            while let Some(line) = lines.next_line() {
                self.pass_on(&line.unwrap_or_else(|error| format!("[{error}]").into_bytes()));
            }
        }
        if let Some(line) = lines.finish() {
            self.pass_on(&line);
        }
        self.heard_all.send_replace(true);
    }

    fn pass_on(&self, line: &[u8]) {
        let text = self.redact(&String::from_utf8_lossy(line));
        // A line of a fault point is for whoever waits for it.
        let of_fault_point = text.starts_with("fault ") || text.starts_with(inject::SIGN);
        if cfg!(feature = "fault-points") && of_fault_point {
            use std::io::Write as _;
            let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
            return;
        }
        crate::log::info(&format!(
            "[agent {}] {}",
            self.process.pid().as_raw_nonzero(),
            escape(&text)
        ));
        self.noise.borrow_mut().stderr = Some(quote(&text));
    }

    /// Text of the agent without this daemon's token, should it have got hold of it.
    fn redact(&self, text: &str) -> String {
        match &self.token {
            Some(token) => text.replace(token.reveal(), "[token]"),
            None => text.to_owned(),
        }
    }

    fn quote(&self, text: &str) -> String {
        quote(&self.redact(text))
    }
}

impl Noise {
    /// Notes a line, quoted already.
    fn line(&mut self, text: String) {
        self.lines += 1;
        self.first.get_or_insert(text);
    }

    /// What the agent wrote instead of an answer; empty when it wrote nothing.
    fn describe(&self) -> String {
        let mut parts = Vec::new();
        if let Some(first) = &self.first {
            parts.push(format!(
                "it wrote {} lines that are not JSON-RPC, the first: {first}",
                self.lines
            ));
        }
        if let Some(stderr) = &self.stderr {
            parts.push(format!("its last words on stderr: {stderr}"));
        }
        parts.join("; ")
    }
}

/// A shortened text without control characters.
fn quote(text: &str) -> String {
    let mut quoted: String = escape(text).chars().take(QUOTE_MAX_CHARS).collect();
    if quoted.len() < text.len() && text.chars().count() > QUOTE_MAX_CHARS {
        quoted.push('…');
    }
    quoted
}

/// Control characters would let an agent write to the daemon's terminal.
fn escape(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() && c != '\t' {
                char::REPLACEMENT_CHARACTER
            } else {
                c
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_is_short_and_holds_no_escape_sequence() {
        assert_eq!(quote("\u{1b}[2Jhello"), "\u{fffd}[2Jhello");
        assert_eq!(quote(&"a".repeat(201)).chars().count(), QUOTE_MAX_CHARS + 1);
        assert_eq!(quote("short"), "short");
    }

    #[test]
    fn noise_names_its_first_line_and_the_last_of_stderr() {
        let mut noise = Noise::default();
        assert_eq!(noise.describe(), "");
        noise.line("Welcome!".to_owned());
        noise.line("more".to_owned());
        noise.stderr = Some("boom".to_owned());
        assert_eq!(
            noise.describe(),
            "it wrote 2 lines that are not JSON-RPC, the first: Welcome!; its last words on stderr: boom"
        );
    }
}
