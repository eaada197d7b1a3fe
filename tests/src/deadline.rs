//! How long a test waits before it says what did not happen.

use rustix::event::Timespec;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Longest wait for any single event. Nothing takes a tenth of it on an idle
/// machine; it only has to be longer than a busy one may need.
pub const WAIT: Duration = Duration::from_secs(30);

/// A point in time after which a wait gives up.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    at: Duration,
}

impl Deadline {
    /// [`WAIT`] from now.
    #[must_use]
    pub fn standard() -> Self {
        Self::after(WAIT)
    }

    /// So much time from now.
    #[must_use]
    pub fn after(wait: Duration) -> Self {
        Self { at: now() + wait }
    }

    /// Time that is left; zero once it has passed.
    #[must_use]
    pub fn left(self) -> Duration {
        self.at.saturating_sub(now())
    }

    /// The same for `poll`.
    #[must_use]
    pub fn timeout(self) -> Timespec {
        Timespec::try_from(self.left()).expect("a wait of a test fits")
    }
}

fn now() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    Duration::new(
        time.tv_sec.cast_unsigned(),
        u32::try_from(time.tv_nsec).expect("nanoseconds are below a second"),
    )
}
