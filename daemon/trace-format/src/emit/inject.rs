//! Injected delays: a build with feature `fault-points` holds a stage up for as
//! long as `COLDPATH_INJECT` says, so that an experiment can ask how much of it
//! reaches the total.
//!
//! `COLDPATH_INJECT="STAGE=NANOSECONDS;…"`. Each delay that was made is said on
//! stderr (`injected STAGE`): who asked for one must not take silence for an
//! effect of zero. Without the feature nothing is compiled in.

use super::MonoNanos;
use std::time::Duration;

/// First word of the line that says that a delay was made.
pub const SIGN: &str = "injected ";

/// The delay that is asked for at `stage`; says so on stderr.
#[cfg(feature = "fault-points")]
#[must_use]
pub fn delay(stage: &str) -> Option<Duration> {
    use std::io::Write as _;
    let asked = std::env::var(crate::env::INJECT).ok()?;
    let delay = asked_at(&asked, stage)?;
    // One write, so that a reader never sees half a line.
    let _ = std::io::stderr().write_all(format!("{SIGN}{stage}\n").as_bytes());
    Some(delay)
}

/// Never a delay in a build without the feature.
#[cfg(not(feature = "fault-points"))]
#[must_use]
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "the point must vanish from the start-up path"
)]
pub fn delay(_stage: &str) -> Option<Duration> {
    None
}

/// Holds the calling thread up at `prefix` + `name` for as long as is asked.
#[inline]
pub fn hold_up(prefix: &str, name: &str) {
    if cfg!(feature = "fault-points")
        && let Some(delay) = delay(&format!("{prefix}{name}"))
    {
        wait_exactly(delay);
    }
}

/// How long before its end a delay stops sleeping: what a sleep is late by, 0.1 to
/// 0.2 ms on an idle machine, would be 2 to 4 % of a delay of 5 ms.
const AWAKE: Duration = Duration::from_millis(1);

/// Holds the calling thread up for that long, late by less than a reading of the
/// clock takes as long as nobody takes its processor: the last [`AWAKE`] is spent
/// looking at the clock.
pub fn wait_exactly(delay: Duration) {
    let until = MonoNanos::now().after(delay);
    std::thread::sleep(delay.saturating_sub(AWAKE));
    while MonoNanos::now() < until {
        std::hint::spin_loop();
    }
}

/// The delay at `stage` in the text of `COLDPATH_INJECT`; of several the first.
#[must_use]
pub fn asked_at(text: &str, stage: &str) -> Option<Duration> {
    let mut pairs = text.split(';').filter_map(|pair| pair.split_once('='));
    let (_, nanos) = pairs.find(|(name, _)| *name == stage)?;
    nanos.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_that_of_its_stage_alone() {
        let text = "agent.phase.settings_load=5000000;session.new=1";
        let nanos = |stage| asked_at(text, stage).map(|delay| delay.as_nanos());
        assert_eq!(nanos("agent.phase.settings_load"), Some(5_000_000));
        assert_eq!(nanos("session.new"), Some(1));
        assert_eq!(nanos("session"), None);
        assert_eq!(asked_at("session.new=-1;x", "session.new"), None);
        assert_eq!(asked_at("", ""), None);
    }
}
