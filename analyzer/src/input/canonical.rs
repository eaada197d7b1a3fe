//! OTLP JSON lines as exporters print them, read in one pass straight into the
//! batch: no tree, no borrowed copy, no list that is taken apart again.
//!
//! This lane takes only what it knows in full: camelCase keys, hexadecimal ids,
//! times as text, no escapes, no `null`, nothing twice. Nor does it take empty
//! objects, so that no list takes more than its text has [`room`](super::room)
//! for. It has no opinion about anything else: it leaves the batch as it was and
//! the line to [`super::otlp`], which reads every spelling and words every
//! problem. What both accept they read alike; that is tested.

use crate::trace::names::Symbol;
use crate::trace::span::{Event, Extra, Link, Span, SpanId, Status, TraceId, Value};
use crate::units::{Interval, LENGTH_MAX, Timestamp};

use super::batch::Batch;
use super::otlp::event_time;
use cursor::{Cursor, DEPTH_MAX, DIGITS_MAX};

mod cursor;

/// Longer lines are left to the general reader, which bounds what they may take.
const LINE_MAX_BYTES: usize = 16 * 1024 * 1024;

/// Reads one line that begins with `{"resourceSpans"`; `None` leaves `batch` as
/// it was.
pub fn read_line(line: &str, batch: &mut Batch) -> Option<()> {
    if line.len() > LINE_MAX_BYTES {
        return None;
    }
    let before = batch.mark();
    let mut cursor = Cursor::new(line);
    let read = cursor.document(batch).filter(|()| cursor.is_at_end());
    if read.is_none() {
        batch.undo_to(before);
    }
    read
}

/// Fields of a span that are read, in the order in which exporters write them.
/// The last three are counts that are only looked at.
const SPAN_FIELDS: [&str; 13] = [
    "traceId",
    "spanId",
    "parentSpanId",
    "name",
    "startTimeUnixNano",
    "endTimeUnixNano",
    "attributes",
    "events",
    "links",
    "status",
    "droppedAttributesCount",
    "droppedEventsCount",
    "droppedLinksCount",
];

/// What the fields of a span said.
#[derive(Default)]
struct Parts<'a> {
    trace: Option<[u8; 16]>,
    id: Option<[u8; 8]>,
    parent: Option<SpanId>,
    name: &'a str,
    start: u64,
    end: u64,
    status: Status,
    message: Option<Symbol>,
    attributes: Vec<(Symbol, Value)>,
    events: Vec<Event>,
    links: Vec<Link>,
}

/// Fields of an object that were met; none may be met twice.
#[derive(Default)]
struct Met(u32);

impl Met {
    fn once(&mut self, field: u32) -> Option<()> {
        let new = self.0 & 1 << field == 0;
        self.0 |= 1 << field;
        new.then_some(())
    }

    fn has(&self, field: u32) -> Option<()> {
        (self.0 & 1 << field != 0).then_some(())
    }
}

impl<'a> Cursor<'a> {
    fn document(&mut self, batch: &mut Batch) -> Option<()> {
        let mut met = Met::default();
        self.object(|cursor, key| match key {
            "resourceSpans" => {
                met.once(0)?;
                cursor.list(|cursor| cursor.resource_spans(batch))
            }
            _ => cursor.skip_field(key),
        })
    }

    fn resource_spans(&mut self, batch: &mut Batch) -> Option<()> {
        let mut met = Met::default();
        let first = batch.spans.len();
        let mut attributes = Vec::new();
        self.object(|cursor, key| match key {
            "resource" => {
                met.once(0)?;
                attributes = cursor.resource(batch)?;
                Some(())
            }
            "scopeSpans" => {
                met.once(1)?;
                cursor.list(|cursor| cursor.scope_spans(batch))
            }
            _ => cursor.skip_field(key),
        })?;
        met.has(1)?;
        let resource = batch.resource(attributes.into_iter().collect());
        for span in &mut batch.spans[first..] {
            span.resource = resource;
        }
        Some(())
    }

    fn resource(&mut self, batch: &mut Batch) -> Option<Vec<(Symbol, Value)>> {
        let mut met = Met::default();
        let mut attributes = Vec::new();
        self.object(|cursor, key| match key {
            "attributes" => {
                met.once(0)?;
                cursor.attributes(batch, &mut attributes)
            }
            _ => cursor.skip_field(key),
        })?;
        Some(attributes)
    }

    fn scope_spans(&mut self, batch: &mut Batch) -> Option<()> {
        let mut met = Met::default();
        self.object(|cursor, key| match key {
            "spans" => {
                met.once(0)?;
                cursor.list(|cursor| cursor.span(batch))
            }
            _ => cursor.skip_field(key),
        })?;
        met.has(0)
    }

    fn span(&mut self, batch: &mut Batch) -> Option<()> {
        let mut met = Met::default();
        let mut parts = Parts {
            attributes: std::mem::take(&mut batch.held),
            ..Parts::default()
        };
        parts.attributes.clear();
        self.object(|cursor, key| cursor.span_field(key, &mut met, &mut parts, batch))?;
        let interval = Interval::new(Timestamp(parts.start), Timestamp(parts.end));
        let span = Span {
            trace: TraceId(parts.trace?),
            id: SpanId(parts.id?),
            parent: parts.parent,
            name: batch.names.intern(parts.name),
            status: parts.status,
            message: parts.message,
            interval: interval
                .filter(|interval| parts.start > 0 && interval.length() <= LENGTH_MAX)?,
            attributes: parts.attributes.iter().copied().collect(),
            extra: Extra::of(parts.events, parts.links),
            resource: Batch::no_resource(),
        };
        batch.spans.push(span);
        batch.held = parts.attributes;
        batch.counts.spans += 1;
        Some(())
    }

    fn span_field(
        &mut self,
        key: &'a str,
        met: &mut Met,
        parts: &mut Parts<'a>,
        batch: &mut Batch,
    ) -> Option<()> {
        let place = SPAN_FIELDS.iter().position(|field| *field == key);
        let Some(place) = place else {
            return self.skip_field(key);
        };
        met.once(u32::try_from(place).ok()?)?;
        match key {
            "traceId" => parts.trace = Some(self.id()?),
            "spanId" => parts.id = Some(self.id()?),
            "parentSpanId" => parts.parent = self.parent()?,
            "name" => parts.name = self.string()?,
            "startTimeUnixNano" => parts.start = self.instant()?,
            "endTimeUnixNano" => parts.end = self.instant()?,
            "attributes" => self.attributes(batch, &mut parts.attributes)?,
            "events" => self.list(|cursor| {
                parts.events.push(cursor.event(batch)?);
                Some(())
            })?,
            "links" => self.list(|cursor| {
                parts.links.push(cursor.link()?);
                Some(())
            })?,
            "status" => (parts.status, parts.message) = self.status(batch)?,
            _ => self.count()?,
        }
        Some(())
    }

    fn attributes(&mut self, batch: &mut Batch, into: &mut Vec<(Symbol, Value)>) -> Option<()> {
        self.list(|cursor| {
            let mut met = Met::default();
            let (mut key, mut value) = (None, Value::Other);
            cursor.object(|cursor, field| match field {
                "key" => {
                    met.once(0)?;
                    key = Some(batch.names.intern(cursor.string()?));
                    Some(())
                }
                "value" => {
                    met.once(1)?;
                    value = cursor.value(batch)?;
                    Some(())
                }
                _ => cursor.skip_field(field),
            })?;
            into.push((key?, value));
            Some(())
        })
    }

    /// The value of an attribute, of one kind only.
    fn value(&mut self, batch: &mut Batch) -> Option<Value> {
        let mut found = None;
        self.object(|cursor, kind| {
            let value = match kind {
                "stringValue" => Value::Text(batch.names.intern(cursor.string()?)),
                "intValue" => Value::Int(cursor.integer()?),
                "boolValue" => Value::Bool(cursor.truth()?),
                "doubleValue" => Value::Double(cursor.double()?),
                "arrayValue" | "kvlistValue" | "bytesValue" => {
                    cursor.skip(DEPTH_MAX)?;
                    Value::Other
                }
                _ => return None,
            };
            found.replace(value).is_none().then_some(())
        })?;
        found
    }

    fn event(&mut self, batch: &mut Batch) -> Option<Event> {
        let mut met = Met::default();
        let (mut name, mut time, mut attributes) = (None, None, Vec::new());
        self.object(|cursor, key| match key {
            "name" => {
                met.once(0)?;
                name = Some(cursor.string()?);
                Some(())
            }
            "attributes" => {
                met.once(1)?;
                cursor.attributes(batch, &mut attributes)
            }
            "timeUnixNano" => {
                met.once(2)?;
                time = Some(cursor.instant()?);
                Some(())
            }
            _ => cursor.skip_field(key),
        })?;
        Some(Event {
            name: batch.names.intern(name?),
            time: event_time(time),
            attributes: attributes.into_iter().collect(),
        })
    }

    fn link(&mut self) -> Option<Link> {
        let mut met = Met::default();
        let (mut trace, mut span) = (None, None);
        self.object(|cursor, key| match key {
            "traceId" => {
                met.once(0)?;
                trace = Some(TraceId(cursor.id()?));
                Some(())
            }
            "spanId" => {
                met.once(1)?;
                span = Some(SpanId(cursor.id()?));
                Some(())
            }
            _ => cursor.skip_field(key),
        })?;
        Some(Link {
            trace: trace?,
            span: span?,
        })
    }

    fn status(&mut self, batch: &mut Batch) -> Option<(Status, Option<Symbol>)> {
        let mut met = Met::default();
        let (mut status, mut message) = (Status::Unset, None);
        self.object(|cursor, key| match key {
            "code" => {
                met.once(0)?;
                status = match cursor.digits()? {
                    "0" => Status::Unset,
                    "1" => Status::Ok,
                    "2" => Status::Error,
                    _ => return None,
                };
                Some(())
            }
            "message" => {
                met.once(1)?;
                let text = cursor.string()?;
                message = (!text.is_empty()).then(|| batch.names.intern(text));
                Some(())
            }
            _ => cursor.skip_field(key),
        })?;
        Some((status, message))
    }

    /// An id of `N` bytes, not all zero.
    fn id<const N: usize>(&mut self) -> Option<[u8; N]> {
        from_hex(self.string()?)
    }

    /// The id of a parent; none for empty text.
    #[expect(
        clippy::option_option,
        reason = "outside: whether it could be read; inside: whether there is one"
    )]
    fn parent(&mut self) -> Option<Option<SpanId>> {
        match self.string()? {
            "" => Some(None),
            text => from_hex(text).map(|id| Some(SpanId(id))),
        }
    }

    /// Nanoseconds as text.
    fn instant(&mut self) -> Option<u64> {
        let text = self.string()?;
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        // 19 digits are the nanoseconds of this and of the next centuries.
        (digits && text.len() <= DIGITS_MAX + 1)
            .then(|| text.parse().ok())
            .flatten()
    }

    /// Passes over the value of a field that says nothing here; not of one that
    /// is another spelling of a field that does.
    fn skip_field(&mut self, key: &str) -> Option<()> {
        let other_spelling =
            key.contains('_') || matches!(key, "batches" | "instrumentationLibrarySpans");
        if other_spelling {
            return None;
        }
        self.skip(DEPTH_MAX)
    }
}

fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    match super::lenient::Id::<N>::parse(text) {
        super::lenient::Id::Valid(bytes) => Some(bytes),
        _ => None,
    }
}
