//! Sections of end-to-end metrics: of all runs, of a cohort, compared in pairs.

use super::super::comparisons::METRIC;
use super::super::numbers::{NONE, amount, cohort_name, escape, or_none, signed_amount};
use super::super::{Amount, CohortReport, Comparison, MetricReport};
use super::{Grid, Section, head};

pub(super) fn metrics(title: &str, metrics: &[MetricReport]) -> Section {
    let rows: Vec<_> = metrics
        .iter()
        .filter(|metric| metric.n > 0)
        .map(metric_row)
        .collect();
    let absent: Vec<_> = metrics
        .iter()
        .filter(|metric| metric.n == 0)
        .map(|metric| metric.name.as_str())
        .collect();
    let mut notes = Vec::new();
    if !absent.is_empty() {
        notes.push(format!(
            "not in these runs (JSON says why): {}",
            absent.join(", ")
        ));
    }
    let grid = (!rows.is_empty()).then(|| Grid {
        head: head(&["metric", "n", "P50", "95 % interval", "P95", "max", "mean"]),
        rows,
    });
    Section {
        title: title.to_owned(),
        lines: Vec::new(),
        grid,
        notes,
    }
}

fn metric_row(metric: &MetricReport) -> Vec<String> {
    let print = |value: Amount| amount(value, metric.quantum);
    let bounded = |value: Option<Amount>| match (value, metric.above) {
        (Some(value), _) => print(value),
        (None, Some(bound)) => format!("> {}", print(bound)),
        (None, None) => NONE.to_owned(),
    };
    // Of one run they would all be the same.
    let spread = |value: Option<Amount>| match metric.n {
        1 => NONE.to_owned(),
        _ => bounded(value),
    };
    let interval = or_none(metric.p50_ci, |[low, high]| {
        format!("{} … {}", or_none(low, print), or_none(high, print))
    });
    vec![
        escape(&metric.name),
        metric.n.to_string(),
        bounded(metric.p50),
        interval,
        spread(metric.p95),
        spread(metric.max),
        or_none(metric.mean, print),
    ]
}

pub(super) fn cohort(cohort: &CohortReport) -> Section {
    metrics(
        &format!("Cohort {} (n = {})", cohort_name(&cohort.name), cohort.n),
        &cohort.metrics,
    )
}

/// Metrics only: windows have their own tables.
pub(super) fn comparisons(comparisons: &[Comparison]) -> Option<Section> {
    let row = |one: &Comparison| {
        let print = |value: Amount| signed_amount(value, one.quantum);
        let shift = or_none(one.shift.estimate, print);
        let shift_ci = or_none(one.shift.low.zip(one.shift.high), |(low, high)| {
            format!("{} … {}", print(low), print(high))
        });
        let three = |value: f64| format!("{value:.3}");
        let ratio_ci = or_none(one.ratio.low.zip(one.ratio.high), |(low, high)| {
            format!("{low:.3} … {high:.3}")
        });
        vec![
            format!(
                "{}: {} − {}",
                escape(&one.metric),
                cohort_name(&one.candidate),
                cohort_name(&one.control)
            ),
            one.n_pairs.to_string(),
            shift,
            shift_ci,
            or_none(one.ratio.estimate, three),
            ratio_ci,
        ]
    };
    let metrics = comparisons.iter().filter(|one| one.kind == METRIC);
    let rows: Vec<_> = metrics.map(row).collect();
    let grid = (!rows.is_empty()).then(|| Grid {
        head: head(&[
            "comparison",
            "pairs",
            "shift",
            "95 % interval",
            "ratio",
            "95 % interval",
        ]),
        rows,
    })?;
    Some(Section {
        title: "Paired comparisons (Hodges–Lehmann)".to_owned(),
        lines: Vec::new(),
        grid: Some(grid),
        notes: vec!["a − b: the shift is how much longer or larger a is, the ratio is a ÷ b; each interval is that of the column before it".to_owned()],
    })
}
