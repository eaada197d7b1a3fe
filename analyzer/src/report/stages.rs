//! Windows and stages over runs, as a report prints them. Types only; they are
//! made in `windows` and `summary`.

use serde::Serialize;

use crate::units::Nanos;

/// Below this n one or two runs make a variance, a slope or a correlation:
/// findings and tables leave them out, and JSON has them beside their n.
pub const FEW_RUNS: usize = 5;
/// Below this n the slowest tenth is one run, and one run is an anecdote.
pub const SLOW_RUNS_MIN: usize = 10;

/// Quantiles of a window's length.
#[derive(Clone, Debug, Serialize)]
pub struct Totals {
    /// Median.
    pub p50: Option<Nanos>,
    /// 95th percentile.
    pub p95: Option<Nanos>,
    /// Largest.
    pub max: Option<Nanos>,
    /// Mean.
    pub mean: Option<Nanos>,
}

/// One window over all complete runs.
#[derive(Clone, Debug, Serialize)]
pub struct WindowReport {
    /// Name.
    pub name: String,
    /// Name for people.
    #[serde(skip)]
    pub title: String,
    /// Finest difference that its times can show.
    #[serde(skip)]
    pub quantum: Nanos,
    /// How many there are: one a run, or one for each of its cold requests.
    pub n: usize,
    /// Runs that have it.
    pub runs: usize,
    /// Median of Σ durations of the stages ÷ the window.
    pub overlap_factor: Option<f64>,
    /// Median of the time that more than one stage covers.
    #[serde(skip)]
    pub overlap: Option<Nanos>,
    /// The slowest tenth of the runs, the slowest first.
    pub slow_runs: Vec<String>,
    /// Its length.
    pub total: Totals,
    /// Its stages.
    pub stages: Vec<StageReport>,
    /// How many stand together in the last of them, because there are too many.
    #[serde(rename = "other_stages")]
    pub others: usize,
    /// The rest.
    pub unattributed: StageReport,
}

/// One stage over all complete runs.
#[derive(Clone, Debug, Serialize)]
pub struct StageReport {
    /// Name.
    pub name: String,
    /// Runs that have the window.
    pub n: usize,
    /// Runs in which the stage was there; absent counts as 0.
    pub n_present: usize,
    /// Median.
    pub p50: Option<Nanos>,
    /// 95th percentile.
    pub p95: Option<Nanos>,
    /// Largest.
    pub max: Option<Nanos>,
    /// Mean.
    pub mean: Option<Nanos>,
    /// Median over runs of stage ÷ window.
    pub share_p50: Option<f64>,
    /// Mean over the runs near the median total; these sum to their mean total.
    pub p50_attribution: Option<Nanos>,
    /// Part of the total's variance; these sum to 1.
    pub variance_share: Option<f64>,
    /// Mean over the slowest runs less [`StageReport::p50_attribution`].
    pub p95_excess: Option<Nanos>,
    /// Where its time went, where that was recorded.
    pub sched: Option<SchedReport>,
    /// Correlation with the client's latency.
    pub correlation: CorrelationReport,
}

/// Medians of scheduler figures.
#[derive(Clone, Debug, Serialize)]
pub struct SchedReport {
    /// Kind of the span whose figures they are, where the stage itself only
    /// waits for another process; null for the stage's own.
    pub from: Option<String>,
    /// On a processor.
    pub cpu: Nanos,
    /// Runnable, waiting for one.
    pub runq: Nanos,
    /// Neither.
    pub blocked: Nanos,
}

/// Correlation of a stage with a metric.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CorrelationReport {
    /// The metric.
    pub with: String,
    /// Pearson's r.
    pub pearson: Option<f64>,
    /// 95 % interval of it.
    pub pearson_ci: Option<[f64; 2]>,
    /// Spearman's ρ.
    pub spearman: Option<f64>,
    /// Milliseconds of the metric a millisecond of the stage.
    pub slope: Option<f64>,
    /// Why it is null.
    pub reason: Option<String>,
}
