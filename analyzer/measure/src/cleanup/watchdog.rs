//! The process that cleans up when `measure` cannot.
//!
//! Started once before the first run, in a session of its own, so that neither
//! the terminal's signals nor a kill of `measure`'s group reach it. It holds the
//! reading end of a pipe whose only writing end is `measure`'s: end of file means
//! that `measure` is gone, however it went, and then every process that carries a
//! token of this experiment is ended. It carries no token, has no descriptor of
//! `measure`'s output, and sleeps in one read while runs are timed.

use super::heirs::Heirs;
use super::note::{self, Note};
use super::sweep::{Effort, Marks, end_all, of_note, timespec};
use super::token::TokenPrefix;
use coldpath_trace_format::emit::MonoNanos;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Name of the hidden subcommand.
pub const SUBCOMMAND: &str = "watchdog";
/// Longest time it cleans up: far beyond the two seconds that processes get, and
/// an end even for a program that spawns faster than it is killed.
const CLEAN_UP_MAX: Duration = Duration::from_mins(1);
/// How long nothing must be found where `measure` said good-bye: it has looked itself.
const QUIET_AFTER_BYE: Duration = Duration::from_millis(50);
/// The same where it was cut off, perhaps in the middle of a spawn: a program has no
/// token until the kernel has read it in, which takes as long as a slow disk.
const QUIET_AFTER_LOSS: Duration = Duration::from_secs(1);
/// What `measure` says when it ends in good order.
const BYE: &[u8] = b"bye\n";
/// Longest wait for its first sign of life, and for its end.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// What it says when it stands in its own session.
const READY: &[u8; 6] = b"ready\n";

/// The watchdog as `measure` holds it.
#[derive(Debug)]
pub struct Watchdog {
    child: Child,
    pipe: Option<ChildStdin>,
}

/// Why there is no watchdog; nothing is started then.
#[derive(Debug, thiserror::Error)]
pub enum WatchdogError {
    /// It could not be spawned.
    #[error("cannot start the watchdog process: {0}")]
    Spawn(#[source] io::Error),
    /// It did not come up.
    #[error("the watchdog process did not come up: {0}")]
    Handshake(String),
}

impl Watchdog {
    /// Starts it and waits until it is ready.
    ///
    /// # Errors
    /// It cannot be started or does not answer within ten seconds.
    pub fn start(prefix: &TokenPrefix, note: &Note) -> Result<Self, WatchdogError> {
        // Not `current_exe()`: that is a path, behind which a rebuilt program may stand.
        let mut child = Command::new("/proc/self/exe")
            .arg(SUBCOMMAND)
            .arg(note.path())
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(WatchdogError::Spawn)?;
        let pipe = child.stdin.take();
        let stdout = child.stdout.take();
        let watchdog = Self { child, pipe };
        let handshake = || -> io::Result<[u8; READY.len()]> {
            let gone = || io::Error::other("no pipe");
            let mut pipe = watchdog.pipe.as_ref().ok_or_else(gone)?;
            let mut stdout = stdout.ok_or_else(gone)?;
            writeln!(pipe, "{}", prefix.as_str())?;
            let mut answer = [0; READY.len()];
            if wait_readable(&stdout, HANDSHAKE_MAX) == Awaited::Nothing {
                return Err(io::Error::other("no answer"));
            }
            stdout.read_exact(&mut answer)?;
            Ok(answer)
        };
        match handshake() {
            Ok(answer) if &answer == READY => Ok(watchdog),
            Ok(_) => Err(WatchdogError::Handshake("unknown answer".to_owned())),
            Err(error) => Err(WatchdogError::Handshake(error.to_string())),
        }
    }
}

impl Watchdog {
    /// Starts another one where this one has ended, which only somebody else can
    /// have done; call before anything is started.
    ///
    /// # Errors
    /// As [`Watchdog::start`].
    pub fn revive(&mut self, prefix: &TokenPrefix, note: &Note) -> Result<(), WatchdogError> {
        if matches!(self.child.try_wait(), Ok(None)) {
            return Ok(());
        }
        *self = Self::start(prefix, note)?;
        Ok(())
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap_or(-1)
    }
}

impl Drop for Watchdog {
    /// Lets it make its last sweep and end. Where that takes long, it is left to
    /// it: it goes on without us, and has a bound of its own.
    fn drop(&mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            // One that has ended needs no good-bye.
            let _ = pipe.write_all(BYE);
        }
        let pid = Pid::from_raw(self.pid());
        if let Some(Ok(pidfd)) = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())) {
            wait_readable(&pidfd, HANDSHAKE_MAX);
        }
        let _ = self.child.try_wait();
    }
}

/// The watchdog's own life; gives its exit code. `input` ends when `measure` is gone;
/// `noted` is where the ids of what it runs are.
///
/// # Errors
/// Its session, its input or its answer fails; `measure` then starts nothing.
pub fn run(noted: &Path, input: &mut dyn Read, output: &mut dyn Write) -> io::Result<u8> {
    // Not a group leader as `measure` spawns it; run by hand it may be, and then
    // needs no session.
    let _ = rustix::process::setsid();
    // What is sent to everything at once must not take the cleaner first.
    let ignored = Arc::new(AtomicBool::new(false));
    for signal in [
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGHUP,
    ] {
        signal_hook::flag::register(signal, Arc::clone(&ignored))?;
    }
    let Some(prefix) = read_prefix(input)? else {
        return Ok(crate::exit::USAGE);
    };
    let noted = note::open(noted)?;
    output.write_all(READY)?;
    output.flush()?;
    let quiet = match wait_for_end(input) {
        Parting::Bye => QUIET_AFTER_BYE,
        Parting::Loss => QUIET_AFTER_LOSS,
    };
    let marks = Marks {
        token: prefix.pattern(),
        heirs: &Heirs::Nobody,
    };
    let noted = of_note(&note::read(&noted), marks.token);
    let bound = CLEAN_UP_MAX;
    let swept = end_all(marks, noted, Effort { bound, quiet });
    Ok(if swept.clean {
        crate::exit::OK
    } else {
        crate::exit::RUN_FAILED
    })
}

fn read_prefix(input: &mut dyn Read) -> io::Result<Option<TokenPrefix>> {
    // 32 digits and the line's end.
    let mut line = [0; 33];
    input.read_exact(&mut line)?;
    let text = std::str::from_utf8(&line).ok();
    Ok(text
        .and_then(|text| text.strip_suffix('\n'))
        .and_then(TokenPrefix::parse))
}

/// How `measure` went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parting {
    /// In good order.
    Bye,
    /// Otherwise.
    Loss,
}

fn wait_for_end(input: &mut dyn Read) -> Parting {
    let mut parting = Parting::Loss;
    let mut said = [0; 64];
    loop {
        match input.read(&mut said) {
            Ok(0) => return parting,
            Ok(read) if said.get(..read) == Some(BYE) => parting = Parting::Bye,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // A pipe that cannot be read tells nothing any more.
            Err(_) => return parting,
        }
    }
}

/// Whether something came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    Something,
    Nothing,
}

fn wait_readable(fd: &impl AsFd, longest: Duration) -> Awaited {
    let deadline = MonoNanos::now().after(longest);
    loop {
        let left = deadline.since(MonoNanos::now());
        let mut fds = [PollFd::new(fd, PollFlags::IN)];
        // A signal to us cuts a wait short, and it is taken up again.
        match poll(&mut fds, Some(&timespec(left))) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(1..) => return Awaited::Something,
            _ => return Awaited::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_one_exact_line() {
        let read = |text: &str| read_prefix(&mut text.as_bytes());
        let prefix = "0123456789abcdef0123456789abcdef";
        let parsed = read(&format!("{prefix}\n")).unwrap();
        assert_eq!(parsed, TokenPrefix::parse(prefix));
        assert_eq!(read(&format!("{prefix}0\n")).unwrap(), None);
        assert!(read("short\n").is_err());
    }

    #[test]
    fn who_says_good_bye_was_not_lost() {
        let parting = |text: &str| wait_for_end(&mut text.as_bytes());
        assert_eq!(parting("bye\n"), Parting::Bye);
        assert_eq!(parting(""), Parting::Loss);
        assert_eq!(parting("by"), Parting::Loss);
    }
}
