//! The models that come with the program.

use std::path::Path;

use super::schema::{Model, ModelError};

/// Name and text of each, in the order in which a tie is decided.
const MODELS: [(&str, &str); 3] = [
    ("coldpath", include_str!("../../models/coldpath.toml")),
    ("qwen", include_str!("../../models/qwen.toml")),
    ("generic", include_str!("../../models/generic.toml")),
];

/// The text of a built-in model.
#[must_use]
pub fn source(name: &str) -> Option<&'static str> {
    MODELS
        .iter()
        .find(|(found, _)| *found == name)
        .map(|(_, text)| *text)
}

/// All built-in models.
///
/// # Errors
/// [`ModelError::Invalid`]; a test holds that it does not happen.
pub fn all() -> Result<Vec<Model>, ModelError> {
    MODELS
        .iter()
        .map(|(name, text)| Model::parse(name, text))
        .collect()
}

/// The text of the model that a user named: a built-in one, else a file.
///
/// # Errors
/// [`ModelError::Unknown`] and [`ModelError::Unreadable`].
pub fn text_of(name: &str) -> Result<String, ModelError> {
    if let Some(text) = source(name) {
        return Ok(text.to_owned());
    }
    if !Path::new(name).is_file() {
        let builtin = MODELS.map(|(name, _)| name).join(", ");
        return Err(ModelError::Unknown {
            name: name.to_owned(),
            builtin,
        });
    }
    std::fs::read_to_string(name).map_err(|source| ModelError::Unreadable {
        path: name.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_model_is_valid_and_bears_its_name() {
        let names: Vec<_> = all().unwrap().into_iter().map(|model| model.name).collect();
        assert_eq!(names, MODELS.map(|(name, _)| name));
    }

    #[test]
    fn an_unknown_model_names_the_known_ones() {
        let text = text_of("qven").unwrap_err().to_string();
        assert!(
            text.contains("qven") && text.contains("coldpath, qwen, generic"),
            "{text}"
        );
    }
}
