//! Runs of a report: how many count, which are incomplete, and each by itself.
//! Types only.

use serde::Serialize;

use super::values::{Amount, Ordered};

/// Runs and how many of them count.
#[derive(Clone, Debug, Serialize)]
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
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Joins {
    /// Joined.
    pub joined: usize,
    /// All there are.
    pub of: usize,
}

/// An incomplete run.
#[derive(Clone, Debug, Serialize)]
pub struct Incomplete {
    /// Run.
    pub run: String,
    /// What is missing.
    pub missing: Vec<String>,
}

/// One run.
#[derive(Clone, Debug, Serialize)]
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
#[derive(Clone, Debug, Serialize)]
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
