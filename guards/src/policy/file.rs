//! The policy as it is written: TOML of schema 1, not yet validated.

use crate::layer::Layer;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PolicyFile {
    pub(super) schema: u32,
    #[serde(default)]
    pub(super) path: Vec<PathEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct PathEntry {
    pub(super) name: String,
    pub(super) package: String,
    pub(super) bin: Option<String>,
    #[serde(default)]
    pub(super) features: Vec<String>,
    pub(super) default_features: Option<bool>,
    pub(super) target: Option<String>,
    pub(super) profile: Option<String>,
    #[serde(default)]
    pub(super) rustflags: Vec<String>,
    #[serde(default)]
    pub(super) together_with: Vec<String>,
    #[serde(default)]
    pub(super) roots: Vec<String>,
    pub(super) level: Layer,
    pub(super) deny: Vec<DenyEntry>,
    #[serde(default)]
    pub(super) lazy: Vec<LazyEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DenyEntry {
    #[serde(rename = "crate")]
    pub(super) krate: Option<String>,
    pub(super) symbol: Option<String>,
    pub(super) version: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) unmatched: Option<UnmatchedEntry>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum UnmatchedEntry {
    Fail,
    Allow,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LazyEntry {
    pub(super) from: Option<String>,
    pub(super) to: Option<String>,
    pub(super) dlopen: Option<String>,
    pub(super) exec: Option<String>,
    pub(super) reason: String,
    pub(super) expires: Option<String>,
}
