//! What a span, a resource and a link are, whatever format they came in.

use std::hash::BuildHasher;

use crate::units::{Interval, Timestamp};

use super::attributes::Attributes;
use super::names::{Names, Symbol};

/// Id of a trace, never all zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(pub [u8; 16]);

/// Id of a span within its trace, never all zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId(pub [u8; 8]);

/// Index of a resource in its batch or dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ResourceIndex(pub u32);

/// Value of an attribute. Lists, maps and bytes are not kept: no rule reads them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// Text.
    Text(Symbol),
    /// An integer.
    Int(i64),
    /// A number; may be NaN or infinite, as the sender wrote it.
    Double(f64),
    /// A truth value.
    Bool(bool),
    /// A list, a map, bytes or nothing.
    Other,
}

impl Value {
    /// The value as a finite number.
    #[must_use]
    pub fn number(self) -> Option<f64> {
        match self {
            Self::Int(value) => Some(value as f64),
            Self::Double(value) => value.is_finite().then_some(value),
            _ => None,
        }
    }

    /// The value as an integer; a float only when it is whole.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "checked to be whole and below 2^53"
    )]
    pub fn integer(self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(value),
            Self::Double(value) if value.fract() == 0.0 && value.abs() < 9e15 => Some(value as i64),
            _ => None,
        }
    }

    /// The value as text, for reports.
    #[must_use]
    pub fn print(self, names: &Names) -> String {
        match self {
            Self::Text(symbol) => names.text(symbol).to_owned(),
            Self::Int(value) => value.to_string(),
            Self::Double(value) => value.to_string(),
            Self::Bool(value) => value.to_string(),
            Self::Other => "(not kept)".to_owned(),
        }
    }
}

/// Outcome of a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// Nothing was said.
    #[default]
    Unset,
    /// Explicitly good.
    Ok,
    /// In error.
    Error,
}

/// A point in time within a span.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// What happened.
    pub name: Symbol,
    /// When, where that was said; it need not lie within the span.
    pub time: Option<Timestamp>,
    /// Its attributes.
    pub attributes: Attributes,
}

/// A causal reference to a span that is not the parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Trace of the other span.
    pub trace: TraceId,
    /// The other span.
    pub span: SpanId,
}

/// What few spans have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extra {
    /// Events, in source order.
    pub events: Box<[Event]>,
    /// Links, in source order.
    pub links: Box<[Link]>,
}

impl Extra {
    /// Events and links, where there are any.
    #[must_use]
    pub fn of(events: Vec<Event>, links: Vec<Link>) -> Option<Box<Self>> {
        (!(events.is_empty() && links.is_empty())).then(|| {
            Box::new(Self {
                events: events.into(),
                links: links.into(),
            })
        })
    }
}

/// One named interval of work.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Its trace.
    pub trace: TraceId,
    /// Its id within the trace.
    pub id: SpanId,
    /// Id of its parent, if it names one; it need not be in the data.
    pub parent: Option<SpanId>,
    /// Name.
    pub name: Symbol,
    /// Outcome.
    pub status: Status,
    /// Message of an error; empty text when there is none.
    pub message: Option<Symbol>,
    /// When it ran.
    pub interval: Interval,
    /// Attributes.
    pub attributes: Attributes,
    /// Events and links; most spans have neither.
    pub extra: Option<Box<Extra>>,
    /// Who produced it.
    pub resource: ResourceIndex,
}

impl Span {
    /// The value of attribute `key`.
    #[must_use]
    pub fn attribute(&self, key: Symbol) -> Option<Value> {
        self.attributes.get(key)
    }

    /// Events, in source order.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        self.extra.as_ref().map_or(&[], |extra| &extra.events)
    }

    /// Links, in source order.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        self.extra.as_ref().map_or(&[], |extra| &extra.links)
    }

    /// First instant.
    #[must_use]
    pub fn start(&self) -> Timestamp {
        self.interval.start()
    }
}

/// Who produced telemetry; constant for one process.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// Attributes.
    pub attributes: Attributes,
}

impl Resource {
    /// A hash of the attributes, the same for equal ones of one collection of names.
    #[must_use]
    pub fn hash(&self, hasher: &impl BuildHasher) -> u64 {
        hasher.hash_one(&self.attributes)
    }
}
