//! The page: it says what JSON says, fetches and runs nothing, takes text as
//! data, stays small, and is the same under any order of its input.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{analyze, analyze_stdin, fixture};

/// The page and the JSON report of the same files.
fn both(files: &[PathBuf]) -> (String, Value) {
    let of = |format: &str| {
        let fixed = ["--format", format].map(|word| OsStr::new(word).to_owned());
        let named = files.iter().map(|file| file.as_os_str().to_owned());
        analyze(fixed.into_iter().chain(named))
    };
    (of("html").stdout, of("json").json())
}

/// Value, pointer and text of every number of a page or a part of it.
fn numbers(page: &str) -> Vec<(f64, String, String)> {
    let unescape = |text: &str| text.replace("&gt;", ">").replace("&lt;", "<");
    let number = |part: &str| {
        let (value, rest) = part.split_once('"').unwrap();
        let (attributes, rest) = rest.split_once('>').unwrap();
        let (text, _) = rest.split_once("</data>").unwrap();
        let pointer = attributes.strip_prefix(" data-j=\"").unwrap_or("\"");
        (
            value.parse().unwrap(),
            unescape(pointer.strip_suffix('"').unwrap()),
            unescape(text),
        )
    };
    page.split("<data value=\"").skip(1).map(number).collect()
}

/// Checks that `text` is `value` rounded to the digits that are shown; `value`
/// is in milliseconds, bytes, or a part of 1.
#[track_caller]
fn check_rounding(value: f64, text: &str) {
    let plain = text.trim_start_matches("> ").trim_start_matches('+');
    let (digits, unit) = plain.split_once(' ').unwrap_or((plain, ""));
    if digits == "<" {
        return;
    }
    let scale = match unit {
        "ms" | "" => 1.0,
        "µs" => 1e-3,
        "%" => 1e-2,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        other => panic!("unknown unit {other} in {text}"),
    };
    let decimals = digits.split_once('.').map_or(0, |(_, part)| part.len());
    let step = 10f64.powi(-i32::try_from(decimals).unwrap()) * scale;
    let shown: f64 = digits.parse().unwrap();
    // A clock of a millisecond prints whole milliseconds: half a step either way.
    let off = (shown * scale - value).abs();
    assert!(off <= step * 0.500_001 + 1e-9, "{text} of {value}");
}

#[track_caller]
fn check_numbers(files: &[PathBuf], at_least: usize) {
    let (page, report) = both(files);
    let mut checked = 0;
    for (value, pointer, text) in numbers(&page) {
        if pointer.is_empty() {
            continue;
        }
        let found = report.pointer(&format!("/{pointer}"));
        let found = found.unwrap_or_else(|| panic!("no {pointer} in JSON ({text})"));
        assert_eq!(found.as_f64(), Some(value), "{pointer} is shown as {text}");
        // Of another process only the proportions are shown.
        let foreign = pointer.contains("/sched/") && text.ends_with('%');
        let in_nanoseconds = pointer.starts_with("runs/items/") && !pointer.ends_with("request");
        let scale = if in_nanoseconds { 1e6 } else { 1.0 };
        if !foreign {
            check_rounding(value / scale, &text);
        }
        checked += 1;
    }
    assert!(checked >= at_least, "only {checked} numbers");
    check_rows(&page, &report);
}

/// Every row of the table of runs against the run that it names.
#[track_caller]
fn check_rows(page: &str, report: &Value) {
    let main = &report["windows"][0];
    let stages = main["stages"].as_array().unwrap();
    let latency = main["unattributed"]["correlation"]["with"]
        .as_str()
        .unwrap();
    let rows: Vec<&str> = page.split("<tr data-run=\"").skip(1).collect();
    assert_eq!(
        rows.len(),
        report["runs"]["items"].as_array().unwrap().len()
    );
    for row in rows {
        let (place, rest) = row.split_once('"').unwrap();
        let (row, _) = rest.split_once("</tr>").unwrap();
        let run = &report["runs"]["items"][place.parse::<usize>().unwrap()];
        let mut expected: Vec<f64> = run["metrics"][latency].as_f64().into_iter().collect();
        let windows = run["windows"].as_array().unwrap();
        if let Some(window) = windows.iter().find(|one| one["name"] == main["name"]) {
            expected.push(window["total_ns"].as_f64().unwrap());
            let times = stages.iter().map(|stage| {
                let name = stage["name"].as_str().unwrap();
                window["stages"][name].as_f64().unwrap_or(0.0)
            });
            expected.extend(times);
            expected.push(window["unattributed_ns"].as_f64().unwrap());
        }
        let found: Vec<f64> = numbers(row).into_iter().map(|(value, ..)| value).collect();
        assert_eq!(found, expected, "{}", run["run"]);
    }
}

#[test]
fn every_number_is_that_of_the_json_report() {
    check_numbers(&[fixture("qwen-serve-0.24.4/cold")], 500);
    check_numbers(&[fixture("findings/pairs")], 300);
    check_numbers(&[fixture("coldpath/valid")], 150);
    check_numbers(&[fixture("findings/tail.jsonl")], 100);
}

#[test]
fn the_run_that_is_drawn_is_the_nearest_to_the_median() {
    let (page, report) = both(&[fixture("qwen-serve-0.24.4/cold")]);
    let p50 = report["windows"][0]["total"]["p50"].as_f64().unwrap();
    let items = report["runs"]["items"].as_array().unwrap();
    let distance = |run: &&Value| {
        let total = run["windows"][0]["total_ns"].as_f64().unwrap();
        (total - p50 * 1e6).abs()
    };
    let closer = |a: &&Value, b: &&Value| distance(a).total_cmp(&distance(b));
    let nearest = items.iter().min_by(closer).unwrap();
    let name = nearest["run"].as_str().unwrap();
    assert!(page.contains(&format!("<code>{name}</code>, the run whose first window")));
    let (_, picture) = page.split_once("id=\"waterfall\"").unwrap();
    let (picture, _) = picture.split_once("</section>").unwrap();
    // What `channel.wait` waited for stands within it, marked as placed.
    let (_, wait) = picture.split_once("<details>").unwrap();
    let (wait, _) = wait.split_once("</details>").unwrap();
    for name in [
        "channel.wait",
        "gemini_import",
        "initialize_handler",
        "placed",
    ] {
        assert!(wait.contains(name), "{name} in {wait}");
    }
}

/// What a page that stands alone never has.
#[track_caller]
fn check_alone(page: &str) {
    let lower = page.to_lowercase();
    for forbidden in [
        "<script",
        "<iframe",
        "<object",
        "<embed",
        "<form",
        "<base",
        "<img",
        "@import",
        "url(",
        "javascript:",
        "src=",
        " onload",
        " onerror",
        " onclick",
        "http-equiv=\"refresh",
    ] {
        assert!(!lower.contains(forbidden), "{forbidden} in the page");
    }
    let links = lower.split(" href=\"").skip(1);
    for link in links {
        assert!(
            link.starts_with('#') || link.starts_with("data:,"),
            "{link:.40}"
        );
    }
    assert!(page.contains("content=\"default-src 'none';"));
    let steers =
        |char: char| char.is_control() && char != '\n' || ('\u{202a}'..='\u{202e}').contains(&char);
    assert!(
        !page.contains(steers),
        "a character that steers in the page"
    );
}

#[test]
fn the_page_stands_alone() {
    for files in ["qwen-serve-0.24.4/cold", "findings/pairs", "coldpath/valid"] {
        check_alone(&both(&[fixture(files)]).0);
    }
}

/// One trace with this name in every place that a name can have.
fn hostile(name: &str) -> Vec<u8> {
    let span = |id: &str, parent: &str, name: &str, from: u64, to: u64| {
        json!({"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": id, "parentSpanId": parent,
            "name": name, "startTimeUnixNano": format!("{from}"), "endTimeUnixNano": format!("{to}"),
            "attributes": [{"key": name, "value": {"stringValue": name}}]})
    };
    let start = 1_780_000_000_000_000_001;
    let spans = [
        span("b7ad6b7169203331", "", name, start, start + 9_000_000),
        span(
            "b7ad6b7169203332",
            "b7ad6b7169203331",
            name,
            start + 5,
            start + 4_000_000,
        ),
        span(
            "b7ad6b7169203333",
            "b7ad6b7169203331",
            &format!("{name}2"),
            start + 4_000_000,
            start + 8_000_000,
        ),
    ];
    let resource = json!({"attributes": [
        {"key": "service.name", "value": {"stringValue": name}},
        {"key": "service.version", "value": {"stringValue": name}},
    ]});
    let line = json!({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]});
    line.to_string().into_bytes()
}

fn page_of(input: &[u8]) -> String {
    let answer = analyze_stdin(["-", "--model", "generic", "--format", "html"], input);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
    answer.stdout
}

#[test]
fn text_of_traces_is_data() {
    for name in [
        "</style></title><script>alert(1)</script><img src=x onerror=alert(1)>",
        "\" onclick=\"alert(1)\" x='",
        "a\u{202e}b\u{2066}c\u{200f}",
        "\u{1b}[2J\u{1b}]0;x\u{7}\u{0}\r\n",
        "-->]]><!--&lt;&#60;svg onload=alert(1)>",
        "`code` {{x}} ${y} %s",
    ] {
        let page = page_of(&hostile(name));
        // Attributes that only look like ones stand in escaped text.
        let outside = page.replace("&lt;", "").replace("&quot;", "");
        assert!(
            !outside.contains("<script")
                && !outside.contains("<img")
                && !outside.contains("<svg onload"),
            "{name}"
        );
        let open = page.matches("<style>").count();
        assert_eq!((open, page.matches("</style>").count()), (1, 1), "{name}");
        assert!(!page.contains(" onclick=\"alert"), "{name}");
        let steers = |char: char| {
            char.is_control() && char != '\n'
                || ('\u{200f}'..='\u{2069}').contains(&char) && !"–—‘’“”…−".contains(char)
        };
        assert_eq!(page.matches(steers).collect::<String>(), "", "{name}");
    }
}

#[test]
fn a_name_of_a_megabyte_is_cut_and_says_so() {
    let page = page_of(&hostile(&"x<".repeat(1 << 19)));
    assert!(page.len() < 200_000, "{} bytes", page.len());
    assert!(page.contains("(1048576 bytes in all)"));
}

#[test]
fn invalid_utf_8_does_no_harm() {
    let mut input = hostile("name");
    let at = input.windows(4).position(|word| word == b"name").unwrap();
    input.splice(at..at + 4, [0xff, 0xfe, 0xc0, 0x80]);
    let answer = analyze_stdin(["-", "--format", "html"], &input);
    assert!(answer.stdout.ends_with("</html>\n"));
    check_alone(&answer.stdout);
}

/// `count` cold starts, each the run of the fixture with ids and times of its own.
fn many(count: u64) -> Vec<u8> {
    let folder = fixture("coldpath/valid/one-run");
    let files = ["measure.jsonl", "coldpathd.jsonl", "coldpath-agent.jsonl"];
    let text: String = files
        .map(|file| std::fs::read_to_string(Path::new(&folder).join(file)).unwrap())
        .concat();
    let mut all = String::new();
    for run in 0..count {
        let trace = format!("c3e290dc3bc54913a72afac6{run:08x}");
        let own = text
            .replace("c3e290dc3bc54913a72afac6f7dc4ada", &trace)
            .replace("channel-r1", &format!("channel-{run}"));
        let mut parts = own.split("\"1700000000");
        all.push_str(parts.next().unwrap());
        for part in parts {
            // The last digits stay; each run is a second later and a little longer.
            let (digits, rest) = part.split_at(9);
            let length: u64 = digits.parse().unwrap();
            let longer = length + length * (run * 7 % 101) / 200;
            let _ = write!(all, "\"{}{longer:09}{rest}", 1_700_000_000 + run);
        }
    }
    all.into_bytes()
}

#[test]
fn a_page_of_a_thousand_runs_is_small_and_says_what_is_left_out() {
    let answer = analyze_stdin(["-", "--format", "html"], &many(1_000));
    let page = answer.stdout;
    assert!(page.contains("<data value=\"1000\" data-j=\"runs/total\">"));
    assert!(page.len() < 10_000_000, "{} bytes", page.len());
    assert!(page.contains("250 of 1000 points drawn"));
    assert_eq!(page.matches("<tr data-run=").count(), 1_000);
}

#[test]
fn of_very_many_runs_the_table_has_a_choice_and_says_so() {
    let answer = analyze_stdin(["-", "--format", "html"], &many(1_700));
    assert!(
        answer
            .stdout
            .contains(" of 1700 runs: the failed, incomplete and slowest")
    );
    let rows = answer.stdout.matches("<tr data-run=").count();
    assert!((1_000..=1_500).contains(&rows), "{rows} rows");
}

#[test]
fn the_page_is_the_same_under_any_order_of_its_input() {
    // What was read, and from where, is in a part of its own.
    let body = |input: &[u8]| {
        let page = analyze_stdin(["-", "--format", "html"], input).stdout;
        let (body, _) = page.split_once("<section id=\"problems\"").unwrap();
        body.to_owned()
    };
    let text = String::from_utf8(many(30)).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    let straight = body(lines.join("\n").as_bytes());
    lines.reverse();
    assert_eq!(body(lines.join("\n").as_bytes()), straight);
    lines.sort_by_key(|line| line.len() * 7919 % 101);
    assert_eq!(body(lines.join("\n").as_bytes()), straight);
}

#[test]
fn nothing_to_judge_is_a_page_too() {
    let answer = analyze_stdin(["-", "--format", "html"], b"");
    assert_eq!(answer.code, 3);
    check_alone(&answer.stdout);
}
