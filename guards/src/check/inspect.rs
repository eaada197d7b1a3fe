//! Everything that the layers see of one build, before any rule is judged.

use crate::binary::{self, Image, ImageError, Loaded, Pointer, Unlike, check_twins};
use crate::evidence::{Evidence, FileRecord};
use crate::linked::{self, Linked};
use crate::packages::{
    Closure, Difference, PackagesError, Workspace, compare, read_metadata, read_stream, simulate,
};
use crate::policy::Program;
use crate::present::{self, Presence};

/// One build, looked at.
pub(crate) struct Inspection<'e> {
    pub(crate) workspace: Workspace,
    pub(crate) closure: Closure,
    pub(crate) difference: Difference,
    pub(crate) linked: Option<Linked>,
    /// The program, with names where it has them.
    pub(crate) image: Image<'e>,
    /// How what ships differs from it.
    pub(crate) unlike: Option<Unlike>,
    pub(crate) pointers: Vec<Pointer>,
    pub(crate) presence: Presence,
}

/// Why a build cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InspectError {
    #[error(transparent)]
    Packages(#[from] PackagesError),
    #[error("{role} program {name} {source}")]
    Image {
        role: &'static str,
        name: String,
        source: ImageError,
    },
}

/// Looks at a build.
///
/// # Errors
/// When the workspace does not have the program, or a file is not what it should be.
pub(crate) fn inspect<'e>(
    evidence: &'e Evidence,
    program: &Program,
) -> Result<Inspection<'e>, InspectError> {
    let record = &evidence.record;
    let workspace = read_metadata(&evidence.metadata)?;
    let closure = simulate(&workspace, program, &record.target, &record.host)?;
    let built = read_stream(evidence.artifacts.as_slice(), &record.target)?;
    let difference = compare(&workspace, &closure, &built);
    let linked = evidence
        .link_args
        .as_deref()
        .and_then(|args| linked::read(args, evidence.link_map.as_deref(), &built));
    let broken = |role, file: &FileRecord, source| InspectError::Image {
        role,
        name: file.name.clone(),
        source,
    };
    let shipped = evidence
        .shipped
        .as_ref()
        .map_err(|source| broken("shipped", &record.shipped, source.clone()))?;
    let image = binary::read(&evidence.unstripped)
        .map_err(|source| broken("unstripped", &record.unstripped, source))?;
    let pointers = binary::pointers(&image);
    let presence = present::look(&image, &pointers, Some(&workspace));
    Ok(Inspection {
        workspace,
        closure,
        difference,
        linked,
        unlike: check_twins(shipped, &Loaded::of(&image)).err(),
        image,
        pointers,
        presence,
    })
}
