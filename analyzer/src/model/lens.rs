//! A dataset seen through a model: which span is of which kind.

use std::collections::{BTreeSet, HashMap};

use hashbrown::DefaultHashBuilder;
use smallvec::SmallVec;

use super::by_kind::{ByKind, USUAL};
use crate::trace::clock;
use crate::trace::dataset::{Dataset, SpanIndex};
use crate::trace::names::Symbol;
use crate::trace::slots::Slots;
use crate::trace::span::{Resource, ResourceIndex, Value};
use crate::trace::tree::Tree;
use crate::units::{LENGTH_MAX, Nanos, Timestamp};

use super::schema::{Literal, Model, Part, Position, SpanRule};
use super::window_rules::Unit;

/// Spans that a model is tried on before it is chosen.
const SAMPLE: usize = 20_000;

/// A kind of a model, by its place among the model's kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(u16);

/// Data, tree and model, with every span told its kind.
pub struct Lens<'a> {
    /// The spans.
    pub data: &'a Dataset,
    /// Their parents and children.
    pub tree: &'a Tree,
    /// The model.
    pub model: &'a Model,
    kind_of_name: HashMap<&'a str, (Kind, Part), DefaultHashBuilder>,
    rules: Vec<Option<u16>>,
    kind_of_rule: Vec<Kind>,
    /// By place of the resource.
    quanta: Vec<Nanos>,
    /// Process key of each resource, by its place.
    processes: Vec<Option<Symbol>>,
    channel_key: Option<Symbol>,
}

/// An attribute that a rule demands.
#[derive(Clone, Copy)]
enum Required {
    /// None.
    Nothing,
    /// One that no span of the data has.
    Never,
    /// This one.
    Key(Symbol),
}

/// A rule with its texts looked up; a text that is not in the data fits nothing.
struct Prepared<'a> {
    rule: &'a SpanRule,
    name: Option<Symbol>,
    conditions: Vec<(Option<Symbol>, &'a Literal)>,
    /// Attribute that must be there, where the rule names one.
    has: Required,
}

impl<'a> Lens<'a> {
    /// Classifies every span of `data` by `model`.
    #[must_use]
    pub fn new(data: &'a Dataset, tree: &'a Tree, model: &'a Model) -> Self {
        let mut kinds: Vec<&str> = Vec::new();
        let mut kind_of_rule = Vec::new();
        for rule in &model.spans {
            let index = kinds
                .iter()
                .position(|kind| *kind == rule.kind)
                .unwrap_or_else(|| {
                    kinds.push(&rule.kind);
                    kinds.len() - 1
                });
            kind_of_rule.push(Kind(u16::try_from(index).unwrap_or(u16::MAX)));
        }
        let prepared = prepare(data, model);
        let rules = data
            .indices()
            .map(|span| rule_of(&prepared, data, tree, span));
        Self {
            data,
            tree,
            model,
            kind_of_name: model
                .spans
                .iter()
                .zip(&kind_of_rule)
                .rev()
                .map(|(rule, kind)| (rule.kind.as_str(), (*kind, rule.part)))
                .collect(),
            rules: rules.collect(),
            kind_of_rule,
            quanta: clock::quanta(data, data.names.find(&model.keys.process)),
            processes: processes(data, &model.keys.process),
            channel_key: data.names.find(&model.keys.channel),
        }
    }

    /// How many spans a model knows, of all or of [`SAMPLE`] at even distances.
    #[must_use]
    pub fn known_in_sample(data: &Dataset, tree: &Tree, model: &Model) -> usize {
        let prepared = prepare(data, model);
        let step = data.spans.len().div_ceil(SAMPLE).max(1);
        let sample = data.indices().step_by(step);
        sample
            .filter(|span| rule_of(&prepared, data, tree, *span).is_some())
            .count()
    }

    /// The kind named `name`; every kind that a model names exists.
    #[must_use]
    pub fn kind(&self, name: &str) -> Option<Kind> {
        self.kind_of_name.get(name).map(|(kind, _)| *kind)
    }

    /// The kind named `name` and the part of a run that it belongs to.
    #[must_use]
    pub fn kind_and_part(&self, name: &str) -> Option<(Kind, Part)> {
        self.kind_of_name.get(name).copied()
    }

    /// The kinds named in a list.
    #[must_use]
    pub fn kinds(&self, names: &[String]) -> BTreeSet<Kind> {
        names.iter().filter_map(|name| self.kind(name)).collect()
    }

    /// The rule that fits a span.
    #[must_use]
    pub fn rule(&self, span: SpanIndex) -> Option<&'a SpanRule> {
        self.rules[span.0 as usize].map(|index| &self.model.spans[index as usize])
    }

    /// Place of the rule that fits a span among the model's.
    #[must_use]
    pub fn rule_index(&self, span: SpanIndex) -> Option<usize> {
        self.rules[span.0 as usize].map(usize::from)
    }

    /// The kind of a span.
    #[must_use]
    pub fn kind_of(&self, span: SpanIndex) -> Option<Kind> {
        self.rules[span.0 as usize].map(|index| self.kind_of_rule[index as usize])
    }

    /// The part of a run that a span belongs to.
    #[must_use]
    pub fn part(&self, span: SpanIndex) -> Option<Part> {
        self.rule(span).map(|rule| rule.part)
    }

    /// All spans of a kind, in canonical order.
    pub fn all(&self, kind: Kind) -> impl Iterator<Item = SpanIndex> + '_ {
        self.data
            .indices()
            .filter(move |span| self.kind_of(*span) == Some(kind))
    }

    /// Spans below `span`, itself included and others of its kind with what is
    /// below them left out, grouped by kind, each group by start.
    #[must_use]
    pub fn below(&self, span: SpanIndex) -> ByKind {
        let kind = self.kind_of(span);
        let other = |found: &SpanIndex| self.kind_of(*found) != kind;
        let mut found = self.tree.descendants(span, |found| other(&found));
        found.retain(other);
        found.push(span);
        self.by_kind(found)
    }

    /// Groups spans by kind, each group by start, then canonical order.
    #[must_use]
    pub fn by_kind(&self, spans: Vec<SpanIndex>) -> ByKind {
        let known = spans.into_iter().filter_map(|span| {
            let kind = self.kind_of(span)?;
            Some((kind, self.data.span(span).start(), span))
        });
        // The keys are held, because spans lie far apart in memory.
        let mut known: SmallVec<[(Kind, Timestamp, SpanIndex); USUAL]> = known.collect();
        known.sort_unstable();
        known.dedup();
        ByKind::new(known.into_iter().map(|(kind, _, span)| (kind, span)))
    }

    /// The value of a span's attribute.
    #[must_use]
    pub fn attribute(&self, span: SpanIndex, key: &str) -> Option<Value> {
        self.data.span(span).attribute(self.data.names.find(key)?)
    }

    /// The attribute as text.
    #[must_use]
    pub fn text(&self, span: SpanIndex, key: &str) -> Option<&'a str> {
        match self.attribute(span, key)? {
            Value::Text(symbol) => Some(self.data.names.text(symbol)),
            _ => None,
        }
    }

    /// The resource attribute as text.
    #[must_use]
    pub fn resource_text(&self, span: SpanIndex, key: &str) -> Option<&'a str> {
        let symbol = self.resource_symbol(span, key)?;
        Some(self.data.names.text(symbol))
    }

    /// The resource attribute as a symbol of text.
    #[must_use]
    pub fn resource_symbol(&self, span: SpanIndex, key: &str) -> Option<Symbol> {
        let key = self.data.names.find(key)?;
        match self.data.resource_attribute(span, key)? {
            Value::Text(symbol) => Some(symbol),
            _ => None,
        }
    }

    /// Key of the process that made a span.
    #[must_use]
    pub fn process_of(&self, span: SpanIndex) -> Option<Symbol> {
        let ResourceIndex(resource) = self.data.span(span).resource;
        self.processes.get(resource as usize).copied().flatten()
    }

    /// Id of the channel that a span names.
    #[must_use]
    pub fn channel_of(&self, span: SpanIndex) -> Option<Symbol> {
        match self.data.span(span).attribute(self.channel_key?)? {
            Value::Text(symbol) => Some(symbol),
            _ => None,
        }
    }

    /// The attribute as a symbol of text.
    #[must_use]
    pub fn symbol(&self, span: SpanIndex, key: &str) -> Option<Symbol> {
        match self.attribute(span, key)? {
            Value::Text(symbol) => Some(symbol),
            _ => None,
        }
    }

    /// The nearest ancestor of each span that is of one of `kinds`, by place.
    #[must_use]
    pub fn nearest_above(&self, kinds: &BTreeSet<Kind>) -> Slots {
        self.tree
            .nearest_above(|span| self.kind_of(span).is_some_and(|kind| kinds.contains(&kind)))
    }

    /// The attribute as a length of time.
    #[must_use]
    pub fn length(&self, span: SpanIndex, key: &str, unit: Unit) -> Option<Nanos> {
        to_nanos(self.attribute(span, key)?, unit)
    }

    /// What a prefix rule leaves of a span's name.
    #[must_use]
    pub fn rest_of_name(&self, span: SpanIndex) -> &'a str {
        let name = self.data.names.text(self.data.span(span).name);
        let prefix = self.rule(span).and_then(|rule| rule.name_prefix.as_deref());
        prefix
            .and_then(|prefix| name.strip_prefix(prefix))
            .unwrap_or(name)
    }

    /// Clock quantum of the process that made a span; see [`clock`].
    #[must_use]
    pub fn quantum(&self, span: SpanIndex) -> Nanos {
        let ResourceIndex(resource) = self.data.span(span).resource;
        let quantum = self.quanta.get(resource as usize);
        quantum.copied().unwrap_or(Nanos(1))
    }
}

fn prepare<'a>(data: &Dataset, model: &'a Model) -> Vec<Prepared<'a>> {
    let rules = model.spans.iter();
    rules.map(|rule| Prepared::new(rule, data)).collect()
}

/// Place of the first rule that fits a span.
fn rule_of(prepared: &[Prepared<'_>], data: &Dataset, tree: &Tree, span: SpanIndex) -> Option<u16> {
    let fits =
        |rule: &Prepared<'_>| rule.fits(data, span) && stands(tree, rule.rule.position, span);
    u16::try_from(prepared.iter().position(fits)?).ok()
}

/// Whether a span stands where a rule wants it.
fn stands(tree: &Tree, wanted: Option<Position>, span: SpanIndex) -> bool {
    let Some(wanted) = wanted else { return true };
    let found = match tree.parent(span) {
        None => Position::Root,
        Some(parent) if tree.parent(parent).is_none() => Position::ChildOfRoot,
        Some(_) => Position::Deeper,
    };
    found == wanted
}

/// Whether an attribute has the value of a rule.
#[must_use]
pub fn equals(data: &Dataset, value: Value, literal: &Literal) -> bool {
    match (value, literal) {
        (Value::Text(symbol), Literal::Text(text)) => data.names.text(symbol) == text,
        (Value::Bool(value), Literal::Bool(literal)) => value == *literal,
        (value, Literal::Int(literal)) => value.integer() == Some(*literal),
        _ => false,
    }
}

/// An attribute's value as a length of time, no longer than [`LENGTH_MAX`]; only
/// milliseconds are one.
#[must_use]
pub fn to_nanos(value: Value, unit: Unit) -> Option<Nanos> {
    match unit {
        Unit::Ms => {
            let length = Nanos::from_ms(value.number()?)?;
            (Nanos(0)..=LENGTH_MAX).contains(&length).then_some(length)
        }
        Unit::Bytes => None,
    }
}

impl<'a> Prepared<'a> {
    fn new(rule: &'a SpanRule, data: &Dataset) -> Self {
        let find = |text: &String| data.names.find(text);
        Self {
            rule,
            name: rule.name.as_ref().and_then(find),
            conditions: rule
                .conditions
                .iter()
                .map(|(key, value)| (find(key), value))
                .collect(),
            has: match rule.has.as_ref() {
                None => Required::Nothing,
                Some(key) => data.names.find(key).map_or(Required::Never, Required::Key),
            },
        }
    }

    fn fits(&self, data: &Dataset, index: SpanIndex) -> bool {
        let span = data.span(index);
        if self.rule.name.is_some() && self.name != Some(span.name) {
            return false;
        }
        if let Some(prefix) = &self.rule.name_prefix
            && !data.names.text(span.name).starts_with(prefix.as_str())
        {
            return false;
        }
        let there = match self.has {
            Required::Nothing => true,
            Required::Never => false,
            Required::Key(key) => span.attribute(key).is_some(),
        };
        if !there {
            return false;
        }
        let holds = |(key, literal): &(Option<Symbol>, &Literal)| {
            let value = key.and_then(|key| span.attribute(key));
            value.is_some_and(|value| equals(data, value, literal))
        };
        self.conditions.iter().all(holds)
    }
}

fn processes(data: &Dataset, key: &str) -> Vec<Option<Symbol>> {
    let Some(key) = data.names.find(key) else {
        return Vec::new();
    };
    let text = |resource: &Resource| match resource.attributes.get(key)? {
        Value::Text(symbol) => Some(symbol),
        _ => None,
    };
    data.resources.iter().map(text).collect()
}
