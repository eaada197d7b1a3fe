//! The program of a run: spawned, waited on, and in [`stop`] ended.
//!
//! Spawned so that the standard library stays on `posix_spawn`: an absolute path,
//! no `pre_exec`, no cleared environment. [`Running::wait`] is the one place of a
//! run where time passes: it polls what is awaited together with both outputs,
//! which it empties, the program's end and our signals.

pub mod stop;

use super::tail::Tail;
use crate::cleanup::sweep::timespec;
use crate::host::tree::ListenerProbe;
use crate::interrupt::Interrupts;
use coldpath_trace_format::emit::{Anchor, MonoNanos, SpawnStamp};
use coldpath_trace_format::env;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Bytes taken from an output at once.
const READ_BYTES: usize = 8 * 1024;

/// What is to be spawned.
#[derive(Debug)]
pub struct Launch {
    /// Absolute path of the program.
    pub program: PathBuf,
    /// The command, its own name first.
    pub words: Vec<OsString>,
    /// Variables to set.
    pub set: Vec<(&'static str, OsString)>,
    /// Variables to remove.
    pub removed: Vec<&'static str>,
    /// Clock anchor of the run.
    pub anchor: Anchor,
}

/// A program that has been spawned and not yet been reaped.
#[derive(Debug)]
pub struct Running<'a> {
    child: Child,
    pid: Pid,
    pidfd: OwnedFd,
    probe: Option<ListenerProbe>,
    spawned: MonoNanos,
    stdout: Output,
    stderr: Output,
    interrupts: &'a Interrupts,
    reaped: bool,
}

/// What a wait is for.
#[derive(Clone, Copy, Debug)]
pub enum Awaited<'a> {
    /// Bytes on the program's stdout, which are then not emptied by the wait.
    Stdout,
    /// A descriptor that can be read.
    Readable(BorrowedFd<'a>),
    /// A descriptor that can be written.
    Writable(BorrowedFd<'a>),
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// What was awaited is there.
    Ready,
    /// The program has ended.
    Exited,
    /// The deadline is over.
    TimedOut,
    /// A signal asks for the end of the experiment.
    Interrupted,
}

#[derive(Debug)]
struct Output {
    fd: Option<OwnedFd>,
    tail: Tail,
}

/// Spawns the program; also gives the instant just before.
pub fn spawn<'a>(
    launch: &Launch,
    interrupts: &'a Interrupts,
) -> (MonoNanos, io::Result<Running<'a>>) {
    match prepare(launch) {
        Ok((command, outputs)) => spawn_now(command, outputs, launch, interrupts),
        Err(error) => (MonoNanos::now(), Err(error)),
    }
}

/// Everything that can be done before the instant that is stamped.
fn prepare(launch: &Launch) -> io::Result<(Command, [Output; 2])> {
    let (out_reader, out_writer) = pipe_with(PipeFlags::CLOEXEC)?;
    let (err_reader, err_writer) = pipe_with(PipeFlags::CLOEXEC)?;
    let mut command = Command::new(&launch.program);
    if let Some((name, arguments)) = launch.words.split_first() {
        command.arg0(name).args(arguments);
    }
    command
        .stdin(File::open("/dev/null")?)
        .stdout(Stdio::from(out_writer))
        .stderr(Stdio::from(err_writer))
        .process_group(0);
    for (name, value) in &launch.set {
        command.env(name, value);
    }
    for name in &launch.removed {
        command.env_remove(name);
    }
    let output = |fd| Output {
        fd: Some(fd),
        tail: Tail::new(),
    };
    Ok((command, [output(out_reader), output(err_reader)]))
}

fn spawn_now<'a>(
    mut command: Command,
    [stdout, stderr]: [Output; 2],
    launch: &Launch,
    interrupts: &'a Interrupts,
) -> (MonoNanos, io::Result<Running<'a>>) {
    let stamp = SpawnStamp::now(launch.anchor);
    command.env(env::SPAWN, stamp.to_string());
    let spawned = command.spawn();
    // Closes our copies of the writing ends.
    drop(command);
    let running = spawned.and_then(|mut child| {
        let opened = i32::try_from(child.id())
            .ok()
            .and_then(Pid::from_raw)
            .ok_or_else(|| io::Error::other("no process id"))
            .and_then(|pid| Ok((pid, pidfd_open(pid, PidfdFlags::empty())?)));
        match opened {
            Ok((pid, pidfd)) => Ok(Running {
                probe: ListenerProbe::open(pid.as_raw_nonzero().get()).ok(),
                child,
                pid,
                pidfd,
                spawned: stamp.spawned,
                stdout,
                stderr,
                interrupts,
                reaped: false,
            }),
            Err(error) => {
                // Nothing may be left running that cannot be watched.
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    });
    (stamp.spawned, running)
}

impl Running<'_> {
    /// Process id of the program.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// The instant just before the spawn.
    #[must_use]
    pub fn spawned(&self) -> MonoNanos {
        self.spawned
    }

    /// The open memory files; absent when the program was gone too soon.
    #[must_use]
    pub fn listener_probe(&self) -> Option<&ListenerProbe> {
        self.probe.as_ref()
    }

    /// The last part of stdout.
    #[must_use]
    pub fn stdout_tail(&self) -> String {
        self.stdout.tail.text()
    }

    /// The last part of stderr.
    #[must_use]
    pub fn stderr_tail(&self) -> String {
        self.stderr.tail.text()
    }

    /// Reads from stdout what is there, after [`Awaited::Stdout`] was ready; 0 at
    /// its end.
    ///
    /// # Errors
    /// The pipe fails.
    pub fn read_stdout(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(fd) = &self.stdout.fd else {
            return Ok(0);
        };
        let read = rustix::io::read(fd, &mut *buffer)?;
        if read == 0 {
            self.stdout.fd = None;
        }
        self.stdout.tail.push(&buffer[..read]);
        Ok(read)
    }

    /// Waits until the deadline is over, a signal comes, what is awaited is there
    /// or the program ends; looked at in this order, so that a program that never
    /// stops sending holds nobody. A stdout that has ended never becomes ready.
    pub fn wait(&mut self, awaited: Awaited<'_>, deadline: MonoNanos) -> Wake {
        loop {
            let left = deadline.since(MonoNanos::now());
            if left.is_zero() {
                return Wake::TimedOut;
            }
            let ready = self.poll(Some(awaited), left, true);
            if ready.interrupted {
                return Wake::Interrupted;
            }
            if ready.awaited {
                return Wake::Ready;
            }
            if ready.exited {
                return Wake::Exited;
            }
        }
    }

    /// One `poll`; outputs that have something are emptied once.
    fn poll(&mut self, awaited: Option<Awaited<'_>>, longest: Duration, heed: bool) -> Ready {
        let nothing = PollFlags::empty();
        let pidfd = self.pidfd.as_fd();
        let for_stdout = matches!(awaited, Some(Awaited::Stdout));
        let (stdout, stderr) = (&self.stdout.fd, &self.stderr.fd);
        let (target, events) = match awaited {
            Some(Awaited::Readable(fd)) => (fd, PollFlags::IN),
            Some(Awaited::Writable(fd)) => (fd, PollFlags::OUT),
            Some(Awaited::Stdout) | None => (pidfd, nothing),
        };
        let mut fds = [
            PollFd::from_borrowed_fd(target, events),
            poll_output(stdout.as_ref(), pidfd),
            poll_output(stderr.as_ref(), pidfd),
            PollFd::from_borrowed_fd(pidfd, PollFlags::IN),
            PollFd::from_borrowed_fd(
                self.interrupts.wake_fd(),
                if heed { PollFlags::IN } else { nothing },
            ),
        ];
        if poll(&mut fds, Some(&timespec(longest))).is_err() {
            // Interrupted by the handler, whose byte the next turn finds.
            return Ready::default();
        }
        let [target_on, stdout_on, stderr_on, exited, interrupted] =
            fds.map(|fd| !fd.revents().is_empty());
        let stdout_on = stdout_on && stdout.is_some();
        let stderr_on = stderr_on && stderr.is_some();
        if stderr_on {
            self.stderr.take();
        }
        if stdout_on && !for_stdout {
            self.stdout.take();
        }
        Ready {
            awaited: if for_stdout {
                stdout_on
            } else {
                target_on && awaited.is_some()
            },
            exited,
            interrupted: interrupted && heed,
        }
    }
}

/// Asks for bytes of an output; of one that has ended, nothing, with `stand_in`
/// in its place.
fn poll_output<'a>(output: Option<&'a OwnedFd>, stand_in: BorrowedFd<'a>) -> PollFd<'a> {
    match output {
        Some(fd) => PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN),
        None => PollFd::from_borrowed_fd(stand_in, PollFlags::empty()),
    }
}

#[derive(Default)]
struct Ready {
    awaited: bool,
    exited: bool,
    interrupted: bool,
}

impl Output {
    /// Takes what is there into the tail; notes the end of the stream.
    fn take(&mut self) {
        let Some(fd) = &self.fd else { return };
        let mut buffer = [0_u8; READ_BYTES];
        match rustix::io::read(fd, &mut buffer[..]) {
            Ok(0) => self.fd = None,
            Ok(read) => self.tail.push(&buffer[..read]),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(_) => self.fd = None,
        }
    }
}
