//! `COLDPATH_SPAWN`: one timeline across processes.
//!
//! The spawner hands its clock anchor and the instant of the spawn to the child,
//! which keeps that anchor; so intervals across processes are monotonic and the
//! child knows when its own start was asked for. The kernel's start time is not
//! used: it has 10 ms ticks.

use super::clock::{Anchor, MonoNanos, WallNanos};
use crate::limits::SPAWN_AGE_MAX_NS;
use std::fmt;

/// What a spawner tells its child about time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpawnStamp {
    /// Clock anchor of the run.
    pub anchor: Anchor,
    /// When the spawner called spawn.
    pub spawned: MonoNanos,
    /// Process id of the spawner.
    pub spawner: u32,
}

/// What the environment said about the spawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpawnEnv {
    /// The variable is not set.
    Absent,
    /// A stamp of this process's parent, zero to sixty seconds old.
    Accepted(SpawnStamp),
    /// A stamp that is not believed; counted and otherwise ignored.
    Rejected(SpawnRejection),
}

/// Why a stamp is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpawnRejection {
    /// Not `v1:` and four decimal numbers.
    Malformed,
    /// The spawner is not this process's parent: an inherited or forged stamp.
    NotFromParent,
    /// Spawned in the future, or more than a minute ago.
    Age,
    /// Its anchor is later than the spawn, or dates the present beyond the year 2554.
    Anchor,
}

impl fmt::Display for SpawnRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "is not `v1:` and four numbers",
            Self::NotFromParent => "was not written by the parent process",
            Self::Age => "is from the future or more than 60 s old",
            Self::Anchor => "has an anchor that cannot be",
        })
    }
}

impl SpawnStamp {
    /// Stamps a spawn that happens now, by this process.
    #[must_use]
    pub fn now(anchor: Anchor) -> Self {
        Self {
            anchor,
            spawned: MonoNanos::now(),
            spawner: std::process::id(),
        }
    }

    /// Reads and judges a value of `COLDPATH_SPAWN` as a process whose parent is
    /// `parent` and whose clock reads `now`.
    #[must_use]
    pub fn judge(value: Option<&str>, parent: u32, now: MonoNanos) -> SpawnEnv {
        let Some(value) = value else {
            return SpawnEnv::Absent;
        };
        let Some(stamp) = parse(value) else {
            return SpawnEnv::Rejected(SpawnRejection::Malformed);
        };
        if stamp.spawner != parent {
            return SpawnEnv::Rejected(SpawnRejection::NotFromParent);
        }
        let age = now.as_nanos().checked_sub(stamp.spawned.as_nanos());
        match age {
            Some(age) if age <= SPAWN_AGE_MAX_NS => {}
            _ => return SpawnEnv::Rejected(SpawnRejection::Age),
        }
        let since = now.as_nanos().checked_sub(stamp.anchor.mono().as_nanos());
        let dated = since.and_then(|since| stamp.anchor.wall().as_unix_nanos().checked_add(since));
        if stamp.anchor.mono() > stamp.spawned || dated.is_none() {
            return SpawnEnv::Rejected(SpawnRejection::Anchor);
        }
        SpawnEnv::Accepted(stamp)
    }

    /// Judges this process's own environment.
    #[must_use]
    pub fn from_env(now: MonoNanos) -> SpawnEnv {
        match std::env::var_os(crate::env::SPAWN) {
            None => SpawnEnv::Absent,
            Some(value) => match value.to_str() {
                None => SpawnEnv::Rejected(SpawnRejection::Malformed),
                Some(value) => Self::judge(Some(value), parent_pid(), now),
            },
        }
    }
}

impl fmt::Display for SpawnStamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "v1:{}:{}:{}:{}",
            self.anchor.wall().as_unix_nanos(),
            self.anchor.mono().as_nanos(),
            self.spawned.as_nanos(),
            self.spawner
        )
    }
}

/// Process id of this process's parent; 0 when the parent is outside this namespace.
#[must_use]
pub fn parent_pid() -> u32 {
    rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get().cast_unsigned())
}

fn parse(value: &str) -> Option<SpawnStamp> {
    let mut fields = value.strip_prefix("v1:")?.split(':');
    let mut number = || {
        let field = fields.next()?;
        // `parse` takes a leading plus; the format does not.
        field
            .bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| field.parse::<u64>().ok())?
    };
    let (wall, mono, instant, pid) = (number()?, number()?, number()?, number()?);
    fields.next().is_none().then_some(SpawnStamp {
        anchor: Anchor::from_parts(
            WallNanos::from_unix_nanos(wall),
            MonoNanos::from_nanos(mono),
        ),
        spawned: MonoNanos::from_nanos(instant),
        spawner: u32::try_from(pid).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: MonoNanos = MonoNanos::from_nanos(100_000_000_000);

    #[track_caller]
    fn check(value: &str, expected: Result<(), SpawnRejection>) {
        let judged = SpawnStamp::judge(Some(value), 42, NOW);
        match expected {
            Ok(()) => {
                let SpawnEnv::Accepted(stamp) = judged else {
                    panic!("{value}: {judged:?}");
                };
                assert_eq!(stamp.to_string(), value);
            }
            Err(reason) => assert_eq!(judged, SpawnEnv::Rejected(reason), "{value}"),
        }
    }

    #[test]
    fn a_fresh_stamp_of_the_parent_is_accepted_and_written_back() {
        check("v1:1796068430000000000:99000000000:99999000000:42", Ok(()));
        check("v1:1796068430000000000:39000000000:40000000000:42", Ok(()));
    }

    #[test]
    fn a_stamp_of_another_process_is_ignored() {
        check(
            "v1:1:99000000000:99999000000:41",
            Err(SpawnRejection::NotFromParent),
        );
    }

    #[test]
    fn a_stamp_from_the_future_or_older_than_a_minute_is_ignored() {
        check("v1:1:1:100000000001:42", Err(SpawnRejection::Age));
        check("v1:1:1:39999999999:42", Err(SpawnRejection::Age));
    }

    #[test]
    fn an_anchor_that_cannot_be_is_ignored() {
        for value in [
            // Later than the spawn.
            "v1:1796068431000000000:99999999999:99999999998:42",
            "v1:0:18446744073709551615:99999999999:42",
            // Its present does not fit in 64 bits.
            "v1:18446744073709551615:0:99999999999:42",
        ] {
            check(value, Err(SpawnRejection::Anchor));
        }
    }

    #[test]
    fn forged_text_is_ignored() {
        for value in [
            "",
            "v1",
            "v1:",
            "v2:1:2:3:42",
            "v1:1:2:3",
            "v1:1:2:3:42:5",
            "v1:+1:2:3:42",
            "v1:1:2:3:-42",
            "v1:1:2:3: 42",
            "v1:18446744073709551616:2:3:42",
            "v1:1:2:3:4294967338",
        ] {
            check(value, Err(SpawnRejection::Malformed));
        }
        assert_eq!(SpawnStamp::judge(None, 42, NOW), SpawnEnv::Absent);
    }
}
