//! Sections of what the experiment did: scenarios side by side, and how the
//! latency went with the client's wait.

use super::super::numbers::{NONE, amount, coefficient, escape, or_none};
use super::super::{DelayReport, MetricReport, ScenarioReport};
use super::{Grid, Section, head};

/// One row a cohort and scenario, one column a metric of time or rate.
pub(super) fn beside(scenarios: &[ScenarioReport]) -> Option<Section> {
    let first = scenarios.first()?;
    let shown: Vec<usize> = (0..first.metrics.len())
        .filter(|column| {
            let mut own = scenarios.iter().filter_map(|one| one.metrics.get(*column));
            own.any(|metric| metric.unit != "bytes" && metric.n > 0)
        })
        .collect();
    let several = scenarios.iter().any(|one| one.cohort != first.cohort);
    let row = |one: &ScenarioReport| {
        let scenario = if one.scenario.is_empty() {
            NONE
        } else {
            &one.scenario
        };
        let name = if several {
            format!("{}: {}", escape(&one.cohort), escape(scenario))
        } else {
            escape(scenario)
        };
        let metrics = shown
            .iter()
            .map(|column| or_none(one.metrics.get(*column), middle));
        [name, one.n.to_string()]
            .into_iter()
            .chain(metrics)
            .collect()
    };
    let names = shown
        .iter()
        .map(|column| escape(&first.metrics[*column].name));
    Some(Section {
        title: "Scenarios side by side (medians)".to_owned(),
        lines: Vec::new(),
        grid: Some(Grid {
            head: head(&["scenario", "n"]).into_iter().chain(names).collect(),
            rows: scenarios.iter().map(row).collect(),
        }),
        notes: Vec::new(),
    })
}

/// The median, the rate where it is one, or what it is more than.
fn middle(metric: &MetricReport) -> String {
    let print = |value| amount(value, metric.quantum);
    match (metric.p50.or(metric.mean), metric.above) {
        (Some(value), _) => print(value),
        (None, Some(bound)) => format!("> {}", print(bound)),
        (None, None) => NONE.to_owned(),
    }
}

/// A wait of a second beside a start of a millisecond leaves a slope of thousandths.
fn slope(value: f64) -> String {
    format!("{value:.4}")
}

pub(super) fn delays(delays: &[DelayReport]) -> Option<Section> {
    let row = |one: &DelayReport| {
        let between = |ends: Option<[f64; 2]>| {
            or_none(ends, |[low, high]| {
                format!("{} … {}", coefficient(low), coefficient(high))
            })
        };
        let slopes = |ends: Option<[f64; 2]>| {
            or_none(ends, |[low, high]| {
                format!("{} … {}", slope(low), slope(high))
            })
        };
        let mut of = escape(&one.scenario);
        if !one.cohort.is_empty() {
            of = format!("{}: {of}", escape(&one.cohort));
        }
        vec![
            of,
            one.n.to_string(),
            one.levels.to_string(),
            or_none(one.slope, slope),
            slopes(one.slope_ci),
            or_none(one.pearson, coefficient),
            between(one.pearson_ci),
            or_none(one.spearman, coefficient),
            one.reason.clone().unwrap_or_default(),
        ]
    };
    let rows: Vec<_> = delays.iter().map(row).collect();
    let metric = &delays.first()?.metric;
    Some(Section {
        title: format!("{} against the client's wait before it", escape(metric)),
        lines: Vec::new(),
        grid: Some(Grid {
            head: head(&[
                "scenario",
                "n",
                "waits",
                "slope",
                "95 % interval",
                "Pearson",
                "95 % interval",
                "Spearman",
                "reason",
            ]),
            rows,
        }),
        notes: vec!["slope: milliseconds a millisecond; −1 is waiting for work that was under way, 0 is none of it".to_owned()],
    })
}
