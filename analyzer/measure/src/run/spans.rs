//! Makes the trace of a run from its record, when the run is over.

use super::failure::Failure;
use super::record::{ClientSpan, RunRecord};
use crate::arm::Arm;
use crate::host::covariates::Value;
use crate::schedule::{Phase, Slot};
use crate::units::Bytes;
use coldpath_trace_format::attributes as keys;
use coldpath_trace_format::emit::{MonoNanos, ReservedSpan, Stage, Telemetry};
use coldpath_trace_format::spans;
use std::time::Duration;

/// Covariate of `run` that is ours: how long the RSS of the listener took to read,
/// nanoseconds; part of the way from spawn to `/health` and of no other span.
pub(super) const RSS_READ_NS: &str = "rss_read_ns";
/// Covariate of `run` that is ours: how long the samples of the tree's memory took,
/// nanoseconds.
pub(super) const SAMPLER_NS: &str = "sampler_ns";
/// Covariate of `run` that is ours: how many there were.
pub(super) const SAMPLES: &str = "samples";
/// Suffix of an injected delay's key.
const INJECT_SUFFIX: &str = "_ns";
/// Suffix of a covariate's key under which the reason stands why it has no value.
pub(super) const REASON_SUFFIX: &str = ".reason";

/// Records every span of a run: what the client did, and the root around it.
pub(super) fn record(telemetry: &Telemetry, arm: &Arm, slot: Slot, record: &RunRecord) {
    for span in &record.spans {
        record_client_span(telemetry, span);
    }
    if let Some((start, end)) = record.shutdown {
        ReservedSpan::new(Some(record.run.context()))
            .record(telemetry, spans::CLIENT_SHUTDOWN, start)
            .end_at(end);
    }
    let mut run = record.run.record(telemetry, spans::RUN, record.spawned);
    set_identity(&mut run, arm, slot);
    set_outcome(&mut run, record);
    set_memory(&mut run, record);
    set_covariates(&mut run, record);
    run.end_at(end_of(record));
}

fn record_client_span(telemetry: &Telemetry, span: &ClientSpan) {
    let mut stage = span.ids.record(telemetry, span.name, span.start);
    if let Some(temperature) = span.temperature {
        stage.set(keys::SESSION_TEMPERATURE, temperature);
    }
    if let Some(id) = &span.session_id {
        stage.set(keys::SESSION_ID, id.clone());
    }
    if let Some(status) = span.status {
        stage.set(keys::HTTP_STATUS, i64::from(status));
    }
    fail(&mut stage, span.failure.as_ref());
    stage.end_at(span.end);
}

fn set_identity(run: &mut Stage, arm: &Arm, slot: Slot) {
    run.set(keys::RUN_INDEX, integer(slot.index as u64));
    run.set(keys::RUN_COHORT, arm.name.clone());
    run.set(keys::RUN_SCENARIO, arm.scenario.to_string());
    for one in &arm.injections {
        let key = format!("{}{}{INJECT_SUFFIX}", keys::RUN_INJECT_PREFIX, one.stage);
        run.set(key, integer(one.nanos()));
    }
    run.set(keys::RUN_WARMUP, slot.phase == Phase::Warmup);
    run.set(keys::RUN_PAIR_INDEX, integer(slot.block as u64));
    if let Some(order) = slot.place.name() {
        run.set(keys::RUN_PAIR_ORDER, order);
    }
}

fn set_outcome(run: &mut Stage, record: &RunRecord) {
    let code = record
        .ended
        .as_ref()
        .and_then(|ended| ended.exit.as_attribute());
    if let Some(code) = code {
        run.set(keys::RUN_EXIT_CODE, code);
    }
    if !record.fallbacks.is_empty() {
        run.set(keys::RUN_FALLBACK, record.fallbacks.join("; "));
    }
    if let Some(failure) = &record.failure {
        run.set(keys::RUN_FAILURE, failure.to_string());
    }
    fail(run, record.failure.as_ref());
}

fn set_memory(run: &mut Stage, record: &RunRecord) {
    let memory = &record.memory;
    for (key, bytes) in [
        (keys::RSS_LISTENER, memory.listener),
        (keys::RSS_SESSION, memory.session),
        (keys::RSS_SESSION_PROCESS, memory.session_process),
        (keys::RSS_PEAK, memory.peak),
        (keys::RSS_SAMPLED_PEAK, memory.sampled_peak),
    ] {
        if let Some(bytes) = bytes.map(Bytes::get) {
            run.set(key, integer(bytes));
        }
    }
    let host = |name: &str| format!("{}{name}", keys::HOST_PREFIX);
    let nanos = |cost: Duration| integer(u64::try_from(cost.as_nanos()).unwrap_or(u64::MAX));
    if let Some(cost) = memory.listener_cost {
        run.set(host(RSS_READ_NS), nanos(cost));
    }
    if let Some((samples, cost)) = memory.samples {
        run.set(host(SAMPLES), integer(samples));
        run.set(host(SAMPLER_NS), nanos(cost));
    }
}

fn set_covariates(run: &mut Stage, record: &RunRecord) {
    for covariate in &record.covariates {
        let key = format!("{}{}", keys::HOST_PREFIX, covariate.name);
        match &covariate.value {
            Ok(Value::Float(value)) => run.set(key, *value),
            Ok(Value::Count(count)) => run.set(key, integer(*count)),
            Err(reason) => run.set(format!("{key}{REASON_SUFFIX}"), reason.clone()),
        }
    }
}

fn fail(stage: &mut Stage, failure: Option<&Failure>) {
    if let Some(failure) = failure {
        stage.fail(failure.code.name(), failure.message.clone());
    }
}

/// The run lasts until its program has ended; where none was started, until that
/// was known.
fn end_of(record: &RunRecord) -> MonoNanos {
    record
        .ended
        .as_ref()
        .map_or(record.spawned, |ended| ended.at)
}

/// OTLP has no unsigned integers.
fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
