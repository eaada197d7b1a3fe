//! Bodies of the fuzz targets: bytes in, a panic where a law does not hold. Each
//! target builds documents of one input family out of the bytes, most of them
//! nearly valid, and reads them as a file would be read. Not part of the API.
//!
//! The laws: reading and judging end, every window is the sum of its parts,
//! no part of a breakdown is negative, every report renders and its JSON parses
//! (JSON has neither NaN nor infinity); blocks of any size give what the stream
//! gives; and the lane of canonical lines reads what the general reader reads.

use std::fmt::Write as _;
use std::io::Write as _;

use crate::app::{Afterwards, Request, report_of};
use crate::input::batch::Batch;
use crate::input::{
    canonical, otlp as general_otlp, read_in_blocks, read_in_sequence, read_values,
};
use crate::model::schema::Model;
use crate::problems::Place;
use crate::report::Report;
use crate::report::build::Items;
use crate::report::dependency::{Asked, Drags};
use crate::report::render::{Format, render};
use crate::stats::quantile::Definition;
use crate::trace::attributes::Attributes;
use crate::trace::dataset::Dataset;
use crate::trace::span::Span;
use crate::units::Nanos;

/// Spans, events or phases of one document; more add time and no new states.
const PIECES_MAX: u8 = 24;

/// Texts that documents are built of.
const TEXTS: [&str; 16] = [
    "request",
    "run",
    "daemon.boot",
    "POST /session",
    "channel.wait",
    "channel.initialize",
    "session.new",
    "agent.phase.x",
    "qwen-code.daemon.bridge",
    "",
    "\\u0000",
    "\\\"",
    "a",
    "ü",
    "coldpath.channel.id",
    "service.instance.id",
];
/// Numbers as documents write them, the sound and the broken.
const NUMBERS: [&str; 18] = [
    "0",
    "1",
    "-1",
    "1780000000000000000",
    "\"1780000000000000000\"",
    "18446744073709551615",
    "\"18446744073709551616\"",
    "1e308",
    "-1e308",
    "1.5",
    "\"NaN\"",
    "\"Infinity\"",
    "null",
    "[]",
    "{\"low\":5,\"high\":1}",
    "9007199254740993",
    "1780000000",
    "999999999",
];

/// Choices made by bytes; all zeros once they are used up.
struct Choice<'a>(&'a [u8]);

impl Choice<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    fn of<'t>(&mut self, list: &[&'t str]) -> &'t str {
        list[usize::from(self.byte()) % list.len()]
    }

    fn text(&mut self) -> &'static str {
        self.of(&TEXTS)
    }

    /// A value of any kind.
    fn value(&mut self) -> String {
        match self.byte() % 4 {
            0 => format!("\"{}\"", self.text()),
            1 => "true".to_owned(),
            _ => self.of(&NUMBERS).to_owned(),
        }
    }

    /// A number of a plausible size, or any.
    fn time(&mut self, base: u64, unit: u64) -> String {
        match self.byte() {
            0..=239 => format!("{}", base + u64::from(self.byte()) * unit),
            _ => self.of(&NUMBERS).to_owned(),
        }
    }

    fn id(&mut self, digits: usize) -> String {
        match self.byte() {
            0..=239 => format!("{:0digits$x}", self.byte() % 8),
            _ => self
                .of(&["", "zz", "AQIDBAUGBwg=", "0af7651916cd43dd"])
                .to_owned(),
        }
    }

    fn pieces(&mut self) -> u8 {
        self.byte() % PIECES_MAX
    }
}

/// OTLP JSON.
pub fn otlp(bytes: &[u8]) {
    let mut choice = Choice(bytes);
    let mut text = String::new();
    for _ in 0..choice.pieces() {
        let (trace, id, parent) = (choice.id(32), choice.id(16), choice.id(16));
        let start = choice.time(1_780_000_000_000_000_000, 1_000_000);
        let end = choice.time(1_780_000_000_000_000_000, 1_500_000);
        let attributes = otlp_attributes(&mut choice);
        let resource = otlp_attributes(&mut choice);
        let _ = writeln!(
            text,
            r#"{{"resourceSpans":[{{"resource":{{"attributes":{resource}}},"scopeSpans":[{{"spans":[{{"traceId":"{trace}","spanId":"{id}","parentSpanId":"{parent}","name":"{}","startTimeUnixNano":{start},"endTimeUnixNano":{end},"attributes":{attributes},"status":{{"code":{}}},"events":[{{"timeUnixNano":{start},"name":"{}","attributes":{attributes}}}],"links":[{{"traceId":"{trace}","spanId":"{parent}"}}]}}]}}]}}]}}"#,
            choice.text(),
            choice.of(&NUMBERS),
            choice.text()
        );
    }
    let _ = lanes(&text);
    check(text.as_bytes());
}

fn otlp_attributes(choice: &mut Choice<'_>) -> String {
    let kind = choice.of(&["stringValue", "intValue", "doubleValue", "boolValue"]);
    let mut text = String::from("[");
    for place in 0..choice.byte() % 4 {
        let comma = if place > 0 { "," } else { "" };
        let (key, value) = (choice.text(), choice.value());
        let _ = write!(
            text,
            r#"{comma}{{"key":"{key}","value":{{"{kind}":{value}}}}}"#
        );
    }
    text.push(']');
    text
}

/// Span dumps of the JavaScript SDK.
pub fn js_sdk(bytes: &[u8]) {
    let mut choice = Choice(bytes);
    let mut text = String::new();
    for _ in 0..choice.pieces() {
        let (trace, id, parent) = (choice.id(32), choice.id(16), choice.id(16));
        let time = |choice: &mut Choice<'_>| {
            format!(
                "[{},{}]",
                choice.time(1_780_000_000, 1),
                choice.time(0, 1_000_000)
            )
        };
        let (start, end) = (time(&mut choice), time(&mut choice));
        let operation = choice.of(&[
            "channel.wait",
            "channel.spawn",
            "channel.initialize",
            "session.new",
            "x",
        ]);
        let key = choice.of(&[
            "qwen-code.daemon.runtime.wait_ms",
            "qwen-code.daemon.acp_channel.id",
            "qwen-code.daemon.acp_startup.phase.a_ms",
            "qwen-code.daemon.acp_startup.child.process_to_response_ms",
            "qwen-code.daemon.session_start.config_setup_ms",
        ]);
        let value = choice.value();
        let name = choice.of(&[
            "qwen-code.daemon.request",
            "qwen-code.daemon.bridge",
            "qwen-code.daemon.session_start",
            "x",
        ]);
        let _ = writeln!(
            text,
            "{{\n  \"_spanContext\": {{\"traceId\":\"{trace}\",\"spanId\":\"{id}\"}},\n  \"parentSpanContext\": {{\"spanId\":\"{parent}\"}},\n  \"name\":\"{name}\",\n  \"startTime\":{start},\"endTime\":{end},\n  \"attributes\":{{\"http.route\":\"POST /session\",\"qwen-code.daemon.operation\":\"{operation}\",\"session.id\":\"s\",\"{key}\":{value},\"qwen-code.daemon.acp_channel.id\":\"c\"}},\n  \"status\":{{\"code\":{}}},\n  \"resource\":{{\"_rawAttributes\":[[\"service.instance.id\",\"p\"]]}}\n}}",
            choice.of(&NUMBERS)
        );
    }
    check(text.as_bytes());
}

/// Phase profiles, session profiles and client records.
pub fn records(bytes: &[u8]) {
    let mut choice = Choice(bytes);
    let mut text = String::new();
    for _ in 0..choice.pieces() {
        let (a, b, c) = (choice.value(), choice.value(), choice.value());
        let _ = match choice.byte() % 4 {
            0 => writeln!(
                text,
                r#"{{"schema":"coldpath.profile/1","kind":"channel_startup","channelId":"c","totalMs":{a},"phases":[{{"name":"{}","startMs":{b},"durationMs":{c}}}]}}"#,
                choice.text()
            ),
            1 => writeln!(
                text,
                r#"{{"sessionId":"s","totalMs":{a},"stages":{{"{}":{b}}}}}"#,
                choice.text()
            ),
            2 => writeln!(
                text,
                r#"{{"cold_session_ms":{a},"spawn_at_epoch_ms":{b},"session_request_at_ms":{c},"cold_session_id":"s","session_ids":["s",{a}],"concurrent_session_ms":[{b}],"cold_session_status":{c},"run":"r","cohort":"{}"}}"#,
                choice.text()
            ),
            _ => writeln!(
                text,
                r#"{{"schema":"coldpath.manifest/1","seed":{a},"host":{{"cores":{b},"boot_id":{c}}}}}"#
            ),
        };
    }
    check(text.as_bytes());
}

/// Jaeger API JSON.
pub fn jaeger(bytes: &[u8]) {
    let mut choice = Choice(bytes);
    let mut text = String::from("{\"data\":[{\"spans\":[");
    for place in 0..choice.pieces() {
        let comma = if place > 0 { "," } else { "" };
        let (trace, id, parent) = (choice.id(32), choice.id(16), choice.id(16));
        let (start, length) = (
            choice.time(1_780_000_000_000_000, 1000),
            choice.time(0, 1000),
        );
        let kind = choice.of(&["CHILD_OF", "FOLLOWS_FROM", ""]);
        let (key, value) = (choice.text(), choice.value());
        let _ = write!(
            text,
            r#"{comma}{{"traceID":"{trace}","spanID":"{id}","operationName":"{}","references":[{{"refType":"{kind}","traceID":"{trace}","spanID":"{parent}"}}],"startTime":{start},"duration":{length},"tags":[{{"key":"{key}","value":{value}}}],"processID":"p"}}"#,
            choice.text()
        );
    }
    text.push_str(r#"],"processes":{"p":{"serviceName":"s","tags":[]}}}]}"#);
    check(text.as_bytes());
}

/// Chrome trace JSON.
pub fn chrome(bytes: &[u8]) {
    let mut choice = Choice(bytes);
    let mut text = String::from("[\n");
    for _ in 0..choice.pieces() {
        let phase = choice.of(&["X", "B", "E", "b", "e", "M", "C", ""]);
        let (start, length) = (choice.time(0, 100), choice.time(0, 100));
        let (thread, value) = (choice.byte() % 3, choice.value());
        let _ = writeln!(
            text,
            r#"{{"ph":"{phase}","pid":1,"tid":{thread},"ts":{start},"dur":{length},"name":"{}","id":{value},"args":{{"k":{value}}}}},"#,
            choice.text()
        );
    }
    check(text.as_bytes());
}

/// Any bytes, as they are and as blocks of a size that the first byte says.
pub fn stream(bytes: &[u8]) {
    check(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = lanes(text);
    }
    let Some((size, rest)) = bytes.split_first() else {
        return;
    };
    let in_blocks = batch(|batch| read_in_blocks(0, &mut &*rest, usize::from(*size) + 1, batch));
    let in_sequence = batch(|batch| read_in_sequence(0, &mut &*rest, batch));
    let (blocks, sequence) = (judge(in_blocks), judge(in_sequence));
    assert_eq!(
        json(&blocks),
        json(&sequence),
        "blocks of {size} bytes give another report"
    );
}

/// Holds what the lane of canonical lines reads against the general reader; how
/// many lines the lane took.
#[must_use]
pub fn lanes(text: &str) -> usize {
    let mut taken = 0;
    for line in text.lines() {
        let (mut own, mut general) = (Batch::default(), Batch::default());
        if canonical::read_line(line, &mut own).is_none() {
            assert_eq!(own.holdings(), 0, "a line that was left leaves something");
            assert!(own.spans.is_empty() && own.resources.is_empty());
            continue;
        }
        taken += 1;
        let place = Place {
            file: 0,
            byte: 0,
            line: 1,
        };
        let read = general_otlp::read_spans(line.as_bytes(), place, &mut general);
        assert_eq!(read, Ok(()), "only one lane takes {line}");
        assert!(general.problems.is_empty(), "a problem is left out: {line}");
        assert_eq!(words(&own), words(&general), "lanes differ on {line}");
    }
    taken
}

/// Everything that a batch holds of spans, in words.
fn words(batch: &Batch) -> Vec<String> {
    let attributes = |attributes: &Attributes| {
        let pairs = attributes.iter().map(|(key, value)| {
            let kind = std::mem::discriminant(&value);
            let value = value.print(&batch.names);
            format!("{}={value:?} {kind:?}", batch.names.text(key))
        });
        pairs.collect::<Vec<_>>()
    };
    let span = |span: &Span| {
        let resource = batch.resources.get(span.resource.0 as usize);
        let events = span.events().iter().map(|event| {
            let name = batch.names.text(event.name);
            (name, event.time, attributes(&event.attributes))
        });
        format!(
            "{:?} {:?} {:?} {} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
            span.trace,
            span.id,
            span.parent,
            batch.names.text(span.name),
            span.status,
            span.message.map(|message| batch.names.text(message)),
            span.interval,
            attributes(&span.attributes),
            events.collect::<Vec<_>>(),
            span.links(),
            resource.map(|resource| attributes(&resource.attributes)),
        )
    };
    let mut words: Vec<String> = batch.spans.iter().map(span).collect();
    words.push(format!("{:?}", batch.counts));
    words
}

/// Model files.
pub fn model(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(model) = Model::parse("fuzz", text) {
        let (data, problems) = Dataset::from_batch(Batch::default());
        let request = request(Some(model));
        if let Ok(report) = report_of(&data, problems, request) {
            laws(&report);
        }
    }
}

/// Reads bytes as a file, plain and compressed, and checks the laws.
#[expect(clippy::expect_used, reason = "writing to memory does not fail")]
fn check(bytes: &[u8]) {
    let report = judge(batch(|batch| read_values(0, &mut &*bytes, batch)));
    laws(&report);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).expect("memory");
    let packed = packed.finish().expect("memory");
    let cut = &packed[..packed.len() - packed.len() / 8];
    if let Ok(mut plain) = crate::input::decode::Decoded::new(cut) {
        laws(&judge(batch(|batch| read_values(0, &mut plain, batch))));
    }
}

/// A batch filled from memory.
#[expect(clippy::expect_used, reason = "reading from memory does not fail")]
fn batch(read: impl FnOnce(&mut Batch) -> std::io::Result<()>) -> Batch {
    let mut batch = Batch::default();
    read(&mut batch).expect("memory");
    batch
}

fn request(model: Option<Model>) -> Request<'static> {
    Request {
        command: &[],
        files: &[],
        model,
        definition: Definition::Type7,
        items: Items::Every,
        dependency: Asked {
            changes: Vec::new(),
            drag: Drags::Taken,
        },
        afterwards: Afterwards::GoesOn,
    }
}

#[expect(clippy::expect_used, reason = "the built-in models are valid")]
fn judge(batch: Batch) -> Report {
    let (data, problems) = Dataset::from_batch(batch);
    report_of(&data, problems, request(None)).expect("built-in model")
}

/// What holds of every report.
#[expect(clippy::expect_used, reason = "these are the laws")]
fn laws(report: &Report) {
    for stage in report.dependency.iter().flat_map(|one| &one.stages) {
        // Medians of what holds in every run.
        assert!(stage.drag_p50 >= Some(Nanos(0)) && stage.drag_p50 <= stage.work_p50);
        assert!(stage.slack_p50.is_none_or(|slack| slack >= Nanos(0)));
    }
    for run in &report.runs.items {
        for window in &run.windows {
            let parts = window.stages.0.iter().map(|(_, time)| *time);
            let parts: Vec<i64> = parts.chain([window.unattributed_ns]).collect();
            assert!(
                parts.iter().all(|part| *part >= 0),
                "negative part: {parts:?}"
            );
            let sum: i128 = parts.iter().map(|part| i128::from(*part)).sum();
            assert_eq!(sum, i128::from(window.total_ns), "window {}", window.name);
        }
    }
    for format in [Format::Table, Format::Markdown] {
        let mut out = Vec::new();
        render(report, format, &mut out).expect("memory");
        String::from_utf8(out).expect("UTF-8");
    }
    let value: serde_json::Value = serde_json::from_str(&json(report)).expect("valid JSON");
    assert_eq!(value["schema"], "coldpath.report/1");
}

#[expect(clippy::expect_used, reason = "writing to memory does not fail")]
fn json(report: &Report) -> String {
    let mut out = Vec::new();
    render(report, Format::Json, &mut out).expect("memory");
    String::from_utf8(out).expect("UTF-8")
}
