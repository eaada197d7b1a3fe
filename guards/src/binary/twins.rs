//! Whether a stripped and an unstripped program are the same build.
//!
//! What is loaded must be the same bytes at the same addresses; only then may one
//! stand for the other.

use super::Section;
use super::image::{ImageError, read_loaded};

/// What of a program is loaded.
pub(crate) struct Loaded<'d> {
    build_id: Option<String>,
    /// By address.
    sections: Vec<Section<'d>>,
}

impl<'d> Loaded<'d> {
    /// Reads it from a program's file.
    ///
    /// # Errors
    /// When it is no linked program for x86-64, or damaged.
    pub(crate) fn read(data: &'d [u8]) -> Result<Self, ImageError> {
        let (build_id, sections) = read_loaded(data)?;
        Ok(Self { build_id, sections })
    }
}

/// How two programs differ that should be one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unlike {
    #[error("their build-ids differ: {shipped} and {unstripped}")]
    BuildId { shipped: String, unstripped: String },
    #[error("section {section} differs")]
    Section { section: String },
}

/// Compares build-ids where both have one, and everything that is loaded.
///
/// # Errors
/// How they differ.
pub(crate) fn check_twins(shipped: &Loaded<'_>, unstripped: &Loaded<'_>) -> Result<(), Unlike> {
    if let (Some(a), Some(b)) = (&shipped.build_id, &unstripped.build_id)
        && a != b
    {
        return Err(Unlike::BuildId {
            shipped: a.clone(),
            unstripped: b.clone(),
        });
    }
    let pairs = shipped.sections.len().max(unstripped.sections.len());
    for index in 0..pairs {
        let (a, b) = (shipped.sections.get(index), unstripped.sections.get(index));
        if a != b {
            let section = a.or(b).map(|section| section.name.clone());
            return Err(Unlike::Section {
                section: section.unwrap_or_default(),
            });
        }
    }
    Ok(())
}
