//! Injected delays on the runtime's thread, which other tasks go on using.
//!
//! A build without fault points has none and never waits here.

use coldpath_trace_format::emit::{MonoNanos, inject};
use std::time::Duration;

/// The timer's grain with what it may be late: the rest is waited for by yielding,
/// so that the stage is held up by what was asked and not by a millisecond more.
const TIMER_GRAIN: Duration = Duration::from_millis(2);

/// Holds the calling task up at `stage` for as long as is asked.
pub(crate) async fn hold_up(stage: &str) {
    if !cfg!(feature = "fault-points") {
        return;
    }
    let Some(delay) = inject::delay(stage) else {
        return;
    };
    let until = MonoNanos::now().after(delay);
    tokio::time::sleep(delay.saturating_sub(TIMER_GRAIN)).await;
    while MonoNanos::now() < until {
        tokio::task::yield_now().await;
    }
}
