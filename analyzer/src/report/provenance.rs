//! Where a report came from and what was read for it.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::input::InputFile;
use crate::model::lens::Lens;
use crate::problems::{Code, Problems, Tally};
use crate::trace::names::Symbol;

/// Where a report came from.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Provenance {
    /// The command line.
    pub command: Vec<String>,
    /// This program and the services that wrote the traces, `name version`.
    pub versions: Vec<String>,
    /// SHA-256 of each input, in the order of reading.
    pub inputs_sha256: Vec<String>,
    /// Host of the runs, where all manifests name the same.
    pub host: Option<String>,
    /// Boot of that host, likewise.
    pub boot_id: Option<String>,
    /// Seed of the experiment's schedule, likewise.
    pub seed: Option<String>,
}

/// What was read.
#[derive(Clone, Debug, Serialize)]
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
#[derive(Clone, Debug, Serialize)]
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
#[derive(Clone, Debug, Serialize)]
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
#[derive(Clone, Debug, Serialize)]
pub struct PlaceReport {
    /// File, as it was named.
    pub file: String,
    /// Line, from 1.
    pub line: u64,
    /// Byte, from 0, of the decompressed file.
    pub byte: u64,
}

/// Versions, checksums, and what the experiment's manifest says of its host.
pub(super) fn provenance(lens: &Lens<'_>, command: &[String], files: &[InputFile]) -> Provenance {
    use coldpath_trace_format::attributes::{SERVICE_NAME, SERVICE_VERSION};
    let mut versions = BTreeSet::new();
    let names = &lens.data.names;
    let (name_key, version_key) = (names.find(SERVICE_NAME), names.find(SERVICE_VERSION));
    for resource in &lens.data.resources {
        let text = |key: Option<Symbol>| {
            let value = resource.attributes.get(key?)?;
            lens.data.text(value)
        };
        if let (Some(name), Some(version)) = (text(name_key), text(version_key)) {
            versions.insert((name, version));
        }
    }
    let own = format!("analyze {}", env!("CARGO_PKG_VERSION"));
    let manifests = &lens.data.manifests;
    // Of several experiments, only what they agree on is said.
    let agreed = |read: fn(&crate::input::manifest::Manifest) -> &Option<String>| {
        let mut values = manifests.iter().map(read);
        let first = values.next()?.clone()?;
        values
            .all(|value| value.as_ref() == Some(&first))
            .then_some(first)
    };
    Provenance {
        command: command.to_vec(),
        versions: std::iter::once(own)
            .chain(
                versions
                    .iter()
                    .map(|(name, version)| format!("{name} {version}")),
            )
            .collect(),
        inputs_sha256: files
            .iter()
            .filter_map(|file| file.sha256.clone())
            .collect(),
        host: agreed(|manifest| &manifest.host),
        boot_id: agreed(|manifest| &manifest.boot_id),
        seed: agreed(|manifest| &manifest.seed),
    }
}

/// Files, records and problems.
pub(super) fn input(lens: &Lens<'_>, files: &[InputFile], problems: &Problems) -> Input {
    let counts = lens.data.counts;
    let problem = |(code, tally): (Code, &Tally)| ProblemReport {
        code: code.name(),
        count: tally.count,
        message: tally.message.clone(),
        first: tally.first.map(|place| PlaceReport {
            file: files
                .get(place.file as usize)
                .map_or_else(String::new, |file| file.name.clone()),
            line: place.line,
            byte: place.byte,
        }),
    };
    Input {
        files: files.len(),
        not_traces: counts.not_traces,
        bytes: files.iter().map(|file| file.bytes).sum(),
        records: Records {
            spans: counts.spans,
            logs: counts.logs,
            metrics: counts.metrics,
            profiles: counts.profiles,
        },
        problems: problems.iter().map(problem).collect(),
    }
}
