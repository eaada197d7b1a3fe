//! The end-to-end figures of one run, from the model's metric rules.
//!
//! A figure that cannot be had is absent with a reason, never zero. A run that
//! failed before a figure of time came about counts as infinitely slow in it.

use crate::model::lens::Lens;
use crate::model::metric_rules::{Edge, MetricRule, MetricSource, ResourceCondition};
use crate::model::schema::Part;
use crate::model::window_rules::Unit;
use crate::trace::dataset::SpanIndex;
use crate::trace::names::{Names, Symbol};
use crate::trace::span::{Status, Value};
use crate::units::{Nanos, Timestamp, difference};

use super::{Run, clients};

/// Bytes in one KiB, the unit of resident sizes in client records.
const KIB: i64 = 1024;

/// A figure of one run, in nanoseconds or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure<'a> {
    /// The value.
    Value(i64),
    /// The run failed before it came about.
    Failed,
    /// It cannot be had, and why.
    Absent(Absence<'a>),
}

/// Why a figure cannot be had. It borrows from the model and the data, and is
/// small: there is one for each figure of each of thousands of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence<'a> {
    /// The metric has no source in this run.
    NoSource(&'a String),
    /// No span of this kind, where the figure starts.
    NoStart(&'a String),
    /// No span of this kind, where it ends.
    NoEnd(&'a String),
    /// The process part belongs to an earlier run.
    Shared,
    /// A resource attribute has another value than the figure needs: this text, or
    /// none.
    Resource(&'a ResourceCondition, Option<Symbol>),
    /// The span that this source reads is not there, or has no such attribute.
    NoAttribute(&'a MetricSource),
    /// No client record.
    NoRecord,
    /// The record has nothing at this path.
    NotInRecord(&'a String),
}

impl Absence<'_> {
    /// The reason in words; `names` are those of the data.
    #[must_use]
    pub fn words(self, names: &Names) -> String {
        match self {
            Self::NoSource(metric) => format!("no source of {metric} in this run"),
            Self::NoStart(kind) => format!("no `{kind}` span: no client measured this run"),
            Self::NoEnd(kind) => format!("no `{kind}` span"),
            Self::Shared => "the process had started before this run".to_owned(),
            Self::Resource(rule, found) => format!(
                "{} is {}, not {}: the time before main is unknown",
                rule.resource,
                found.map_or("absent", |found| names.text(found)),
                rule.equals
            ),
            Self::NoAttribute(MetricSource::Attribute { attribute, on }) => {
                format!("`{on}` has no {attribute}")
            }
            Self::NoAttribute(_) => "no such attribute".to_owned(),
            Self::NoRecord => "no client record joined to this run".to_owned(),
            Self::NotInRecord(path) => format!("the client record has no {path}"),
        }
    }
}

/// The figure of `run` for `rule`.
#[must_use]
pub fn figure<'a>(lens: &Lens<'a>, run: &Run<'_>, rule: &'a MetricRule) -> Figure<'a> {
    let mut reason = Absence::NoSource(&rule.name);
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

/// The source that gives a run its figure; `None` where none does.
#[must_use]
pub fn source_of<'a>(
    lens: &Lens<'a>,
    run: &Run<'_>,
    rule: &'a MetricRule,
) -> Option<&'a MetricSource> {
    let mut sources = rule.sources.iter();
    sources.find(|source| {
        let figure = from_source(lens, run, rule.unit, source);
        matches!(figure, Figure::Value(_))
    })
}

fn from_source<'a>(
    lens: &Lens<'a>,
    run: &Run<'_>,
    unit: Unit,
    source: &'a MetricSource,
) -> Figure<'a> {
    match source {
        MetricSource::Between { from, to, when } => between(lens, run, from, to, when.as_ref()),
        MetricSource::Attribute { attribute, on } => {
            let span = run.first(lens, on);
            let value = span
                .and_then(|span| lens.attribute(span, attribute))
                .and_then(Value::integer);
            value.map_or_else(
                || Figure::Absent(Absence::NoAttribute(source)),
                Figure::Value,
            )
        }
        MetricSource::Record {
            record,
            minus,
            needs_session,
            ..
        } => {
            let Some(client) = run.record else {
                return Figure::Absent(Absence::NoRecord);
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
                || Figure::Absent(Absence::NotInRecord(record)),
                Figure::Value,
            )
        }
    }
}

fn between<'a>(
    lens: &Lens<'a>,
    run: &Run<'_>,
    (from_edge, from): &'a (Edge, String),
    (to_edge, to): &'a (Edge, String),
    when: Option<&'a ResourceCondition>,
) -> Figure<'a> {
    let Some(first) = run.first(lens, from) else {
        return Figure::Absent(Absence::NoStart(from));
    };
    if !run.first_of_process && lens.part(first) == Some(Part::Process) {
        return Figure::Absent(Absence::Shared);
    }
    let Some(last) = run.first(lens, to) else {
        return Figure::Absent(Absence::NoEnd(to));
    };
    if let Some(rule) = when
        && lens.resource_text(first, &rule.resource) != Some(rule.equals.as_str())
    {
        let found = lens.resource_symbol(first, &rule.resource);
        return Figure::Absent(Absence::Resource(rule, found));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_takes_sixteen_bytes() {
        assert_eq!(size_of::<Figure<'_>>(), 16);
    }
}
