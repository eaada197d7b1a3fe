//! What identical arms differ by on one host and in one scenario: the placebo
//! effect of `measure aa`, and what its number of pairs could have seen.
//!
//! Written by `analyze placebo` as `coldpath.placebo/1`; a gate reads it back.
//! Milliseconds and bytes, as in every document of this program.

use std::path::Path;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::compare::Comparison;
use crate::compare::effect::{Figured, in_unit};
use crate::model::window_rules::Unit;
use crate::report::Amount;
use crate::stats::power::{Power, detectable, standard_error};
use crate::stats::signed_rank::Tail;

/// Value of `schema`.
pub const SCHEMA: &str = "coldpath.placebo/1";
/// A file of this size is no placebo of ours: it holds a few numbers a metric.
pub const BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Why a placebo cannot be used.
#[derive(Debug, Error)]
pub enum PlaceboError {
    /// The file cannot be read.
    #[error("cannot read placebo {path}: {source}")]
    Unreadable {
        /// The file.
        path: String,
        /// The operating system's reason.
        #[source]
        source: std::io::Error,
    },
    /// Not a placebo.
    #[error(
        "placebo {path}: {reason}\nhint: `analyze placebo DIR -o placebo.json` makes one of what `measure aa` wrote"
    )]
    Invalid {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
    /// The arms are not the same.
    #[error(
        "the arms differ in their versions ({control}; {candidate}): no placebo\nhint: `measure aa` makes two arms of one program"
    )]
    Different {
        /// Versions of the control.
        control: String,
        /// Versions of the candidate.
        candidate: String,
    },
}

/// What identical arms differ by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Placebo {
    /// [`SCHEMA`].
    pub schema: String,
    /// Processor, cores and kernel, where the experiment names them.
    pub host: Option<String>,
    /// Boot of that host.
    pub boot_id: Option<String>,
    /// Scenario of the runs.
    pub scenario: Option<String>,
    /// Pairs.
    pub pairs: usize,
    /// One for each metric.
    pub metrics: Vec<PlaceboMetric>,
}

/// One metric of a placebo.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlaceboMetric {
    /// Name.
    pub name: String,
    /// `ms` or `bytes`.
    pub unit: String,
    /// Of the shift.
    pub shift: PlaceboEffect,
    /// Of the median.
    pub p50: PlaceboEffect,
    /// Of P95.
    pub p95: PlaceboEffect,
}

/// What one statistic of identical arms differed by.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlaceboEffect {
    /// The difference.
    pub effect: Option<f64>,
    /// Lower end of its 95 % interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Smallest effect that as many pairs see with 80 % power.
    pub minimum_detectable: Option<f64>,
}

impl Placebo {
    /// Makes the placebo of two identical arms.
    ///
    /// # Errors
    /// [`PlaceboError::Different`] where their versions differ.
    pub fn of(comparison: &Comparison) -> Result<Self, PlaceboError> {
        let (a, b) = (&comparison.control.versions, &comparison.candidate.versions);
        if a != b {
            let join = |versions: &std::collections::BTreeSet<String>| {
                versions.iter().cloned().collect::<Vec<_>>().join(", ")
            };
            return Err(PlaceboError::Different {
                control: join(a),
                candidate: join(b),
            });
        }
        let provenance = comparison.sources.first().map(|(provenance, _)| provenance);
        let metrics = comparison.metrics.iter().map(|metric| {
            let unit = metric.effect.unit;
            PlaceboMetric {
                name: metric.name.clone(),
                unit: unit.name().to_owned(),
                shift: effect(&metric.effect.shift),
                p50: effect(&metric.effect.p50),
                p95: effect(&metric.effect.p95),
            }
        });
        Ok(Self {
            schema: SCHEMA.to_owned(),
            host: provenance.and_then(|one| one.host.clone()),
            boot_id: provenance.and_then(|one| one.boot_id.clone()),
            scenario: comparison.control.scenario.clone(),
            pairs: comparison.pairing.n,
            metrics: metrics.collect(),
        })
    }

    /// Reads a placebo file.
    ///
    /// # Errors
    /// [`PlaceboError`].
    pub fn read(path: &Path) -> Result<Self, PlaceboError> {
        let name = path.display().to_string();
        let unreadable = |source| PlaceboError::Unreadable {
            path: name.clone(),
            source,
        };
        let invalid = |reason: String| PlaceboError::Invalid {
            path: name.clone(),
            reason,
        };
        let found = std::fs::metadata(path).map_err(unreadable)?;
        if !found.is_file() || found.len() > BYTES_MAX {
            return Err(invalid("no regular file of its size".to_owned()));
        }
        let bytes = std::fs::read(path).map_err(unreadable)?;
        let placebo: Self =
            serde_json::from_slice(&bytes).map_err(|error| invalid(error.to_string()))?;
        if placebo.schema != SCHEMA {
            return Err(invalid(format!(
                "its schema is `{}`, not {SCHEMA}",
                placebo.schema
            )));
        }
        Ok(placebo)
    }

    /// The size of the placebo effect of a metric, in nanoseconds or bytes: that of
    /// its shift, whatever statistic is judged. What a slot or a host does to
    /// identical arms moves all of them; a change of P95 is mostly noise.
    #[must_use]
    pub fn effect(&self, metric: &str, unit: Unit) -> Option<f64> {
        let metric = self.metrics.iter().find(|one| one.name == metric)?;
        let scale = match unit {
            Unit::Ms => 1e6,
            Unit::Bytes => 1.0,
        };
        metric.shift.effect.map(|value| value.abs() * scale)
    }

    /// Why this placebo says nothing about a comparison; `None` where it does.
    #[must_use]
    pub fn mismatch(&self, comparison: &Comparison) -> Option<String> {
        let provenance = comparison.sources.first().map(|(provenance, _)| provenance);
        let host = provenance.and_then(|one| one.host.as_ref());
        let named = |one: Option<&String>| one.map_or_else(|| "unknown".to_owned(), Clone::clone);
        if self.host.is_none() || self.host.as_ref() != host {
            return Some(format!(
                "the placebo is of host {}, the runs of {}",
                named(self.host.as_ref()),
                named(host)
            ));
        }
        let scenario = comparison.control.scenario.as_ref();
        (self.scenario.as_ref() != scenario).then(|| {
            format!(
                "the placebo is of scenario {}, the control of {}",
                named(self.scenario.as_ref()),
                named(scenario)
            )
        })
    }
}

fn effect(figured: &Figured) -> PlaceboEffect {
    let number = |value: Option<f64>| match in_unit(figured.unit, value?)? {
        Amount::Time(time) => Some(time.as_ms()),
        Amount::Bytes(bytes) => Some(bytes as f64),
        Amount::Ratio(_) => None,
    };
    let error = figured.as_estimate().and_then(|one| standard_error(&one));
    PlaceboEffect {
        effect: number(figured.estimate),
        low: number(figured.interval.map(|ends| ends.0)),
        high: number(figured.interval.map(|ends| ends.1)),
        minimum_detectable: number(
            error.map(|error| detectable(error, Tail::TwoAndAHalf, Power::Eighty)),
        ),
    }
}
