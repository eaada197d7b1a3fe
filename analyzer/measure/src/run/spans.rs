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

/// Covariate of `run` that is ours: how long the RSS of the listener took to read,
/// nanoseconds; part of the way from spawn to `/health` and of no other span.
pub(super) const RSS_READ_NS: &str = "rss_read_ns";
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
    run.set(keys::RUN_SCENARIO, arm.scenario.name());
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
    ] {
        if let Some(bytes) = bytes.map(Bytes::get) {
            run.set(key, integer(bytes));
        }
    }
    if let Some(cost) = memory.listener_cost {
        let nanos = u64::try_from(cost.as_nanos()).unwrap_or(u64::MAX);
        run.set(
            format!("{}{RSS_READ_NS}", keys::HOST_PREFIX),
            integer(nanos),
        );
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
