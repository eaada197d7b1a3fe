//! Whether a stripped and an unstripped program are the same build.

use super::Image;

/// How two programs differ that should be one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unlike {
    #[error("their build-ids differ: {shipped} and {named}")]
    BuildId { shipped: String, named: String },
    #[error("their code differs in section {section}")]
    Code { section: String },
}

/// Compares build-ids where both have one, and the bytes of all code always.
///
/// # Errors
/// How they differ.
pub(crate) fn check_twins(shipped: &Image<'_>, named: &Image<'_>) -> Result<(), Unlike> {
    if let (Some(a), Some(b)) = (&shipped.build_id, &named.build_id)
        && a != b
    {
        return Err(Unlike::BuildId {
            shipped: a.clone(),
            named: b.clone(),
        });
    }
    let code = |image: &Image<'_>| -> Vec<(u64, Vec<u8>, String)> {
        image
            .sections
            .iter()
            .filter(|section| section.executable)
            .map(|section| {
                (
                    section.address,
                    section.bytes.to_vec(),
                    section.name.clone(),
                )
            })
            .collect()
    };
    let (a, b) = (code(shipped), code(named));
    let pairs = a.len().max(b.len());
    for index in 0..pairs {
        let (x, y) = (a.get(index), b.get(index));
        if x != y {
            let name = x.or(y).map(|(_, _, name)| name.clone());
            return Err(Unlike::Code {
                section: name.unwrap_or_default(),
            });
        }
    }
    Ok(())
}
