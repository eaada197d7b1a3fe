//! ACP `initialize`: what is asked of an agent and what its answer tells.

use super::error::ChannelError;
use coldpath_acp::messages::{Implementation, InitializeRequest, PROTOCOL_VERSION};
use coldpath_trace_format::attributes as keys;
use coldpath_trace_format::emit::{MonoNanos, Stage, WallNanos};
use coldpath_trace_format::profile::handover::StartupProfile;
use coldpath_trace_format::profile::{ProfileKind, ProfileRecord, round_ms};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// The request, with trace context and the question for a start-up profile when traced.
pub(super) fn request(stage: &Stage) -> InitializeRequest {
    let mut meta = trace_meta(stage);
    if stage.context().is_some() {
        meta.insert(keys::META_STARTUP_PROFILE.to_owned(), json!({ "v": 1 }));
        meta.insert(
            keys::META_QWEN_STARTUP_PROFILE.to_owned(),
            json!({ "v": 1 }),
        );
    }
    InitializeRequest {
        protocol_version: PROTOCOL_VERSION,
        client_info: Some(Implementation {
            name: "coldpathd".to_owned(),
            title: None,
            version: crate::VERSION.to_owned(),
        }),
        // Files and terminals are not offered: an agent uses its own.
        client_capabilities: Map::from_iter([
            (
                "fs".to_owned(),
                json!({ "readTextFile": false, "writeTextFile": false }),
            ),
            ("terminal".to_owned(), Value::Bool(false)),
        ]),
        meta,
    }
}

/// `_meta` that carries a span's context, by ACP's reserved keys and by qwen's; empty when off.
pub(crate) fn trace_meta(stage: &Stage) -> Map<String, Value> {
    let mut meta = Map::new();
    if let Some(parent) = stage.traceparent() {
        meta.insert(
            keys::META_QWEN_TRACEPARENT.to_owned(),
            parent.clone().into(),
        );
        meta.insert(keys::META_TRACEPARENT.to_owned(), parent.into());
        if let Some(state) = stage.tracestate() {
            meta.insert(keys::META_QWEN_TRACESTATE.to_owned(), state.clone().into());
            meta.insert(keys::META_TRACESTATE.to_owned(), state.into());
        }
    }
    meta
}

/// Reads the response's `_meta`. Only what is used is read: an agent whose other
/// fields are odd can be worked with; one that speaks another version cannot.
pub(super) fn read(result: &RawValue) -> Result<Map<String, Value>, ChannelError> {
    let invalid = |detail| ChannelError::Invalid {
        method: "initialize",
        detail,
    };
    let response: Used<'_> =
        serde_json::from_str(result.get()).map_err(|error| invalid(error.to_string()))?;
    match response.protocol_version.map(RawValue::get) {
        Some(version) if version.parse() == Ok(PROTOCOL_VERSION) => {}
        Some(version) => {
            let version: String = version.chars().take(40).collect();
            return Err(invalid(format!(
                "it speaks ACP version {version}, this daemon speaks {PROTOCOL_VERSION}"
            )));
        }
        None => return Err(invalid("it names no protocolVersion".to_owned())),
    }
    let meta = response.meta.map(RawValue::get).unwrap_or_default();
    Ok(serde_json::from_str(meta).unwrap_or_default())
}

/// The fields of the response that are used; whatever else is in it may be odd.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Used<'a> {
    #[serde(borrow)]
    protocol_version: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

/// When an agent was started and its answer was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange {
    pub(super) spawned: MonoNanos,
    pub(super) received: MonoNanos,
    /// Calendar time of the spawn.
    pub(super) spawned_at: WallNanos,
}

/// Puts a profile on the `channel.initialize` span and makes its record.
pub(super) fn note_profile(
    profile: &StartupProfile,
    exchange: Exchange,
    stage: &mut Stage,
) -> ProfileRecord {
    stage.set(keys::STARTUP_COMPLETE, profile.complete);
    for phase in profile.phases.phases() {
        stage.set(
            format!("{}{}_ms", keys::STARTUP_PHASE_PREFIX, phase.name),
            phase.duration_ms,
        );
    }
    for (name, ms) in &profile.config {
        stage.set(format!("{}{name}_ms", keys::STARTUP_CONFIG_PREFIX), *ms);
    }
    if let Some(ms) = profile.unattributed_ms {
        stage.set(keys::STARTUP_UNATTRIBUTED_MS, ms);
    }
    if let Some(ms) = profile.process_to_response_ms {
        stage.set(keys::STARTUP_PROCESS_TO_RESPONSE_MS, ms);
    }
    if let Some(ms) = response_transport_ms(profile, exchange) {
        stage.set(keys::STARTUP_RESPONSE_TRANSPORT_MS, ms);
    }
    let total = profile
        .process_to_response_ms
        .unwrap_or_else(|| profile.phases.sum_ms() + profile.unattributed_ms.unwrap_or(0.0));
    let mut record = ProfileRecord::new(
        ProfileKind::ChannelStartup,
        exchange.spawned_at.as_unix_nanos(),
        total,
        &profile.phases,
    );
    record.complete = profile.complete;
    record
}

/// Response built to response read. An agent that says when it built it (qwen, on
/// the wall clock) is believed; else its total counts from the spawn that this
/// daemon knows. Times below zero or beyond the whole wait come from other clocks
/// and are left out.
fn response_transport_ms(profile: &StartupProfile, exchange: Exchange) -> Option<f64> {
    let waited_ms = exchange.received.since(exchange.spawned).as_nanos() as f64 / 1e6;
    let ms = match profile.response_built_epoch_ms {
        Some(built) => exchange.spawned_at.as_unix_nanos() as f64 / 1e6 + waited_ms - built,
        None => waited_ms - profile.process_to_response_ms?,
    };
    (0.0..=waited_ms).contains(&ms).then(|| round_ms(ms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use coldpath_trace_format::profile::PhaseList;

    fn exchange() -> Exchange {
        Exchange {
            spawned: MonoNanos::from_nanos(1_000_000),
            received: MonoNanos::from_nanos(3_500_000),
            spawned_at: WallNanos::from_unix_nanos(1_796_068_430_000_000_000),
        }
    }

    #[test]
    fn transport_is_what_the_agent_did_not_account_for() {
        let profile = StartupProfile {
            process_to_response_ms: Some(2.0),
            ..StartupProfile::default()
        };
        assert_eq!(response_transport_ms(&profile, exchange()), Some(0.5));
        let late = StartupProfile {
            process_to_response_ms: Some(3.0),
            ..StartupProfile::default()
        };
        assert_eq!(response_transport_ms(&late, exchange()), None);
        let qwen = StartupProfile {
            response_built_epoch_ms: Some(1_796_068_430_002.25),
            ..StartupProfile::default()
        };
        assert_eq!(response_transport_ms(&qwen, exchange()), Some(0.25));
        let before_its_start = StartupProfile {
            response_built_epoch_ms: Some(1_796_068_429_999.75),
            ..StartupProfile::default()
        };
        assert_eq!(response_transport_ms(&before_its_start, exchange()), None);
    }

    #[test]
    fn a_record_closes_with_what_no_phase_covers() {
        let mut phases = PhaseList::new();
        phases.push("settings", Some(0.0), 1.5);
        let profile = StartupProfile {
            complete: true,
            process_to_response_ms: Some(2.0),
            phases,
            unattributed_ms: Some(0.5),
            ..StartupProfile::default()
        };
        let record = note_profile(&profile, exchange(), &mut Stage::off());
        assert_eq!(record.start_unix_nano, "1796068430000000000");
        assert_eq!(record.phases.len(), 2);
        assert!(record.complete);
    }

    #[test]
    fn another_protocol_version_is_refused() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        assert!(read(&raw(r#"{"protocolVersion":1}"#)).is_ok());
        assert!(matches!(
            read(&raw(r#"{"protocolVersion":2}"#)),
            Err(ChannelError::Invalid { .. })
        ));
        assert!(read(&raw("[]")).is_err());
        assert!(read(&raw("{}")).is_err());
        let deep = format!(
            r#"{{"protocolVersion":1,"x":{}1e400{}}}"#,
            "[".repeat(200),
            "]".repeat(200)
        );
        assert_eq!(read(&raw(&deep)), Ok(Map::new()));
        let odd = r#"{"protocolVersion":1,"agentInfo":{"title":"x"},"authMethods":{},"_meta":[]}"#;
        assert_eq!(read(&raw(odd)), Ok(Map::new()));
    }
}
