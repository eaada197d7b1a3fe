//! The rules of the Chrome trace format, strictly: what Perfetto, `chrome://tracing`
//! or speedscope refuse, drop or draw wrongly is broken here. Shares no code with
//! the crate.

use std::collections::BTreeMap;

use serde_json::Value;

type Lane = (u64, u64);
/// Begin and end of a slice.
type Slice = (u64, u64);
/// Lane and time of an arrow's end.
type End = (Lane, u64);

/// Every rule that a text breaks, in words; empty for a good trace.
pub(crate) fn broken(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let document: Value = match serde_json::from_str(text) {
        Ok(document) => document,
        Err(error) => return vec![format!("is not JSON: {error}")],
    };
    if text.chars().any(|c| c.is_control() && c != '\n') {
        found.push("holds a control character".to_owned());
    }
    let Some(events) = document["traceEvents"].as_array() else {
        return vec!["has no traceEvents".to_owned()];
    };
    for event in events {
        if let Some(rule) = event_rule(event) {
            found.push(format!("{rule}: {event}"));
        }
    }
    if found.is_empty() {
        found.extend(order_rule(events));
        let slices = slices(events);
        found.extend(nesting_rule(&slices));
        found.extend(arrow_rules(events, &slices));
    }
    found
}

/// What is wrong with one event by itself.
fn event_rule(event: &Value) -> Option<&'static str> {
    let Some(phase) = event["ph"].as_str() else {
        return Some("no ph");
    };
    if event["pid"].as_u64().is_none_or(|pid| pid == 0) {
        return Some("pid is no positive integer");
    }
    if event["tid"].as_u64().is_none() {
        return Some("tid is no integer");
    }
    if event["name"].as_str().is_none_or(str::is_empty) && event["name"] != "" {
        return Some("name is no text");
    }
    if !event["args"].is_object() {
        return Some("args is no object");
    }
    if phase != "M" && event["ts"].as_u64().is_none() {
        return Some("ts is no integer from 0");
    }
    if phase != "X" && !event["dur"].is_null() {
        return Some("dur where there is none");
    }
    let args = &event["args"];
    match phase {
        "X" if event["dur"].as_u64().is_none() => Some("dur is no integer from 0"),
        "M" => match event["name"].as_str() {
            Some("process_name" | "thread_name") if args["name"].is_string() => None,
            Some("process_sort_index" | "thread_sort_index") if args["sort_index"].is_u64() => None,
            _ => Some("unknown metadata"),
        },
        "s" | "f" if event["id"].as_u64().is_none() => Some("id is no number"),
        "f" if event["bp"] != "e" => Some("f without bp e"),
        "i" if !matches!(event["s"].as_str(), Some("t" | "p" | "g")) => Some("i without scope"),
        "C" if !args.as_object()?.values().all(Value::is_number) => Some("counter of no number"),
        "X" | "s" | "f" | "i" | "C" => None,
        _ => Some("unknown ph"),
    }
}

fn lane(event: &Value) -> Lane {
    let number = |key: &str| event[key].as_u64().unwrap();
    (number("pid"), number("tid"))
}

/// By time, and of equal times the longer first.
fn order_rule(events: &[Value]) -> Option<String> {
    let timed = events.iter().filter(|event| event["ph"] != "M");
    let keys: Vec<_> = timed
        .map(|event| {
            let length = event["dur"].as_u64().unwrap_or(0);
            (event["ts"].as_u64().unwrap(), std::cmp::Reverse(length))
        })
        .collect();
    (!keys.is_sorted()).then(|| "events are out of order".to_owned())
}

fn slices(events: &[Value]) -> BTreeMap<Lane, Vec<Slice>> {
    let mut found: BTreeMap<Lane, Vec<Slice>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let start = event["ts"].as_u64().unwrap();
        let end = start + event["dur"].as_u64().unwrap();
        found.entry(lane(event)).or_default().push((start, end));
    }
    found
}

/// On a lane, slices are apart or within each other.
fn nesting_rule(slices: &BTreeMap<Lane, Vec<Slice>>) -> Vec<String> {
    let mut found = Vec::new();
    for (lane, slices) in slices {
        let mut open: Vec<u64> = Vec::new();
        for (start, end) in slices {
            while open.last().is_some_and(|open| open <= start) {
                open.pop();
            }
            if open.last().is_some_and(|open| open < end) {
                found.push(format!("slices overlap on {lane:?} at {start}..{end}"));
            }
            open.push(*end);
        }
    }
    found
}

/// Arrows have both ends, run forward, and stand on slices.
fn arrow_rules(events: &[Value], slices: &BTreeMap<Lane, Vec<Slice>>) -> Vec<String> {
    let mut found = Vec::new();
    let mut arrows: BTreeMap<String, (Vec<End>, Vec<End>)> = BTreeMap::new();
    for event in events {
        let key = format!("{} {} {}", event["id"], event["cat"], event["name"]);
        let end = (lane(event), event["ts"].as_u64().unwrap_or(0));
        match event["ph"].as_str() {
            Some("s") => arrows.entry(key).or_default().0.push(end),
            Some("f") => arrows.entry(key).or_default().1.push(end),
            _ => continue,
        }
        let (lane, at) = end;
        let inside = |(start, end): &Slice| *start <= at && at < (*end).max(start + 1);
        if !slices.get(&lane).is_some_and(|own| own.iter().any(inside)) {
            found.push(format!("an arrow stands on no slice: {event}"));
        }
    }
    for (key, (starts, ends)) in &arrows {
        match (starts.as_slice(), ends.as_slice()) {
            ([start], [end]) if start.1 <= end.1 => {}
            ([_], [_]) => found.push(format!("arrow {key} goes back in time")),
            _ => found.push(format!("arrow {key} has not one start and one end")),
        }
    }
    found
}

#[track_caller]
fn fails(events: &str, rule: &str) {
    let text = format!("{{\"traceEvents\":[{events}]}}");
    let found = broken(&text);
    assert!(found.iter().any(|found| found.contains(rule)), "{found:?}");
}

fn slice(ts: &str, dur: &str) -> String {
    format!(r#"{{"ph":"X","name":"a","ts":{ts},"dur":{dur},"pid":1,"tid":1,"args":{{}}}}"#)
}

fn arrow(ph: &str, id: &str, ts: u64, more: &str) -> String {
    format!(
        r#"{{"ph":"{ph}","name":"a","cat":"c","id":{id},"ts":{ts},"pid":1,"tid":1,"args":{{}}{more}}}"#
    )
}

#[test]
fn a_good_trace_breaks_no_rule() {
    let arrows = [arrow("s", "1", 2, ""), arrow("f", "1", 2, r#","bp":"e""#)];
    let events = [
        slice("0", "9"),
        slice("0", "9"),
        arrows.join(","),
        slice("9", "0"),
    ];
    let text = format!("{{\"traceEvents\":[{}]}}", events.join(","));
    assert_eq!(broken(&text), [] as [&str; 0]);
}

#[test]
fn the_checker_fails_on_what_viewers_are_known_to_reject() {
    fails(&[slice("0", "5"), slice("3", "5")].join(","), "overlap");
    fails(
        &[slice("3", "5"), slice("0", "1")].join(","),
        "out of order",
    );
    fails(
        &[slice("0", "2"), slice("0", "5")].join(","),
        "out of order",
    );
    fails(&format!("{},", slice("0", "1")), "not JSON");
    fails(&format!("{},{{}}", slice("0", "1")), "no ph");
    fails(&slice("null", "1"), "ts is no integer");
    fails(&slice("-1", "1"), "ts is no integer");
    fails(&slice("0.5", "1"), "ts is no integer");
    fails(&slice("0", "-1"), "dur is no integer");
    fails(&slice("0", "null"), "dur is no integer");
    fails(&slice("0", "1").replace("\"X\"", "\"E\""), "dur where");
    fails(
        r#"{"ph":"E","name":"a","ts":0,"pid":1,"tid":1,"args":{}}"#,
        "unknown ph",
    );
    fails(
        &slice("0", "1").replace("\"pid\":1", "\"pid\":\"a\""),
        "pid",
    );
    fails(
        &slice("0", "1").replace("\"a\"", "\"\u{7f}\""),
        "control character",
    );
}

#[test]
fn the_checker_fails_on_arrows_that_viewers_drop() {
    let host = slice("0", "9");
    let with = |arrows: &[String]| format!("{host},{}", arrows.join(","));
    let end = r#","bp":"e""#;
    let good = arrow("s", "1", 2, "");
    fails(&with(&[arrow("s", "\"id42\"", 2, "")]), "id is no number");
    fails(&with(std::slice::from_ref(&good)), "one start and one end");
    fails(&with(&[good.clone(), arrow("f", "2", 2, end)]), "one start");
    fails(&with(&[good.clone(), arrow("f", "1", 2, "")]), "without bp");
    fails(&with(&[good, arrow("f", "1", 9, end)]), "on no slice");
    let back = [arrow("f", "1", 2, end), arrow("s", "1", 3, "")];
    fails(&with(&back), "back in time");
    let renamed = arrow("f", "1", 2, end).replace("\"a\"", "\"b\"");
    fails(&with(&[arrow("s", "1", 2, ""), renamed]), "one start");
}
