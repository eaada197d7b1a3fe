//! Who the processes are left to whose parent has ended.
//!
//! A process that clears its environment and outlives its parent carries no mark.
//! `measure` therefore has such orphans left to itself (`PR_SET_CHILD_SUBREAPER`):
//! what becomes its child without having been started by it is of the run that is
//! being made. Where it had children before it began, as after `exec` in a shell,
//! theirs could be among them; then orphans stay with whoever they are left to.

use crate::host::process::{ProcessId, own_pid, read_children, read_stat};
use rustix::process::{Pid, WaitOptions, set_child_subreaper, waitpid};
use std::collections::BTreeSet;

/// Children that this process did not start itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Heirs {
    /// Orphans are left to somebody else.
    #[default]
    Nobody,
    /// Every child of this process but those.
    AllBut(BTreeSet<i32>),
}

impl Heirs {
    /// From now on orphans are left to this process, if it has no child yet.
    #[must_use]
    pub fn adopt() -> Self {
        let childless = read_children(own_pid()).is_ok_and(|children| children.is_empty());
        if childless && set_child_subreaper(Pid::from_raw(own_pid())).is_ok() {
            Self::AllBut(BTreeSet::new())
        } else {
            Self::Nobody
        }
    }

    /// Excepts a child that lives longer than a run.
    pub fn except(&mut self, pid: i32) {
        if let Self::AllBut(own) = self {
            own.insert(pid);
        }
    }

    /// Whether a child of this process was left to it.
    #[must_use]
    pub fn were_left(&self, pid: i32) -> bool {
        match self {
            Self::Nobody => false,
            Self::AllBut(own) => !own.contains(&pid),
        }
    }

    /// The children of this process that were not excepted, and the program while one
    /// is run.
    #[must_use]
    pub fn ids(&self) -> Vec<ProcessId> {
        let children = read_children(own_pid()).unwrap_or_default();
        let left = children.into_iter().filter(|pid| self.were_left(*pid));
        let id = |pid| {
            let start_ticks = read_stat(pid)?.start_ticks;
            Some(ProcessId { pid, start_ticks })
        };
        left.filter_map(id).collect()
    }

    /// Reaps those that have ended. Call only while no program is run.
    pub fn reap(&self) {
        let children = read_children(own_pid()).unwrap_or_default();
        for pid in children.into_iter().filter(|pid| self.were_left(*pid)) {
            let Some(pid) = Pid::from_raw(pid) else {
                continue;
            };
            // One that has not ended stays as it is.
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}
