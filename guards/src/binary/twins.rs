//! Whether a stripped and an unstripped program are the same build.
//!
//! What is loaded must be the same bytes at the same addresses; only then may one
//! stand for the other. The stripped one is reduced to digests, so that two large
//! programs are never in memory at once.

use super::Image;
use sha2::{Digest, Sha256};

/// What of a program is loaded, as digests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Loaded {
    build_id: Option<String>,
    /// Name, address, size and digest of each section, by address.
    sections: Vec<(String, u64, u64, [u8; 32])>,
}

impl Loaded {
    /// Digests `image`.
    pub(crate) fn of(image: &Image<'_>) -> Self {
        let digest = |section: &super::Section<'_>| {
            (
                section.name.clone(),
                section.address,
                section.size,
                Sha256::digest(section.bytes).into(),
            )
        };
        Self {
            build_id: image.build_id.clone(),
            sections: image.sections.iter().map(digest).collect(),
        }
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
pub(crate) fn check_twins(shipped: &Loaded, unstripped: &Loaded) -> Result<(), Unlike> {
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
            let section = a.or(b).map(|(name, ..)| name.clone());
            return Err(Unlike::Section {
                section: section.unwrap_or_default(),
            });
        }
    }
    Ok(())
}
