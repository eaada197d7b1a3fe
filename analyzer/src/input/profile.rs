//! Phase profiles: `coldpath.profile/1` lines and the session-start lines of a
//! qwen agent.
//!
//! Bounds are those of the trace contract; a record that breaks one is left out
//! whole and reported, because its sum means nothing any more.

use coldpath_trace_format::limits;
use serde::Deserialize;

use crate::problems::{Code, Place};
use crate::units::{Nanos, Timestamp};

use super::batch::Batch;
use super::lenient::{List, Pairs, Scalar, Text};
use super::record::parse;

/// Value of `schema` in a phase profile.
pub const SCHEMA: &str = "coldpath.profile/1";

/// One phase.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Phase {
    /// Name, 1–48 bytes of `[a-z0-9_.]`.
    pub name: String,
    /// Offset from the start of the profile, where the source has one.
    pub start: Option<Nanos>,
    /// Length.
    pub length: Nanos,
}

/// One `coldpath.profile/1` record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PhaseProfile {
    /// `channel_startup` or `session_start`.
    pub kind: String,
    /// Channel it belongs to; empty when unknown.
    pub channel: String,
    /// Session it belongs to; empty when unknown.
    pub session: String,
    /// Where it starts on the run's timeline, when known.
    pub start: Option<Timestamp>,
    /// Its whole length.
    pub total: Nanos,
    /// Whether every phase was there and valid.
    pub complete: bool,
    /// Phases in order, the last usually `unattributed`.
    pub phases: Vec<Phase>,
}

impl PhaseProfile {
    /// The order in which profiles are kept.
    pub(crate) fn sort_key(&self) -> (&str, &str, &str, bool, Option<Timestamp>, &Self) {
        let (channel, kind, session) = self.about();
        // One that says where it stands says more.
        (
            channel,
            kind,
            session,
            self.start.is_none(),
            self.start,
            self,
        )
    }

    /// What it is the profile of; another about the same is one too many.
    pub(crate) fn about(&self) -> (&str, &str, &str) {
        (&self.channel, &self.kind, &self.session)
    }
}

/// One session-start record of a qwen agent; ordered by session, then length.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionProfile {
    /// Session id; empty in versions that did not write it.
    pub session: String,
    /// Its whole length.
    pub total: Nanos,
    /// Stages with their lengths, in source order; they may overlap.
    pub stages: Vec<(String, Nanos)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct RawProfile<'a> {
    #[serde(default)]
    kind: Text<'a>,
    #[serde(default)]
    channel_id: Text<'a>,
    #[serde(default)]
    session_id: Text<'a>,
    #[serde(default)]
    start_unix_nano: Scalar<'a>,
    #[serde(default)]
    total_ms: Scalar<'a>,
    #[serde(default)]
    complete: bool,
    #[serde(default)]
    phases: List<RawPhase<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct RawPhase<'a> {
    #[serde(default)]
    name: Text<'a>,
    #[serde(default)]
    start_ms: Scalar<'a>,
    #[serde(default)]
    duration_ms: Scalar<'a>,
}

/// Reads one `coldpath.profile/1` record.
///
/// # Errors
/// The parser's reason.
pub fn read_phases(bytes: &[u8], place: Place, batch: &mut Batch) -> Result<(), String> {
    let raw: RawProfile<'_> = parse(bytes)?;
    batch.counts.profiles += 1;
    match check(&raw, bytes.len()) {
        Ok(profile) => batch.profiles.push(profile),
        Err(reason) => batch
            .problems
            .add(Code::InvalidProfile, Some(place), reason),
    }
    Ok(())
}

fn check(raw: &RawProfile<'_>, bytes: usize) -> Result<PhaseProfile, String> {
    if bytes > limits::PROFILE_RECORD_MAX_BYTES {
        return Err(format!(
            "profile has {bytes} bytes, more than {}",
            limits::PROFILE_RECORD_MAX_BYTES
        ));
    }
    if raw.phases.0.len() > limits::PROFILE_PHASES_MAX {
        return Err(format!(
            "profile has {} phases, more than {}",
            raw.phases.0.len(),
            limits::PROFILE_PHASES_MAX
        ));
    }
    let total = milliseconds(&raw.total_ms).ok_or("profile has no valid totalMs")?;
    let mut phases = Vec::with_capacity(raw.phases.0.len());
    for phase in &raw.phases.0 {
        if !valid_name(&phase.name.0) {
            return Err(format!(
                "phase name `{}` is not 1–48 bytes of a-z, 0-9, `_` and `.`",
                phase.name.0
            ));
        }
        let length = milliseconds(&phase.duration_ms)
            .ok_or_else(|| format!("phase `{}` has no valid durationMs", phase.name.0))?;
        let start = milliseconds(&phase.start_ms);
        phases.push(Phase {
            name: phase.name.0.to_string(),
            start,
            length,
        });
    }
    Ok(PhaseProfile {
        kind: raw.kind.0.to_string(),
        channel: raw.channel_id.0.to_string(),
        session: raw.session_id.0.to_string(),
        start: raw.start_unix_nano.as_u64().map(Timestamp),
        total,
        complete: raw.complete,
        phases,
    })
}

fn valid_name(name: &str) -> bool {
    let allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.');
    (1..=limits::PHASE_NAME_MAX_BYTES).contains(&name.len()) && name.bytes().all(allowed)
}

/// A finite length within the contract's bound.
fn milliseconds(value: &Scalar<'_>) -> Option<Nanos> {
    let ms = value.as_f64()?;
    if (0.0..=limits::PHASE_MS_MAX).contains(&ms) {
        Nanos::from_ms(ms)
    } else {
        None
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct RawSession<'a> {
    #[serde(default)]
    session_id: Text<'a>,
    #[serde(default)]
    total_ms: Scalar<'a>,
    #[serde(default)]
    stages: Pairs<'a, Scalar<'a>>,
}

/// Reads one session-start record of a qwen agent.
///
/// # Errors
/// The parser's reason, or that the record has no valid total.
pub fn read_session(bytes: &[u8], batch: &mut Batch) -> Result<(), String> {
    let raw: RawSession<'_> = parse(bytes)?;
    let total = milliseconds(&raw.total_ms).ok_or("session profile has no valid totalMs")?;
    let stage = |(name, value): &(std::borrow::Cow<'_, str>, Scalar<'_>)| {
        milliseconds(value).map(|length| (name.to_string(), length))
    };
    let stages = raw.stages.0.iter().filter_map(stage).collect();
    batch.counts.profiles += 1;
    batch.session_profiles.push(SessionProfile {
        session: raw.session_id.0.to_string(),
        total,
        stages,
    });
    Ok(())
}
