//! `analyze chrome`: the rules of the format over every capture, and values by
//! hand from the instants in `fixtures/coldpath/make.py`.

use std::path::Path;

use serde_json::{Value, json};

use crate::chrome_rules::broken;
use crate::support::{Answer, analyze, analyze_stdin, fixture, problems, report};

#[track_caller]
fn draw(path: &Path, options: &[&str]) -> Answer {
    let words = ["chrome", path.to_str().unwrap()];
    let answer = analyze(words.iter().chain(options));
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert_eq!(
        broken(&answer.stdout),
        [] as [&str; 0],
        "{}",
        path.display()
    );
    answer
}

#[track_caller]
fn events(answer: &Answer) -> Vec<Value> {
    answer.json()["traceEvents"].as_array().unwrap().clone()
}

fn of<'a>(events: &'a [Value], phase: &str, name: &str) -> Vec<&'a Value> {
    let wanted = |event: &&Value| event["ph"] == phase && event["name"] == name;
    events.iter().filter(wanted).collect()
}

fn one_run() -> Vec<Value> {
    events(&draw(&fixture("coldpath/valid/one-run"), &[]))
}

#[test]
fn every_capture_is_drawn_by_the_rules_whole_and_by_quantile() {
    let mut captures: Vec<_> = [
        "qwen-serve-0.24.4/cold",
        "qwen-serve-0.24.4/scenarios",
        "qwen-serve-ab",
        "planted",
        "formats/jaeger.json",
        "formats/chrome-object.json",
        "formats/chrome-array.json",
        "findings/pairs",
    ]
    .map(fixture)
    .into();
    for folder in ["coldpath/valid", "findings"] {
        for entry in std::fs::read_dir(fixture(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|end| end != "py") {
                captures.push(path);
            }
        }
    }
    // Of a warm-up nothing is drawn.
    captures.retain(|path| !path.ends_with("warmup.jsonl"));
    for path in captures {
        let drawn = draw(&path, &["--all"]);
        assert!(drawn.stdout.len() < 10_000_000, "{}", path.display());
        let quantiles = ["--run", "p50", "--run", "p95", "--run", "max"];
        let words = ["chrome", path.to_str().unwrap()];
        let answer = analyze(words.iter().chain(&quantiles));
        if answer.code == 0 {
            assert_eq!(broken(&answer.stdout), [] as [&str; 0]);
        } else {
            assert!(
                answer.stderr.contains("no run is complete"),
                "{}",
                answer.stderr
            );
        }
    }
}

#[test]
fn processes_bear_their_names_and_real_ids() {
    let events = one_run();
    let names: Vec<_> = of(&events, "M", "process_name")
        .iter()
        .map(|event| (event["pid"].clone(), event["args"]["name"].clone()))
        .collect();
    assert_eq!(
        names,
        [
            (json!(100), json!("measure")),
            (json!(200), json!("coldpathd")),
            (json!(300), json!("coldpath-agent")),
        ]
    );
}

#[test]
fn slices_stand_where_the_instants_say() {
    let events = one_run();
    let slice = |name: &str| {
        let found = of(&events, "X", name);
        // Of those of the warm request that follows, the cold one's are the first.
        assert!(!found.is_empty(), "{name}");
        found[0]
    };
    for (name, at, length, own) in [
        ("run", 0, 7000, 900.0),
        ("POST /session", 1400, 3500, 130.0),
        ("channel.wait", 2010, 1500, 1500.0),
        ("runtime.start", 1260, 740, 60.0),
    ] {
        let found = slice(name);
        assert_eq!((&found["ts"], &found["dur"]), (&json!(at), &json!(length)));
        assert_eq!(found["args"]["duration_us"], json!(f64::from(length)));
        assert_eq!(found["args"]["self_us"], json!(own), "{name}");
    }
    let report = report([fixture("coldpath/valid/one-run")]);
    let total = &report["runs"]["items"][0]["windows"][0]["total_ns"];
    assert_eq!(total, &json!(3500 * 1000));
    let spans = report["input"]["records"]["spans"].as_u64().unwrap();
    let slices = events.iter().filter(|event| event["ph"] == "X").count();
    assert_eq!(slices as u64, spans);
    let spawn = &slice("channel.spawn")["args"];
    // 190 µs, of which 100 on a processor and 20 waiting for one.
    assert_eq!(
        (&spawn["cpu_us"], &spawn["runq_us"], &spawn["blocked_us"]),
        (&json!(100.0), &json!(20.0), &json!(70.0))
    );
}

#[test]
fn the_critical_path_goes_through_what_the_client_waited_for() {
    let events = one_run();
    let critical = |name: &str| of(&events, "X", name)[0]["args"]["critical"] == json!(true);
    for name in [
        "POST /session",
        "session.new",
        "channel.wait",
        "channel.initialize",
        "agent.startup",
        "runtime.wait",
        "runtime.start",
        "runtime.store",
    ] {
        assert!(critical(name), "{name}");
    }
    for name in [
        "client.health",
        "client.shutdown",
        "boot.args",
        "health.first",
    ] {
        assert!(!critical(name), "{name}");
    }
}

#[test]
fn sizes_stand_where_they_were_taken() {
    let events = one_run();
    let counters: Vec<_> = of(&events, "C", "rss")
        .iter()
        .map(|event| (event["ts"].clone(), event["args"]["bytes"].clone()))
        .collect();
    assert_eq!(
        counters,
        [
            (json!(1000), json!(3_000_000)),
            (json!(5000), json!(7_000_000))
        ]
    );
}

#[test]
fn phases_without_spans_are_slices_in_the_daemon() {
    let answer = draw(&fixture("qwen-serve-0.24.4/cold"), &["--run", "1"]);
    let events = events(&answer);
    let import = of(&events, "X", "gemini_import");
    assert_eq!(import.len(), 1);
    assert_eq!(import[0]["cat"], "phase");
    assert_eq!(import[0]["args"]["placed"], json!(true));
    let host = events
        .iter()
        .find(|event| event["args"]["qwen-code.daemon.operation"] == "channel.initialize")
        .unwrap();
    assert_eq!(host["name"], "channel.initialize");
    assert_eq!(host["args"]["span_name"], "qwen-code.daemon.bridge");
    assert_eq!(import[0]["pid"], host["pid"]);
    let key = "qwen-code.daemon.acp_startup.phase.gemini_import_ms";
    let (said, drawn) = (&host["args"][key], &import[0]["args"]["duration_us"]);
    assert!((said.as_f64().unwrap() * 1000.0 - drawn.as_f64().unwrap()).abs() < 0.001);
    // Where the agent made spans of its own, its profile is not drawn beside them.
    assert!(one_run().iter().all(|event| event["cat"] != "phase"));
}

#[test]
fn which_run_it_is_stands_on_standard_error() {
    let cold = fixture("qwen-serve-0.24.4/cold");
    let answer = draw(&cold, &[]);
    assert!(
        answer.stderr.starts_with("p50 is nearest to run "),
        "{}",
        answer.stderr
    );
    assert!(
        answer.stderr.contains("over 12 complete runs"),
        "{}",
        answer.stderr
    );
    let max = draw(&cold, &["--run", "max"]).stderr;
    let report = report([&cold]);
    let items = report["runs"]["items"].as_array().unwrap();
    let latency = |item: &&Value| item["metrics"]["session_cold"].as_f64().unwrap();
    let slowest = items
        .iter()
        .max_by(|a, b| latency(a).total_cmp(&latency(b)));
    let slowest = slowest.unwrap()["run"].as_str().unwrap();
    assert!(max.contains(&format!(", {slowest}: ")), "{max}");
    let number = draw(&cold, &["--run", "2"]).stderr;
    let second = items[1]["run"].as_str().unwrap();
    assert_eq!(number, format!("run 2 is {second}\n"));
}

#[test]
fn runs_beyond_the_bound_are_left_out_and_said() {
    let more = fixture("qwen-serve-0.24.4/cold");
    let answer = draw(&fixture("planted"), &["--all", more.to_str().unwrap()]);
    // 30 and 12 runs.
    assert!(
        answer.stderr.contains("10 runs of 42 left out"),
        "{}",
        answer.stderr
    );
    assert!(
        answer.stderr.contains("a file holds 32"),
        "{}",
        answer.stderr
    );
    let events = events(&answer);
    let mut runs: Vec<&str> = of(&events, "M", "process_name")
        .iter()
        .filter_map(|event| event["args"]["name"].as_str()?.split(" · ").nth(1))
        .collect();
    runs.sort_unstable();
    runs.dedup();
    assert_eq!(runs.len(), 32);
}

#[test]
fn slices_beyond_the_bound_are_left_out_and_said() {
    let span = |at: u64, id: u64, parent: &str, length: u64| {
        let (start, filler) = (1_700_000_000_000_000_000 + at * 10_000, "v".repeat(150));
        format!(
            r#"{{"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"{id:016x}",{parent}"name":"s{at}","startTimeUnixNano":"{start}","endTimeUnixNano":"{}","attributes":[{{"key":"k","value":{{"stringValue":"{filler}"}}}}]}}"#,
            start + length
        )
    };
    let parent = r#""parentSpanId":"0000000000000001","#;
    let mut spans = vec![span(0, 1, "", 1_000_000_000)];
    spans.extend((0..16_500).map(|at| span(at, at + 2, parent, 5_000 + at)));
    let line = format!(
        r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{}]}}]}}]}}"#,
        spans.join(",")
    );
    let answer = analyze_stdin(["chrome", "-", "--all"], format!("{line}\n").as_bytes());
    assert_eq!(broken(&answer.stdout), [] as [&str; 0]);
    assert!(answer.stdout.len() < 10_000_000, "{}", answer.stdout.len());
    let text = &answer.stderr;
    assert!(
        text.contains("117 spans left out, the shortest: a file holds 16384"),
        "{text}"
    );
    let events = events(&answer);
    let slices = events.iter().filter(|event| event["ph"] == "X");
    assert_eq!(slices.count(), 16_384);
    assert!(of(&events, "X", "s116").is_empty());
    assert_eq!(of(&events, "X", "s117").len(), 1);
}

#[test]
fn processes_that_share_an_id_get_one_above_every_real_one() {
    let other = fixture("coldpath/valid/curl-only.jsonl");
    let answer = draw(
        &fixture("coldpath/valid/one-run"),
        &["--all", other.to_str().unwrap()],
    );
    let events = events(&answer);
    let mut ids: Vec<_> = of(&events, "M", "process_name")
        .iter()
        .map(|event| event["pid"].as_u64().unwrap())
        .collect();
    let known = [100, 200, 300];
    assert!(known.iter().all(|id| ids.contains(id)), "{ids:?}");
    assert!(
        ids.iter().all(|id| known.contains(id) || *id > 300),
        "{ids:?}"
    );
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all);
    assert!(answer.stdout.contains("coldpathd (pid 200) · "));
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    let path = fixture("coldpath/valid/one-run");
    let refused = |options: &[&str]| {
        let words = ["chrome", path.to_str().unwrap()];
        let answer = analyze(words.iter().chain(options));
        assert_eq!(answer.stdout, "");
        (answer.code, answer.stderr)
    };
    let (code, text) = refused(&["--run", "2"]);
    assert_eq!(code, 2);
    assert!(
        text.contains("there is no run 2") && text.contains("1 run"),
        "{text}"
    );
    assert_eq!(refused(&["--run", "0"]).0, 2);
    assert_eq!(refused(&["--run", "1", "--all"]).0, 2);
    assert_eq!(analyze_stdin(["chrome", "-", "--all"], b"").code, 3);
}

#[test]
fn text_of_a_trace_is_data() {
    let name = format!("<script>\\u001b[31m\\u202e\\\"{}", "x".repeat(1_000_000));
    let line = format!(
        r#"{{"resourceSpans":[{{"resource":{{"attributes":[]}},"scopeSpans":[{{"spans":[{{"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060708","name":"{name}","startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000000000001999","attributes":[{{"key":"{name}","value":{{"stringValue":"{name}"}}}},{{"key":"critical","value":{{"doubleValue":"NaN"}}}}]}}]}}]}}]}}"#
    );
    let answer = analyze_stdin(["chrome", "-", "--all"], format!("{line}\n").as_bytes());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert_eq!(broken(&answer.stdout), [] as [&str; 0]);
    assert!(answer.stdout.len() < 4000, "{}", answer.stdout.len());
    assert!(!answer.stdout.contains('\u{202e}'));
    let events = events(&answer);
    let slice = events.iter().find(|event| event["ph"] == "X").unwrap();
    assert_eq!(
        (&slice["dur"], &slice["args"]["duration_us"]),
        (&json!(1), &json!(1.999))
    );
}

#[test]
fn events_of_spans_and_errors_are_instants_at_their_time() {
    // Once as the fast reader takes it, once as the lenient one does.
    for (extra, key) in [("", "timeUnixNano"), (r#""x":[{}],"#, "time_unix_nano")] {
        let ids = r#""traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060708""#;
        let times =
            r#""startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000000000009000""#;
        let events: Vec<String> = (0..70)
            .map(|at| {
                format!(
                    r#"{{"{key}":"17000000000000{:05}","name":"e{at}"}}"#,
                    1000 + at
                )
            })
            .collect();
        let before = format!(r#"{{"{key}":"1699999999999999999","name":"early"}}"#);
        let events = events.join(",");
        let line = format!(
            r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{{extra}{ids},{times},"name":"a","status":{{"code":2,"message":"gone"}},"events":[{before},{{"name":"timeless"}},{events}]}}]}}]}}]}}"#
        );
        let answer = analyze_stdin(["chrome", "-", "--all"], format!("{line}\n").as_bytes());
        assert_eq!(broken(&answer.stdout), [] as [&str; 0]);
        let found = self::events(&answer);
        let instants: Vec<_> = found.iter().filter(|event| event["ph"] == "i").collect();
        // 64 of 70, and the error.
        assert_eq!(instants.len(), 65);
        assert_eq!(
            (&instants[0]["name"], &instants[0]["ts"]),
            (&json!("e0"), &json!(1))
        );
        let error = instants[64];
        assert_eq!(
            (&error["name"], &error["ts"]),
            (&json!("error: a"), &json!(9))
        );
        assert_eq!(error["args"]["status_message"], "gone");
    }
    let answer = draw(&fixture("qwen-serve-0.24.4/cold"), &["--run", "1"]);
    assert!(
        events(&answer)
            .iter()
            .any(|event| event["name"] == "session.new.completed")
    );
}

#[test]
fn the_trace_can_be_analysed_again() {
    for path in ["coldpath/valid/one-run", "qwen-serve-0.24.4/cold"] {
        let drawn = draw(&fixture(path), &["--run", "1"]);
        let slices = events(&drawn)
            .iter()
            .filter(|event| event["ph"] == "X")
            .count();
        let args = ["-", "--format", "json", "--model", "generic"];
        let again = analyze_stdin(args, drawn.stdout.as_bytes()).json();
        assert_eq!(again["input"]["records"]["spans"], json!(slices));
        let found = problems(&again);
        assert!(
            found.iter().all(|(code, _)| code == "several_roots"),
            "{found:?}"
        );
    }
}

#[test]
fn a_thousand_runs_stay_below_ten_megabytes_and_what_was_left_out_is_said() {
    let filler = "v".repeat(180);
    let lines: String = (0..1_000_u64)
        .map(|run| {
            let zero = 1_700_000_000_000_000_000 + run * 1_000_000_000;
            let spans: Vec<String> = (0..40_u64)
                .map(|at| {
                    let parent = if at == 0 { "" } else { r#""parentSpanId":"0000000000000001","# };
                    format!(
                        r#"{{"traceId":"{:032x}","spanId":"{:016x}",{parent}"name":"s{at}","startTimeUnixNano":"{}","endTimeUnixNano":"{}","attributes":[{{"key":"k","value":{{"stringValue":"{filler}"}}}}]}}"#,
                        run + 1, at + 1, zero + at, zero + 900_000 - at
                    )
                })
                .collect();
            format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{}]}}]}}]}}"#, spans.join(",")) + "\n"
        })
        .collect();
    let answer = analyze_stdin(["chrome", "-", "--all"], lines.as_bytes());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert_eq!(broken(&answer.stdout), [] as [&str; 0]);
    assert!(answer.stdout.len() < 10_000_000, "{}", answer.stdout.len());
    let said = "968 runs of 1000 left out, the last: a file holds 32; name others with --run";
    assert!(answer.stderr.contains(said), "{}", answer.stderr);
    let slices = events(&answer)
        .iter()
        .filter(|event| event["ph"] == "X")
        .count();
    assert_eq!(slices, 32 * 40);
}

#[test]
fn the_critical_path_goes_through_a_wait_into_what_it_waits_for() {
    // Run 8: the wait has no link, and began while the agent was starting; the
    // spawn and the preheat are waited for by nobody, nor is the second session.
    let answer = draw(&fixture("qwen-serve-0.24.4/cold"), &["--run", "8"]);
    let events = events(&answer);
    let mut critical: Vec<_> = events
        .iter()
        .filter(|event| event["ph"] == "X" && event["args"]["critical"] == true)
        .map(|event| event["name"].as_str().unwrap())
        .collect();
    critical.sort_unstable();
    let expected = [
        "acp_import",
        "agent.startup",
        "app_initialization",
        "args_parse",
        "auth",
        "bootstrap_config_initialization",
        "channel.initialize",
        "channel.wait",
        "config_construction",
        "config_setup",
        "file_system_setup",
        "gemini_import",
        "initialize_handler",
        "process_to_profiler_ready",
        "qwen-code.daemon.session_start",
        "request",
        "response_build",
        "runtime.wait",
        "session.new",
        "session_register",
        "settings_load",
        "settings_load",
        "transport_setup",
    ];
    assert_eq!(critical, expected);
}
