//! Reads one or two sets of files into the facts that a comparison needs.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::app::{Refusal, choose, load_model};
use crate::chain::{Run, assemble};
use crate::compare::facts::{Facts, facts, two_sets};
use crate::compare::pairing::Refusal as Unfit;
use crate::exit;
use crate::input::sources::{self, Source};
use crate::input::{self, Checksums};
use crate::inspect;
use crate::model::lens::Lens;
use crate::output;
use crate::report::build::{Items, Read as WasRead, Wanted, build};
use crate::report::dependency::Asked;
use crate::stats::quantile::Definition;
use crate::trace::dataset::Dataset;
use crate::trace::tree::Tree;

use super::args::Arms;

/// Names of arms that are two sets of files.
const SETS: (&str, &str) = ("control", "candidate");

/// What a verb is called with.
pub(super) struct Call<'a> {
    /// The command line, for provenance.
    pub(super) command: Vec<String>,
    /// Standard input.
    pub(super) stdin: &'a mut dyn Read,
    /// The file that is written, which must not be read, and others that are read.
    pub(super) output: Option<PathBuf>,
    /// Files that are read beside the traces.
    pub(super) beside: Vec<PathBuf>,
}

/// The facts of the arms.
pub(super) fn read(arms: &Arms, call: &mut Call<'_>) -> Result<Facts, Refusal> {
    if arms.files.is_empty() && arms.control_files.is_empty() {
        return Err(Refusal {
            code: exit::USAGE,
            text: "no files\nhint: give an experiment's folder, or --control-files and --candidate-files".to_owned(),
        });
    }
    if !arms.files.is_empty() {
        return one_set(&arms.files, arms, call);
    }
    let control = one_set(&arms.control_files, arms, call)?;
    let candidate = one_set(&arms.candidate_files, arms, call)?;
    if control.model != candidate.model {
        let (control, candidate) = (control.model, candidate.model);
        return Err(unfit(&Unfit::TwoModels { control, candidate }));
    }
    Ok(two_sets(control, candidate, SETS))
}

/// A comparison that must not be made: the runs cannot be judged.
pub(super) fn unfit(error: &Unfit) -> Refusal {
    let code = match error {
        Unfit::SameArm { .. } | Unfit::UnknownArm { .. } => exit::USAGE,
        _ => exit::CANNOT_JUDGE,
    };
    Refusal {
        code,
        text: error.to_string(),
    }
}

fn one_set(files: &[PathBuf], arms: &Arms, call: &mut Call<'_>) -> Result<Facts, Refusal> {
    let sources = sources::expand(files)?;
    spare(call, arms, &sources)?;
    let model = arms.model.as_deref().map(load_model).transpose()?;
    let (files, batch) = input::read_all(&sources, call.stdin, Checksums::Taken)?;
    let (data, mut problems) = Dataset::from_batch(batch);
    let (tree, cycles) = Tree::new(&data);
    problems.merge(cycles);
    let model = match model {
        Some(model) => model,
        None => choose(&data, &tree)?,
    };
    let lens = Lens::new(&data, &tree, &model);
    let runs: Vec<Run<'_>> = assemble::runs(&lens);
    problems.merge(inspect::inspect(&lens));
    let read = WasRead {
        command: &call.command,
        files: &files,
        problems,
    };
    let wanted = Wanted {
        definition: Definition::Type7,
        items: Items::Every,
        dependency: &Asked::default(),
    };
    let report = build(&lens, &runs, read, &wanted)?;
    Ok(facts(&lens, &runs, &report))
}

/// Refuses to write over anything that is read.
fn spare(call: &Call<'_>, arms: &Arms, sources: &[Source]) -> Result<(), Refusal> {
    let Some(path) = &call.output else {
        return Ok(());
    };
    let manifests = sources::manifests_beside(sources);
    let named = sources.iter().filter_map(Source::path);
    let beside = manifests.iter().chain(&call.beside).map(PathBuf::as_path);
    let model = arms.model.as_deref().map(Path::new);
    let stdin = sources.contains(&Source::Stdin);
    Ok(output::refuse_inputs(
        path,
        named.chain(beside).chain(model),
        stdin,
    )?)
}
