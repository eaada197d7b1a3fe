//! The policy of a gate (TOML): what is demanded of a comparison.
//!
//! Unknown keys, kinds, statistics and units are errors that name the line: a
//! misspelt demand must not silently demand nothing. Nothing of it comes from
//! the environment, and the effective policy stands in every report.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::compare::control::ControlRule;
use crate::compare::margin::Margin;

use super::rule::Kind;

/// Version of the format that this program reads.
pub const SCHEMA: u32 = 1;

/// Why a policy cannot be used.
#[derive(Debug, Error)]
pub enum PolicyError {
    /// The file cannot be read.
    #[error(
        "cannot read policy {path}: {source}\nhint: the policy comes first, the traces behind it: `analyze gate POLICY.toml DIR`"
    )]
    Unreadable {
        /// The file.
        path: String,
        /// The operating system's reason.
        #[source]
        source: std::io::Error,
    },
    /// Not TOML, or not of this shape.
    #[error("policy {path}: {reason}")]
    Invalid {
        /// The file.
        path: String,
        /// Line, key and reason.
        reason: String,
    },
    /// Another version.
    #[error(
        "policy {path}: schema = {found} is not supported\nhint: this program reads schema = {SCHEMA}"
    )]
    Version {
        /// The file.
        path: String,
        /// What it says.
        found: u32,
    },
    /// A gate that cannot be judged as it stands.
    #[error("policy {path}: gate `{gate}`: {reason}")]
    Gate {
        /// The file.
        path: String,
        /// The gate.
        gate: String,
        /// What is wrong, with a hint.
        reason: String,
    },
}

/// What is compared with the margin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Statistic {
    /// Hodges–Lehmann shift of the pairs.
    Shift,
    /// Change of the median.
    P50,
    /// Change of P95.
    P95,
}

impl Statistic {
    /// Name in policies and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Shift => "shift",
            Self::P50 => "p50",
            Self::P95 => "p95",
        }
    }
}

/// What [`Kind::EveryRun`] can demand, as `metric`.
pub const CLAIMS: [&str; 3] = ["succeeded", "chain_complete", "no_leftovers"];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPolicy {
    schema: u32,
    pairs: Option<usize>,
    placebo: Option<PathBuf>,
    #[serde(default, rename = "control_stage")]
    control_stages: Vec<RawControl>,
    #[serde(default, rename = "gate")]
    gates: Vec<RawGate>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawControl {
    name: String,
    margin: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGate {
    name: String,
    metric: String,
    statistic: Option<Statistic>,
    kind: Kind,
    margin: Option<String>,
}

/// A policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Number of pairs that was declared before the experiment.
    pub pairs: Option<usize>,
    /// What identical arms differ by, as a path beside the policy.
    pub placebo: Option<PathBuf>,
    /// Stages that the change cannot touch.
    pub control_stages: Vec<ControlRule>,
    /// The gates.
    pub gates: Vec<Gate>,
}

/// One gate.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// Its name, unique.
    pub name: String,
    /// The metric, or the claim.
    pub metric: String,
    /// What it demands.
    pub kind: Kind,
    /// Statistic and margin; `None` for [`Kind::EveryRun`].
    pub limit: Option<(Statistic, Margin)>,
}

impl Policy {
    /// Reads a policy file.
    ///
    /// # Errors
    /// [`PolicyError`].
    pub fn read(path: &Path) -> Result<Self, PolicyError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|source| PolicyError::Unreadable {
            path: name.clone(),
            source,
        })?;
        let mut policy = Self::parse(&name, &text)?;
        // As it is written beside the policy, so it is found there.
        let folder = path.parent().unwrap_or(Path::new(""));
        policy.placebo = policy.placebo.map(|placebo| folder.join(placebo));
        Ok(policy)
    }

    /// Parses a policy; `path` is named in errors.
    ///
    /// # Errors
    /// [`PolicyError`].
    pub fn parse(path: &str, text: &str) -> Result<Self, PolicyError> {
        let invalid = |reason: String| PolicyError::Invalid {
            path: path.to_owned(),
            reason,
        };
        let raw: RawPolicy = toml::from_str(text)
            .map_err(|error| invalid(error.to_string().trim_end().to_owned()))?;
        if raw.schema != SCHEMA {
            return Err(PolicyError::Version {
                path: path.to_owned(),
                found: raw.schema,
            });
        }
        if raw.gates.is_empty() {
            return Err(invalid("no [[gate]]: it demands nothing\nhint: add one with name, metric, statistic, kind and margin".to_owned()));
        }
        let mut gates: Vec<Gate> = Vec::new();
        for one in raw.gates {
            let name = one.name.clone();
            let refuse = |reason: String| PolicyError::Gate {
                path: path.to_owned(),
                gate: name,
                reason,
            };
            if gates.iter().any(|gate| gate.name == one.name) {
                return Err(refuse("the name is used twice".to_owned()));
            }
            gates.push(gate(one).map_err(refuse)?);
        }
        let control = |one: RawControl| {
            let margin = one
                .margin
                .parse()
                .map_err(|error| invalid(format!("control_stage `{}`: {error}", one.name)))?;
            Ok(ControlRule {
                name: one.name,
                margin,
            })
        };
        let control_stages: Result<Vec<_>, PolicyError> =
            raw.control_stages.into_iter().map(control).collect();
        Ok(Self {
            pairs: raw.pairs,
            placebo: raw.placebo,
            control_stages: control_stages?,
            gates,
        })
    }
}

fn gate(raw: RawGate) -> Result<Gate, String> {
    let RawGate {
        name,
        metric,
        statistic,
        kind,
        margin,
    } = raw;
    let limit = match (kind, statistic, margin) {
        (Kind::EveryRun, None, None) if CLAIMS.contains(&metric.as_str()) => None,
        (Kind::EveryRun, None, None) => {
            return Err(format!(
                "no claim `{metric}`\nhint: every_run knows {}",
                CLAIMS.join(", ")
            ));
        }
        (Kind::EveryRun, _, _) => {
            return Err(
                "every_run takes neither statistic nor margin\nhint: remove them".to_owned(),
            );
        }
        (_, Some(statistic), Some(margin)) => {
            let margin: Margin = margin
                .parse()
                .map_err(|error: crate::compare::margin::MarginError| error.to_string())?;
            Some((statistic, margin))
        }
        (_, None, _) => {
            return Err("no statistic\nhint: statistic = \"shift\", \"p50\" or \"p95\"".to_owned());
        }
        (_, _, None) => return Err("no margin\nhint: margin = \"10ms\" or \"5MiB\"".to_owned()),
    };
    Ok(Gate {
        name,
        metric,
        kind,
        limit,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GATE: &str = "schema = 1\n[[gate]]\nname = \"a\"\nmetric = \"m\"\nstatistic = \"shift\"\nkind = \"superiority\"\nmargin = \"10ms\"\n";

    #[track_caller]
    fn refused(text: &str, words: &str) {
        let error = Policy::parse("p.toml", text).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }

    #[test]
    fn a_gate_is_read_whole() {
        let policy = Policy::parse("p.toml", GATE).unwrap();
        let margin: Margin = "10ms".parse().unwrap();
        assert_eq!(policy.gates[0].limit, Some((Statistic::Shift, margin)));
        assert_eq!(policy.gates[0].kind, Kind::Superiority);
    }

    #[test]
    fn what_is_not_understood_is_an_error_with_its_place() {
        refused(&GATE.replace("margin", "margn"), "margn");
        refused(&GATE.replace("superiority", "better"), "better");
        refused(&GATE.replace("shift", "mean"), "mean");
        refused(&GATE.replace("10ms", "10"), "is no amount");
        refused(&format!("{GATE}[[gate]]\n{}", &GATE[20..]), "used twice");
        refused("schema = 1\n", "no [[gate]]");
        refused(
            &GATE.replace("schema = 1", "schema = 2"),
            "schema = 2 is not supported",
        );
        refused(&GATE.replace("statistic = \"shift\"\n", ""), "no statistic");
        let claim = "schema = 1\n[[gate]]\nname = \"a\"\nmetric = \"luck\"\nkind = \"every_run\"\n";
        refused(claim, "every_run knows succeeded");
    }
}
