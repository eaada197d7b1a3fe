//! Trace files read back as plain JSON.
//!
//! Strict on purpose: a line that is no JSON, or a span without the fields that
//! OTLP asks for, fails the test that reads it.

use crate::Expected;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Everything in one trace directory.
#[derive(Debug)]
pub struct Traces {
    /// Span files, sorted by name.
    pub files: Vec<TraceFile>,
    /// Profile records of all files, in their order.
    pub profiles: Vec<Value>,
    spans: Vec<Span>,
}

/// One span file.
#[derive(Debug)]
pub struct TraceFile {
    /// Where it is.
    pub path: PathBuf,
    /// Attributes of the resource of its first line.
    pub resource: BTreeMap<String, Value>,
    /// Attributes of the resource of its last line.
    pub last_resource: BTreeMap<String, Value>,
    /// Spans in its last line.
    pub last_spans: usize,
}

/// One span.
#[derive(Debug)]
pub struct Span {
    /// Name.
    pub name: String,
    /// Trace id, 32 hex digits.
    pub trace_id: String,
    /// Span id, 16 hex digits.
    pub span_id: String,
    /// Parent's span id; empty for a root.
    pub parent_id: String,
    /// OTLP span kind: 1 internal, 2 server.
    pub kind: u64,
    /// W3C flags of the span.
    pub flags: u64,
    /// Start, Unix nanoseconds.
    pub start: u64,
    /// End, Unix nanoseconds.
    pub end: u64,
    /// Attributes.
    pub attributes: BTreeMap<String, Value>,
    /// Attributes of its resource.
    pub resource: BTreeMap<String, Value>,
    /// Linked spans.
    pub links: Vec<Link>,
    /// Names of its events.
    pub events: Vec<String>,
    /// OTLP status: 0 unset, 1 ok, 2 error; with its message.
    pub status: (u64, String),
}

/// A link to another span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Trace id of the other span.
    pub trace_id: String,
    /// Span id of the other span.
    pub span_id: String,
}

impl Traces {
    /// Reads every file of a directory; one that does not exist holds none.
    ///
    /// # Panics
    /// A file is not what the trace contract says.
    #[must_use]
    #[track_caller]
    pub fn read(dir: &Path) -> Self {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(dir)
            .map(|entries| entries.map(|entry| entry.unwrap().path()).collect())
            .unwrap_or_default();
        paths.sort();
        let mut traces = Self {
            files: Vec::new(),
            profiles: Vec::new(),
            spans: Vec::new(),
        };
        for path in paths {
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text.ends_with('\n'), "{} ends in a line", path.display());
            let lines = text.lines().map(|line| {
                serde_json::from_str::<Value>(line)
                    .unwrap_or_else(|error| panic!("{}: {error}: {line}", path.display()))
            });
            if path.to_string_lossy().ends_with(".profile.jsonl") {
                traces.profiles.extend(lines);
            } else {
                let lines: Vec<_> = lines.collect();
                traces.add_file(path, &lines);
            }
        }
        traces
    }

    fn add_file(&mut self, path: PathBuf, lines: &[Value]) {
        let resources: Vec<_> = lines.iter().map(resource_of).collect();
        let mut last_spans = 0;
        for (line, resource) in lines.iter().zip(&resources) {
            let scopes = line["resourceSpans"][0]["scopeSpans"].as_array();
            let spans: Vec<_> = scopes
                .into_iter()
                .flatten()
                .flat_map(|scope| scope["spans"].as_array().expect("a scope has spans"))
                .map(|span| Span::parse(span, resource))
                .collect();
            last_spans = spans.len();
            self.spans.extend(spans);
        }
        self.files.push(TraceFile {
            path,
            resource: resources.first().cloned().unwrap_or_default(),
            last_resource: resources.last().cloned().unwrap_or_default(),
            last_spans,
        });
    }

    /// All spans, in the order of the files.
    #[must_use]
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Spans of one name, by start.
    #[must_use]
    pub fn named(&self, name: &str) -> Vec<&Span> {
        let mut found: Vec<_> = self.spans.iter().filter(|span| span.name == name).collect();
        found.sort_by_key(|span| span.start);
        found
    }

    /// The only span of a name, to expect something of.
    ///
    /// # Panics
    /// There is none, or more than one.
    #[track_caller]
    pub fn one(&self, name: &str) -> Expected<'_> {
        match self.named(name).as_slice() {
            [span] => Expected::new(self, span),
            found => panic!(
                "{} spans `{name}`; there are: {}",
                found.len(),
                self.names()
            ),
        }
    }

    /// Expects something of a span that was found otherwise.
    pub fn expect<'a>(&'a self, span: &'a Span) -> Expected<'a> {
        Expected::new(self, span)
    }

    /// No span has that name.
    ///
    /// # Panics
    /// One has.
    #[track_caller]
    pub fn none(&self, name: &str) {
        let found = self.named(name);
        assert!(found.is_empty(), "there is a `{name}`: {found:?}");
    }

    /// The span that another one calls its parent.
    #[must_use]
    pub fn parent_of(&self, span: &Span) -> Option<&Span> {
        self.spans
            .iter()
            .find(|other| other.trace_id == span.trace_id && other.span_id == span.parent_id)
    }

    /// The span that a link points to.
    #[must_use]
    pub fn target_of(&self, link: &Link) -> Option<&Span> {
        self.spans
            .iter()
            .find(|other| other.trace_id == link.trace_id && other.span_id == link.span_id)
    }

    /// Children of a span with one name, by start.
    #[must_use]
    pub fn children<'a>(&'a self, parent: &Span, name: &str) -> Vec<&'a Span> {
        let mut found = self.named(name);
        found.retain(|span| span.trace_id == parent.trace_id && span.parent_id == parent.span_id);
        found
    }

    /// The only child of a span with that name.
    ///
    /// # Panics
    /// There is none, or more than one.
    #[track_caller]
    pub fn child(&self, parent: &Span, name: &str) -> Expected<'_> {
        match self.children(parent, name).as_slice() {
            [span] => Expected::new(self, span),
            found => panic!(
                "{} children `{name}` of `{}`; there are: {}",
                found.len(),
                parent.name,
                self.names()
            ),
        }
    }

    /// Names of all spans, for messages.
    #[must_use]
    pub fn names(&self) -> String {
        let names: Vec<_> = self.spans.iter().map(|span| span.name.as_str()).collect();
        names.join(", ")
    }
}

impl TraceFile {
    /// Whether its last line says that it was closed in order.
    #[must_use]
    pub fn is_final(&self) -> bool {
        self.last_spans == 0 && self.last_resource.get("coldpath.trace.final") == Some(&true.into())
    }

    /// `service.name`.
    #[must_use]
    pub fn service(&self) -> &str {
        self.resource
            .get("service.name")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
}

impl Span {
    fn parse(span: &Value, resource: &BTreeMap<String, Value>) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let array = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let parsed = Self {
            name: text(&span["name"]),
            trace_id: text(&span["traceId"]),
            span_id: text(&span["spanId"]),
            parent_id: text(&span["parentSpanId"]),
            kind: integer(&span["kind"]),
            flags: integer(&span["flags"]),
            start: integer(&span["startTimeUnixNano"]),
            end: integer(&span["endTimeUnixNano"]),
            attributes: attributes(&span["attributes"]),
            resource: resource.clone(),
            links: array(&span["links"])
                .iter()
                .map(|link| Link {
                    trace_id: text(&link["traceId"]),
                    span_id: text(&link["spanId"]),
                })
                .collect(),
            events: array(&span["events"])
                .iter()
                .map(|event| text(&event["name"]))
                .collect(),
            status: (
                integer(&span["status"]["code"]),
                text(&span["status"]["message"]),
            ),
        };
        assert!(
            is_hex(&parsed.trace_id, 32) && is_hex(&parsed.span_id, 16) && !parsed.name.is_empty(),
            "not a span: {span}"
        );
        assert!(parsed.start <= parsed.end, "ends before it starts: {span}");
        parsed
    }

    /// An attribute, `null` where it is absent.
    #[must_use]
    pub fn attribute(&self, key: &str) -> &Value {
        self.attributes.get(key).unwrap_or(&Value::Null)
    }
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        && text.bytes().any(|b| b != b'0')
}

fn resource_of(line: &Value) -> BTreeMap<String, Value> {
    let all = line["resourceSpans"].as_array().expect("resourceSpans");
    assert_eq!(all.len(), 1, "one resource a line");
    attributes(&all[0]["resource"]["attributes"])
}

/// OTLP's tagged values as plain ones; 64-bit integers are text on the wire.
fn attributes(list: &Value) -> BTreeMap<String, Value> {
    let pairs = list.as_array().into_iter().flatten();
    pairs
        .map(|pair| {
            let key = pair["key"].as_str().expect("a key").to_owned();
            let (tag, value) = pair["value"]
                .as_object()
                .and_then(|value| value.iter().next())
                .expect("a tagged value");
            let value = match tag.as_str() {
                "intValue" => signed(value).into(),
                "stringValue" | "boolValue" | "doubleValue" => value.clone(),
                tag => panic!("attribute {key} is a {tag}"),
            };
            (key, value)
        })
        .collect()
}

fn signed(value: &Value) -> i64 {
    match value {
        Value::String(text) => text.parse().expect("an integer"),
        other => other.as_i64().expect("an integer"),
    }
}

fn integer(value: &Value) -> u64 {
    match value {
        Value::Null => 0,
        Value::String(text) => text.parse().expect("an integer"),
        other => other.as_u64().expect("an integer"),
    }
}
