use super::file::builtin;
use super::*;

fn names(steps: &[Step]) -> Vec<String> {
    steps
        .iter()
        .map(|step| match step {
            Step::AwaitListener(_) => "listener".to_owned(),
            Step::ReadListenerRss => "rss".to_owned(),
            Step::Send(sending) => {
                let one = &sending.requests[0];
                let part = if sending.part == Part::Action {
                    "action "
                } else {
                    ""
                };
                let pace = if sending.pace == Pace::Background {
                    " &"
                } else {
                    ""
                };
                let as_ = one
                    .temperature
                    .map_or(String::new(), |word| format!(" {word}"));
                format!("{part}{}x {}{as_}{pace}", sending.requests.len(), one.name)
            }
            Step::Wait(duration, since) => match since {
                Since::Now => format!("wait {}", duration.as_millis()),
                Since::Answer(name) => format!("wait {} since {name}", duration.as_millis()),
            },
            Step::Signal(signal) => format!("{signal:?}"),
            Step::AwaitEnd => "end".to_owned(),
            Step::CloseWindow => "close".to_owned(),
        })
        .collect()
}

#[track_caller]
fn check(driver: &str, scenario: &str, stop_at: StopAt, expected: &[&str]) {
    let driver = builtin(driver).unwrap();
    let steps = driver.steps(&scenario.parse().unwrap(), stop_at).unwrap();
    assert_eq!(names(&steps), expected, "{scenario}");
}

const BEGIN: [&str; 2] = ["listener", "rss"];

#[track_caller]
fn check_http(scenario: &str, expected: &[&str]) {
    let expected: Vec<&str> = BEGIN.iter().chain(expected).copied().collect();
    check("http", scenario, StopAt::Session, &expected);
}

#[test]
fn a_stop_cuts_the_steps_behind_it_but_not_the_closing_of_the_window() {
    check("http", "cold", StopAt::Ready, &["listener", "rss", "close"]);
    check(
        "http",
        "cold",
        StopAt::Health,
        &["listener", "rss", "1x health", "close"],
    );
    check_http(
        "cold",
        &[
            "1x health",
            "action 1x session cold",
            "close",
            "1x session warm",
        ],
    );
}

#[test]
fn every_scenario_of_the_built_in_driver_does_what_its_name_says() {
    let session = ["action 1x session cold", "close", "1x session warm"];
    let with =
        |before: &[&'static str]| -> Vec<&str> { before.iter().chain(&session).copied().collect() };
    check_http("no-telemetry", &with(&["1x health"]));
    check_http("delay=250", &with(&["1x health", "wait 250"]));
    check_http("delay", &with(&["1x health", "wait 0"]));
    check_http(
        "early-preheat=1s",
        &with(&[
            "1x health",
            "1x capabilities",
            "1x preheat &",
            "wait 1000 since health",
        ]),
    );
    check_http(
        "await-preheat",
        &with(&["action 1x capabilities", "action 1x preheat"]),
    );
    check_http("direct-after-bootstrap", &session);
    check_http(
        "preheated",
        &[
            "1x health",
            "wait 3000",
            "action 1x session preheated",
            "close",
            "1x session warm",
        ],
    );
    check_http(
        "concurrent=3",
        &[
            "1x health",
            "action 3x session cold",
            "close",
            "1x session warm",
        ],
    );
    check_http(
        "default-single",
        &[
            "1x health",
            "action 1x single cold",
            "close",
            "1x single warm",
        ],
    );
}

#[test]
fn other_kinds_have_no_listener() {
    check(
        "acp-stdio",
        "cold",
        StopAt::Session,
        &[
            "1x initialize",
            "action 1x session cold",
            "close",
            "1x session warm",
        ],
    );
    check("command", "cold", StopAt::Session, &["end", "close"]);
}

#[test]
fn telemetry_is_off_in_one_scenario_only() {
    let driver = builtin("http").unwrap();
    let traces = |name: &str| driver.traces(&name.parse().unwrap());
    assert!(traces("cold") && traces("delay=1") && !traces("no-telemetry"));
}

#[track_caller]
fn check_refused(driver: &str, scenario: &str, stop_at: StopAt, expected: &str) {
    let driver = builtin(driver).unwrap();
    let error = driver
        .steps(&scenario.parse().unwrap(), stop_at)
        .unwrap_err();
    let message = error.to_string();
    assert!(message.contains(expected), "{message}");
}

#[test]
fn what_a_driver_does_not_have_is_named() {
    let all = StopAt::Session;
    check_refused(
        "http",
        "warm",
        all,
        "no scenario `warm`\nhint: it has await-preheat, cold,",
    );
    check_refused("http", "cold=1", all, "`cold=1`: it takes no value");
    check_refused("http", "delay=soon", all, "is a duration");
    check_refused("http", "concurrent=0", all, "a number from 1");
    check_refused(
        "http",
        "direct-after-bootstrap",
        StopAt::Health,
        "no step `health`",
    );
    check_refused("acp-stdio", "cold", StopAt::Ready, "no step `ready`");
}

#[test]
fn placeholders_are_filled_in_every_text_of_a_body() {
    let value = serde_json::json!({"a": ["x{workspace}"], "b": {"c": "{workspace}", "d": 1}});
    assert_eq!(
        fill_json(&value, Path::new("/w")),
        serde_json::json!({"a": ["x/w"], "b": {"c": "/w", "d": 1}})
    );
}
