//! Samples of a tree's memory while a run is timed: `statm` and nothing dearer.
//!
//! It has no thread: whoever waits for the program asks [`Sampler::due_in`] how
//! long it may sleep. What it costs is counted, and measured by pairs of arms with
//! and without it.

use super::process::{self, ProcessId};
use super::tree;
use crate::units::Bytes;
use coldpath_trace_format::emit::MonoNanos;
use std::collections::BTreeMap;
use std::time::Duration;

/// A sampler of one run.
#[derive(Clone, Debug)]
pub struct Sampler {
    every: Duration,
    begun: MonoNanos,
    next: MonoNanos,
    peak: Option<Bytes>,
    samples: u64,
    cost: Duration,
    first_seen: BTreeMap<i32, First>,
}

/// A process at its first sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct First {
    /// Which one.
    pub id: ProcessId,
    /// Its parent.
    pub ppid: i32,
    /// When, after the spawn.
    pub after_spawn: Duration,
    /// Its executable.
    pub program: String,
}

impl Sampler {
    /// One that samples at this interval, from when it is begun.
    #[must_use]
    pub fn new(every: Duration) -> Self {
        let begun = MonoNanos::from_nanos(0);
        Self {
            every,
            begun,
            next: begun,
            peak: None,
            samples: 0,
            cost: Duration::ZERO,
            first_seen: BTreeMap::new(),
        }
    }

    /// The first sample is due one interval after `spawned`.
    #[must_use]
    pub fn begun(self, spawned: MonoNanos) -> Self {
        Self {
            begun: spawned,
            next: spawned.after(self.every),
            ..self
        }
    }

    /// How long until the next sample; zero when it is due.
    #[must_use]
    pub fn due_in(&self) -> Duration {
        self.next.since(MonoNanos::now())
    }

    /// Takes a sample when one is due. Those that were missed are not made up for.
    pub fn sample_when_due(&mut self, root: i32) {
        let now = MonoNanos::now();
        if now < self.next {
            return;
        }
        let found = tree::glance(root);
        let after_spawn = now.since(self.begun);
        for &pid in &found.pids {
            if !self.first_seen.contains_key(&pid)
                && let Some(stat) = process::read_stat(pid)
            {
                let first = First {
                    id: ProcessId {
                        pid,
                        start_ticks: stat.start_ticks,
                    },
                    ppid: stat.ppid,
                    after_spawn,
                    program: process::read_program(pid, &stat),
                };
                self.first_seen.insert(pid, first);
            }
        }
        if !found.pids.is_empty() {
            self.peak = self.peak.max(Some(found.rss));
            self.samples += 1;
        }
        let after = MonoNanos::now();
        self.cost += after.since(now);
        self.next = after.after(self.every);
    }

    /// Largest sum of resident sets; absent without a sample.
    #[must_use]
    pub fn peak(&self) -> Option<Bytes> {
        self.peak
    }

    /// Samples taken.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Time that they took.
    #[must_use]
    pub fn cost(&self) -> Duration {
        self.cost
    }

    /// The processes that were met, by id.
    pub fn first_seen(&self) -> impl Iterator<Item = &First> {
        self.first_seen.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_taken_when_it_is_due_and_not_before() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let hour = Duration::from_hours(1);
        let mut sampler = Sampler::new(hour).begun(MonoNanos::now());
        sampler.sample_when_due(pid);
        assert_eq!((sampler.samples(), sampler.peak()), (0, None));
        assert!(sampler.due_in() > Duration::from_mins(59));

        let mut sampler = Sampler::new(hour).begun(MonoNanos::from_nanos(1));
        sampler.next = MonoNanos::from_nanos(2);
        sampler.sample_when_due(pid);
        assert_eq!(sampler.samples(), 1);
        assert!(sampler.peak().unwrap() > Bytes::default());
        let seen: Vec<i32> = sampler.first_seen().map(|first| first.id.pid).collect();
        assert!(seen.contains(&pid));
        assert!(sampler.due_in() > Duration::from_mins(59));
    }
}
