//! Predictions and what the experiment set, on traces with planted figures.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::support::{Answer, analyze, analyze_stdin, fixture, named};

/// One OTLP line with the spans of one process.
fn line(service: &str, process: &str, spans: &[Value]) -> String {
    let resource = json!({"attributes": [text("service.name", service), text("service.instance.id", process)]});
    let line = json!({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]});
    format!("{line}\n")
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

fn number(key: &str, value: f64) -> Value {
    json!({"key": key, "value": {"doubleValue": value}})
}

/// A span; times in microseconds after the run's first, ids numbers.
struct Span<'s> {
    name: &'s str,
    trace: u64,
    id: u64,
    parent: u64,
    times: (u64, u64),
    attributes: Vec<Value>,
}

impl Span<'_> {
    fn at(&self, origin: u64) -> Value {
        let nanos = |micros: u64| (origin + micros * 1_000).to_string();
        let mut span = json!({
            "traceId": format!("{:032x}", self.trace),
            "spanId": format!("{:016x}", self.id),
            "name": self.name,
            "startTimeUnixNano": nanos(self.times.0),
            "endTimeUnixNano": nanos(self.times.1),
            "attributes": self.attributes,
        });
        if self.parent != 0 {
            span["parentSpanId"] = format!("{:016x}", self.parent).into();
        }
        span
    }
}

/// Cold starts of a `qwen serve` whose agent took this long for its ACP import and
/// whose `channel.initialize` took that long, in microseconds; runs differ in
/// what lies before both.
fn imports(import: u64, initialize: u64) -> String {
    let mut lines = String::new();
    for run in 0..8u64 {
        let origin = 1_790_000_000_000_000_000 + run * 10_000_000_000 + 137;
        let (process, channel) = (format!("daemon:{run}"), format!("channel-{run}"));
        let operation = |name: &str| {
            vec![
                text("qwen-code.daemon.operation", name),
                text("qwen-code.daemon.acp_channel.id", &channel),
            ]
        };
        // The channel starts some milliseconds later in each run; the request
        // waits for its end, and 60 ms follow.
        let begun = 20_000 + run * 700;
        let ready = begun + 12_000 + initialize;
        let mut initialized = operation("channel.initialize");
        let startup = "qwen-code.daemon.acp_startup";
        for (key, micros) in [
            ("child.process_to_response_ms", initialize + 4_630),
            ("response_transport_ms", 300),
            ("phase.gemini_import_ms", 400_000),
            ("phase.acp_import_ms", import),
            ("phase.config_ms", 200_000),
        ] {
            let ms = f64::from(u32::try_from(micros).unwrap()) / 1e3;
            initialized.push(number(&format!("{startup}.{key}"), ms));
        }
        let (one, two) = (2 * run + 1, 2 * run + 2);
        let span = |name, trace, id, parent, times, attributes| Span {
            name,
            trace,
            id,
            parent,
            times,
            attributes,
        };
        let bridge = "qwen-code.daemon.bridge";
        let route = vec![text("http.route", "POST /session")];
        let spans = [
            span(
                bridge,
                one,
                1,
                0,
                (begun - 50, ready + 40),
                operation("channel.preheat"),
            ),
            span(
                bridge,
                one,
                2,
                1,
                (begun, begun + 12_000),
                operation("channel.spawn"),
            ),
            span(bridge, one, 3, 1, (begun + 12_000, ready), initialized),
            span(
                "qwen-code.daemon.request",
                two,
                4,
                0,
                (10_000, ready + 61_000),
                route,
            ),
            span(
                bridge,
                two,
                5,
                4,
                (11_000, ready + 20),
                operation("channel.wait"),
            ),
            span(
                bridge,
                two,
                6,
                4,
                (ready + 100, ready + 60_500),
                operation("session.new"),
            ),
            span(
                "qwen-code.daemon.session_start",
                two,
                7,
                6,
                (ready + 200, ready + 60_000),
                Vec::new(),
            ),
        ];
        let spans: Vec<Value> = spans.iter().map(|span| span.at(origin)).collect();
        lines.push_str(&line("qwen-code", &process, &spans));
    }
    lines
}

fn predictions(report: &Value) -> &Value {
    &report["dependency"][0]["predictions"]
}

#[track_caller]
fn of_kind<'a>(report: &'a Value, kind: &str, name: &str) -> &'a Value {
    let list = predictions(report).as_array().unwrap().iter();
    let mut own = list.filter(|one| one["kind"] == kind && one["name"] == name);
    own.next()
        .unwrap_or_else(|| panic!("no {kind} {name} in {report:#}"))
}

fn asked(change: &str, input: &str) -> Answer {
    analyze_stdin(
        ["--format", "json", "--what-if", change, "-"],
        input.as_bytes(),
    )
}

#[test]
fn a_published_change_is_predicted_from_the_runs_before_it() {
    // Published medians: ACP import 115.06 → 52.00, channel.initialize
    // 1098.25 → 1035.61, all in milliseconds.
    let before = imports(115_060, 1_098_250);
    let after = analyze_stdin(
        ["--format", "json", "-"],
        imports(52_000, 1_035_610).as_bytes(),
    )
    .json();
    let before = asked("acp_import=-63.06ms", &before).json();
    let predicted = of_kind(&before, "stage", "channel:channel.initialize");
    assert_eq!(predicted["change_p50"], -63.06);
    assert_eq!(predicted["predicted_p50"], 1035.19);
    // All runs of the text are alike.
    assert_eq!(predicted["predicted_ci"], json!([1035.19, 1035.19]));
    let initialize = |report: &Value| {
        let channel = named(&report["windows"], "channel").clone();
        named(&channel["stages"], "channel.initialize")["p50"]
            .as_f64()
            .unwrap()
    };
    let measured = initialize(&after) - initialize(&before);
    assert!((measured + 62.64).abs() < 1e-9, "{measured}");
    // The prediction reaches 99 % of what was measured, from one side.
    let reached = measured / -63.06;
    assert!((0.99..1.0).contains(&reached), "{reached}");
    // The request waits for it, and loses as much.
    assert_eq!(of_kind(&before, "window", "request")["change_p50"], -63.06);
    assert_eq!(
        of_kind(&before, "window", "request")["change_ci"],
        json!([-63.06, -63.06])
    );
}

#[test]
fn of_a_placed_phase_it_is_said_that_its_place_is_assumed() {
    let input = imports(115_060, 1_098_250);
    let change = &asked("acp_import=-50%", &input).json()["dependency"][0]["changes"][0];
    assert_eq!(
        (&change["placed"], &change["work_p50"]),
        (&true.into(), &115.06.into())
    );
    let words = analyze_stdin(["--what-if", "acp_import=-50%", "-"], input.as_bytes()).stdout;
    assert!(words.contains("If acp_import −50 % (n = 8)"), "{words}");
    assert!(
        words.contains("`acp_import` has a length and no times in its source"),
        "{words}"
    );
}

#[test]
fn a_stage_that_waits_has_only_its_own_work_to_lose() {
    let input = imports(115_060, 1_098_250);
    let report = asked("channel.wait=0", &input).json();
    // 20 µs behind the end of channel.initialize are its own.
    assert_eq!(of_kind(&report, "window", "request")["change_p50"], -0.02);
    let words = analyze_stdin(["--what-if", "channel.wait=0", "-"], input.as_bytes()).stdout;
    assert!(
        words.contains("`channel.wait` waits 100.0 % of its time"),
        "{words}"
    );
}

#[test]
fn several_changes_are_made_together() {
    let input = imports(115_060, 1_098_250);
    let args = [
        "--format",
        "json",
        "--what-if",
        "acp_import=0",
        "--what-if",
        "channel.spawn=-2ms",
        "-",
    ];
    let report = analyze_stdin(args, input.as_bytes()).json();
    // The agent starts within the spawn, whose end does not hold it up: what the
    // spawn loses before the agent's start is gained, the rest is not.
    // Spawn 12 ms, the agent's start (12 + 1098.25 − 0.3 − 1102.88 =) 7.07 ms in it.
    let expected = -(115.06 + 2.0 * 7.07 / 12.0);
    let found = of_kind(&report, "window", "request")["change_p50"]
        .as_f64()
        .unwrap();
    assert!((found - expected).abs() < 2e-6, "{found} {expected}");
}

#[test]
fn drag_and_slack_are_there_when_asked() {
    let input = imports(115_060, 1_098_250);
    let report = analyze_stdin(["--format", "json", "--drag", "-"], input.as_bytes()).json();
    let stages = report["dependency"][0]["stages"].as_array().unwrap();
    let of = |name: &str| stages.iter().find(|stage| stage["name"] == name).unwrap();
    let figures = |name: &str| {
        (
            of(name)["work_p50"].clone(),
            of(name)["drag_p50"].clone(),
            of(name)["slack_p50"].clone(),
        )
    };
    assert_eq!(
        figures("gemini_import"),
        (400.0.into(), 400.0.into(), 0.0.into())
    );
    // Only what the spawn does before the agent starts counts.
    assert_eq!(figures("channel.spawn").0, 12.0);
    assert_eq!(figures("channel.spawn").1, 7.07);
    // The most drag first.
    assert_eq!(stages[0]["name"], "gemini_import");
    let words = analyze_stdin(["--drag", "-"], input.as_bytes()).stdout;
    assert!(
        words.contains("What each stage adds to the session's end (n = 8)"),
        "{words}"
    );
}

#[test]
fn without_being_asked_nothing_is_predicted() {
    let report = analyze_stdin(
        ["--format", "json", "-"],
        imports(115_060, 1_098_250).as_bytes(),
    )
    .json();
    assert_eq!(report["dependency"], json!([]));
}

#[test]
fn a_change_that_is_none_and_a_stage_that_is_none_are_refused() {
    let planted = fixture("coldpath/valid/one-run");
    let refused = |change: &str| {
        let answer = analyze([planted.as_os_str(), "--what-if".as_ref(), change.as_ref()]);
        assert_eq!(answer.code, 2, "{}", answer.stdout);
        answer.stderr
    };
    assert!(refused("channel.spawn=5").contains("STAGE=-50%"));
    let unknown = refused("chanel.spawn=-50%");
    assert!(
        unknown.contains("no run has a stage `chanel.spawn`"),
        "{unknown}"
    );
    assert!(unknown.contains("near it are `channel.spawn`"), "{unknown}");
}

/// Runs of one cohort whose client waited before it asked, and what it then saw.
fn waits(scenario: &str, cohort: &str, first: u64, runs: &[(u64, u64)]) -> String {
    let mut lines = String::new();
    for (place, (delay, took)) in runs.iter().enumerate() {
        let run = first + place as u64;
        let origin = 1_790_000_000_000_000_000 + run * 10_000_000_000;
        let own = vec![
            text("coldpath.run.cohort", cohort),
            text("coldpath.run.scenario", &format!("{scenario}={delay}")),
            json!({"key": "coldpath.run.index", "value": {"intValue": run.to_string()}}),
        ];
        let cold = vec![text("coldpath.session.temperature", "cold")];
        let asked = 100_000 + delay * 1_000;
        let spans = [
            Span {
                name: "run",
                trace: run,
                id: 1,
                parent: 0,
                times: (0, 9_000_000),
                attributes: own,
            },
            Span {
                name: "client.action",
                trace: run,
                id: 2,
                parent: 1,
                times: (asked, asked + took),
                attributes: Vec::new(),
            },
            Span {
                name: "client.session",
                trace: run,
                id: 3,
                parent: 2,
                times: (asked, asked + took),
                attributes: cold,
            },
        ];
        let spans: Vec<Value> = spans.iter().map(|span| span.at(origin)).collect();
        // Writing to a String cannot fail.
        let _ = write!(
            lines,
            "{}",
            line("measure", &format!("measure-{run}"), &spans)
        );
    }
    lines
}

/// Waits in milliseconds and what the client then saw, in microseconds: on the
/// line 900 − 0.8 · wait, and 10 ms to both sides of it.
const WAITED: [(u64, u64); 8] = [
    (0, 890_000),
    (0, 910_000),
    (250, 690_000),
    (250, 710_000),
    (500, 490_000),
    (500, 510_000),
    (1000, 90_000),
    (1000, 110_000),
];

#[test]
fn delay_against_what_the_client_saw_has_slope_and_correlation() {
    let report = analyze_stdin(
        ["--format", "json", "-"],
        waits("delay", "current", 1, &WAITED).as_bytes(),
    )
    .json();
    let found = &report["delays"][0];
    assert_eq!(
        (&found["scenario"], &found["metric"]),
        (&"delay".into(), &"session_cold".into())
    );
    assert_eq!(
        (&found["n"], &found["levels"], &found["slope"]),
        (&8.into(), &4.into(), &(-0.8).into())
    );
    // numpy.corrcoef of the eight pairs.
    assert_eq!(found["pearson"], -0.999_429);
    // Half width: t(6) 2.446912 · √(800 / 6 / 1,093,750) ms a ms.
    assert_eq!(found["slope_ci"], json!([-0.827_016, -0.772_984]));
    assert_eq!(found["cohort"], "current");
}

#[test]
fn scenarios_stand_side_by_side_and_cohorts_of_one_delay_are_one_series() {
    let early: Vec<(u64, u64)> = WAITED
        .iter()
        .map(|(delay, took)| (*delay, took - 50_000))
        .collect();
    let mut input = String::new();
    for (place, delay) in [0u64, 250, 500, 1000].into_iter().enumerate() {
        let of = |all: &[(u64, u64)]| {
            all.iter()
                .copied()
                .filter(|(own, _)| *own == delay)
                .collect::<Vec<_>>()
        };
        let first = 1 + place as u64 * 4;
        input += &waits("delay", &format!("current-{delay}"), first, &of(&WAITED));
        input += &waits(
            "early-preheat",
            &format!("early-{delay}"),
            first + 2,
            &of(&early),
        );
    }
    let report = analyze_stdin(["--format", "json", "-"], input.as_bytes()).json();
    let scenarios = report["scenarios"].as_array().unwrap();
    assert_eq!(scenarios.len(), 8);
    let one = scenarios
        .iter()
        .find(|one| one["cohort"] == "early-500")
        .unwrap();
    assert_eq!(
        (&one["scenario"], &one["n"]),
        (&"early-preheat=500".into(), &2.into())
    );
    assert_eq!(named(&one["metrics"], "session_cold")["p50"], 450.0);
    let delays = report["delays"].as_array().unwrap();
    let told: Vec<_> = delays
        .iter()
        .map(|one| {
            (
                one["scenario"].as_str().unwrap(),
                one["cohort"].as_str().unwrap(),
                one["slope"].as_f64().unwrap(),
            )
        })
        .collect();
    assert_eq!(told, [("delay", "", -0.8), ("early-preheat", "", -0.8)]);
    let words = analyze_stdin(["-"], input.as_bytes()).stdout;
    assert!(words.contains("Scenarios side by side"), "{words}");
    assert!(words.contains("early-500: early-preheat=500"), "{words}");
    assert!(
        words.contains("session_cold against the client's wait before it"),
        "{words}"
    );
}
