//! Scheduler and I/O figures of the thread that runs a stage.
//!
//! CPU time comes from `CLOCK_THREAD_CPUTIME_ID`, which the kernel brings up to
//! date when it is read; `schedstat`'s first field is only updated at ticks and
//! switches, too coarse for stages of microseconds. Run-queue wait is its second
//! field, which is exact for a running thread. Major faults and bytes read come
//! from `getrusage` (`ru_inblock` counts 512-byte units).

use nix::sys::resource::{UsageWho, getrusage};
use rustix::fs::{Mode, OFlags};
use rustix::time::{ClockId, clock_gettime};
use std::os::fd::OwnedFd;

/// Open descriptors of one thread; readings are valid on that thread only.
#[derive(Debug)]
pub struct SchedProbe {
    schedstat: Option<OwnedFd>,
    thread: rustix::thread::Pid,
}

/// Counters at one instant; meaningful as differences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedSample {
    /// Nanoseconds on a processor, of the thread.
    pub cpu_ns: u64,
    /// Nanoseconds runnable but not running, of the thread; `None` without schedstat.
    pub runq_ns: Option<u64>,
    /// Major faults of the process.
    pub major_faults: u64,
    /// Bytes read from storage by the process, in units of 512.
    pub read_bytes: u64,
}

impl SchedSample {
    /// Reads what needs no descriptor, for the calling thread: everything but the
    /// run-queue wait. About 1 µs: two system calls.
    #[must_use]
    pub fn without_runq() -> Option<Self> {
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
        Some(Self {
            cpu_ns: cpu.tv_sec.cast_unsigned() * 1_000_000_000 + cpu.tv_nsec.cast_unsigned(),
            runq_ns: None,
            major_faults: usage.major_page_faults().cast_unsigned(),
            read_bytes: usage.block_reads().cast_unsigned() * 512,
        })
    }
}

impl SchedProbe {
    /// Opens the calling thread's figures. A kernel without schedstat gives a
    /// probe without run-queue wait.
    #[must_use]
    pub fn open() -> Self {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Self {
            schedstat: rustix::fs::open("/proc/thread-self/schedstat", flags, Mode::empty()).ok(),
            thread: rustix::thread::gettid(),
        }
    }

    /// Reads the figures; `None` on another thread than the one that opened it.
    /// About 2 µs: three system calls.
    #[must_use]
    pub fn read(&self) -> Option<SchedSample> {
        if rustix::thread::gettid() != self.thread {
            return None;
        }
        Some(SchedSample {
            runq_ns: self.schedstat.as_ref().and_then(read_runq),
            ..SchedSample::without_runq()?
        })
    }
}

fn read_runq(schedstat: &OwnedFd) -> Option<u64> {
    let mut buffer = [0_u8; 64];
    let length = rustix::io::pread(schedstat, &mut buffer[..], 0).ok()?;
    let text = std::str::from_utf8(&buffer[..length]).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_on_the_thread_shows_as_cpu_time() {
        let probe = SchedProbe::open();
        let before = probe.read().unwrap();
        let sum = (0..2_000_000_u64).fold(0_u64, |sum, n| {
            sum.wrapping_mul(31).wrapping_add(std::hint::black_box(n))
        });
        std::hint::black_box(sum);
        let after = probe.read().unwrap();
        assert!(after.cpu_ns > before.cpu_ns);
        assert!(after.runq_ns >= before.runq_ns);
    }

    #[test]
    fn another_thread_gets_no_figures() {
        let probe = SchedProbe::open();
        let read = std::thread::scope(|scope| scope.spawn(|| probe.read()).join().unwrap());
        assert_eq!(read, None);
    }
}
