//! A client of one agent process, and what it leaves.

use coldpath_trace_format::env;
use rustix::event::{PollFd, PollFlags, Timespec};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

/// Longest wait for an answer: only a hanging agent reaches it.
const PATIENCE: Timespec = Timespec {
    tv_sec: 60,
    tv_nsec: 0,
};

/// Something that is set up before the agent starts.
pub(crate) type SetUp<'a> = &'a dyn Fn(&mut Command);

pub(crate) struct Client {
    pub(crate) child: Child,
    pub(crate) home: tempfile::TempDir,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    next_id: u64,
}

/// How an agent ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) lines: Vec<Value>,
    pub(crate) stderr: String,
}

/// The program with a home of its own and nothing of this process's tracing.
pub(crate) fn command(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coldpath-agent"));
    command
        .env("HOME", home)
        .env_remove("XDG_CONFIG_HOME")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    for name in [
        env::SPAWN,
        env::TRACEPARENT,
        env::TRACESTATE,
        env::TRACE_DIR,
        env::FAULT,
    ] {
        command.env_remove(name);
    }
    command
}

impl Client {
    /// Starts an agent in an empty directory that is no repository.
    pub(crate) fn start() -> Self {
        Self::start_with(&|_| {})
    }

    pub(crate) fn start_with(set_up: SetUp<'_>) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), set_up)
    }

    pub(crate) fn start_in(home: tempfile::TempDir, set_up: SetUp<'_>) -> Self {
        let mut command = command(home.path());
        command.current_dir(home.path());
        set_up(&mut command);
        let mut child = command.spawn().unwrap();
        Self {
            home,
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
            next_id: 0,
        }
    }

    /// Starts an agent and initializes it.
    pub(crate) fn initialized(set_up: SetUp<'_>) -> Self {
        let mut client = Self::start_with(set_up);
        client.initialize(&json!({}));
        client
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    pub(crate) fn receive(&mut self) -> Value {
        if self.stdout.buffer().is_empty() {
            let mut fds = [PollFd::new(self.stdout.get_ref(), PollFlags::IN)];
            let ready = rustix::event::poll(&mut fds, Some(&PATIENCE)).unwrap();
            assert_eq!(ready, 1, "no answer came");
        }
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }

    /// Sends a request, and returns its answer; notifications are passed over.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.next_id;
        self.next_id += 1;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(format!("{request}\n").as_bytes());
        loop {
            let message = self.receive();
            if message.get("method").is_none() {
                assert_eq!(message["id"], id, "{message}");
                return message;
            }
        }
    }

    pub(crate) fn initialize(&mut self, meta: &Value) -> Value {
        let client = json!({"fs": {"readTextFile": true, "writeTextFile": false}});
        let params = json!({"protocolVersion": 1, "clientCapabilities": client, "_meta": meta});
        let answer = self.request("initialize", &params);
        assert_eq!(answer["result"]["protocolVersion"], 1, "{answer}");
        answer["result"].clone()
    }

    pub(crate) fn new_session(&mut self, directory: &Path) -> Value {
        self.new_session_with(directory, &json!({}))
    }

    pub(crate) fn new_session_with(&mut self, directory: &Path, meta: &Value) -> Value {
        let params = json!({"cwd": directory, "mcpServers": [], "_meta": meta});
        let answer = self.request("session/new", &params);
        assert!(answer["result"]["sessionId"].is_string(), "{answer}");
        answer["result"].clone()
    }

    /// Closes stdin and waits for the end.
    pub(crate) fn finish(mut self) -> Ended {
        drop(self.stdin.take());
        self.wait()
    }

    /// Waits for the end.
    pub(crate) fn wait(mut self) -> Ended {
        let mut text = String::new();
        self.stdout.read_to_string(&mut text).unwrap();
        let mut stderr = String::new();
        let mut pipe = self.child.stderr.take().unwrap();
        pipe.read_to_string(&mut stderr).unwrap();
        Ended {
            status: self.child.wait().unwrap(),
            lines: text
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect(),
            stderr,
        }
    }
}

impl Ended {
    /// The agent ended well, and had nothing to complain about.
    #[track_caller]
    pub(crate) fn is_clean(&self) {
        assert_eq!((self.status.code(), self.stderr.as_str()), (Some(0), ""));
    }
}

/// Code and message of an error answer.
#[track_caller]
pub(crate) fn error_of(answer: &Value) -> (i64, &str) {
    let error = &answer["error"];
    let code = error["code"].as_i64();
    (code.unwrap(), error["message"].as_str().unwrap())
}

/// Runs the real git, and returns what it prints.
#[track_caller]
pub(crate) fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .arg("-C")
        .arg(directory)
        .args(["-c", "user.name=t", "-c", "user.email=t@t"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A repository with one commit on branch `work/one`.
pub(crate) fn repository() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    git(dir.path(), &["init", "-q", "-b", "work/one"]);
    std::fs::write(dir.path().join("file"), "text").unwrap();
    git(dir.path(), &["add", "."]);
    git(dir.path(), &["commit", "-q", "-m", "first"]);
    dir
}

/// Puts a program named `git` that does what `script` says into a new directory,
/// to be the first of `PATH`.
///
/// Written by another process: a file that this one has open for writing while
/// another test's spawn forks cannot be run ("text file busy").
pub(crate) fn fake_git(script: &str) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let written = Command::new("/bin/sh")
        .args([
            "-c",
            "printf '#!/bin/sh\\n%s\\n' \"$1\" >\"$2\" && chmod 755 \"$2\"",
            "sh",
        ])
        .arg(script)
        .arg(dir.path().join("git"))
        .status();
    assert!(written.unwrap().success());
    let path = format!(
        "{}:{}",
        dir.path().display(),
        std::env::var("PATH").unwrap()
    );
    (dir, path)
}
