//! What an agent says about its own start-up, in the `_meta` of its initialize
//! response, and how much of it is believed.
//!
//! Two shapes are read: Coldpath's (`coldpath.startupProfile`) and the one of a
//! qwen agent (`qwen.daemon.channelStartupProfile`). Reading never fails: what is
//! wrong is left out, counted, and makes the profile incomplete.

use super::{PhaseList, UNATTRIBUTED, is_phase_ms};
use crate::attributes::{META_QWEN_STARTUP_PROFILE, META_STARTUP_PROFILE};
use crate::limits::PROFILE_SUM_TOLERANCE_MS;
use serde_json::{Map, Value};

/// A start-up profile that was validated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StartupProfile {
    /// Whether the agent called it complete, every value passed and the sum is right.
    pub complete: bool,
    /// Process start to initialize response, milliseconds.
    pub process_to_response_ms: Option<f64>,
    /// Phases in order, without the closing one.
    pub phases: PhaseList,
    /// Part of the total in no phase, milliseconds.
    pub unattributed_ms: Option<f64>,
    /// Nested values of qwen's config phase, by name, milliseconds; never phases.
    pub config: Vec<(&'static str, f64)>,
    /// When the response was built, Unix milliseconds, where the agent says.
    pub response_built_epoch_ms: Option<f64>,
}

/// Reads the profile out of an initialize response's `_meta`, Coldpath's shape first.
/// `None` when neither key holds an object of version 1.
#[must_use]
pub fn read(meta: &Map<String, Value>) -> Option<StartupProfile> {
    meta.get(META_STARTUP_PROFILE)
        .and_then(read_coldpath)
        .or_else(|| meta.get(META_QWEN_STARTUP_PROFILE).and_then(read_qwen))
}

/// Phases of a qwen agent in their order: key on the wire, name of the phase.
const QWEN_PHASES: [(&str, &str); 10] = [
    ("processToProfilerReadyMs", "process_to_profiler_ready"),
    ("geminiImportMs", "gemini_import"),
    ("argsParseMs", "args_parse"),
    ("settingsLoadMs", "settings_load"),
    ("configConstructionMs", "config_construction"),
    ("appInitializationMs", "app_initialization"),
    ("acpImportMs", "acp_import"),
    (
        "bootstrapConfigInitializationMs",
        "bootstrap_config_initialization",
    ),
    ("transportSetupMs", "transport_setup"),
    ("initializeHandlerMs", "initialize_handler"),
];

/// Parts of qwen's `bootstrap_config_initialization`; `ripgrep_probe` lies inside `tool_registry`.
const QWEN_CONFIG: [(&str, &str); 9] = [
    ("extensionsInitialMs", "extensions_initial"),
    ("hooksMs", "hooks"),
    ("skillsMs", "skills"),
    ("extensionsFinalMs", "extensions_final"),
    ("hierarchicalMemoryMs", "hierarchical_memory"),
    ("toolRegistryMs", "tool_registry"),
    ("ripgrepProbeMs", "ripgrep_probe"),
    ("toolWarmupMs", "tool_warmup"),
    ("otherMs", "other"),
];

fn version_1(value: &Value) -> Option<&Map<String, Value>> {
    let profile = value.as_object()?;
    (profile.get("v")?.as_u64()? == 1).then_some(profile)
}

fn milliseconds(value: Option<&Value>) -> Option<f64> {
    value?.as_f64().filter(|ms| is_phase_ms(*ms))
}

fn read_coldpath(value: &Value) -> Option<StartupProfile> {
    let profile = version_1(value)?;
    let mut phases = PhaseList::new();
    let mut unattributed_ms = None;
    for phase in profile
        .get("phases")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let name = phase
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let duration = phase
            .get("durationMs")
            .and_then(Value::as_f64)
            .unwrap_or(f64::NAN);
        let start = match phase.get("startMs") {
            None | Some(Value::Null) => None,
            Some(start) => Some(start.as_f64().unwrap_or(f64::NAN)),
        };
        if name == UNATTRIBUTED && is_phase_ms(duration) {
            unattributed_ms = Some(duration);
        } else {
            phases.push(name, start, duration);
        }
    }
    let dropped = profile.get("dropped").and_then(Value::as_u64).unwrap_or(0);
    phases.add_dropped(u32::try_from(dropped).unwrap_or(u32::MAX));
    let claimed = profile.get("complete") == Some(&Value::Bool(true));
    Some(judge(
        claimed,
        milliseconds(profile.get("totalMs")),
        phases,
        unattributed_ms,
    ))
}

fn read_qwen(value: &Value) -> Option<StartupProfile> {
    let profile = version_1(value)?;
    let group = profile.get("phases").and_then(Value::as_object);
    let mut phases = PhaseList::new();
    for (key, name) in QWEN_PHASES {
        match milliseconds(group.and_then(|group| group.get(key))) {
            Some(ms) => phases.push(name, None, ms),
            None => phases.add_dropped(1),
        }
    }
    let config_group = profile.get("config").and_then(Value::as_object);
    let config: Vec<_> = QWEN_CONFIG
        .iter()
        .filter_map(|(key, name)| {
            Some((
                *name,
                milliseconds(config_group.and_then(|group| group.get(*key)))?,
            ))
        })
        .collect();
    let unattributed_ms = milliseconds(group.and_then(|group| group.get("unattributedMs")));
    let built = profile
        .get("responseBuiltAtEpochMs")
        .and_then(Value::as_f64)
        .filter(|ms| ms.is_finite() && *ms >= 0.0);
    let claimed = profile.get("complete") == Some(&Value::Bool(true))
        && config.len() == QWEN_CONFIG.len()
        && unattributed_ms.is_some()
        && built.is_some();
    let total = milliseconds(profile.get("processToResponseMs"));
    let mut read = judge(claimed, total, phases, unattributed_ms);
    read.config = config;
    read.response_built_epoch_ms = built;
    Some(read)
}

/// A claim of completeness holds only when nothing was refused and the phases
/// add up to the total within rounding.
fn judge(
    claimed: bool,
    total: Option<f64>,
    phases: PhaseList,
    unattributed_ms: Option<f64>,
) -> StartupProfile {
    let count = phases.phases().len() + usize::from(unattributed_ms.is_some());
    let sum = phases.sum_ms() + unattributed_ms.unwrap_or(0.0);
    let adds_up = total
        .is_some_and(|total| (total - sum).abs() <= PROFILE_SUM_TOLERANCE_MS * count as f64 + 1e-9);
    let inside = phases.phases().iter().all(|phase| {
        let end = phase.start_ms.map(|start| start + phase.duration_ms);
        end.is_none_or(|end| total.is_some_and(|total| end <= total + PROFILE_SUM_TOLERANCE_MS))
    });
    StartupProfile {
        complete: claimed && adds_up && inside && phases.dropped() == 0,
        process_to_response_ms: total,
        phases,
        unattributed_ms,
        config: Vec::new(),
        response_built_epoch_ms: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read_value(value: &Value) -> Option<StartupProfile> {
        read(value.as_object().unwrap())
    }

    /// A profile as a qwen agent 0.24.4 sent it.
    fn qwen() -> Value {
        json!({"qwen.daemon.channelStartupProfile": {"v": 1, "complete": true,
            "phases": {"processToProfilerReadyMs": 72.91, "geminiImportMs": 813.17, "argsParseMs": 50.04,
                "settingsLoadMs": 2.55, "configConstructionMs": 12.66, "appInitializationMs": 34.39,
                "acpImportMs": 113.04, "bootstrapConfigInitializationMs": 165.7, "transportSetupMs": 2.13,
                "initializeHandlerMs": 0.06, "unattributedMs": 42.34},
            "config": {"extensionsInitialMs": 20.2, "hooksMs": 0.41, "skillsMs": 17.53, "extensionsFinalMs": 3.76,
                "hierarchicalMemoryMs": 14.13, "toolRegistryMs": 21.68, "ripgrepProbeMs": 8.05,
                "toolWarmupMs": 85.32, "otherMs": 2.67},
            "processToResponseMs": 1308.99, "responseBuiltAtEpochMs": 1_796_067_444_427.53}})
    }

    fn coldpath() -> Value {
        json!({"coldpath.startupProfile": {"v": 1, "complete": true, "totalMs": 1.5, "dropped": 0, "phases": [
            {"name": "exec", "startMs": 0.0, "durationMs": 0.5},
            {"name": "settings", "startMs": 0.5, "durationMs": 0.75},
            {"name": "unattributed", "startMs": null, "durationMs": 0.25}]}})
    }

    #[test]
    fn a_real_qwen_profile_is_complete_and_keeps_every_value() {
        let read = read_value(&qwen()).unwrap();
        assert!(read.complete);
        assert_eq!(read.phases.phases().len(), 10);
        assert_eq!(read.phases.phases()[1].name, "gemini_import");
        assert_eq!(read.process_to_response_ms, Some(1308.99));
        assert_eq!((read.unattributed_ms, read.config.len()), (Some(42.34), 9));
    }

    #[test]
    fn one_bad_value_of_a_qwen_profile_is_left_out_and_clears_complete() {
        for bad in [json!("813"), json!(-1), json!(600_001), Value::Null] {
            let mut meta = qwen();
            meta["qwen.daemon.channelStartupProfile"]["phases"]["geminiImportMs"] = bad;
            let read = read_value(&meta).unwrap();
            assert!(!read.complete);
            assert_eq!(read.phases.phases().len(), 9);
        }
    }

    #[test]
    fn a_coldpath_profile_is_read() {
        let read = read_value(&coldpath()).unwrap();
        assert!(read.complete);
        assert_eq!(
            (read.phases.phases().len(), read.unattributed_ms),
            (2, Some(0.25))
        );
    }

    #[test]
    fn phases_that_do_not_add_up_are_kept_and_not_complete() {
        let mut meta = coldpath();
        meta["coldpath.startupProfile"]["totalMs"] = json!(1.6);
        let read = read_value(&meta).unwrap();
        assert!(!read.complete);
        assert_eq!(read.phases.phases().len(), 2);
        // Within 0.01 ms a phase it is rounding.
        meta["coldpath.startupProfile"]["totalMs"] = json!(1.53);
        assert!(read_value(&meta).unwrap().complete);
    }

    #[test]
    fn a_phase_that_ends_behind_the_total_is_not_complete() {
        let mut meta = coldpath();
        meta["coldpath.startupProfile"]["phases"][1]["startMs"] = json!(1.0);
        assert!(!read_value(&meta).unwrap().complete);
        meta["coldpath.startupProfile"]["phases"][1]["startMs"] = json!(0.75);
        assert!(read_value(&meta).unwrap().complete);
    }

    #[test]
    fn another_version_or_shape_is_no_profile() {
        for bad in [
            json!({"v": 2}),
            json!([]),
            json!("x"),
            json!({}),
            Value::Null,
            json!({"v": "1"}),
        ] {
            assert_eq!(read_value(&json!({"coldpath.startupProfile": bad})), None);
            assert_eq!(
                read_value(&json!({"qwen.daemon.channelStartupProfile": bad})),
                None
            );
        }
        let odd =
            json!({"coldpath.startupProfile": {"v": 1, "phases": {"a": 1}, "complete": true}});
        assert!(!read_value(&odd).unwrap().complete);
    }
}
