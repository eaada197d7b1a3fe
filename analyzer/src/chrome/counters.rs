//! Sizes of memory over time, where the model says when one was taken.
//!
//! A metric in bytes that a span's attribute gives, `NAME_EVENT`, stands where
//! the time metric `process_to_EVENT` ends. A size without such an instant, a
//! peak, or one of a client's record has no place on the axis.

use serde_json::Map;

use crate::chain::Run;
use crate::chain::metrics::{Figure, figure};
use crate::model::lens::Lens;
use crate::model::metric_rules::{Edge, MetricRule, MetricSource};
use crate::model::window_rules::Unit;

use super::event::{Event, Kind, shown};
use super::lanes::Lanes;
use super::slices::Slices;

/// How the names of time metrics of a process begin.
const PROCESS_TO: &str = "process_to_";

/// Draws the sizes of a run.
pub fn counters(
    lens: &Lens<'_>,
    run: &Run<'_>,
    slices: &Slices,
    lanes: &Lanes,
    events: &mut Vec<Event>,
) {
    let metrics = lens.model.metrics.iter();
    for rule in metrics.filter(|rule| rule.unit == Unit::Bytes) {
        let Some((name, event)) = rule.name.split_once('_') else {
            continue;
        };
        let Some(MetricSource::Attribute { on, .. }) = rule.sources.first() else {
            continue;
        };
        let span = run.first(lens, on);
        let host = span.and_then(|span| slices.of_span.get(&span));
        let Figure::Value(value) = figure(lens, run, rule) else {
            continue;
        };
        if let (Some(host), Some(at)) = (host, instant(lens, run, slices, event)) {
            let (pid, tid) = slices.place(lanes, *host);
            events.push(Event {
                kind: Kind::Counter,
                name: shown(name),
                category: "counter",
                at,
                pid,
                tid,
                args: Map::from_iter([("bytes".to_owned(), value.into())]),
            });
        }
    }
}

/// Where the time metric of an event ends, after the run's zero.
fn instant(lens: &Lens<'_>, run: &Run<'_>, slices: &Slices, event: &str) -> Option<u64> {
    let wanted = |rule: &&MetricRule| rule.name.strip_prefix(PROCESS_TO) == Some(event);
    let rule = lens.model.metrics.iter().find(wanted)?;
    let ends = rule.sources.iter().filter_map(|source| match source {
        MetricSource::Between {
            to: (edge, kind), ..
        } => Some((*edge, run.first(lens, kind)?)),
        _ => None,
    });
    let (edge, span) = ends
        .into_iter()
        .find(|(_, span)| slices.of_span.contains_key(span))?;
    let interval = lens.data.span(span).interval;
    Some(slices.micros(match edge {
        Edge::Start => interval.start(),
        Edge::End => interval.end(),
    }))
}
