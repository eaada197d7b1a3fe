//! Edges of stages and phases: a clock reading and, in a traced process, the
//! scheduler figures that belong to it.
//!
//! One reading ends a part and begins the next, so that parts do not overlap and
//! the figures of both come from the same instant.

use coldpath_trace_format::emit::MonoNanos;
use coldpath_trace_format::emit::sched::{SchedProbe, SchedSample};
use coldpath_trace_format::profile::round_ms;
use std::time::Duration;

/// One instant, with the figures of the thread that took it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    /// When.
    pub(crate) at: MonoNanos,
    /// Figures of the main thread; `None` when nothing is traced.
    pub(crate) sched: Option<SchedSample>,
}

impl Edge {
    /// The start of the process, before any reading: every counter of a process
    /// and of its first thread begins at zero.
    pub(crate) fn process_start(at: MonoNanos) -> Self {
        let sched = SchedSample {
            runq_ns: Some(0),
            ..SchedSample::default()
        };
        Self {
            at,
            sched: Some(sched),
        }
    }
}

/// Takes edges; their figures are those of the thread that called
/// [`EdgeClock::take_figures`].
#[derive(Debug, Default)]
pub(crate) struct EdgeClock {
    probe: Option<SchedProbe>,
}

impl EdgeClock {
    /// Makes edges carry scheduler figures from here on. Gives those of this
    /// moment, before what it costs itself; only the run-queue wait is read
    /// after it, because that needs the descriptor.
    pub(crate) fn take_figures(&mut self) -> Option<SchedSample> {
        let before = SchedSample::without_runq()?;
        let probe = self.probe.get_or_insert_with(SchedProbe::open);
        Some(SchedSample {
            runq_ns: probe.read()?.runq_ns,
            ..before
        })
    }

    /// An edge now: 20 ns, and 2 µs more where figures are taken.
    pub(crate) fn edge(&self) -> Edge {
        Edge {
            at: MonoNanos::now(),
            sched: self.probe.as_ref().and_then(SchedProbe::read),
        }
    }
}

/// Milliseconds of a duration, to the nanosecond.
pub(crate) fn millis(duration: Duration) -> f64 {
    round_ms(duration.as_nanos() as f64 / 1e6)
}
