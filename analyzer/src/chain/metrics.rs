//! The end-to-end figures of one run, from the model's metric rules.
//!
//! A figure that cannot be had is absent with a reason, never zero. A run that
//! failed before a figure of time came about counts as infinitely slow in it.

use crate::model::lens::Lens;
use crate::model::metric_rules::{Edge, MetricRule, MetricSource, ResourceCondition};
use crate::model::schema::Part;
use crate::model::window_rules::Unit;
use crate::trace::dataset::SpanIndex;
use crate::trace::span::{Status, Value};
use crate::units::{Nanos, Timestamp, difference};

use super::{Run, clients};

/// Bytes in one KiB, the unit of resident sizes in client records.
const KIB: i64 = 1024;

/// A figure of one run, in nanoseconds or bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Figure {
    /// The value.
    Value(i64),
    /// The run failed before it came about.
    Failed,
    /// It cannot be had, and why.
    Absent(String),
}

/// The figure of `run` for `rule`.
#[must_use]
pub fn figure(lens: &Lens<'_>, run: &Run<'_>, rule: &MetricRule) -> Figure {
    let mut reason = format!("no source of {} in this run", rule.name);
    for source in &rule.sources {
        match from_source(lens, run, rule.unit, source) {
            Figure::Absent(why) => reason = why,
            other => return other,
        }
    }
    // Only where a client measured the run is a missing time one that failed.
    let measured = !run.client.is_empty() || run.record.is_some();
    if run.failure.is_some() && measured && rule.unit == Unit::Ms {
        Figure::Failed
    } else {
        Figure::Absent(reason)
    }
}

fn from_source(lens: &Lens<'_>, run: &Run<'_>, unit: Unit, source: &MetricSource) -> Figure {
    match source {
        MetricSource::Between { from, to, when } => between(lens, run, from, to, when.as_ref()),
        MetricSource::Attribute { attribute, on } => {
            let span = run.first(lens, on);
            let value = span
                .and_then(|span| lens.attribute(span, attribute))
                .and_then(Value::integer);
            value.map_or_else(
                || Figure::Absent(format!("`{on}` has no {attribute}")),
                Figure::Value,
            )
        }
        MetricSource::Record {
            record,
            minus,
            needs_session,
        } => {
            let Some(client) = run.record else {
                return Figure::Absent("no client record joined to this run".to_owned());
            };
            if *needs_session && clients::failed(lens, client) {
                return Figure::Failed;
            }
            let read = |path: &String| match unit {
                Unit::Ms => Nanos::from_decimal_ms(client.get(path)?).map(|value| value.0),
                Unit::Bytes => client.get(path)?.parse::<i64>().ok()?.checked_mul(KIB),
            };
            let subtrahend = minus.as_ref().map_or(Some(0), read);
            let value = read(record)
                .zip(subtrahend)
                .and_then(|(value, less)| value.checked_sub(less));
            value.map_or_else(
                || Figure::Absent(format!("the client record has no {record}")),
                Figure::Value,
            )
        }
    }
}

fn between(
    lens: &Lens<'_>,
    run: &Run<'_>,
    (from_edge, from): &(Edge, String),
    (to_edge, to): &(Edge, String),
    when: Option<&ResourceCondition>,
) -> Figure {
    let Some(first) = run.first(lens, from) else {
        return Figure::Absent(format!("no `{from}` span: no client measured this run"));
    };
    if !run.first_of_process && lens.part(first) == Some(Part::Process) {
        return Figure::Absent("the process had started before this run".to_owned());
    }
    let Some(last) = run.first(lens, to) else {
        return Figure::Absent(format!("no `{to}` span"));
    };
    if let Some(rule) = when
        && lens.resource_text(first, &rule.resource) != Some(rule.equals.as_str())
    {
        let found = lens
            .resource_text(first, &rule.resource)
            .unwrap_or("absent");
        return Figure::Absent(format!(
            "{} is {found}, not {}: the time before main is unknown",
            rule.resource, rule.equals
        ));
    }
    if lens.data.span(last).status == Status::Error {
        return Figure::Failed;
    }
    Figure::Value(
        difference(
            instant(lens, last, *to_edge),
            instant(lens, first, *from_edge),
        )
        .0,
    )
}

fn instant(lens: &Lens<'_>, span: SpanIndex, edge: Edge) -> Timestamp {
    let interval = lens.data.span(span).interval;
    match edge {
        Edge::Start => interval.start(),
        Edge::End => interval.end(),
    }
}
