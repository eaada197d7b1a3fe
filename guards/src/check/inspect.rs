//! Everything that the layers see of one build, before any rule is judged.

use crate::binary::{self, Image, ImageError, Pointer};
use crate::evidence::Evidence;
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
    /// What ships.
    pub(crate) shipped: Image<'e>,
    /// The same with names; none when it has none.
    pub(crate) named: Option<Image<'e>>,
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
    let image = |role, name: &str, bytes: &'e [u8]| {
        binary::read(bytes).map_err(|source| InspectError::Image {
            role,
            name: name.to_owned(),
            source,
        })
    };
    let shipped = image("shipped", &record.shipped.name, &evidence.shipped)?;
    let unstripped = image("unstripped", &record.unstripped.name, &evidence.unstripped)?;
    let named = unstripped.has_symtab.then_some(unstripped);
    let pointers = binary::pointers(&shipped);
    let presence = present::look(&shipped, &pointers, named.as_ref(), Some(&workspace));
    Ok(Inspection {
        workspace,
        closure,
        difference,
        linked,
        shipped,
        named,
        pointers,
        presence,
    })
}
