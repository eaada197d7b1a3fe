//! Events of the format, and text that comes out of traces.
//!
//! Source: "Trace Event Format". Text is data: marks that steer a terminal or
//! reorder text are made visible, and lengths are bounded.

use std::cmp::Reverse;

use serde_json::{Map, Value as Json};

use crate::report::numbers::escape;

/// Characters of a name or value: what a viewer shows in a line; the trace has
/// the rest.
pub const TEXT_MAX: usize = 200;
/// Attributes of one slice.
pub const ATTRIBUTES_MAX: usize = 64;
/// Bytes of attributes in one file, so that it stays far below 10 MB.
pub const ATTRIBUTE_BYTES_MAX: usize = 3 << 20;

/// What an event is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// `M`: a name or an order of a process or a thread.
    Metadata,
    /// `X`: a slice; its length in microseconds.
    Slice {
        /// Length in microseconds.
        length: u64,
        /// How deep it stands on its lane.
        depth: usize,
    },
    /// `s`: an arrow begins; its number.
    ArrowStart(u64),
    /// `f`: an arrow ends, at the slice that encloses it.
    ArrowEnd(u64),
    /// `i`: an instant of its thread.
    Instant,
    /// `C`: a counter.
    Counter,
}

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// What it is.
    pub kind: Kind,
    /// Name.
    pub name: String,
    /// Category.
    pub category: &'static str,
    /// Microseconds after the run's zero.
    pub at: u64,
    /// Process.
    pub pid: u64,
    /// Lane.
    pub tid: u64,
    /// Arguments.
    pub args: Map<String, Json>,
}

/// Metadata first, then by time, the longer first, slices before what lies over
/// them; of equal slices the outer first.
pub fn sort(events: &mut [Event]) {
    events.sort_by_key(|event| {
        let (rank, length, depth) = match event.kind {
            Kind::Metadata => (0, 0, 0),
            Kind::Slice { length, depth } => (1, length, depth),
            Kind::ArrowStart(_) => (2, 0, 0),
            Kind::ArrowEnd(_) => (3, 0, 0),
            Kind::Instant => (4, 0, 0),
            Kind::Counter => (5, 0, 0),
        };
        (rank > 0, event.at, Reverse(length), rank, depth)
    });
}

/// Text from a trace, bounded and harmless.
#[must_use]
pub fn shown(text: &str) -> String {
    let mut chars = text.chars();
    let mut short: String = chars.by_ref().take(TEXT_MAX).collect();
    if chars.next().is_some() {
        short.push('…');
    }
    escape(&short)
}

/// Room for attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Text {
    bytes: usize,
    /// Attributes for which there was none.
    pub left_out: usize,
}

impl Text {
    /// Adds attributes to arguments, whose own keys stay theirs.
    pub fn add(
        &mut self,
        attributes: impl Iterator<Item = (String, Json)>,
        args: &mut Map<String, Json>,
    ) {
        for (place, (key, value)) in attributes.enumerate() {
            let length = key.len() + value.as_str().map_or(8, str::len);
            if place >= ATTRIBUTES_MAX || self.bytes + length > ATTRIBUTE_BYTES_MAX {
                self.left_out += 1;
                continue;
            }
            self.bytes += length;
            let key = shown(&key);
            let key = if args.contains_key(&key) {
                format!("attribute.{key}")
            } else {
                key
            };
            args.insert(key, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_and_cannot_steer() {
        assert_eq!(shown("a\u{202e}\u{1b}b\"<"), "a\\u{202e}\\u{1b}b\"<");
        let long = shown(&"x".repeat(1_000_000));
        assert_eq!(long.chars().count(), TEXT_MAX + 1);
        assert!(long.ends_with('…'));
    }

    #[test]
    fn attributes_beyond_a_bound_are_counted_and_own_keys_stay() {
        let mut text = Text::default();
        let mut args = Map::from_iter([("k0".to_owned(), Json::from("own"))]);
        let many = (0..ATTRIBUTES_MAX + 3).map(|at| (format!("k{at}"), Json::from(at)));
        text.add(many, &mut args);
        assert_eq!(text.left_out, 3);
        assert_eq!(
            (&args["k0"], &args["attribute.k0"]),
            (&Json::from("own"), &Json::from(0))
        );
        assert_eq!(args.len(), ATTRIBUTES_MAX + 1);
        text.bytes = ATTRIBUTE_BYTES_MAX;
        text.add(std::iter::once(("k".to_owned(), Json::Null)), &mut args);
        assert_eq!(text.left_out, 4);
    }
}
