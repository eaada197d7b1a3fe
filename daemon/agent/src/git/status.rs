//! The dirty state of a workspace, asked of `git status` after the session that
//! wants it was answered.
//!
//! One git at a time, in its own process group, read without ever waiting: the
//! caller polls the descriptors and calls [`StatusRunner::advance`]. It ends by
//! itself, by the first line it prints, by the bound, or with the agent; then
//! its group is killed and it is reaped. Absent, failed or late means unknown.

use coldpath_trace_format::emit::MonoNanos;
use coldpath_trace_format::env;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal};
use std::collections::VecDeque;
use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Longest git may take: a status of a large work tree on a cold disk takes
/// seconds, and an answer that late is of no use to a session that has begun.
pub(crate) const STATUS_BOUND: Duration = Duration::from_secs(2);
/// Longest that the end of a killed git is waited for when the agent ends. A
/// process in an uninterruptible wait is left to init.
const REAP_BOUND: Duration = Duration::from_millis(500);
/// Variables that would lead git to another repository than the workspace's, or
/// that belong to this process's place in a trace.
const REMOVED: [&str; 10] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    env::SPAWN,
    env::TRACEPARENT,
    env::TRACESTATE,
];

/// What git said about a workspace.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Sessions that asked.
    pub(crate) sessions: Vec<String>,
    /// Whether anything differs from the commit; `None` is unknown.
    pub(crate) dirty: Option<bool>,
}

/// Runs what is asked, one after the other.
#[derive(Debug)]
pub(crate) struct StatusRunner {
    git: Program,
    bound: Duration,
    waiting: VecDeque<Query>,
    running: Option<Running>,
}

#[derive(Debug)]
enum Program {
    /// Looked for when it is first needed: it takes a look at every directory of
    /// `PATH`.
    Unknown,
    At(PathBuf),
    Absent,
}

#[derive(Debug)]
struct Query {
    directory: PathBuf,
    sessions: Vec<String>,
}

#[derive(Debug)]
struct Running {
    query: Query,
    child: Child,
    group: Pid,
    ended: OwnedFd,
    stdout: ChildStdout,
    deadline: MonoNanos,
    output: Output,
    killed: bool,
}

/// What has been seen of git's standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    Nothing,
    Something,
    Closed,
}

impl StatusRunner {
    /// A runner of the `git` in `PATH`, for at most `bound` each time; without
    /// one every answer is unknown.
    pub(crate) fn new(bound: Duration) -> Self {
        Self {
            git: Program::Unknown,
            bound,
            waiting: VecDeque::new(),
            running: None,
        }
    }

    /// Asks for the state of `directory`; sessions of one directory that wait
    /// share one git.
    pub(crate) fn ask(&mut self, directory: &Path, session: &str) {
        if matches!(self.git, Program::Absent) {
            return;
        }
        let session = session.to_owned();
        match self
            .waiting
            .iter_mut()
            .find(|query| query.directory == directory)
        {
            Some(query) => query.sessions.push(session),
            None => self.waiting.push_back(Query {
                directory: directory.to_owned(),
                sessions: vec![session],
            }),
        }
    }

    /// Whether nothing runs and nothing waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.running.is_none() && self.waiting.is_empty()
    }

    /// Starts the next git when none runs. Costs a spawn, about 0.15 ms: call it
    /// when no request waits.
    pub(crate) fn start_next(&mut self) {
        if self.running.is_some() {
            return;
        }
        if matches!(self.git, Program::Unknown) {
            self.git = program_in_path("git").map_or(Program::Absent, Program::At);
        }
        match (&self.git, self.waiting.pop_front()) {
            (Program::At(git), Some(query)) => {
                self.running = Running::start(git, query, self.bound).ok();
            }
            _ => self.waiting.clear(),
        }
    }

    /// Descriptors to poll for reading; empty when nothing runs.
    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.running.as_ref().map_or_else(Vec::new, |running| {
            let mut all = vec![running.ended.as_fd()];
            if running.reads_output() {
                all.push(running.stdout.as_fd());
            }
            all
        })
    }

    /// How long to poll: until the bound of the git that runs, not at all when
    /// the next waits to be started, without end when there is nothing to do.
    pub(crate) fn patience(&self) -> Option<Duration> {
        match &self.running {
            // Once killed, only its end is waited for.
            Some(running) if running.killed => None,
            Some(running) => Some(running.deadline.since(MonoNanos::now())),
            None if self.waiting.is_empty() => None,
            None => Some(Duration::ZERO),
        }
    }

    /// Looks, without waiting, how far the running git is; gives its answer once.
    pub(crate) fn advance(&mut self) -> Option<Answer> {
        let running = self.running.as_mut()?;
        running.look();
        if !is_readable(running.ended.as_fd(), Duration::ZERO) {
            return None;
        }
        let running = self.running.take()?;
        Some(running.reap())
    }

    /// Ends the running git and forgets what waits. Bounded.
    pub(crate) fn stop(&mut self) {
        self.waiting.clear();
        if let Some(mut running) = self.running.take() {
            running.kill();
            if is_readable(running.ended.as_fd(), REAP_BOUND) {
                running.reap();
            }
        }
    }
}

impl Running {
    fn start(git: &Path, query: Query, bound: Duration) -> std::io::Result<Self> {
        let mut command = Command::new(git);
        command
            // `-C` and not `current_dir`, which makes a static program fork.
            .arg("-C")
            .arg(&query.directory)
            // Leaves the index alone, and starts no daemon that would stay.
            .args(["--no-optional-locks", "-c", "core.fsmonitor=false"])
            .args(["status", "--porcelain"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0);
        for name in REMOVED {
            command.env_remove(name);
        }
        let mut child = command.spawn()?;
        let opened = Pid::from_raw(child.id().cast_signed())
            .zip(child.stdout.take())
            .ok_or(rustix::io::Errno::SRCH)
            .and_then(|(pid, stdout)| {
                let ended = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
                Ok((pid, stdout, ended))
            });
        match opened {
            Ok((group, stdout, ended)) => Ok(Self {
                query,
                child,
                group,
                ended,
                stdout,
                deadline: MonoNanos::now().after(bound),
                output: Output::Nothing,
                killed: false,
            }),
            Err(error) => {
                // Without a descriptor its end cannot be polled for.
                child.kill()?;
                child.wait()?;
                Err(error.into())
            }
        }
    }

    fn reads_output(&self) -> bool {
        self.output == Output::Nothing && !self.killed
    }

    /// One printed byte is the answer; the bound ends the question.
    fn look(&mut self) {
        if self.reads_output() && is_readable(self.stdout.as_fd(), Duration::ZERO) {
            match self.stdout.read(&mut [0]) {
                Ok(1..) => {
                    self.output = Output::Something;
                    self.kill();
                }
                Ok(0) | Err(_) => self.output = Output::Closed,
            }
        }
        if !self.killed && MonoNanos::now() >= self.deadline {
            self.kill();
        }
    }

    /// Kills the group; it exists until its leader is reaped.
    fn kill(&mut self) {
        self.killed = true;
        let _ = rustix::process::kill_process_group(self.group, Signal::KILL);
    }

    /// Call when `ended` is readable: the leader is a zombie, and waiting for it
    /// returns at once.
    fn reap(mut self) -> Answer {
        // It may have printed and ended since the last look.
        self.look();
        let ended_by_itself = !self.killed;
        // Whatever git left running goes with it.
        self.kill();
        let status = self.child.wait();
        let dirty = match self.output {
            Output::Something => Some(true),
            _ if ended_by_itself && status.is_ok_and(|status| status.success()) => Some(false),
            _ => None,
        };
        Answer {
            sessions: self.query.sessions,
            dirty,
        }
    }
}

/// Waits up to `patience` for something to read, or for the end of it.
fn is_readable(fd: BorrowedFd<'_>, patience: Duration) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    let timeout = Timespec::try_from(patience).unwrap_or_default();
    matches!(rustix::event::poll(&mut fds, Some(&timeout)), Ok(1..))
}

/// The program that `name` stands for, by an absolute path: the first executable
/// file of that name in `PATH`.
fn program_in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|program| {
            program.is_file() && rustix::fs::access(program, rustix::fs::Access::EXEC_OK).is_ok()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by another process: a file that this one has open for writing while
    /// another test's spawn forks cannot be run ("text file busy").
    fn script(dir: &Path, text: &str) -> PathBuf {
        let path = dir.join("fake-git");
        let written = Command::new("/bin/sh")
            .args([
                "-c",
                "printf '#!/bin/sh\\n%s\\n' \"$1\" >\"$2\" && chmod 755 \"$2\"",
                "sh",
            ])
            .arg(text)
            .arg(&path)
            .status();
        assert!(written.unwrap().success());
        path
    }

    fn runner(git: Program, bound: Duration) -> StatusRunner {
        StatusRunner {
            git,
            ..StatusRunner::new(bound)
        }
    }

    /// What a git that behaves like `text` leads to.
    fn answer(text: &str, bound: Duration) -> Option<bool> {
        let dir = tempfile::tempdir().unwrap();
        let mut runner = runner(Program::At(script(dir.path(), text)), bound);
        runner.ask(dir.path(), "s1");
        runner.ask(dir.path(), "s2");
        runner.start_next();
        let group = runner.running.as_ref().unwrap().group;
        let answer = wait(&mut runner);
        assert_eq!(answer.sessions, ["s1", "s2"]);
        assert!(runner.is_idle());
        check_ended(group);
        answer.dirty
    }

    /// A killed process needs a moment to be gone; one that was missed stays.
    #[track_caller]
    fn check_ended(group: Pid) {
        let deadline = MonoNanos::now().after(LONG);
        while lives(group) {
            assert!(MonoNanos::now() < deadline, "something still runs");
            std::thread::yield_now();
        }
    }

    /// Whether a process of the group runs; a zombie of an init that does not
    /// wait does not.
    fn lives(group: Pid) -> bool {
        std::fs::read_dir("/proc").unwrap().any(|entry| {
            let stat = std::fs::read_to_string(entry.unwrap().path().join("stat"));
            let stat = stat.unwrap_or_default();
            let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
            let mut fields = fields.split(' ');
            let (state, group_of) = (fields.next(), fields.nth(1));
            group_of == Some(&group.as_raw_nonzero().to_string())
                && !matches!(state, Some("Z" | "X"))
        })
    }

    #[track_caller]
    fn wait(runner: &mut StatusRunner) -> Answer {
        let deadline = MonoNanos::now().after(LONG);
        loop {
            assert!(MonoNanos::now() < deadline, "no answer came");
            let patience = runner.patience();
            let mut fds: Vec<_> = runner
                .descriptors()
                .into_iter()
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
                .collect();
            let timeout = Timespec::try_from(patience.unwrap_or(LONG)).unwrap();
            rustix::event::poll(&mut fds, Some(&timeout)).unwrap();
            if let Some(answer) = runner.advance() {
                return answer;
            }
        }
    }

    const LONG: Duration = Duration::from_mins(1);

    #[test]
    fn output_is_dirty_silence_is_clean_and_failure_is_unknown() {
        assert_eq!(answer("echo ' M a'", LONG), Some(true));
        assert_eq!(answer("exit 0", LONG), Some(false));
        assert_eq!(answer("exit 128", LONG), None);
        assert_eq!(answer("kill -9 $$", LONG), None);
        assert_eq!(answer("exec >&-; exit 1", LONG), None);
    }

    #[test]
    fn the_first_byte_is_enough() {
        assert_eq!(answer("echo ' M a'; exec sleep 600", LONG), Some(true));
    }

    #[test]
    fn a_git_that_takes_too_long_is_ended_with_its_children_and_unknown() {
        assert_eq!(answer("sleep 600 & sleep 600", Duration::ZERO), None);
        assert_eq!(answer("exec >&-; exec sleep 600", Duration::ZERO), None);
    }

    #[test]
    fn children_that_git_leaves_behind_are_ended_too() {
        assert_eq!(answer("sleep 600 & exit 0", LONG), Some(false));
    }

    #[test]
    fn stopping_ends_the_running_git() {
        let dir = tempfile::tempdir().unwrap();
        let git = script(dir.path(), "exec sleep 600");
        let mut runner = runner(Program::At(git), LONG);
        runner.ask(dir.path(), "s");
        runner.start_next();
        let group = runner.running.as_ref().unwrap().group;
        runner.ask(Path::new("/"), "other");
        runner.stop();
        assert!(runner.is_idle());
        check_ended(group);
    }

    #[test]
    fn without_git_nothing_is_asked_or_started() {
        let mut without = runner(Program::Absent, LONG);
        without.ask(Path::new("/"), "s");
        assert!(without.is_idle());
        let gone = PathBuf::from("/nonexistent/git");
        let mut runner = runner(Program::At(gone), LONG);
        runner.ask(Path::new("/"), "s");
        runner.start_next();
        assert!(runner.is_idle() && runner.advance().is_none());
    }
}
