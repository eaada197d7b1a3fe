//! Everything that the layers see of one build, before any rule is judged.

use crate::binary::{self, Image, Pointer, Unlike};
use crate::evidence::{BadProgram, Evidence};
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
    #[error(transparent)]
    Program(#[from] BadProgram),
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
    let unlike = evidence.twins.clone()?;
    // The packages and the program's names have nothing to do with each other.
    let (packages, image, pointers, symbols) = std::thread::scope(|scope| {
        let packages = scope.spawn(|| look_at_packages(evidence, program));
        let image = binary::read(&evidence.unstripped)
            .map_err(|source| BadProgram::new("unstripped", &record.unstripped, source));
        let pointers = image.as_ref().map(binary::pointers).unwrap_or_default();
        let symbols = image.as_ref().ok().and_then(present::read_symbols);
        // A thread that panics has ended the program before this.
        let packages = packages.join().unwrap_or_else(|_| {
            Err(PackagesError::Metadata {
                message: "it could not be looked at".to_owned(),
            })
        });
        (packages, image, pointers, symbols)
    });
    let image = image?;
    let Packages {
        workspace,
        closure,
        difference,
        linked,
    } = packages?;
    let presence = present::look(&image, &pointers, Some(&workspace), symbols);
    Ok(Inspection {
        workspace,
        closure,
        difference,
        linked,
        image,
        unlike,
        pointers,
        presence,
    })
}

struct Packages {
    workspace: Workspace,
    closure: Closure,
    difference: Difference,
    linked: Option<Linked>,
}

fn look_at_packages(evidence: &Evidence, program: &Program) -> Result<Packages, PackagesError> {
    let record = &evidence.record;
    let workspace = read_metadata(&evidence.metadata)?;
    let closure = simulate(&workspace, program, &record.target, &record.host)?;
    let built = read_stream(evidence.artifacts.as_slice(), &record.target)?;
    let linked = evidence
        .link_args
        .as_deref()
        .and_then(|args| linked::read(args, evidence.link_bytes.as_deref(), &built));
    Ok(Packages {
        difference: compare(&workspace, &closure, &built),
        workspace,
        closure,
        linked,
    })
}
