//! Samples to summaries: metrics and stages over runs.

use serde::Serialize;

use crate::chain::metrics::Figure;
use crate::model::window_rules::Unit;
use crate::stats::attribution::{Windows, attribution};
use crate::stats::correlation::correlate;
use crate::stats::mean;
use crate::stats::order_interval::{OrderInterval, order_interval};
use crate::stats::quantile::{Definition, Quantile, Sample, censored, median, quantile, sorted};
use crate::stats::variance::variance_share;
use crate::trace::names::Names;
use crate::units::Nanos;

use super::{Amount, CorrelationReport, StageReport, Totals, millionth};

/// One metric over all runs.
#[derive(Clone, Debug, Serialize)]
pub struct MetricReport {
    /// Name.
    pub name: String,
    /// `ms`, `bytes` or `ratio`.
    pub unit: &'static str,
    /// Runs that have it, failed ones included.
    pub n: usize,
    /// Median.
    pub p50: Option<Amount>,
    /// 95 % interval of the median; an end beyond all measured values is null.
    pub p50_ci: Option<[Option<Amount>; 2]>,
    /// 95th percentile.
    pub p95: Option<Amount>,
    /// 95 % interval of it.
    pub p95_ci: Option<[Option<Amount>; 2]>,
    /// Runs that an interval of it needs, where there are fewer.
    pub p95_needs_n: Option<usize>,
    /// Largest; null when a run failed.
    pub max: Option<Amount>,
    /// Mean; null when a run failed.
    pub mean: Option<Amount>,
    /// Runs that failed before they had it, counted as infinitely slow.
    pub n_failed: usize,
    /// Quantiles that are more than this, because failed runs stand there.
    pub above: Option<Amount>,
    /// Why it is null.
    pub reason: Option<String>,
    /// Finest difference that its values show.
    #[serde(skip)]
    pub quantum: Nanos,
}

/// The step of a microsecond clock.
const MICROSECOND: i64 = 1_000;

/// 1 µs where every value is whole microseconds, else 1 ns: figures taken from a
/// microsecond clock show no finer digits. A finer clock that meets whole
/// microseconds by chance loses zeros only.
pub(super) fn grain(values: impl IntoIterator<Item = f64>) -> Nanos {
    let whole = |value: f64| value % MICROSECOND as f64 == 0.0;
    Nanos(if values.into_iter().all(whole) {
        MICROSECOND
    } else {
        1
    })
}

/// Summarises the figures of one metric, one a run.
#[must_use]
pub fn metric(
    name: &str,
    unit: Unit,
    figures: &[Figure<'_>],
    names: &Names,
    definition: Definition,
) -> MetricReport {
    let mut samples = Vec::new();
    for figure in figures {
        match figure {
            Figure::Value(value) => samples.push(Sample::Value(*value as f64)),
            Figure::Failed => samples.push(Sample::Beyond),
            Figure::Absent(_) => {}
        }
    }
    let values: Vec<f64> = samples
        .iter()
        .filter_map(|sample| value_of(*sample))
        .collect();
    let n_failed = samples.len() - values.len();
    samples.sort_unstable_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    let amount = |value: f64| amount(unit, value);
    let at = |p| censored(&samples, p, definition);
    let value = |quantile| match quantile {
        Some(Quantile::Value(value)) => Some(amount(value)),
        _ => None,
    };
    let (p50, p95) = (at(0.5), at(0.95));
    let bound = [p50, p95, at(1.0)]
        .into_iter()
        .find_map(|quantile| match quantile {
            Some(Quantile::Above(bound)) => Some(amount(bound)),
            _ => None,
        });
    let whole = n_failed == 0;
    let (p95_ci, p95_needs_n) = interval(&samples, 0.95, unit);
    MetricReport {
        name: name.to_owned(),
        unit: unit.name(),
        // Where every run failed, nothing says that the metric applies at all.
        n: if values.is_empty() { 0 } else { samples.len() },
        p50: value(p50),
        p50_ci: interval(&samples, 0.5, unit).0,
        p95: value(p95),
        p95_ci,
        p95_needs_n: p95_needs_n.filter(|_| !values.is_empty()),
        max: value(at(1.0)),
        mean: mean(&values).filter(|_| whole).map(amount),
        n_failed,
        above: bound,
        reason: if values.is_empty() {
            absence(figures, names).or_else(|| Some(no_value(n_failed)))
        } else {
            None
        },
        quantum: grain(values.iter().copied()),
    }
}

/// Of several reasons the alphabetically last, so that no order shows.
fn absence(figures: &[Figure<'_>], names: &Names) -> Option<String> {
    let reasons = figures.iter().filter_map(|figure| match figure {
        Figure::Absent(why) => Some(*why),
        _ => None,
    });
    // Most runs have the same, which is put into words once.
    let mut reasons: Vec<_> = reasons.collect();
    reasons.dedup();
    reasons.into_iter().map(|why| why.words(names)).max()
}

fn no_value(n_failed: usize) -> String {
    match n_failed {
        0 => "no run has it".to_owned(),
        1 => "the run failed before it had it, and no other run has it".to_owned(),
        n => format!("{n} runs failed before they had it, and no other run has it"),
    }
}

/// The rate of failed runs as a metric.
#[must_use]
pub fn failure_rate(failed: usize, total: usize) -> MetricReport {
    let rate =
        (total > 0).then(|| Amount::Ratio(Nanos::rounded(failed as f64 / total as f64 * 1e6).0));
    MetricReport {
        name: "failed".to_owned(),
        unit: "ratio",
        n: total,
        p50: None,
        p50_ci: None,
        p95: None,
        p95_ci: None,
        p95_needs_n: None,
        max: None,
        mean: rate,
        n_failed: failed,
        above: None,
        reason: Some(if total > 0 {
            "a rate has no quantiles".to_owned()
        } else {
            "no runs".to_owned()
        }),
        quantum: Nanos(1),
    }
}

fn value_of(sample: Sample) -> Option<f64> {
    match sample {
        Sample::Value(value) => Some(value),
        Sample::Beyond => None,
    }
}

fn amount(unit: Unit, value: f64) -> Amount {
    match unit {
        Unit::Ms => Amount::Time(Nanos::rounded(value)),
        Unit::Bytes => Amount::Bytes(Nanos::rounded(value).0),
    }
}

/// Interval of a quantile from order statistics, or the runs it needs.
fn interval(sorted: &[Sample], p: f64, unit: Unit) -> (Option<[Option<Amount>; 2]>, Option<usize>) {
    match order_interval(sorted.len(), p) {
        OrderInterval::NeedsN(n) => (None, Some(n)),
        OrderInterval::Between { low, high } => {
            let at = |index: usize| {
                sorted
                    .get(index - 1)
                    .and_then(|sample| value_of(*sample))
                    .map(|value| amount(unit, value))
            };
            (Some([at(low), at(high)]), None)
        }
    }
}

/// Quantiles of a window's lengths.
#[must_use]
pub fn totals(lengths: &[f64], definition: Definition) -> Totals {
    let sorted = sorted(lengths);
    let at = |p| quantile(&sorted, p, definition).map(Nanos::rounded);
    Totals {
        p50: at(0.5),
        p95: at(0.95),
        max: at(1.0),
        mean: mean(lengths).map(Nanos::rounded),
    }
}

/// The samples that one stage is judged by, one entry a run.
pub struct StageSamples<'a> {
    /// Exclusive time, nanoseconds.
    pub times: &'a [f64],
    /// Length of the window.
    pub totals: &'a [f64],
    /// Latency that the client saw, where it is known.
    pub latency: &'a [Option<f64>],
    /// Name of that metric.
    pub latency_name: &'a str,
    /// Runs near the quantiles of the total.
    pub windows: &'a Windows,
}

/// Summarises one stage.
#[must_use]
pub fn stage(
    name: &str,
    n_present: usize,
    samples: &StageSamples<'_>,
    definition: Definition,
) -> StageReport {
    let times = samples.times;
    let total = totals(times, definition);
    let near_p50 = attribution(times, &samples.windows.p50);
    let near_p95 = attribution(times, &samples.windows.p95);
    StageReport {
        name: name.to_owned(),
        n: times.len(),
        n_present,
        p50: total.p50,
        p95: total.p95,
        max: total.max,
        mean: total.mean,
        share_p50: median_share(times, samples.totals),
        p50_attribution: near_p50.map(Nanos::rounded),
        variance_share: variance_share(times, samples.totals).map(millionth),
        p95_excess: near_p95
            .zip(near_p50)
            .map(|(high, middle)| Nanos::rounded(high - middle)),
        sched: None,
        correlation: correlation(times, samples.latency, samples.latency_name),
    }
}

/// Median over runs of part ÷ whole; runs with an empty whole have no share.
#[must_use]
pub fn median_share(parts: &[f64], wholes: &[f64]) -> Option<f64> {
    let shares = parts
        .iter()
        .zip(wholes)
        .filter(|(_, whole)| **whole > 0.0)
        .map(|(part, whole)| part / whole);
    median(&shares.collect::<Vec<_>>()).map(millionth)
}

fn correlation(times: &[f64], latency: &[Option<f64>], with: &str) -> CorrelationReport {
    let pairs = times
        .iter()
        .zip(latency)
        .filter_map(|(time, latency)| Some((*time, (*latency)?)));
    let pairs: Vec<(f64, f64)> = pairs.collect();
    let mut report = CorrelationReport {
        with: with.to_owned(),
        ..CorrelationReport::default()
    };
    if pairs.is_empty() {
        report.reason = Some(format!("no run has {with}"));
        return report;
    }
    match correlate(&pairs) {
        Ok(found) => {
            report.pearson = Some(millionth(found.pearson));
            report.pearson_ci = found
                .pearson_ci
                .map(|(low, high)| [millionth(low), millionth(high)]);
            report.spearman = Some(millionth(found.spearman));
            report.slope = Some(millionth(found.slope));
        }
        Err(undefined) => report.reason = Some(undefined.to_string()),
    }
    report
}
