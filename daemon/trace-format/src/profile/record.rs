//! One line of a profile file, schema `coldpath.profile/1`.

use super::{Phase, PhaseList};
use crate::limits::PROFILE_RECORD_MAX_BYTES;
use serde::{Deserialize, Serialize};

/// Value of the `schema` key.
pub(super) const SCHEMA: &str = "coldpath.profile/1";

/// What a profile is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProfileKind {
    /// Agent process start to initialize response; written by the daemon.
    ChannelStartup,
    /// One `session/new`; written by the agent.
    SessionStart,
}

/// One profile with the ids that join it to spans.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProfileRecord {
    schema: String,
    /// What the profile is about.
    pub kind: ProfileKind,
    /// Channel id, where known.
    pub channel_id: Option<String>,
    /// ACP session id, of a session's profile.
    pub session_id: Option<String>,
    /// Trace id of the span that the profile explains, 32 hex digits.
    pub trace_id: Option<String>,
    /// Span id of that span, 16 hex digits.
    pub span_id: Option<String>,
    /// Start of the first phase, Unix nanoseconds as decimal text.
    pub start_unix_nano: String,
    /// Whole profile, milliseconds.
    pub total_ms: f64,
    /// Whether every phase is there and the sum is right.
    pub complete: bool,
    /// Phases in order; the last is `unattributed`.
    pub phases: Vec<Phase>,
    /// Phases that a bound refused.
    pub dropped: u32,
}

impl ProfileRecord {
    /// A record of `list`, closed so that its sum equals `total_ms`; ids are
    /// added by the caller.
    #[must_use]
    pub fn new(kind: ProfileKind, start_unix_nano: u64, total_ms: f64, list: &PhaseList) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            kind,
            channel_id: None,
            session_id: None,
            trace_id: None,
            span_id: None,
            start_unix_nano: start_unix_nano.to_string(),
            total_ms: super::round_ms(total_ms),
            complete: list.dropped() == 0,
            phases: list.closed(total_ms),
            dropped: list.dropped(),
        }
    }

    /// The record as one line with its newline, at most 4,096 bytes: phases
    /// before the closing one are left out from the end, and counted, until it fits.
    #[must_use]
    pub fn to_line(&self) -> String {
        let mut record = self.clone();
        loop {
            let mut line = serde_json::to_string(&record).unwrap_or_default();
            line.push('\n');
            if line.len() <= PROFILE_RECORD_MAX_BYTES {
                return line;
            }
            record.complete = false;
            if record.phases.len() > 1 {
                let left_out = record.phases.remove(record.phases.len() - 2);
                record.dropped = record.dropped.saturating_add(1);
                if let Some(last) = record.phases.last_mut() {
                    last.duration_ms = super::round_ms(last.duration_ms + left_out.duration_ms);
                }
            } else {
                // Only ids are left to be too long; they are opaque to us.
                record.channel_id = None;
                record.session_id = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_the_documented_line() {
        let mut list = PhaseList::new();
        list.push("settings_load", Some(1.5), 3.25);
        let mut record = ProfileRecord::new(
            ProfileKind::ChannelStartup,
            1_796_068_430_685_000_000,
            41.25,
            &list,
        );
        record.channel_id = Some("c-1".to_owned());
        assert_eq!(
            record.to_line(),
            concat!(
                r#"{"schema":"coldpath.profile/1","kind":"channel_startup","channelId":"c-1","sessionId":null,"#,
                r#""traceId":null,"spanId":null,"startUnixNano":"1796068430685000000","totalMs":41.25,"complete":true,"#,
                r#""phases":[{"name":"settings_load","startMs":1.5,"durationMs":3.25},"#,
                r#"{"name":"unattributed","startMs":null,"durationMs":38.0}],"dropped":0}"#,
                "\n"
            )
        );
    }

    #[test]
    fn a_record_never_passes_its_bound_and_says_what_it_left_out() {
        let mut list = PhaseList::new();
        for _ in 0..31 {
            list.push(&"n".repeat(48), Some(123_456.123_456), 123_456.123_456);
        }
        let mut record = ProfileRecord::new(
            ProfileKind::SessionStart,
            u64::MAX,
            3_827_139.827_136,
            &list,
        );
        record.session_id = Some("s".repeat(500));
        let line = record.to_line();
        assert!(line.len() <= PROFILE_RECORD_MAX_BYTES, "{}", line.len());
        let read: ProfileRecord = serde_json::from_str(&line).unwrap();
        assert!(!read.complete && read.dropped > 0);
        let sum: f64 = read.phases.iter().map(|phase| phase.duration_ms).sum();
        assert!((sum - read.total_ms).abs() < 1e-3, "{sum}");
        record.session_id = Some("s".repeat(5_000));
        assert!(record.to_line().len() <= PROFILE_RECORD_MAX_BYTES);
    }
}
