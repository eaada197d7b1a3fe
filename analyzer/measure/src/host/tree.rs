//! A process with all its descendants, read once.
//!
//! Descendants are found through the `children` files of the kernel, so that a
//! reading costs what the tree holds and not what the host runs. It is no
//! snapshot: a process that starts or ends meanwhile may be missed. Not for
//! inside a timed window, but for [`ListenerProbe`], which is made for that.

use super::process::{self, Memory, ProcessId};
use crate::units::Bytes;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// Most processes that one reading takes; a fork bomb must not hold the harness.
const PROCESSES_MAX: usize = 4_096;

/// One process of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeProcess {
    /// Which one.
    pub id: ProcessId,
    /// Its parent.
    pub ppid: i32,
    /// Its executable.
    pub program: String,
    /// Its memory.
    pub memory: Memory,
    /// Major faults, with those of children it has waited for.
    pub major_faults: u64,
    /// Bytes read from storage, likewise; or why not.
    pub read_bytes: Result<u64, String>,
    /// Nanoseconds its live threads waited for a processor; or why not.
    pub run_queue_ns: Result<u64, String>,
}

/// A reading of a tree, root first, every parent before its children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The processes.
    pub processes: Vec<TreeProcess>,
    /// Why descendants may be missing.
    pub incomplete: Option<String>,
}

impl Tree {
    /// Reads the tree under `root`. About 0.1 ms a process.
    #[must_use]
    pub fn read(root: i32) -> Self {
        let mut tree = Self {
            processes: Vec::new(),
            incomplete: None,
        };
        let mut pending = std::collections::VecDeque::from([root]);
        while let Some(pid) = pending.pop_front() {
            if tree.processes.len() >= PROCESSES_MAX {
                tree.incomplete = Some(format!("more than {PROCESSES_MAX} processes"));
                break;
            }
            let Some(read) = read_process(pid) else {
                continue;
            };
            match process::read_children(pid) {
                Ok(children) => pending.extend(children),
                Err(error) if process::read_stat(pid).is_some() => {
                    tree.incomplete = Some(format!("children of a process: {error}"));
                }
                Err(_) => {}
            }
            tree.processes.push(read);
        }
        tree
    }

    /// Sum of the resident sets; pages that processes share count once for each.
    #[must_use]
    pub fn rss(&self) -> Bytes {
        self.processes.iter().map(|one| one.memory.rss).sum()
    }

    /// Sum of the largest resident sets: an upper bound of the tree's peak, as
    /// the processes need not have been at their largest together.
    #[must_use]
    pub fn peak(&self) -> Bytes {
        self.processes.iter().map(|one| one.memory.peak).sum()
    }

    /// Resident set of the root alone.
    #[must_use]
    pub fn root_rss(&self) -> Option<Bytes> {
        self.processes.first().map(|one| one.memory.rss)
    }
}

/// A tree's memory at one glance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Glance {
    /// The processes, root first.
    pub pids: Vec<i32>,
    /// Sum of their resident sets.
    pub rss: Bytes,
}

/// Reads the resident sets of a tree and nothing else: about 10 µs a thread.
#[must_use]
pub fn glance(root: i32) -> Glance {
    let page = rustix::param::page_size() as u64;
    let mut found = Glance::default();
    let mut sum = 0_u64;
    let mut pending = vec![root];
    while let Some(pid) = pending.pop() {
        let Some(pages) = process::read_resident_pages(pid) else {
            continue;
        };
        sum = sum.saturating_add(pages.saturating_mul(page));
        found.pids.push(pid);
        if found.pids.len() >= PROCESSES_MAX {
            break;
        }
        pending.extend(process::read_children(pid).unwrap_or_default());
    }
    found.rss = Bytes::from_bytes(sum);
    found
}

/// Descriptors by which the RSS of a listening program is read in one or two
/// system calls. Opened while the program still starts.
#[derive(Debug)]
pub struct ListenerProbe {
    statm: File,
    children: Option<File>,
    page: Bytes,
}

impl ListenerProbe {
    /// Opens the files of a process.
    ///
    /// # Errors
    /// The process is gone or another user's.
    pub fn open(pid: i32) -> std::io::Result<Self> {
        let dir = process::proc_dir(pid);
        let pid = pid.to_string();
        Ok(Self {
            statm: File::open(dir.join("statm"))?,
            children: File::open(dir.join("task").join(pid).join("children")).ok(),
            page: Bytes::from_bytes(rustix::param::page_size() as u64),
        })
    }

    /// RSS of the process and of the children of its main thread with theirs:
    /// 2 reads while it has no children, which is what a program has that does
    /// nothing yet but listen.
    ///
    /// # Errors
    /// The process is gone.
    pub fn read(&self) -> std::io::Result<Bytes> {
        let mut buffer = [0_u8; 256];
        let length = self.statm.read_at(&mut buffer, 0)?;
        let own = std::str::from_utf8(&buffer[..length])
            .ok()
            .and_then(|text| text.split_ascii_whitespace().nth(1)?.parse::<u64>().ok())
            .ok_or_else(|| std::io::Error::other("bad statm"))?;
        let own = Bytes::from_bytes(own.saturating_mul(self.page.get()));
        let length = match &self.children {
            Some(children) => children.read_at(&mut buffer, 0)?,
            None => 0,
        };
        let text = std::str::from_utf8(&buffer[..length]).unwrap_or_default();
        let below = process::parse_children(text).map(|pid| Tree::read(pid).rss());
        Ok(std::iter::once(own).chain(below).sum())
    }
}

fn read_process(pid: i32) -> Option<TreeProcess> {
    let stat = process::read_stat(pid)?;
    Some(TreeProcess {
        id: ProcessId {
            pid,
            start_ticks: stat.start_ticks,
        },
        ppid: stat.ppid,
        program: process::read_program(pid, &stat),
        memory: process::read_memory(pid)?,
        major_faults: stat.major_faults,
        read_bytes: process::read_storage_bytes(pid).map_err(|error| error.to_string()),
        run_queue_ns: process::read_run_queue_ns(pid).map_err(|error| error.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    #[test]
    fn a_grandchild_is_found_below_its_parent_and_adds_to_the_sum() {
        // The shell waits for its child `cat`, which waits for our end of the pipe.
        let mut shell = Command::new("/bin/sh")
            .args(["-c", "cat & echo started; wait"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(shell.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let root = i32::try_from(shell.id()).unwrap();
        let probe = ListenerProbe::open(root).unwrap();
        let tree = Tree::read(root);
        let sum: u64 = tree.processes.iter().map(|one| one.memory.rss.get()).sum();
        assert_eq!(tree.processes[0].id.pid, root);
        assert_eq!(tree.rss().get(), sum);
        assert!(tree.peak() >= tree.rss());
        assert_eq!(tree.incomplete, None);
        assert!(probe.read().unwrap() >= tree.root_rss().unwrap());
        for child in &tree.processes[1..] {
            assert_eq!(child.ppid, root);
        }
        shell.kill().unwrap();
        shell.wait().unwrap();
        assert!(Tree::read(root).processes.is_empty());
    }
}
