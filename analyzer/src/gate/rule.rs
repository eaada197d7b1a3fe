//! The decision of a gate: an interval against a margin.
//!
//! Superiority, margin g: PASS when the upper end of the two-sided 95 % interval
//! is at most −g and below zero, FAIL when its lower end is above −g.
//! Non-inferiority, margin g: PASS when the upper one-sided 95 % bound is at most
//! g, FAIL when the lower one is above g. Everything else, and no interval, is
//! INCONCLUSIVE. With a true effect at the margin, either error has at most the
//! part that the interval leaves out on that side: 2.5 % and 5 %. Lower is better.

use serde::{Deserialize, Serialize};

use crate::stats::paired::Estimate;
use crate::stats::signed_rank::Tail;

/// What a gate demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The candidate is lower by at least the margin.
    Superiority,
    /// The candidate is not higher by more than the margin.
    NonInferiority,
    /// Something holds for every run of both arms.
    EveryRun,
}

impl Kind {
    /// What the deciding interval leaves out on the side that decides.
    #[must_use]
    pub fn tail(self) -> Tail {
        match self {
            Self::Superiority => Tail::TwoAndAHalf,
            Self::NonInferiority | Self::EveryRun => Tail::Five,
        }
    }

    /// Name in policies and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Superiority => "superiority",
            Self::NonInferiority => "non_inferiority",
            Self::EveryRun => "every_run",
        }
    }
}

/// The answer of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    /// What is demanded holds.
    Pass,
    /// These runs cannot tell.
    Inconclusive,
    /// What is demanded does not hold.
    Fail,
}

impl Verdict {
    /// The word in reports.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Inconclusive => "INCONCLUSIVE",
            Self::Fail => "FAIL",
        }
    }
}

/// Decides by the interval alone; `margin` is not negative, in the unit of the
/// estimate. [`Kind::EveryRun`] has no interval and is never decided here.
#[must_use]
pub fn decide(kind: Kind, margin: f64, estimate: &Estimate) -> Verdict {
    let (ends, limit) = match kind {
        Kind::Superiority => (estimate.two_sided, -margin),
        Kind::NonInferiority => (estimate.one_sided, margin),
        Kind::EveryRun => (None, 0.0),
    };
    let no_gain_needed = kind == Kind::NonInferiority;
    match ends {
        Some((_, high)) if high <= limit && (no_gain_needed || high < 0.0) => Verdict::Pass,
        Some((low, _)) if low > limit => Verdict::Fail,
        _ => Verdict::Inconclusive,
    }
}

/// The value that the estimate is held against: −margin or margin.
#[must_use]
pub fn limit(kind: Kind, margin: f64) -> f64 {
    match kind {
        Kind::Superiority => -margin,
        Kind::NonInferiority | Kind::EveryRun => margin,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kind: Kind, margin: f64, ends: Option<(f64, f64)>, expected: Verdict) {
        let estimate = Estimate {
            value: 0.0,
            two_sided: ends,
            one_sided: ends,
        };
        assert_eq!(decide(kind, margin, &estimate), expected);
    }

    #[test]
    fn superiority_needs_the_whole_interval_beyond_the_margin() {
        check(Kind::Superiority, 10.0, Some((-30.0, -10.0)), Verdict::Pass);
        check(
            Kind::Superiority,
            10.0,
            Some((-30.0, -9.0)),
            Verdict::Inconclusive,
        );
        check(Kind::Superiority, 10.0, Some((-9.0, 2.0)), Verdict::Fail);
        check(Kind::Superiority, 10.0, None, Verdict::Inconclusive);
        check(
            Kind::Superiority,
            0.0,
            Some((0.0, 0.0)),
            Verdict::Inconclusive,
        );
    }

    #[test]
    fn non_inferiority_allows_up_to_the_margin() {
        check(Kind::NonInferiority, 5.0, Some((-1.0, 5.0)), Verdict::Pass);
        check(
            Kind::NonInferiority,
            5.0,
            Some((-1.0, 6.0)),
            Verdict::Inconclusive,
        );
        check(Kind::NonInferiority, 5.0, Some((6.0, 9.0)), Verdict::Fail);
        check(
            Kind::NonInferiority,
            5.0,
            Some((1.0, f64::INFINITY)),
            Verdict::Inconclusive,
        );
        check(
            Kind::EveryRun,
            0.0,
            Some((-1.0, -1.0)),
            Verdict::Inconclusive,
        );
    }
}
