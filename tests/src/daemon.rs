//! `coldpathd` as a child process: started, asked, stopped, and gone with the test.

use crate::http::{Client, Request, Response};
use crate::lines::Lines;
use crate::process::Watched;
use crate::{Sandbox, Signal, end_processes_with_token};
use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A daemon that is about to be started. Its environment holds nothing but
/// `PATH`, `HOME`, the run token and what [`Launch::env`] adds.
#[derive(Debug)]
pub struct Launch {
    command: Command,
    token: String,
    workspace: PathBuf,
    state_dir: PathBuf,
    trace_dir: PathBuf,
    port: Option<u16>,
}

/// A running daemon; killed when dropped, with everything that it started.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    process: Watched,
    token: String,
    port: u16,
    /// What it writes to stdout.
    pub stdout: Lines,
    /// What it writes to stderr.
    pub stderr: Lines,
    over: bool,
}

/// How a daemon ended.
#[derive(Clone, Debug)]
pub struct Exit {
    /// Exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Everything that it wrote to stdout.
    pub stdout: String,
    /// Everything that it wrote to stderr.
    pub stderr: String,
}

impl Launch {
    pub(crate) fn new(program: &Path, sandbox: &Sandbox) -> Self {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", sandbox.path("home"))
            .env("COLDPATH_RUN_TOKEN", sandbox.token());
        Self {
            command,
            token: sandbox.token().to_owned(),
            workspace: sandbox.workspace(),
            state_dir: sandbox.state_dir(),
            trace_dir: sandbox.trace_dir(),
            port: Some(0),
        }
    }

    /// One more argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// More arguments.
    #[must_use]
    pub fn args<I, S>(mut self, args: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        self.command.args(args);
        self
    }

    /// One more variable of its environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// `--agent`.
    #[must_use]
    pub fn agent(self, command: impl AsRef<OsStr>) -> Self {
        self.arg("--agent").arg(command)
    }

    /// `--trace-dir`, the sandbox's.
    #[must_use]
    pub fn traced(self) -> Self {
        let dir = self.trace_dir.clone();
        self.arg("--trace-dir").arg(dir)
    }

    /// Nothing but a request starts the runtime: not the timer, and no `/health`
    /// within the time of a test.
    #[must_use]
    pub fn passive(self) -> Self {
        self.args([
            "--fallback-ms",
            "2000000000",
            "--health-grace-ms",
            "2000000000",
        ])
    }

    /// `--port`, instead of a free one.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// `--workspace`, instead of the sandbox's.
    #[must_use]
    pub fn workspace(mut self, path: impl Into<PathBuf>) -> Self {
        self.workspace = path.into();
        self
    }

    /// `--state-dir`, instead of the sandbox's.
    #[must_use]
    pub fn state_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.state_dir = path.into();
        self
    }

    /// Without `--port`.
    #[must_use]
    pub fn default_port(mut self) -> Self {
        self.port = None;
        self
    }

    /// `COLDPATH_FAULT`.
    #[must_use]
    pub fn fault(self, span: &str) -> Self {
        self.env("COLDPATH_FAULT", span)
    }

    /// Starts it and waits for the line that says where it listens.
    ///
    /// # Panics
    /// The line does not come.
    #[must_use]
    #[track_caller]
    pub fn start(self) -> Daemon {
        let mut daemon = self.spawn();
        daemon.wait_until_ready();
        daemon
    }

    /// Starts it and does not wait.
    ///
    /// # Panics
    /// The program cannot be started.
    #[must_use]
    #[track_caller]
    pub fn spawn(mut self) -> Daemon {
        self.command.arg("--workspace").arg(&self.workspace);
        self.command.arg("--state-dir").arg(&self.state_dir);
        if let Some(port) = self.port {
            self.command.args(["--port", &port.to_string()]);
        }
        let mut child = self
            .command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {:?}: {error}", self.command));
        Daemon {
            process: Watched::open(child.id()).expect("a child that was not waited for has a pid"),
            stdout: Lines::read("the daemon's stdout", child.stdout.take().unwrap()),
            stderr: Lines::read("the daemon's stderr", child.stderr.take().unwrap()),
            child,
            token: self.token,
            port: 0,
            over: false,
        }
    }

    /// Starts it and waits for its end.
    ///
    /// # Panics
    /// It still runs after [`crate::WAIT`].
    #[must_use]
    #[track_caller]
    pub fn run(self) -> Exit {
        self.spawn().wait()
    }
}

impl Daemon {
    /// Waits for the line that says where it listens.
    ///
    /// # Panics
    /// The line does not come, or names no port.
    #[track_caller]
    pub fn wait_until_ready(&mut self) {
        let line = self.stdout.wait_for(" listening on http://");
        self.port = line
            .split_once("http://")
            .and_then(|(_, rest)| rest.split_once(" (workspace="))
            .and_then(|(address, _)| address.rsplit_once(':')?.1.parse().ok())
            .unwrap_or_else(|| panic!("no port in {line:?}"));
    }

    /// The port that it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// A connection to it.
    #[must_use]
    #[track_caller]
    pub fn connect(&self) -> Client {
        Client::connect(self.port)
    }

    /// Sends a request over a connection of its own and reads the answer.
    #[track_caller]
    pub fn ask(&self, request: &Request) -> Response {
        self.connect().ask(request)
    }

    /// `GET target` over a connection of its own.
    #[track_caller]
    pub fn get(&self, target: &str) -> Response {
        self.ask(&Request::get(target))
    }

    /// A session of scope `thread`.
    #[track_caller]
    pub fn thread_session(&self) -> Response {
        self.ask(&Request::session("thread"))
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// SIGTERM, then waits for its end.
    ///
    /// # Panics
    /// It still runs after [`crate::WAIT`].
    #[track_caller]
    pub fn stop(self) -> Exit {
        self.signal(Signal::TERM);
        self.wait()
    }

    /// SIGTERM; it must end with code 0 and leave no process behind.
    ///
    /// # Panics
    /// It does not.
    #[track_caller]
    pub fn stop_cleanly(self) -> Exit {
        let token = self.token.clone();
        let exit = self.stop();
        assert_eq!(exit.code, Some(0), "{exit:?}");
        let left = crate::processes_with_token(&token);
        assert!(left.is_empty(), "the stopped daemon left {left:?}");
        exit
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// It still runs after [`crate::WAIT`].
    #[track_caller]
    pub fn wait(mut self) -> Exit {
        self.process.wait("coldpathd");
        let status = self.child.wait().unwrap();
        self.over = true;
        Exit {
            code: status.code(),
            signal: status.signal(),
            stdout: self.stdout.finish(),
            stderr: self.stderr.finish(),
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        self.process.signal(Signal::KILL);
        let _ = self.child.wait();
        end_processes_with_token(&self.token);
        if std::thread::panicking() {
            use std::io::Write as _;
            let _ = writeln!(
                std::io::stderr(),
                "--- stderr of the daemon of a failed test:\n{}",
                self.stderr.text()
            );
        }
    }
}
