//! The program of a run: spawned, waited on, and in [`stop`] ended.
//!
//! Spawned so that the standard library stays on `posix_spawn`: an absolute path,
//! no `pre_exec`, no cleared environment. [`Running::wait`] is the one place of a
//! run where time passes: it polls what is awaited together with both outputs,
//! which it empties, the program's end and our signals.

pub mod stop;

use super::tail::Tail;
use crate::cleanup::note::Note;
use crate::cleanup::sweep::timespec;
use crate::driver::Stream;
use crate::host::sampler::Sampler;
use crate::host::tree::ListenerProbe;
use crate::interrupt::Interrupts;
use coldpath_trace_format::emit::{Anchor, MonoNanos, SpawnStamp};
use coldpath_trace_format::env;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::fstat;
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
    /// Variables to set; of several of one name the last counts.
    pub set: Vec<(OsString, OsString)>,
    /// Variables to remove, before others are set.
    pub removed: Vec<&'static str>,
    /// What it reads.
    pub input: Input,
    /// Reads the memory of its tree, if anybody does.
    pub sampler: Option<Sampler>,
    /// Clock anchor of the run.
    pub anchor: Anchor,
}

/// What a program reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Nothing.
    Null,
    /// What we write.
    Pipe,
}

/// A program that has been spawned and not yet been reaped.
#[derive(Debug)]
pub struct Running<'a> {
    child: Child,
    pid: Pid,
    pidfd: OwnedFd,
    probe: Option<ListenerProbe>,
    spawned: MonoNanos,
    stdin: Option<OwnedFd>,
    sampler: Option<Sampler>,
    stdout: Output,
    stderr: Output,
    interrupts: &'a Interrupts,
    note: &'a Note,
    reaped: bool,
}

/// What a wait is for.
#[derive(Clone, Copy, Debug)]
pub enum Awaited<'a> {
    /// Bytes on an output, which is then not emptied by the wait.
    Output(Stream),
    /// A descriptor that can be read.
    Readable(BorrowedFd<'a>),
    /// A descriptor that can be written.
    Writable(BorrowedFd<'a>),
    /// Room in the program's input.
    Input,
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
    launch: &mut Launch,
    interrupts: &'a Interrupts,
    note: &'a Note,
) -> (MonoNanos, io::Result<Running<'a>>) {
    match prepare(launch, note) {
        Ok(prepared) => spawn_now(prepared, launch, interrupts, note),
        Err(error) => (MonoNanos::now(), Err(error)),
    }
}

/// Everything that can be done before the instant that is stamped.
fn prepare(launch: &Launch, note: &Note) -> io::Result<Prepared> {
    let (stdin, input): (Stdio, _) = match launch.input {
        Input::Null => (File::open("/dev/null")?.into(), None),
        Input::Pipe => {
            let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
            rustix::io::ioctl_fionbio(&writer, true)?;
            (reader.into(), Some(writer))
        }
    };
    let (out_reader, out_writer) = pipe_with(PipeFlags::CLOEXEC)?;
    let (err_reader, err_writer) = pipe_with(PipeFlags::CLOEXEC)?;
    note.pipes([fstat(&out_reader)?.st_ino, fstat(&err_reader)?.st_ino]);
    let mut command = Command::new(&launch.program);
    if let Some((name, arguments)) = launch.words.split_first() {
        command.arg0(name).args(arguments);
    }
    command
        .stdin(stdin)
        .stdout(Stdio::from(out_writer))
        .stderr(Stdio::from(err_writer))
        .process_group(0);
    for name in &launch.removed {
        command.env_remove(name);
    }
    for (name, value) in &launch.set {
        command.env(name, value);
    }
    let output = |fd| Output {
        fd: Some(fd),
        tail: Tail::new(),
    };
    Ok(Prepared {
        command,
        input,
        outputs: [output(out_reader), output(err_reader)],
    })
}

/// A command and our ends of its pipes.
struct Prepared {
    command: Command,
    input: Option<OwnedFd>,
    outputs: [Output; 2],
}

fn spawn_now<'a>(
    prepared: Prepared,
    launch: &mut Launch,
    interrupts: &'a Interrupts,
    note: &'a Note,
) -> (MonoNanos, io::Result<Running<'a>>) {
    let Prepared {
        mut command,
        input,
        outputs: [stdout, stderr],
    } = prepared;
    let sampler = launch.sampler.take();
    let stamp = SpawnStamp::now(launch.anchor);
    command.env(env::SPAWN, stamp.to_string());
    let spawned = command.spawn();
    // Closes our copies of the writing ends.
    drop(command);
    let running = spawned.and_then(|mut child| {
        let opened = i32::try_from(child.id())
            .ok()
            .and_then(Pid::from_raw)
            .inspect(|pid| note.begin(pid.as_raw_nonzero().get()))
            .ok_or_else(|| io::Error::other("no process id"))
            .and_then(|pid| Ok((pid, pidfd_open(pid, PidfdFlags::empty())?)));
        match opened {
            Ok((pid, pidfd)) => Ok(Running {
                probe: ListenerProbe::open(pid.as_raw_nonzero().get()).ok(),
                child,
                pid,
                pidfd,
                spawned: stamp.spawned,
                stdin: input,
                sampler: sampler.map(|sampler| sampler.begun(stamp.spawned)),
                stdout,
                stderr,
                interrupts,
                note,
                reaped: false,
            }),
            Err(error) => {
                // Nothing may be left running that cannot be watched.
                let _ = child.kill();
                note.end();
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

    /// What was sampled.
    #[must_use]
    pub fn sampler(&self) -> Option<&Sampler> {
        self.sampler.as_ref()
    }

    /// The program's input, while it is open.
    #[must_use]
    pub fn input(&self) -> Option<BorrowedFd<'_>> {
        self.stdin.as_ref().map(|fd| fd.as_fd())
    }

    /// Ends the program's input.
    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Sends the program a signal; one that has ended gets none.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let _ = rustix::process::pidfd_send_signal(&self.pidfd, signal);
    }

    /// Reads from an output what is there, after [`Awaited::Output`] was ready; 0
    /// at its end.
    ///
    /// # Errors
    /// The pipe fails.
    pub fn read_output(&mut self, stream: Stream, buffer: &mut [u8]) -> io::Result<usize> {
        let output = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let Some(fd) = &output.fd else {
            return Ok(0);
        };
        let read = rustix::io::read(fd, &mut *buffer)?;
        if read == 0 {
            output.fd = None;
        }
        output.tail.push(&buffer[..read]);
        Ok(read)
    }

    /// Waits for one thing; see [`Running::wait_any`].
    pub fn wait(&mut self, awaited: Awaited<'_>, deadline: MonoNanos) -> Wake {
        self.wait_any(&[awaited], deadline, &mut Vec::new())
    }

    /// Waits until the deadline is over, a signal comes, something of what is
    /// awaited is there (`ready` says which) or the program ends; looked at in this
    /// order, so that a program that never stops sending holds nobody. An output
    /// that has ended never becomes ready.
    pub fn wait_any(
        &mut self,
        awaited: &[Awaited<'_>],
        deadline: MonoNanos,
        ready: &mut Vec<bool>,
    ) -> Wake {
        loop {
            let left = deadline.since(MonoNanos::now());
            if left.is_zero() {
                return Wake::TimedOut;
            }
            let found = self.poll(awaited, left, true, ready);
            if found.interrupted {
                return Wake::Interrupted;
            }
            if ready.contains(&true) {
                return Wake::Ready;
            }
            if found.exited {
                return Wake::Exited;
            }
            self.sample_when_due();
        }
    }

    fn sample_when_due(&mut self) {
        let pid = self.pid();
        if let Some(sampler) = &mut self.sampler {
            sampler.sample_when_due(pid);
        }
    }

    /// One `poll`; outputs that have something are emptied once. `ready` gets one
    /// entry for each of `awaited`.
    fn poll(
        &mut self,
        awaited: &[Awaited<'_>],
        longest: Duration,
        heed: bool,
        ready: &mut Vec<bool>,
    ) -> Found {
        let nothing = PollFlags::empty();
        let pidfd = self.pidfd.as_fd();
        let (stdout, stderr) = (&self.stdout.fd, &self.stderr.fd);
        let mut fds = Vec::with_capacity(OWN_FDS + awaited.len());
        fds.push(poll_output(stdout.as_ref(), pidfd));
        fds.push(poll_output(stderr.as_ref(), pidfd));
        fds.push(PollFd::from_borrowed_fd(pidfd, PollFlags::IN));
        let wake = if heed { PollFlags::IN } else { nothing };
        fds.push(PollFd::from_borrowed_fd(self.interrupts.wake_fd(), wake));
        for one in awaited {
            let (fd, events) = match one {
                Awaited::Readable(fd) => (*fd, PollFlags::IN),
                Awaited::Writable(fd) => (*fd, PollFlags::OUT),
                Awaited::Input => match &self.stdin {
                    Some(fd) => (fd.as_fd(), PollFlags::OUT),
                    None => (pidfd, nothing),
                },
                Awaited::Output(_) => (pidfd, nothing),
            };
            fds.push(PollFd::from_borrowed_fd(fd, events));
        }
        let longest = match &self.sampler {
            Some(sampler) => longest.min(sampler.due_in()),
            None => longest,
        };
        ready.clear();
        if poll(&mut fds, Some(&timespec(longest))).is_err() {
            // Interrupted by the handler, whose byte the next turn finds.
            return Found::default();
        }
        let on = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        let stdout_on = on(0) && stdout.is_some();
        let stderr_on = on(1) && stderr.is_some();
        let found = Found {
            exited: on(2),
            interrupted: on(3) && heed,
        };
        let is_on = |(nth, one): (usize, &Awaited<'_>)| match one {
            Awaited::Output(Stream::Stdout) => stdout_on,
            Awaited::Output(Stream::Stderr) => stderr_on,
            _ => on(OWN_FDS + nth),
        };
        ready.extend(awaited.iter().enumerate().map(is_on));
        drop(fds);
        let wanted = |stream: Stream| {
            awaited
                .iter()
                .any(|one| matches!(one, Awaited::Output(wanted) if *wanted == stream))
        };
        if stderr_on && !wanted(Stream::Stderr) {
            self.stderr.take();
        }
        if stdout_on && !wanted(Stream::Stdout) {
            self.stdout.take();
        }
        found
    }
}

/// Descriptors that every poll holds: both outputs, the process, our signals.
const OWN_FDS: usize = 4;

/// Asks for bytes of an output; of one that has ended, nothing, with `stand_in`
/// in its place.
fn poll_output<'a>(output: Option<&'a OwnedFd>, stand_in: BorrowedFd<'a>) -> PollFd<'a> {
    match output {
        Some(fd) => PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN),
        None => PollFd::from_borrowed_fd(stand_in, PollFlags::empty()),
    }
}

#[derive(Default)]
struct Found {
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
