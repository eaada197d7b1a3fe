//! Files of one process under `/proc`.

use crate::units::Bytes;
use std::path::{Path, PathBuf};

/// A process, safe against reuse of its id: the id with its start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId {
    /// Process id.
    pub pid: i32,
    /// Start time in clock ticks since boot, field 22 of `stat`.
    pub start_ticks: u64,
}

/// The fields of `/proc/PID/stat` that are used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Short name of the program, at most 15 bytes.
    pub name: String,
    /// One letter; `Z` and `X` are processes that have ended.
    pub state: char,
    /// Parent.
    pub ppid: i32,
    /// Process group.
    pub group: i32,
    /// Major faults of the process and of its children that it has waited for.
    pub major_faults: u64,
    /// Start time, clock ticks since boot.
    pub start_ticks: u64,
}

/// The fields of `/proc/PID/status` that are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Resident set now.
    pub rss: Bytes,
    /// Largest resident set so far.
    pub peak: Bytes,
}

/// The id of this process.
#[must_use]
pub fn own_pid() -> i32 {
    i32::try_from(std::process::id()).unwrap_or(-1)
}

/// Directory of a process.
#[must_use]
pub fn proc_dir(pid: i32) -> PathBuf {
    Path::new("/proc").join(pid.to_string())
}

/// Reads `stat`; `None` when the process is gone.
#[must_use]
pub fn read_stat(pid: i32) -> Option<Stat> {
    let bytes = std::fs::read(proc_dir(pid).join("stat")).ok()?;
    parse_stat(&String::from_utf8_lossy(&bytes))
}

/// Reads the memory figures of `status`; `None` when the process is gone.
#[must_use]
pub fn read_memory(pid: i32) -> Option<Memory> {
    let bytes = std::fs::read(proc_dir(pid).join("status")).ok()?;
    Some(parse_memory(&String::from_utf8_lossy(&bytes)))
}

/// Resident pages by `statm`; `None` when the process is gone.
#[must_use]
pub fn read_resident_pages(pid: i32) -> Option<u64> {
    let text = std::fs::read_to_string(proc_dir(pid).join("statm")).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Bytes that the process and the children it has waited for read from storage.
///
/// # Errors
/// The kernel keeps no account, or the process is another user's or gone.
pub fn read_storage_bytes(pid: i32) -> std::io::Result<u64> {
    let text = std::fs::read_to_string(proc_dir(pid).join("io"))?;
    text.lines()
        .find_map(|line| line.strip_prefix("read_bytes: "))
        .and_then(|number| number.trim().parse().ok())
        .ok_or_else(|| std::io::Error::other("no read_bytes"))
}

/// Nanoseconds that the live threads of a process waited for a processor since
/// they began. Threads that have ended are not in it.
///
/// # Errors
/// A kernel without scheduler statistics, or a process that is gone.
pub fn read_run_queue_ns(pid: i32) -> std::io::Result<u64> {
    let mut sum = 0_u64;
    for thread in std::fs::read_dir(proc_dir(pid).join("task"))? {
        let text = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        sum += parse_schedstat(&text).ok_or_else(|| std::io::Error::other("bad schedstat"))?;
    }
    Ok(sum)
}

/// Children of every thread of a process, unsorted.
///
/// # Errors
/// A kernel without `CONFIG_PROC_CHILDREN`, or a process that is gone.
pub fn read_children(pid: i32) -> std::io::Result<Vec<i32>> {
    let mut children = Vec::new();
    for thread in std::fs::read_dir(proc_dir(pid).join("task"))? {
        let path = thread?.path();
        match std::fs::read_to_string(path.join("children")) {
            Ok(text) => children.extend(parse_children(&text)),
            // The thread ended between the two reads; its children moved on.
            Err(_) if !path.exists() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(children)
}

/// The program a process runs: its executable, or its short name where that
/// cannot be read.
#[must_use]
pub fn read_program(pid: i32, stat: &Stat) -> String {
    std::fs::read_link(proc_dir(pid).join("exe")).map_or_else(
        |_| stat.name.clone(),
        |path| path.to_string_lossy().into_owned(),
    )
}

/// Reads a list of process ids.
pub(super) fn parse_children(text: &str) -> impl Iterator<Item = i32> + '_ {
    text.split_ascii_whitespace()
        .filter_map(|pid| pid.parse().ok())
}

fn parse_stat(text: &str) -> Option<Stat> {
    // The name may hold blanks and parentheses: it ends at the last one.
    let (before, rest) = text.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // fields[0] is the third field of the manual.
    let field = |number: usize| fields.get(number - 3).copied();
    let count = |number: usize| field(number)?.parse::<u64>().ok();
    Some(Stat {
        name: name.to_owned(),
        state: field(3)?.chars().next()?,
        ppid: field(4)?.parse().ok()?,
        group: field(5)?.parse().ok()?,
        major_faults: count(12)?.saturating_add(count(13)?),
        start_ticks: count(22)?,
    })
}

fn parse_memory(text: &str) -> Memory {
    let kib = |key: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(key))
            .and_then(|rest| rest.split_ascii_whitespace().next()?.parse().ok())
            .map_or(Bytes::default(), Bytes::from_kib)
    };
    Memory {
        rss: kib("VmRSS:"),
        peak: kib("VmHWM:"),
    }
}

fn parse_schedstat(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_blanks_does_not_shift_the_fields() {
        let text = "4211 (a b) c) S 17 4211 4211 0 -1 4194304 500 600 3 4 1 2 0 0 20 0 1 0 987654 \
                    4096000 400 18446744073709551615 0 0";
        assert_eq!(
            parse_stat(text),
            Some(Stat {
                name: "a b) c".to_owned(),
                state: 'S',
                ppid: 17,
                group: 4211,
                major_faults: 7,
                start_ticks: 987_654,
            })
        );
        assert_eq!(parse_stat("1 (x) S 0"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn memory_is_in_units_of_1024_and_zero_for_a_process_without_any() {
        let text = "Name:\tx\nVmHWM:\t    3060 kB\nVmRSS:\t    1700 kB\n";
        let memory = parse_memory(text);
        assert_eq!(memory.rss.get(), 1_740_800);
        assert_eq!(memory.peak.get(), 3_133_440);
        assert_eq!(parse_memory("Name:\tkthreadd\n"), Memory::default());
    }

    #[test]
    fn the_second_field_of_schedstat_is_the_wait() {
        assert_eq!(parse_schedstat("73189 44126 2\n"), Some(44_126));
        assert_eq!(parse_schedstat("73189"), None);
    }

    #[test]
    fn this_process_can_be_read() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let stat = read_stat(pid).unwrap();
        let program = read_program(pid, &stat);
        assert_eq!(
            std::path::PathBuf::from(program),
            std::env::current_exe().unwrap()
        );
        let memory = read_memory(pid).unwrap();
        assert!(memory.rss > Bytes::default() && memory.peak >= memory.rss);
    }
}
