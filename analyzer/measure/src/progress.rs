//! The progress bar: on a terminal only, drawn between runs only.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar over all runs of the schedule.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    failed: usize,
}

impl Progress {
    /// Shows it on stderr where that is a terminal; otherwise it does nothing.
    /// It has no thread: nothing is drawn while a run is timed.
    #[must_use]
    pub(crate) fn new(runs: usize) -> Self {
        let bar = ProgressBar::with_draw_target(Some(runs as u64), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} runs, {eta} left {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style);
        bar.tick();
        Self { bar, failed: 0 }
    }

    /// One more run is done.
    pub(crate) fn run_succeeded(&self) {
        self.bar.inc(1);
    }

    /// One more run is done, and failed.
    pub(crate) fn run_failed(&mut self) {
        self.failed += 1;
        self.bar.set_message(format!("({} failed)", self.failed));
        self.bar.inc(1);
    }

    /// Takes it off the terminal.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
