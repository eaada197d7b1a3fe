//! Numbers and names of processes and lanes: real process ids where they are
//! known and free, made-up ones above them elsewhere. Lanes are numbered through
//! the whole file, because some viewers take a thread's id for unique.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json};

use crate::chain::Run;
use crate::model::lens::Lens;
use crate::trace::span::ResourceIndex;

use super::event::{Event, Kind, shown};
use super::lanes::Lanes;
use super::slices::{Slices, real_pid};

/// Numbers of processes, lanes and arrows, each unique in a file.
#[derive(Debug)]
pub struct Numbers {
    used: BTreeSet<u64>,
    next_pid: u64,
    next_tid: u64,
    next_arrow: u64,
}

impl Numbers {
    /// Made-up process ids start above the largest real one of these runs.
    #[must_use]
    pub fn new(lens: &Lens<'_>, runs: &[Run<'_>], places: &[usize]) -> Self {
        // A process has one resource for most of its spans: few are looked at twice.
        let mut seen = BTreeMap::new();
        if !places.is_empty() && !runs.is_empty() {
            for span in lens.data.indices() {
                let ResourceIndex(resource) = lens.data.span(span).resource;
                seen.entry(resource).or_insert_with(|| real_pid(lens, span));
            }
        }
        let largest = seen.into_values().flatten().max().unwrap_or(0);
        Self {
            used: BTreeSet::new(),
            next_pid: largest + 1,
            next_tid: 1,
            next_arrow: 1,
        }
    }

    /// The number of another arrow.
    pub fn arrow(&mut self) -> u64 {
        self.next_arrow += 1;
        self.next_arrow - 1
    }

    /// Numbers the processes and lanes of a run and names them.
    pub fn process_events(
        &mut self,
        slices: &mut Slices,
        lanes: &Lanes,
        title: Option<&str>,
        events: &mut Vec<Event>,
    ) {
        for (place, process) in slices.processes.iter().enumerate() {
            let real = process.pid.filter(|pid| self.used.insert(*pid));
            let pid = real.unwrap_or_else(|| {
                self.next_pid += 1;
                self.next_pid - 1
            });
            let mut name = process.name.clone();
            if let (None, Some(other)) = (real, process.pid) {
                name = format!("{name} (pid {other})");
            }
            if let Some(title) = title {
                name = format!("{name} · {}", shown(title));
            }
            let first = self.next_tid;
            events.push(metadata("process_name", pid, first, "name", name.into()));
            let order = Json::from(events.len());
            events.push(metadata(
                "process_sort_index",
                pid,
                first,
                "sort_index",
                order,
            ));
            let count = lanes.count.get(place).copied().unwrap_or(0) as u64;
            for lane in 0..count {
                let tid = first + lane;
                let name = format!("lane {}", lane + 1);
                events.push(metadata("thread_name", pid, tid, "name", name.into()));
                events.push(metadata(
                    "thread_sort_index",
                    pid,
                    tid,
                    "sort_index",
                    tid.into(),
                ));
            }
            self.next_tid += count;
            slices.pids.push(pid);
            slices.first_tids.push(first);
        }
    }
}

fn metadata(name: &str, pid: u64, tid: u64, key: &str, value: Json) -> Event {
    Event {
        kind: Kind::Metadata,
        name: name.to_owned(),
        category: "__metadata",
        at: 0,
        pid,
        tid,
        args: Map::from_iter([(key.to_owned(), value)]),
    }
}
