//! What a test expects of a span, as a chain of short sentences.

use crate::{Span, Traces};
use serde_json::Value;

/// A span with the trace that it stands in.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    traces: &'a Traces,
    span: &'a Span,
}

impl<'a> Expected<'a> {
    pub(crate) fn new(traces: &'a Traces, span: &'a Span) -> Self {
        Self { traces, span }
    }

    /// The span itself.
    pub fn span(self) -> &'a Span {
        self.span
    }

    /// An attribute, `null` where it is absent.
    pub fn attribute(self, key: &str) -> &'a Value {
        self.span.attribute(key)
    }

    /// It has no parent.
    ///
    /// # Panics
    /// It has one.
    #[track_caller]
    pub fn root(self) -> Self {
        assert_eq!(self.span.parent_id, "", "`{}` has a parent", self.span.name);
        self
    }

    /// Its parent is a span of that name.
    ///
    /// # Panics
    /// It is another one, or unknown.
    #[track_caller]
    pub fn child_of(self, name: &str) -> Self {
        let parent = self.traces.parent_of(self.span).map(|span| &*span.name);
        assert_eq!(parent, Some(name), "parent of `{}`", self.span.name);
        self
    }

    /// Its parent is the span of a `traceparent` that came from outside.
    ///
    /// # Panics
    /// It is another one.
    #[track_caller]
    pub fn child_of_remote(self, trace_id: &str, span_id: &str) -> Self {
        assert_eq!(
            (&*self.span.trace_id, &*self.span.parent_id),
            (trace_id, span_id),
            "trace and parent of `{}`",
            self.span.name
        );
        self
    }

    /// It has exactly one link, to a span of that name.
    ///
    /// # Panics
    /// It has none, more, or one to another span.
    #[track_caller]
    pub fn linked_to(self, name: &str) -> Self {
        let targets: Vec<_> = self.span.links.iter().collect();
        let names: Vec<_> = targets
            .iter()
            .map(|link| self.traces.target_of(link).map(|span| &*span.name))
            .collect();
        assert_eq!(names, [Some(name)], "links of `{}`", self.span.name);
        self
    }

    /// It has no link.
    ///
    /// # Panics
    /// It has one.
    #[track_caller]
    pub fn unlinked(self) -> Self {
        assert_eq!(self.span.links, [], "links of `{}`", self.span.name);
        self
    }

    /// It has the attribute with that value.
    ///
    /// # Panics
    /// It has another value, or none.
    #[track_caller]
    pub fn has(self, key: &str, value: impl Into<Value>) -> Self {
        let found = self.attribute(key);
        assert_eq!(*found, value.into(), "{key} of `{}`", self.span.name);
        self
    }

    /// It has the attribute, a number of at least zero.
    ///
    /// # Panics
    /// It has it not, or something else.
    #[track_caller]
    pub fn counts(self, key: &str) -> Self {
        let found = self.attribute(key);
        assert!(
            found.as_f64().is_some_and(|number| number >= 0.0),
            "{key} of `{}` is {found}",
            self.span.name
        );
        self
    }

    /// It has not the attribute.
    ///
    /// # Panics
    /// It has.
    #[track_caller]
    pub fn lacks(self, key: &str) -> Self {
        self.has(key, Value::Null)
    }

    /// It is no error.
    ///
    /// # Panics
    /// It is one; its message is shown.
    #[track_caller]
    pub fn succeeded(self) -> Self {
        assert_ne!(
            self.span.status.0, 2,
            "`{}`: {:?}",
            self.span.name, self.span
        );
        self
    }

    /// It is an error of that type.
    ///
    /// # Panics
    /// It is none, or another one.
    #[track_caller]
    pub fn failed(self, error_type: &str) -> Self {
        assert_eq!(self.span.status.0, 2, "`{}` is no error", self.span.name);
        self.has("error.type", error_type)
    }

    /// It lies inside another span of the same clock.
    ///
    /// # Panics
    /// It starts before or ends after it.
    #[track_caller]
    pub fn inside(self, other: &Span) -> Self {
        assert!(
            other.start <= self.span.start && self.span.end <= other.end,
            "`{}` {}..{} is not inside `{}` {}..{}",
            self.span.name,
            self.span.start,
            self.span.end,
            other.name,
            other.start,
            other.end
        );
        self
    }
}
