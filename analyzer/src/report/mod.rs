//! The report: computed once ([`build`]), then rendered as JSON, as a table, as
//! Markdown or as a page ([`html`](crate::html)). Rendering never computes.
//!
//! [`Report`] and the structs that it is made of are the JSON report
//! `coldpath.report/1`; their keys are stable and `docs/report-schema.json`
//! describes them. Times are milliseconds printed from integer nanoseconds;
//! there is never NaN or infinity.

pub mod build;
pub mod cohorts;
pub mod comparisons;
pub mod covariates;
pub mod dependency;
pub mod explain;
pub mod findings;
pub mod injection;
pub mod layout;
mod markdown;
pub mod numbers;
pub mod paths;
pub mod picture;
pub mod provenance;
pub mod render;
pub mod runs;
pub mod scenarios;
pub mod stages;
pub mod summary;
pub mod values;
pub mod windows;

use serde::Serialize;

pub use cohorts::CohortReport;
pub use comparisons::{Comparison, ShiftReport, StageShift};
pub use dependency::{ChangeReport, DependencyReport, Prediction, StageDependency};
pub use explain::{CoverReport, DrillReport, GroupReport, PhaseReport};
pub use provenance::{Input, PlaceReport, ProblemReport, Provenance, Records};
pub use runs::{Incomplete, Joins, RunReport, RunWindowReport, Runs};
pub use scenarios::{DelayReport, ScenarioReport};
pub use stages::{CorrelationReport, SchedReport, StageReport, Totals, WindowReport};
pub use summary::MetricReport;
pub use values::{Amount, Ordered, millionth};

/// Value of `schema`.
pub const SCHEMA: &str = "coldpath.report/1";

/// The whole report.
#[derive(Clone, Debug, Serialize)]
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
    /// What injected delays did to the total.
    pub injections: Vec<injection::InjectionReport>,
    /// Cohorts under each scenario, when there are several of them.
    pub scenarios: Vec<ScenarioReport>,
    /// How the client's latency went with how long it waited before it asked.
    pub delays: Vec<DelayReport>,
    /// What the end would be if stages took another time, one entry a cohort;
    /// empty where nothing was asked.
    pub dependency: Vec<DependencyReport>,
    /// What the figures say, in words.
    pub findings: Vec<Finding>,
    /// Runs nearest to the median, drawn in time; only where that was asked.
    #[serde(skip)]
    pub pictures: Vec<picture::Picture>,
}

/// What the figures say.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Code.
    pub code: &'static str,
    /// In words, with its numbers.
    pub text: String,
    /// Subjects and numbers.
    pub values: Ordered<serde_json::Value>,
}
