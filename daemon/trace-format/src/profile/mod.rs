//! Phase profiles: where a start-up went, as bounded JSON lines.
//!
//! [`PhaseList`] collects phases inside the bounds of [`crate::limits`];
//! [`ProfileRecord`] is one line of a profile file; [`handover`] reads what an
//! agent says about its own start-up in its initialize response. Whatever a bound
//! rejects is counted and clears `complete`; nothing here ever fails a session.

pub mod handover;
mod record;

pub use record::{ProfileKind, ProfileRecord};

use crate::limits::{PHASE_MS_MAX, PHASE_NAME_MAX_BYTES, PROFILE_PHASES_MAX};
use serde::{Deserialize, Serialize};

/// Name of the closing phase that makes a profile's sum equal its total.
pub const UNATTRIBUTED: &str = "unattributed";

/// One named part of a process's start-up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Phase {
    /// 1–48 bytes of `[a-z0-9_.]`.
    pub name: String,
    /// Milliseconds from the start of the profile; `None` where the source has none.
    pub start_ms: Option<f64>,
    /// Milliseconds, finite, 0–600,000.
    pub duration_ms: f64,
}

/// Phases in order, inside the bounds, with a count of what was refused.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseList {
    phases: Vec<Phase>,
    dropped: u32,
}

impl PhaseList {
    /// An empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            phases: Vec::new(),
            dropped: 0,
        }
    }

    /// Appends a phase, or counts it as dropped when a bound forbids it.
    pub fn push(&mut self, name: &str, start_ms: Option<f64>, duration_ms: f64) {
        let fits = self.phases.len() < PROFILE_PHASES_MAX - 1
            && is_phase_name(name)
            && is_phase_ms(duration_ms)
            && start_ms.is_none_or(is_phase_ms);
        if fits {
            self.phases.push(Phase {
                name: name.to_owned(),
                start_ms,
                duration_ms,
            });
        } else {
            self.dropped = self.dropped.saturating_add(1);
        }
    }

    /// The phases that were taken, in order, without the closing one.
    #[must_use]
    pub fn phases(&self) -> &[Phase] {
        &self.phases
    }

    /// Phases that a bound refused.
    #[must_use]
    pub const fn dropped(&self) -> u32 {
        self.dropped
    }

    /// Adds phases that were refused before they reached this list.
    pub fn add_dropped(&mut self, count: u32) {
        self.dropped = self.dropped.saturating_add(count);
    }

    /// Sum of the durations, milliseconds.
    #[must_use]
    pub fn sum_ms(&self) -> f64 {
        self.phases.iter().map(|phase| phase.duration_ms).sum()
    }

    /// The phases with the closing `unattributed` one, whose duration is the
    /// rest of `total_ms` and at least 0.
    #[must_use]
    pub fn closed(&self, total_ms: f64) -> Vec<Phase> {
        let mut phases = self.phases.clone();
        phases.push(Phase {
            name: UNATTRIBUTED.to_owned(),
            start_ms: None,
            duration_ms: round_ms((total_ms - self.sum_ms()).max(0.0)),
        });
        phases
    }
}

/// Whether a text may name a phase: 1–48 bytes of `[a-z0-9_.]`.
#[must_use]
pub fn is_phase_name(name: &str) -> bool {
    (1..=PHASE_NAME_MAX_BYTES).contains(&name.len())
        && name
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.'))
}

/// Whether a number may be a phase's time: finite, 0–600,000 ms.
#[must_use]
pub fn is_phase_ms(ms: f64) -> bool {
    (0.0..=PHASE_MS_MAX).contains(&ms)
}

/// Rounds to a nanosecond, so that sums of phases print without float noise.
#[must_use]
pub fn round_ms(ms: f64) -> f64 {
    (ms * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_phase_makes_the_sum_equal_the_total() {
        let mut list = PhaseList::new();
        list.push("args", Some(0.0), 0.25);
        list.push("settings_load", Some(0.25), 0.5);
        let closed = list.closed(1.0);
        assert_eq!(closed.last().unwrap().name, UNATTRIBUTED);
        assert!((closed.iter().map(|phase| phase.duration_ms).sum::<f64>() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn what_a_bound_forbids_is_counted() {
        let mut list = PhaseList::new();
        for name in ["", "Upper", "a b", "é", &"a".repeat(49)] {
            list.push(name, None, 1.0);
        }
        for ms in [f64::NAN, f64::INFINITY, -0.1, 600_000.1] {
            list.push("ok", None, ms);
            list.push("ok", Some(ms), 1.0);
        }
        assert_eq!((list.phases().len(), list.dropped()), (0, 13));
        list.push(&"a".repeat(48), Some(0.0), 600_000.0);
        assert_eq!(list.phases().len(), 1);
    }

    #[test]
    fn a_list_holds_31_phases_and_the_closing_one() {
        let mut list = PhaseList::new();
        for _ in 0..40 {
            list.push("p", None, 1.0);
        }
        assert_eq!(
            (list.closed(31.0).len(), list.dropped()),
            (PROFILE_PHASES_MAX, 9)
        );
    }
}
