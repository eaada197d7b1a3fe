//! Phase profiles: what agents say about their start-up, and what becomes of it.

use crate::logging_agent;
use coldpath_tests::{Sandbox, Traces};
use serde_json::{Value, json};

/// The profile of a real qwen agent, version 0.24.4.
const QWEN: &str = concat!(
    r#"{"v":1,"complete":true,"phases":{"processToProfilerReadyMs":72.91,"geminiImportMs":813.17,"#,
    r#""argsParseMs":50.04,"settingsLoadMs":2.55,"configConstructionMs":12.66,"appInitializationMs":34.39,"#,
    r#""acpImportMs":113.04,"bootstrapConfigInitializationMs":165.7,"transportSetupMs":2.13,"#,
    r#""initializeHandlerMs":0.06,"unattributedMs":42.34},"config":{"extensionsInitialMs":20.2,"#,
    r#""hooksMs":0.41,"skillsMs":17.53,"extensionsFinalMs":3.76,"hierarchicalMemoryMs":14.13,"#,
    r#""toolRegistryMs":21.68,"ripgrepProbeMs":8.05,"toolWarmupMs":85.32,"otherMs":2.67},"#,
    r#""processToResponseMs":1308.99,"responseBuiltAtEpochMs":1796067444427.53}"#
);

/// Traces of a daemon whose agent says this in `_meta`.
fn traces_with_meta(key: &str, profile: &Value) -> (Sandbox, Traces) {
    let sandbox = Sandbox::new();
    let meta = json!({ key: profile });
    let agent = logging_agent(&sandbox, &format!("'meta={meta}'"));
    let daemon = sandbox.daemon().agent(agent).traced().start();
    daemon.thread_session().expect_status(200);
    daemon.stop_cleanly();
    let traces = sandbox.traces();
    (sandbox, traces)
}

#[track_caller]
fn only_record(traces: &Traces) -> &Value {
    assert_eq!(traces.profiles.len(), 1, "{:?}", traces.profiles);
    &traces.profiles[0]
}

#[track_caller]
fn assert_near(value: &Value, expected: f64) {
    let found = value.as_f64().unwrap();
    assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
}

/// A record's phases and their sum, which is its total.
#[track_caller]
fn phase_names(record: &Value) -> Vec<&str> {
    let phases = record["phases"].as_array().unwrap();
    let sum: f64 = phases
        .iter()
        .map(|phase| phase["durationMs"].as_f64().unwrap())
        .sum();
    let tolerance = 0.01 * f64::from(u32::try_from(phases.len()).unwrap());
    let total = record["totalMs"].as_f64().unwrap();
    assert!((sum - total).abs() <= tolerance, "{sum} of {total}");
    phases
        .iter()
        .map(|phase| phase["name"].as_str().unwrap())
        .collect()
}

#[test]
fn the_embedded_agent_s_start_and_sessions_are_profiled() {
    let sandbox = Sandbox::new();
    let daemon = sandbox.daemon().traced().start();
    let session = daemon.thread_session().expect_status(200).json();
    daemon.stop_cleanly();
    let traces = sandbox.traces();
    assert_eq!(traces.profiles.len(), 2, "{:?}", traces.profiles);
    let of_kind = |kind: &str| {
        let found = traces.profiles.iter().find(|record| record["kind"] == kind);
        found.unwrap_or_else(|| panic!("no {kind} in {:?}", traces.profiles))
    };

    let startup = of_kind("channel_startup");
    let initialize = traces.one("channel.initialize");
    assert_eq!(startup["schema"], "coldpath.profile/1");
    assert_eq!(
        startup["channelId"],
        *initialize.attribute("coldpath.channel.id")
    );
    assert_eq!(startup["traceId"], initialize.span().trace_id);
    assert_eq!(startup["spanId"], initialize.span().span_id);
    assert_eq!(startup["sessionId"], Value::Null);
    assert_eq!(startup["complete"], true);
    assert_eq!(startup["dropped"], 0);
    assert_eq!(startup["phases"][0]["startMs"], 0.0);
    let names = phase_names(startup);
    assert_eq!(names.last(), Some(&"unattributed"));
    initialize
        .has("coldpath.startup.complete", true)
        .counts("coldpath.startup.process_to_response_ms")
        .counts("coldpath.startup.response_transport_ms")
        .counts("coldpath.startup.unattributed_ms");
    for name in &names[..names.len() - 1] {
        initialize.counts(&format!("coldpath.startup.phase.{name}_ms"));
        traces
            .one(&format!("agent.phase.{name}"))
            .child_of("agent.startup");
    }

    let start = of_kind("session_start");
    let span = traces.one("agent.session_start").span();
    assert_eq!(start["sessionId"], session["sessionId"]);
    assert_eq!(start["traceId"], span.trace_id);
    assert_eq!(start["spanId"], span.span_id);
    assert_eq!(start["startUnixNano"], span.start.to_string());
    assert_eq!(phase_names(start).last(), Some(&"unattributed"));
}

#[test]
fn a_real_qwen_profile_is_read_whole() {
    let profile: Value = serde_json::from_str(QWEN).unwrap();
    let (_sandbox, traces) = traces_with_meta("qwen.daemon.channelStartupProfile", &profile);
    let initialize = traces
        .one("channel.initialize")
        .succeeded()
        .has("coldpath.startup.complete", true)
        .has("coldpath.startup.process_to_response_ms", 1308.99)
        .has("coldpath.startup.unattributed_ms", 42.34)
        .has("coldpath.startup.phase.gemini_import_ms", 813.17)
        .has("coldpath.startup.phase.acp_import_ms", 113.04)
        .has("coldpath.startup.phase.initialize_handler_ms", 0.06)
        .has("coldpath.startup.config.ripgrep_probe_ms", 8.05)
        .has("coldpath.startup.config.tool_warmup_ms", 85.32)
        // Built long before this agent was started: nothing can be said.
        .lacks("coldpath.startup.response_transport_ms");
    let record = only_record(&traces);
    assert_eq!(record["spanId"], initialize.span().span_id);
    assert_eq!(record["complete"], true);
    assert_near(&record["totalMs"], 1308.99);
    assert_eq!(
        phase_names(record),
        [
            "process_to_profiler_ready",
            "gemini_import",
            "args_parse",
            "settings_load",
            "config_construction",
            "app_initialization",
            "acp_import",
            "bootstrap_config_initialization",
            "transport_setup",
            "initialize_handler",
            "unattributed"
        ]
    );
    assert_eq!(record["phases"][1]["startMs"], Value::Null);
    assert_near(&record["phases"][1]["durationMs"], 813.17);
}

#[test]
fn values_out_of_bounds_are_left_out_and_make_the_profile_incomplete() {
    let mut profile: Value = serde_json::from_str(QWEN).unwrap();
    profile["phases"]["geminiImportMs"] = json!(600_000.5);
    profile["phases"]["argsParseMs"] = json!("50");
    profile["phases"]["acpImportMs"] = json!(-1);
    profile["phases"]["invented"] = json!(1);
    let (_sandbox, traces) = traces_with_meta("qwen.daemon.channelStartupProfile", &profile);
    traces
        .one("channel.initialize")
        .succeeded()
        .has("coldpath.startup.complete", false)
        .lacks("coldpath.startup.phase.gemini_import_ms")
        .lacks("coldpath.startup.phase.args_parse_ms")
        .lacks("coldpath.startup.phase.acp_import_ms")
        .has("coldpath.startup.phase.settings_load_ms", 2.55);
    let record = only_record(&traces);
    assert_eq!(
        (&record["complete"], &record["dropped"]),
        (&json!(false), &json!(3))
    );
    phase_names(record);
}

#[test]
fn a_profile_that_does_not_add_up_is_kept_and_called_incomplete() {
    let phases = json!([{"name": "imports", "startMs": 0.5, "durationMs": 3.0},
        {"name": "unattributed", "startMs": null, "durationMs": 1.0}]);
    let profile = json!({"v": 1, "complete": true, "totalMs": 9.0, "phases": phases, "dropped": 0});
    let (_sandbox, traces) = traces_with_meta("coldpath.startupProfile", &profile);
    traces
        .one("channel.initialize")
        .has("coldpath.startup.complete", false)
        .has("coldpath.startup.phase.imports_ms", 3.0)
        .has("coldpath.startup.process_to_response_ms", 9.0);
    let record = only_record(&traces);
    assert_eq!(record["complete"], false);
    assert_eq!(
        record["phases"][0],
        json!({"name": "imports", "startMs": 0.5, "durationMs": 3.0})
    );
}

#[test]
fn hostile_profiles_are_bounded_and_fail_nothing() {
    let many: Vec<_> = (0..1_000)
        .map(|n| json!({"name": format!("phase_{n}"), "startMs": 0, "durationMs": 0.25}))
        .collect();
    let long =
        json!([{"name": "n".repeat(49), "durationMs": 1.0}, {"name": "UPPER", "durationMs": 1.0}]);
    for (phases, kept) in [(json!(many), 32), (long, 1)] {
        let profile = json!({"v": 1, "complete": true, "totalMs": 250.0, "phases": phases});
        let (sandbox, traces) = traces_with_meta("coldpath.startupProfile", &profile);
        traces
            .one("channel.initialize")
            .has("coldpath.startup.complete", false);
        let record = only_record(&traces);
        assert_eq!(record["complete"], false);
        assert!(record["dropped"].as_u64().unwrap() > 0, "{record}");
        assert!(phase_names(record).len() <= kept, "{record}");
        let files = sandbox.files_in(&sandbox.trace_dir());
        let file = files
            .iter()
            .find(|path| path.to_string_lossy().ends_with(".profile.jsonl"));
        assert!(std::fs::metadata(file.unwrap()).unwrap().len() <= 4_096);
    }
    for profile in [
        json!(null),
        json!([]),
        json!({"v": 2}),
        json!({"v": 1}),
        json!("x"),
    ] {
        let (_sandbox, traces) = traces_with_meta("coldpath.startupProfile", &profile);
        traces.one("channel.initialize").succeeded();
        traces.one("POST /session").succeeded();
    }
}
