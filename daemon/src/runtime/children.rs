//! Ending agents without the runtime that started them, which may hang.
//!
//! Nothing but agents is a child of this process, and what they leave becomes one:
//! it is their subreaper. Other daemons' agents are never touched.

use crate::channel::KILL_GRACE;
use coldpath_trace_format::emit::MonoNanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, kill_process, kill_process_group, pidfd_open,
    waitpid,
};

/// Kills the group of every child at once, and reaps each when it is gone; then what
/// they left, until nothing is. Bounded by the time that a kill takes.
pub(super) fn kill() {
    kill_all(children);
}

fn kill_all(look: impl Fn() -> Vec<Pid>) {
    let deadline = MonoNanos::now().after(KILL_GRACE);
    loop {
        let children = look();
        for child in &children {
            // Not reaped yet, so the number is still its own. An agent leads its
            // group; an orphan mostly does not, and is killed alone.
            let _ = kill_process_group(*child, Signal::KILL);
            let _ = kill_process(*child, Signal::KILL);
        }
        for child in &children {
            wait_until_gone(*child, deadline);
            let _ = waitpid(Some(*child), WaitOptions::NOHANG);
        }
        if children.is_empty() || deadline <= MonoNanos::now() {
            return;
        }
    }
}

fn wait_until_gone(child: Pid, deadline: MonoNanos) {
    // One that cannot be opened was reaped by whoever else looks after it.
    let Ok(pidfd) = pidfd_open(child, PidfdFlags::empty()) else {
        return;
    };
    let Ok(wait) = Timespec::try_from(deadline.since(MonoNanos::now())) else {
        return;
    };
    let _ = poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&wait));
}

/// Processes whose parent is this one.
fn children() -> Vec<Pid> {
    let own = getpid().as_raw_nonzero().get();
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| Pid::from_raw(entry.ok()?.file_name().to_str()?.parse().ok()?))
        .filter(|pid| parent_of(*pid) == Some(own))
        .collect()
}

fn parent_of(pid: Pid) -> Option<i32> {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The program's name may hold spaces and parentheses; the last one ends it.
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

    #[test]
    fn a_child_and_its_group_are_gone_afterwards() {
        #[expect(clippy::zombie_processes, reason = "reaped by what is tested")]
        let mut child = Command::new("sh")
            .args(["-c", "trap '' TERM; cat <&0 & echo started; cat"])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0; 8];
        child
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut line)
            .unwrap();
        // Other tests have children too.
        let pid = Pid::from_child(&child);
        let own = || -> Vec<Pid> {
            children()
                .into_iter()
                .filter(|child| *child == pid)
                .collect()
        };
        assert_eq!(own(), [pid]);
        kill_all(own);
        assert_eq!(own(), []);
        // The end of its output: nobody of its group holds that any more.
        let mut output = child.stdout.unwrap();
        let wait = Timespec::try_from(10 * KILL_GRACE).unwrap();
        let over = poll(&mut [PollFd::new(&output, PollFlags::IN)], Some(&wait));
        assert_eq!(over, Ok(1));
        let mut rest = Vec::new();
        output.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"");
    }
}
