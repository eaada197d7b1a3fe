//! What the rules of a model match in some traces: for those who write models.
//!
//! Counts spans by the rule that fits them, attributes by the rule that reads
//! them, and spans that no rule knows by their names. Judges nothing.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::report::numbers::escape;

use super::lens::Lens;
use super::metric_rules::MetricSource;
use super::schema::SpanRule;

/// Names of unknown spans that are listed; more are only counted.
const UNKNOWN_SHOWN: usize = 40;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matches {
    /// Name of the model.
    pub model: String,
    /// Each span rule in words, and how many spans it fits.
    pub rules: Vec<(String, u64)>,
    /// Each attribute that a rule reads, and how many spans have it.
    pub attributes: Vec<(String, u64)>,
    /// Names of spans that no rule fits, with their counts.
    pub unknown: BTreeMap<String, u64>,
}

/// Counts what `lens` sees.
#[must_use]
pub fn matches(lens: &Lens<'_>) -> Matches {
    let mut fits = vec![0; lens.model.spans.len()];
    let mut unknown: BTreeMap<String, u64> = BTreeMap::new();
    for span in lens.data.indices() {
        if let Some(index) = lens.rule_index(span) {
            fits[index] += 1;
        } else {
            let name = lens.data.names.text(lens.data.span(span).name);
            *unknown.entry(name.to_owned()).or_default() += 1;
        }
    }
    let rules = lens.model.spans.iter().map(describe).zip(fits);
    Matches {
        model: lens.model.name.clone(),
        rules: rules.collect(),
        attributes: attributes(lens),
        unknown,
    }
}

/// A rule in words: its kind and what it demands.
fn describe(rule: &SpanRule) -> String {
    let mut words = vec![rule.kind.clone()];
    words.extend(rule.name.iter().map(|name| format!("name = {name}")));
    words.extend(
        rule.name_prefix
            .iter()
            .map(|start| format!("name = {start}…")),
    );
    words.extend(rule.has.iter().map(|key| format!("has {key}")));
    words.extend(rule.position.map(|position| format!("{position:?}")));
    let conditions = rule.conditions.iter();
    words.extend(conditions.map(|(key, value)| format!("{key} = {value}")));
    words.join(", ")
}

/// Attributes that stages, metrics, paths and covariates read; a family of keys
/// counts spans that have any of it.
fn attributes(lens: &Lens<'_>) -> Vec<(String, u64)> {
    let model = lens.model;
    let stages = model.windows.iter().flat_map(|window| &window.stages);
    let (mut keys, mut families) = (Vec::new(), Vec::new());
    for stage in stages {
        keys.extend(stage.attribute.as_ref());
        let suffix = stage.attribute_suffix.as_deref().unwrap_or("");
        families.extend(
            stage
                .attribute_prefix
                .as_deref()
                .map(|prefix| (prefix, suffix)),
        );
    }
    for source in model.metrics.iter().flat_map(|metric| &metric.sources) {
        if let MetricSource::Attribute { attribute, .. } = source {
            keys.push(attribute);
        }
    }
    keys.extend(model.paths.iter().map(|path| &path.attribute));
    keys.extend(
        model
            .covariates
            .iter()
            .filter_map(|rule| rule.attribute.as_ref()),
    );
    keys.sort_unstable();
    keys.dedup();
    let single = keys.into_iter().map(|key| {
        let symbol = lens.data.names.find(key);
        let count = symbol.map_or(0, |symbol| {
            let spans = lens.data.spans.iter();
            spans
                .filter(|span| span.attribute(symbol).is_some())
                .count() as u64
        });
        (key.clone(), count)
    });
    let of_family = |(prefix, suffix): (&str, &str)| {
        let fits = |key: &str| {
            key.strip_prefix(prefix)
                .is_some_and(|rest| rest.ends_with(suffix))
        };
        let spans = lens.data.spans.iter().filter(|span| {
            let mut keys = span.attributes.iter();
            keys.any(|(key, _)| fits(lens.data.names.text(key)))
        });
        (format!("{prefix}…{suffix}"), spans.count() as u64)
    };
    let mut found: Vec<_> = single.collect();
    families.sort_unstable();
    families.dedup();
    found.extend(families.into_iter().map(of_family));
    found
}

impl Matches {
    /// Whether every rule matches something and every span some rule.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let mut counts = self.rules.iter().chain(&self.attributes);
        self.unknown.is_empty() && counts.all(|(_, count)| *count > 0)
    }

    /// Writes what was found, what is missing last.
    ///
    /// # Errors
    /// What the writer fails with.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "model {}", escape(&self.model))?;
        list(out, "Span rules and the spans that they fit", &self.rules)?;
        list(
            out,
            "Attributes and the spans that have them",
            &self.attributes,
        )?;
        let all = self.rules.iter().chain(&self.attributes);
        let never: Vec<_> = all.filter(|(_, count)| *count == 0).collect();
        writeln!(out, "\nRules that match nothing: {}", never.len())?;
        for (rule, _) in never {
            writeln!(out, "  {}", escape(rule))?;
        }
        let spans: u64 = self.unknown.values().sum();
        writeln!(out, "\nSpans that no rule fits: {spans}")?;
        for (name, count) in self.unknown.iter().take(UNKNOWN_SHOWN) {
            writeln!(out, "  {count:>8}  {}", escape(name))?;
        }
        match self.unknown.len().checked_sub(UNKNOWN_SHOWN) {
            None | Some(0) => Ok(()),
            Some(more) => writeln!(out, "            and {more} more names"),
        }
    }
}

fn list(out: &mut dyn Write, title: &str, rows: &[(String, u64)]) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{title}")?;
    for (name, count) in rows {
        writeln!(out, "  {count:>8}  {}", escape(name))?;
    }
    Ok(())
}
