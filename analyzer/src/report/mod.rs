//! The report: computed once ([`build`]), then rendered as JSON, as a table or
//! as Markdown. Rendering never computes.
//!
//! The structs below are the JSON report `coldpath.report/1`; their keys are
//! stable and `docs/report-schema.json` describes them. Times are milliseconds
//! printed from integer nanoseconds; there is never NaN or infinity.

pub mod build;
pub mod cohorts;
pub mod covariates;
pub mod explain;
pub mod findings;
pub mod layout;
pub mod numbers;
pub mod paths;
pub mod provenance;
pub mod render;
pub mod summary;
pub mod windows;

use serde::Serialize as SerializeDerive;
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::units::Nanos;

/// Value of `schema`.
pub const SCHEMA: &str = "coldpath.report/1";

/// A value in its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// A time, printed in milliseconds.
    Time(Nanos),
    /// A size in bytes.
    Bytes(i64),
    /// A part of the whole in millionths, printed as 0..=1.
    Ratio(i64),
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Time(nanos) => nanos.serialize(serializer),
            Self::Bytes(bytes) => serializer.serialize_i64(*bytes),
            Self::Ratio(millionths) => serializer.serialize_f64(*millionths as f64 / 1e6),
        }
    }
}

/// Pairs in a stated order, printed as a JSON object.
#[derive(Clone, Debug, PartialEq)]
pub struct Ordered<V>(pub Vec<(String, V)>);

impl<V: Serialize> Serialize for Ordered<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// The whole report.
#[derive(Clone, Debug, SerializeDerive)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Where it came from.
    pub provenance: Provenance,
    /// What was read.
    pub input: Input,
    /// Name of the model.
    pub model: String,
    /// Definition of the quantiles.
    pub quantile: &'static str,
    /// Runs, by start.
    pub runs: Runs,
    /// End-to-end metrics, in the model's order.
    pub metrics: Vec<MetricReport>,
    /// Windows, in the model's order, the client's last.
    pub windows: Vec<WindowReport>,
    /// Stages that another window explains.
    pub drill_through: Vec<DrillReport>,
    /// Named sums of stages.
    pub groups: Vec<GroupReport>,
    /// Which way the requests went.
    pub paths: Vec<paths::PathReport>,
    /// What else varied between the runs.
    pub covariates: Vec<covariates::Covariate>,
    /// Cohorts, when there are several; the control first.
    pub cohorts: Vec<CohortReport>,
    /// Every two cohorts compared in pairs.
    pub comparisons: Vec<Comparison>,
    /// What the figures say, in words.
    pub findings: Vec<Finding>,
}

/// Where a report came from.
#[derive(Clone, Debug, Default, SerializeDerive)]
pub struct Provenance {
    /// The command line.
    pub command: Vec<String>,
    /// This program and the services that wrote the traces, `name version`.
    pub versions: Vec<String>,
    /// SHA-256 of each input, in the order of reading.
    pub inputs_sha256: Vec<String>,
    /// Host of the runs, where the traces name it.
    pub host: Option<String>,
    /// Boot of that host, where the traces name it.
    pub boot_id: Option<String>,
    /// Seed of the experiment's schedule, where the traces name it.
    pub seed: Option<String>,
}

/// What was read.
#[derive(Clone, Debug, SerializeDerive)]
pub struct Input {
    /// Files.
    pub files: usize,
    /// Files of a folder that hold nothing to read and were passed over.
    pub not_traces: u64,
    /// Bytes as they stand on disk.
    pub bytes: u64,
    /// Records by kind.
    pub records: Records,
    /// What was wrong, by code.
    pub problems: Vec<ProblemReport>,
}

/// Records by kind.
#[derive(Clone, Debug, SerializeDerive)]
pub struct Records {
    /// Spans.
    pub spans: u64,
    /// Log records; skipped.
    pub logs: u64,
    /// Metrics; skipped.
    pub metrics: u64,
    /// Profiles.
    pub profiles: u64,
}

/// All problems of one code.
#[derive(Clone, Debug, SerializeDerive)]
pub struct ProblemReport {
    /// The code.
    pub code: &'static str,
    /// How many.
    pub count: u64,
    /// The first one, in words.
    pub message: String,
    /// Where the first one stands.
    pub first: Option<PlaceReport>,
}

/// A place in the input.
#[derive(Clone, Debug, SerializeDerive)]
pub struct PlaceReport {
    /// File, as it was named.
    pub file: String,
    /// Line, from 1.
    pub line: u64,
    /// Byte, from 0, of the decompressed file.
    pub byte: u64,
}

/// Runs and how many of them count.
#[derive(Clone, Debug, SerializeDerive)]
pub struct Runs {
    /// Runs, warm-ups excluded.
    pub total: usize,
    /// Runs with traces; only these can be complete.
    pub traced: usize,
    /// Traced runs whose chain is whole.
    pub complete: usize,
    /// Runs that failed.
    pub failed: usize,
    /// Runs of which only the client's figures are there.
    pub not_traced: usize,
    /// Warm-up runs, in no other count and no statistic.
    pub warmup: usize,
    /// Session profiles joined to a session of a run.
    pub profile_joins: Joins,
    /// What is missing where.
    pub incomplete: Vec<Incomplete>,
    /// Every run that is not a warm-up; none where the report was asked without.
    pub items: Vec<RunReport>,
    /// The first run that failed, and why.
    #[serde(skip)]
    pub first_failure: Option<(String, String)>,
}

/// How many of something found their place.
#[derive(Clone, Copy, Debug, Default, SerializeDerive)]
pub struct Joins {
    /// Joined.
    pub joined: usize,
    /// All there are.
    pub of: usize,
}

/// An incomplete run.
#[derive(Clone, Debug, SerializeDerive)]
pub struct Incomplete {
    /// Run.
    pub run: String,
    /// What is missing.
    pub missing: Vec<String>,
}

/// One run.
#[derive(Clone, Debug, SerializeDerive)]
pub struct RunReport {
    /// Name.
    pub run: String,
    /// Cohort; empty where none was said.
    pub cohort: String,
    /// Whether the chain is whole; null when the program wrote no trace.
    pub complete: Option<bool>,
    /// Why it failed.
    pub failure: Option<String>,
    /// Its windows, integer nanoseconds.
    pub windows: Vec<RunWindowReport>,
    /// Its metrics; null where one cannot be had.
    pub metrics: Ordered<Option<Amount>>,
}

/// One window of one run.
#[derive(Clone, Debug, SerializeDerive)]
pub struct RunWindowReport {
    /// Name.
    pub name: String,
    /// Which of the run's concurrent cold requests it belongs to, from 1.
    pub request: usize,
    /// Length, nanoseconds.
    pub total_ns: i64,
    /// Exclusive time of each stage, nanoseconds.
    pub stages: Ordered<i64>,
    /// The rest, nanoseconds; the sum is exact.
    pub unattributed_ns: i64,
}

/// One metric over all runs.
#[derive(Clone, Debug, SerializeDerive)]
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
}

/// Quantiles of a window's length.
#[derive(Clone, Debug, SerializeDerive)]
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
#[derive(Clone, Debug, SerializeDerive)]
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
    /// The rest.
    pub unattributed: StageReport,
}

/// One stage over all complete runs.
#[derive(Clone, Debug, SerializeDerive)]
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
#[derive(Clone, Debug, SerializeDerive)]
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
#[derive(Clone, Debug, Default, SerializeDerive)]
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

/// A stage and what explains it.
#[derive(Clone, Debug, SerializeDerive)]
pub struct DrillReport {
    /// The stage.
    pub stage: String,
    /// Kind of the span that explains it.
    pub explained_by: String,
    /// Phases over it.
    pub phases: Vec<PhaseReport>,
    /// What no phase covers.
    pub uncovered: CoverReport,
    /// Finest difference that its times can show.
    #[serde(skip)]
    pub quantum: Nanos,
    /// Runs in it.
    #[serde(skip)]
    pub n: usize,
}

/// One phase over a stage.
#[derive(Clone, Debug, SerializeDerive)]
pub struct PhaseReport {
    /// Name.
    pub name: String,
    /// Median of the time of the stage that it covers.
    pub p50: Option<Nanos>,
    /// Median over runs of that ÷ stage.
    pub share: Option<f64>,
    /// Medians of the least and most it can be, where its place is assumed.
    pub placed: Option<[Nanos; 2]>,
}

/// A time and its share.
#[derive(Clone, Debug, SerializeDerive)]
pub struct CoverReport {
    /// Median.
    pub p50: Option<Nanos>,
    /// Median over runs of that ÷ stage.
    pub share: Option<f64>,
}

/// A named sum of stages.
#[derive(Clone, Debug, SerializeDerive)]
pub struct GroupReport {
    /// Name.
    pub name: String,
    /// Name for people.
    #[serde(skip)]
    pub title: String,
    /// Its stages.
    #[serde(skip)]
    pub stages: Vec<String>,
    /// Window.
    pub of: String,
    /// Median of the sum.
    pub p50: Option<Nanos>,
    /// Median over runs of sum ÷ window.
    pub share_p50: Option<f64>,
}

/// One cohort.
#[derive(Clone, Debug, SerializeDerive)]
pub struct CohortReport {
    /// Name.
    pub name: String,
    /// Its runs.
    pub n: usize,
    /// Its metrics.
    pub metrics: Vec<MetricReport>,
}

/// Two cohorts, compared in pairs.
#[derive(Clone, Debug, SerializeDerive)]
pub struct Comparison {
    /// Metric.
    pub metric: String,
    /// Unit of the shift.
    pub unit: &'static str,
    /// Cohort that is compared with.
    pub control: String,
    /// Cohort that is compared.
    pub candidate: String,
    /// Pairs of which both runs have the metric.
    pub n_pairs: usize,
    /// Hodges–Lehmann shift, candidate − control.
    pub shift: ShiftReport<Amount>,
    /// Hodges–Lehmann ratio, candidate ÷ control.
    pub ratio: ShiftReport<f64>,
}

/// An estimate with its 95 % interval.
#[derive(Clone, Debug, SerializeDerive)]
pub struct ShiftReport<V> {
    /// Estimate.
    pub estimate: Option<V>,
    /// Lower end.
    pub low: Option<V>,
    /// Upper end.
    pub high: Option<V>,
    /// Why something is null.
    pub reason: Option<String>,
}

/// What the figures say.
#[derive(Clone, Debug, SerializeDerive)]
pub struct Finding {
    /// Code.
    pub code: &'static str,
    /// In words, with its numbers.
    pub text: String,
    /// Subjects and numbers.
    pub values: Ordered<serde_json::Value>,
}

/// A ratio rounded to a millionth, so that the last bits of a float do not show.
#[must_use]
pub fn millionth(value: f64) -> f64 {
    let rounded = (value * 1e6).round() / 1e6;
    // Minus zero would print as `-0.0`.
    if rounded == 0.0 { 0.0 } else { rounded }
}
