//! `measure`'s manifest: what it says of the host and the schedule, for the
//! report's provenance, and the order of its arms, for the report's cohorts.
//! Nothing of it enters a figure.

use serde::Deserialize;

use super::batch::Batch;
use super::lenient::{List, Scalar};
use super::record::parse;

/// Value of `schema` in a manifest.
pub const SCHEMA: &str = "coldpath.manifest/1";
/// Name under which `measure` writes it beside its traces.
pub const FILE_NAME: &str = "manifest.json";

/// What is kept of a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Manifest {
    /// Processor, cores and kernel, in words.
    pub host: Option<String>,
    /// Boot of that host.
    pub boot_id: Option<String>,
    /// Seed of the schedule.
    pub seed: Option<String>,
    /// Names of the arms, in the order in which they were given.
    pub arms: Vec<String>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Raw<'a> {
    #[serde(default)]
    host: Option<RawHost<'a>>,
    #[serde(default)]
    seed: Scalar<'a>,
    #[serde(default)]
    arms: List<RawArm<'a>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct RawArm<'a> {
    #[serde(default)]
    name: Scalar<'a>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct RawHost<'a> {
    #[serde(default)]
    cpu_model: Scalar<'a>,
    #[serde(default)]
    cores: Scalar<'a>,
    #[serde(default)]
    kernel: Scalar<'a>,
    #[serde(default)]
    boot_id: Scalar<'a>,
}

/// Reads one manifest.
///
/// # Errors
/// The parser's reason.
pub fn read(bytes: &[u8], batch: &mut Batch) -> Result<(), String> {
    let raw: Raw<'_> = parse(bytes)?;
    let mut manifest = Manifest {
        seed: words(&raw.seed),
        arms: raw
            .arms
            .0
            .iter()
            .filter_map(|arm| words(&arm.name))
            .collect(),
        ..Manifest::default()
    };
    if let Some(host) = raw.host {
        let cores = words(&host.cores).map(|cores| format!("{cores} cores"));
        let parts = [words(&host.cpu_model), cores, words(&host.kernel)];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        manifest.host = (!parts.is_empty()).then(|| parts.join(", "));
        manifest.boot_id = words(&host.boot_id);
    }
    batch.manifests.push(manifest);
    Ok(())
}

/// Text, or an integer as text.
fn words(value: &Scalar<'_>) -> Option<String> {
    match value {
        Scalar::Text(text) if !text.is_empty() => Some(text.to_string()),
        other => other.as_u64().map(|value| value.to_string()),
    }
}
