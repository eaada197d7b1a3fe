//! The agent's start-up: its phases, timed as they end, told afterwards.
//!
//! The window runs from the spawn instant (the spawner's, where a valid
//! `COLDPATH_SPAWN` says it; else the first clock reading of `main`) to the
//! moment at which the initialize response is ready to be serialised. Phases are
//! recorded before anybody can ask for them; the client that asks gets them as a
//! profile, a trace gets them as spans.

use crate::edges::{Edge, EdgeClock, millis};
use coldpath_trace_format::attributes::META_STARTUP_PROFILE;
use coldpath_trace_format::emit::{SpanContext, SpawnStamp, Stage, Telemetry, inject};
use coldpath_trace_format::profile::{Phase, PhaseList};
use coldpath_trace_format::spans;
use serde::Serialize;
use serde_json::{Map, Value};

/// The start-up while it runs.
#[derive(Debug)]
pub(crate) struct Startup {
    start: Edge,
    last: Edge,
    phases: Vec<Recorded>,
}

#[derive(Debug)]
struct Recorded {
    name: &'static str,
    from: Edge,
    to: Edge,
}

impl Startup {
    /// Begins at the spawn instant of `stamp`, with phase `exec` up to `main`;
    /// without a stamp at `main`.
    pub(crate) fn begin(main: Edge, stamp: Option<SpawnStamp>) -> Self {
        let start = stamp.map_or(main, |stamp| Edge::process_start(stamp.spawned));
        let mut startup = Self {
            start,
            last: start,
            phases: Vec::with_capacity(16),
        };
        if stamp.is_some() {
            startup.push("exec", main);
        }
        startup
    }

    /// Ends the phase `name`, which began where the phase before it ended.
    pub(crate) fn mark(&mut self, name: &'static str, clock: &EdgeClock) {
        inject::hold_up(spans::AGENT_PHASE_PREFIX, name);
        let now = clock.edge();
        self.push(name, now);
    }

    /// Ends the phase `name` at an edge that was taken before.
    pub(crate) fn mark_at(&mut self, name: &'static str, edge: Edge) {
        self.push(name, edge);
    }

    fn push(&mut self, name: &'static str, to: Edge) {
        let from = self.last;
        self.phases.push(Recorded { name, from, to });
        self.last = to;
    }

    /// Spans of the start-up: `agent.startup` and one child a phase. `failure`
    /// says why there was no initialize response.
    pub(crate) fn emit(
        &self,
        telemetry: &Telemetry,
        parent: Option<&SpanContext>,
        failure: Option<&'static str>,
    ) {
        let mut whole = telemetry.stage_at(spans::AGENT_STARTUP, parent, self.start.at);
        set_sched(&mut whole, &self.start, &self.last);
        if let Some(failure) = failure {
            whole.fail("not_initialized", failure);
        }
        let context = whole.context();
        for phase in &self.phases {
            let name = format!("{}{}", spans::AGENT_PHASE_PREFIX, phase.name);
            let mut stage = telemetry.stage_at(name, context.as_ref(), phase.from.at);
            set_sched(&mut stage, &phase.from, &phase.to);
            stage.end_at(phase.to.at);
        }
        whole.end_at(self.last.at);
    }

    /// The profile of the window up to the last phase's end.
    pub(crate) fn profile(&self) -> StartupProfile {
        let mut list = PhaseList::new();
        for Recorded { name, from, to } in &self.phases {
            let start = millis(from.at.since(self.start.at));
            list.push(name, Some(start), millis(to.at.since(from.at)));
        }
        let total_ms = millis(self.last.at.since(self.start.at));
        StartupProfile {
            v: 1,
            complete: list.dropped() == 0,
            total_ms,
            phases: list.closed(total_ms),
            dropped: list.dropped(),
        }
    }
}

/// Sets the scheduler figures of a stage between two edges that have them.
pub(crate) fn set_sched(stage: &mut Stage, from: &Edge, to: &Edge) {
    if let (Some(before), Some(after)) = (&from.sched, &to.sched) {
        stage.set_sched(before, after);
    }
}

/// Value of `_meta["coldpath.startupProfile"]` in the initialize response.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StartupProfile {
    v: u8,
    complete: bool,
    total_ms: f64,
    phases: Vec<Phase>,
    dropped: u32,
}

/// Whether an initialize request asks for the profile, in the one version there is.
pub(crate) fn is_profile_wanted(meta: &Map<String, Value>) -> bool {
    meta.get(META_STARTUP_PROFILE)
        .and_then(|wanted| wanted.get("v"))
        .and_then(Value::as_u64)
        == Some(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use coldpath_trace_format::emit::{Anchor, MonoNanos, WallNanos};
    use coldpath_trace_format::profile::handover;
    use serde_json::json;

    fn edge(nanos: u64) -> Edge {
        Edge {
            at: MonoNanos::from_nanos(nanos),
            sched: None,
        }
    }

    fn startup(spawned: Option<u64>) -> Startup {
        let stamp = spawned.map(|nanos| SpawnStamp {
            anchor: Anchor::from_parts(WallNanos::from_unix_nanos(1), MonoNanos::from_nanos(1)),
            spawned: MonoNanos::from_nanos(nanos),
            spawner: 1,
        });
        let mut startup = Startup::begin(edge(1_400_000), stamp);
        startup.mark_at("arguments", edge(1_412_345));
        startup.mark_at("initialize", edge(2_000_000));
        startup
    }

    #[test]
    fn the_profile_counts_from_the_spawn_instant() {
        let profile = serde_json::to_value(startup(Some(1_000_000)).profile()).unwrap();
        assert_eq!(
            profile,
            json!({"v": 1, "complete": true, "totalMs": 1.0, "dropped": 0, "phases": [
                {"name": "exec", "startMs": 0.0, "durationMs": 0.4},
                {"name": "arguments", "startMs": 0.4, "durationMs": 0.012_345},
                {"name": "initialize", "startMs": 0.412_345, "durationMs": 0.587_655},
                {"name": "unattributed", "startMs": null, "durationMs": 0.0},
            ]})
        );
    }

    #[test]
    fn without_a_stamp_it_counts_from_main_and_has_no_exec() {
        let profile = serde_json::to_value(startup(None).profile()).unwrap();
        assert_eq!(profile["totalMs"], 0.6);
        assert_eq!(profile["phases"][0]["name"], "arguments");
        assert_eq!(profile["phases"][0]["startMs"], 0.0);
    }

    #[test]
    fn the_reader_of_the_contract_finds_it_complete() {
        let profile = startup(Some(1_000_000)).profile();
        let meta = json!({ META_STARTUP_PROFILE: profile });
        let read = handover::read(meta.as_object().unwrap()).unwrap();
        assert!(read.complete, "{read:?}");
        assert_eq!(read.process_to_response_ms, Some(1.0));
        assert_eq!(read.phases.phases().len(), 3);
    }

    #[test]
    fn the_profile_is_given_for_version_1_only() {
        for (meta, wanted) in [
            (json!({"coldpath.startupProfile": {"v": 1}}), true),
            (json!({"coldpath.startupProfile": {"v": 1, "x": 2}}), true),
            (json!({"coldpath.startupProfile": {"v": 2}}), false),
            (json!({"coldpath.startupProfile": {"v": "1"}}), false),
            (json!({"coldpath.startupProfile": true}), false),
            (
                json!({"qwen.daemon.channelStartupProfile": {"v": 1}}),
                false,
            ),
            (json!({}), false),
        ] {
            assert_eq!(
                is_profile_wanted(meta.as_object().unwrap()),
                wanted,
                "{meta}"
            );
        }
    }
}
