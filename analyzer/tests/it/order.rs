//! The report is the same under any order of lines, spans and files, plain or
//! compressed, with either line end.

use std::io::Write;

use coldpath_analyzer::app::{Afterwards, Request, report_of};
use coldpath_analyzer::input::batch::Batch;
use coldpath_analyzer::input::decode::Decoded;
use coldpath_analyzer::input::read_values;
use coldpath_analyzer::report::build::Items;
use coldpath_analyzer::report::dependency::{Asked, Drags};
use coldpath_analyzer::report::render::{Format, render};
use coldpath_analyzer::stats::quantile::Definition;
use coldpath_analyzer::trace::dataset::Dataset;
use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use proptest::test_runner::Config;
use serde_json::Value;

use crate::support::fixture;

/// The report of these files' bytes without `input` and `provenance`.
fn body(files: &[Vec<u8>]) -> String {
    let mut batch = Batch::default();
    for (index, bytes) in files.iter().enumerate() {
        let mut plain = Decoded::new(bytes.as_slice()).unwrap();
        read_values(u32::try_from(index).unwrap(), &mut plain, &mut batch).unwrap();
    }
    let (data, problems) = Dataset::from_batch(batch);
    let request = Request {
        command: &[],
        files: &[],
        model: None,
        definition: Definition::Type7,
        items: Items::Every,
        dependency: Asked {
            changes: Vec::new(),
            drag: Drags::Taken,
        },
        afterwards: Afterwards::GoesOn,
    };
    let report = report_of(&data, problems, request).unwrap();
    let mut out = Vec::new();
    render(&report, Format::Json, &mut out).unwrap();
    let mut value: Value = serde_json::from_slice(&out).unwrap();
    let map = value.as_object_mut().unwrap();
    map.remove("input");
    map.remove("provenance");
    serde_json::to_string_pretty(&value).unwrap()
}

/// Records of the fixtures as texts without a line end: lines of the Coldpath
/// runs, or pretty-printed objects of two real captures with their profiles.
fn records(qwen: bool) -> Vec<String> {
    if !qwen {
        let read =
            |name: &str| std::fs::read_to_string(fixture("coldpath/valid").join(name)).unwrap();
        let text = read("warmup.jsonl")
            + &read("curl-only.jsonl")
            + &read("cohorts.jsonl")
            + &read("joined-by-time.jsonl")
            + &read("../invalid/conflicting.jsonl")
            + &read("../../findings/pairs/traces.jsonl");
        let manifest = read("../../findings/pairs/manifest.json");
        let records = text.lines().map(str::to_owned);
        return records.chain([manifest.trim_end().to_owned()]).collect();
    }
    let mut records = Vec::new();
    for run in ["run-01", "run-02"] {
        for file in [
            "telemetry.json.gz",
            "client.json.gz",
            "session-start.jsonl.gz",
        ] {
            let bytes =
                std::fs::read(fixture("qwen-serve-0.24.4/cold").join(run).join(file)).unwrap();
            let mut text = String::new();
            std::io::Read::read_to_string(&mut Decoded::new(bytes.as_slice()).unwrap(), &mut text)
                .unwrap();
            let mut record = String::new();
            for line in text.lines() {
                record.push_str(line);
                // A pretty-printed object ends with a brace in the first column.
                if line == "}" || record.is_empty() || line.starts_with('{') && line.ends_with('}')
                {
                    records.push(std::mem::take(&mut record));
                } else {
                    record.push('\n');
                }
            }
        }
    }
    records
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Deals records to files in the given order and spelling.
fn deal(
    records: &[String],
    order: &[usize],
    files: usize,
    crlf: bool,
    zipped: bool,
) -> Vec<Vec<u8>> {
    let mut dealt = vec![Vec::new(); files];
    for (place, index) in order.iter().enumerate() {
        let end = if crlf { "\r\n" } else { "\n" };
        let text = if crlf {
            records[*index].replace('\n', "\r\n")
        } else {
            records[*index].clone()
        };
        let file = &mut dealt[place % files];
        file.extend_from_slice(text.as_bytes());
        file.extend_from_slice(end.as_bytes());
    }
    if zipped {
        dealt.iter().map(|bytes| gzip(bytes)).collect()
    } else {
        dealt
    }
}

proptest! {
    #![proptest_config(Config { cases: 24, failure_persistence: None, ..Config::default() })]

    #[test]
    fn no_order_of_reading_shows(
        qwen in any::<bool>(),
        seed in prop::collection::vec(any::<u64>(), 320),
        files in 1usize..5,
        crlf in any::<bool>(),
        zipped in any::<bool>(),
    ) {
        let records = records(qwen);
        prop_assert!(records.len() <= seed.len());
        let plain: Vec<usize> = (0..records.len()).collect();
        let mut shuffled = plain.clone();
        shuffled.sort_by_key(|index| seed[*index]);
        let expected = body(&deal(&records, &plain, 1, false, false));
        prop_assert_eq!(body(&deal(&records, &shuffled, files, crlf, zipped)), expected);
    }
}

/// What was kept of records that share ids: the spans in words, the session
/// profiles, and how many problems of each code there were.
fn kept(order: &[&str]) -> String {
    let mut batch = Batch::default();
    for (index, line) in order.iter().enumerate() {
        let mut line = line.as_bytes();
        read_values(u32::try_from(index).unwrap(), &mut line, &mut batch).unwrap();
    }
    let (data, problems) = Dataset::from_batch(batch);
    let text = |symbol| data.names.text(symbol).to_owned();
    let mut kept = Vec::new();
    for (index, span) in data.indices().zip(&data.spans) {
        let key = data.names.find("service.name").unwrap();
        let service = data.resource_attribute(index, key).unwrap();
        let events: Vec<_> = span.events().iter().map(|event| text(event.name)).collect();
        let message = span.message.map(text);
        let links: Vec<_> = span.links().iter().map(|link| link.span.0).collect();
        let service = service.print(&data.names);
        let attributes = span
            .attributes
            .iter()
            .map(|(_, value)| value.print(&data.names));
        let attributes: Vec<_> = attributes.collect();
        kept.push(format!(
            "{service} {message:?} {events:?} {links:?} {attributes:?}"
        ));
    }
    kept.push(format!("{:?}", data.session_profiles));
    for (code, tally) in problems.iter() {
        kept.push(format!("{} {}", code.name(), tally.count));
    }
    kept.join("\n")
}

/// A span of fixed ids and times, with `rest` behind its name.
fn line(service: &str, rest: &str) -> String {
    format!(
        r#"{{"resourceSpans":[{{"resource":{{"attributes":[{{"key":"service.name","value":{{"stringValue":"{service}"}}}}]}},"scopeSpans":[{{"spans":[{{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","name":"x"{rest},"startTimeUnixNano":"1780000000000000000","endTimeUnixNano":"1780000000000000001"}}]}}]}}]}}"#
    )
}

#[test]
fn which_of_two_records_with_one_id_is_kept_is_no_matter_of_order() {
    let link = |id: &str| {
        let trace = "0af7651916cd43dd8448eb211c80319c";
        format!(r#","links":[{{"traceId":"{trace}","spanId":"{id}"}}]"#)
    };
    let attribute = |value: &str| format!(r#","attributes":[{{"key":"k","value":{{{value}}}}}]"#);
    let status = |text: &str| format!(r#","status":{{"code":2,"message":"{text}"}}"#);
    let profile = |ms: u32, stage: u32| {
        format!(
            r#"{{"timestamp":"2026-07-17T00:00:00Z","sessionId":"s","totalMs":{ms},"stages":{{"a":{stage}}}}}"#
        )
    };
    for (what, one, two) in [
        ("resource", line("one", ""), line("two", "")),
        (
            "message",
            line("s", &status("one")),
            line("s", &status("two")),
        ),
        (
            "event",
            line("s", r#","events":[{"name":"one"}]"#),
            line("s", r#","events":[{"name":"two"}]"#),
        ),
        (
            "link",
            line("s", &link("b7ad6b7169203332")),
            line("s", &link("b7ad6b7169203333")),
        ),
        (
            "value",
            line("s", &attribute(r#""stringValue":"1""#)),
            line("s", &attribute(r#""stringValue":"2""#)),
        ),
        ("total of a session", profile(5, 1), profile(6, 1)),
        ("stage of a session", profile(5, 1), profile(5, 2)),
    ] {
        let (one, two) = (one.as_str(), two.as_str());
        let expected = kept(&[one, one, two]);
        assert!(expected.contains("conflicting_"), "{what}: {expected}");
        for order in [[one, two, one], [two, one, one]] {
            assert_eq!(kept(&order), expected, "{what}");
        }
    }
}
