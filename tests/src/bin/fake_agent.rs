//! An ACP agent that misbehaves as it is told: every quirk of real agents, one
//! word each, so that a test's command line says what it is about.
//!
//! It never waits for time to pass: it stops at gates until a test lets it go on.
//! Words, `METHOD` being that of a request it receives:
//!
//! | word | effect |
//! | --- | --- |
//! | `log=FILE` | appends one JSON line a message: pid, method, params |
//! | `env=FILE` | writes its environment there, NUL-separated, when it starts |
//! | `gate:METHOD=SOCKET` | stops at the gate before it answers |
//! | `banner` | writes three lines that are no JSON first |
//! | `garbage` | answers every request with a line that is no JSON |
//! | `silent` | reads and never answers |
//! | `silent:METHOD` | never answers that one |
//! | `die:METHOD=CODE` | exits before it answers; `die:start` at once |
//! | `stderr=TEXT` | writes the text to stderr when it starts |
//! | `mute:METHOD` | closes its stdout instead of answering, and stays |
//! | `ignore-eof`, `ignore-term` | does not end by that |
//! | `wrap` | is a wrapper: a child with the other words does the work |
//! | `orphan` | leaves a process in a session of its own that ignores SIGTERM |
//! | `orphan-family` | the same, and that process has a child like itself |
//! | `notify-first` | sends a notification before every answer |
//! | `update=BYTES` | sends an update of so many bytes before a session's answer |
//! | `result-first` | answers with the id behind the result |
//! | `ask-client` | asks the client for a file and a permission before it answers |
//! | `auth-required` | refuses sessions with ACP's error for missing credentials |
//! | `answer:METHOD=JSON` | answers with that result |
//! | `once=FILE` | misbehaves only while the file is not there, and makes it |
//! | `meta=JSON` | puts those keys of `_meta` that are asked for into `initialize` |

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a panic is how a test's agent reports what the daemon did wrong"
)]

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _, Read as _, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Exit code that says that the client broke the protocol.
const CLIENT_IS_WRONG: u8 = 99;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("wrap") => wrap(&words[1..]),
        Some("orphan-middle") => orphan_middle(&words[1..]),
        Some("orphan-end") => orphan_end(&words[1..]),
        _ => Agent::new(&words).run(),
    }
}

/// Runs the work in a child that shares stdin and stdout.
fn wrap(words: &[String]) -> ExitCode {
    let status = itself().args(words).status().unwrap();
    ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1))
}

/// Starts the orphan, waits until it is what it shall be, and leaves it.
fn orphan_middle(words: &[String]) -> ExitCode {
    start_orphan(words);
    ExitCode::SUCCESS
}

#[expect(
    clippy::zombie_processes,
    reason = "it outlives this process; that is the point of it"
)]
fn start_orphan(words: &[String]) {
    let mut orphan = itself()
        .arg("orphan-end")
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = [0];
    orphan
        .stdout
        .take()
        .unwrap()
        .read_exact(&mut ready)
        .unwrap();
}

/// A process in a session of its own that only SIGKILL ends.
fn orphan_end(words: &[String]) -> ExitCode {
    rustix::process::setsid().unwrap();
    ignore_stop_signals();
    if words.first().is_some_and(|word| word == "family") {
        start_orphan(&[]);
    }
    say("!");
    stay()
}

fn itself() -> Command {
    Command::new(std::env::current_exe().unwrap())
}

/// With a handler they no longer end the process; the flag is nobody's business.
fn ignore_stop_signals() {
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false))).unwrap();
    }
}

fn stay() -> ! {
    loop {
        std::thread::park();
    }
}

struct Agent {
    words: BTreeMap<String, String>,
    log: Option<File>,
    sessions: u32,
}

impl Agent {
    fn new(words: &[String]) -> Self {
        let mut words: BTreeMap<String, String> = words
            .iter()
            .map(|word| word.split_once('=').unwrap_or((word, "")))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        if let Some(path) = words.get("once")
            && File::options()
                .write(true)
                .create_new(true)
                .open(path)
                .is_err()
        {
            words.retain(|word, _| word == "log" || word.starts_with("gate:"));
        }
        let log = words.get("log").map(|path| {
            File::options()
                .append(true)
                .create(true)
                .open(path)
                .unwrap()
        });
        Self {
            words,
            log,
            sessions: 0,
        }
    }

    fn has(&self, word: &str) -> bool {
        self.words.contains_key(word)
    }

    fn run(mut self) -> ExitCode {
        self.begin();
        if let Some(code) = self.words.get("die:start") {
            return ExitCode::from(code.parse::<u8>().unwrap());
        }
        while let Some(message) = read_message() {
            if let Some(code) = self.receive(&message) {
                return code;
            }
        }
        if self.has("ignore-eof") {
            stay();
        }
        ExitCode::SUCCESS
    }

    fn begin(&self) {
        if self.has("ignore-term") {
            ignore_stop_signals();
        }
        for (word, kind) in [("orphan", "alone"), ("orphan-family", "family")] {
            if self.has(word) {
                let status = itself().args(["orphan-middle", kind]).status().unwrap();
                assert!(status.success(), "{status}");
            }
        }
        if let Some(path) = self.words.get("env") {
            std::fs::write(path, std::fs::read("/proc/self/environ").unwrap()).unwrap();
        }
        if let Some(text) = self.words.get("stderr") {
            io::stderr()
                .write_all(format!("{text}\n").as_bytes())
                .unwrap();
        }
        if self.has("banner") {
            say("Welcome!\n\n{not json\n[1,2]\n");
        }
    }

    /// Handles one message; a code ends the process.
    fn receive(&mut self, message: &Value) -> Option<ExitCode> {
        let method = message["method"].as_str().unwrap_or_default();
        if let Some(log) = &mut self.log {
            let entry =
                json!({"pid": std::process::id(), "method": method, "params": message["params"]});
            log.write_all(format!("{entry}\n").as_bytes()).unwrap();
        }
        if let Some(path) = self.words.get(&format!("gate:{method}")) {
            pass_gate(path);
        }
        if let Some(code) = self.words.get(&format!("die:{method}")) {
            return Some(ExitCode::from(code.parse::<u8>().unwrap()));
        }
        if self.has(&format!("mute:{method}")) {
            let nowhere = File::options().write(true).open("/dev/null").unwrap();
            rustix::stdio::dup2_stdout(&nowhere).unwrap();
            return None;
        }
        if message["id"].is_null() || self.has("silent") || self.has(&format!("silent:{method}")) {
            return None;
        }
        if self.has("garbage") {
            say("this is no JSON\n");
            return None;
        }
        if self.has("ask-client")
            && let Err(complaint) = ask_client()
        {
            io::stderr().write_all(complaint.as_bytes()).unwrap();
            return Some(ExitCode::from(CLIENT_IS_WRONG));
        }
        if self.has("notify-first") {
            notify(
                "qwen/notify/channel/active-work",
                &json!({"v": 1, "seq": 1, "sessions": []}),
            );
        }
        self.answer(&message["id"], method, &message["params"]);
        None
    }

    fn answer(&mut self, id: &Value, method: &str, params: &Value) {
        let outcome = match (self.words.get(&format!("answer:{method}")), method) {
            (Some(text), _) => Ok(serde_json::from_str(text).unwrap()),
            (None, "initialize") => Ok(self.initialize(params)),
            (None, "session/new") => self.new_session(),
            _ => Err((-32_601, "Method not found")),
        };
        let (key, value) = match outcome {
            Ok(result) => ("result", result),
            Err((code, message)) => ("error", json!({"code": code, "message": message})),
        };
        say(&if self.has("result-first") {
            format!("{{\"{key}\":{value},\"id\":{id},\"jsonrpc\":\"2.0\"}}\n")
        } else {
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"{key}\":{value}}}\n")
        });
    }

    fn initialize(&self, params: &Value) -> Value {
        let mut result = json!({
            "protocolVersion": 1,
            "agentInfo": {"name": "fake-agent", "version": "0"},
            "agentCapabilities": {"loadSession": false},
            "authMethods": [],
        });
        if let Some(text) = self.words.get("meta") {
            let mut meta: Map<String, Value> = serde_json::from_str(text).unwrap();
            meta.retain(|key, _| params["_meta"][key]["v"] == 1);
            if !meta.is_empty() {
                result["_meta"] = meta.into();
            }
        }
        result
    }

    fn new_session(&mut self) -> Result<Value, (i64, &'static str)> {
        if self.has("auth-required") {
            return Err((-32_000, "Authentication required: log in first"));
        }
        self.sessions += 1;
        let id = format!("session-{}-{}", std::process::id(), self.sessions);
        if let Some(bytes) = self.words.get("update") {
            let text = "x".repeat(bytes.parse().unwrap());
            let update = json!({"sessionUpdate": "available_commands_update", "text": text});
            notify(
                "session/update",
                &json!({"sessionId": id, "update": update}),
            );
        }
        Ok(json!({"sessionId": id, "modes": {"currentModeId": "default", "availableModes": []}}))
    }
}

/// Asks for what a client may refuse, under ids that are no numbers, and checks
/// that each refusal comes back under its own id.
fn ask_client() -> Result<(), String> {
    let asked = [
        (
            "fs/read_text_file",
            json!("3f2b-\"quoted\"\u{e9}"),
            json!({"sessionId": "s", "path": "/etc/hostname"}),
        ),
        (
            "session/request_permission",
            json!("0"),
            json!({"sessionId": "s", "options": []}),
        ),
        (
            "terminal/create",
            json!(-7),
            json!({"sessionId": "s", "command": "id"}),
        ),
    ];
    for (method, id, params) in asked {
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        say(&format!("{line}\n"));
        let reply = read_message().ok_or("the client closed stdin instead of answering\n")?;
        if reply["id"] != id || reply["error"]["code"] != -32_601 || !reply["result"].is_null() {
            return Err(format!("the client answered {method} with {reply}\n"));
        }
    }
    Ok(())
}

fn notify(method: &str, params: &Value) {
    say(&format!(
        "{}\n",
        json!({"jsonrpc": "2.0", "method": method, "params": params})
    ));
}

/// Stops until the test lets it go on, or is gone.
fn pass_gate(path: &str) {
    let mut gate = UnixStream::connect(path).unwrap();
    let _ = gate.read(&mut [0]);
}

fn read_message() -> Option<Value> {
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line).unwrap() {
        0 => None,
        _ => Some(
            serde_json::from_str(&line)
                .unwrap_or_else(|error| panic!("the client wrote {line:?}: {error}")),
        ),
    }
}

/// A client that is gone is no reason to fail: it ends stdin too.
fn say(text: &str) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes());
    let _ = stdout.flush();
}
