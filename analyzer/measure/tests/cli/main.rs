//! `measure` as a program, on daemons that behave well and badly.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a panic is how a test reports"
)]

mod drivers;
mod fake;
mod lab;
mod resume;
mod scenarios;
mod survivors;

use lab::{Lab, Span, names, only, run_of};
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Child, Stdio};

const ONE_RUN: [&str; 4] = ["--runs", "1", "--warmup", "0"];

/// Not a test of anything unless `measure` starts it.
#[test]
fn becomes_the_fake_daemon_when_asked() {
    if let Ok(behaviour) = std::env::var(fake::BEHAVIOUR) {
        fake::serve(&behaviour);
    }
}

#[test]
fn a_run_is_recorded_as_the_client_saw_it() {
    let lab = Lab::new();
    let output = lab.measure("good", &["--runs", "2", "--warmup", "1"]);
    let out = lab.out();
    let dir = out.canonicalize().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        format!(
            "2 of 2 runs succeeded; traces in {0}\nhint: analyze {0}\n",
            dir.display()
        )
    );
    assert_eq!(output.status.code(), Some(0));
    let runs = lab.runs();
    assert_eq!(runs.len(), 3);
    for (index, spans) in runs.iter().enumerate() {
        check_run(spans, index);
    }
    let manifest = lab.manifest();
    assert_eq!(manifest["schema"], "coldpath.manifest/1");
    assert_eq!(manifest["status"], "complete");
    assert_eq!(manifest["schedule"][0]["warmup"], true);
    let first = &manifest["schedule"][0]["result"];
    assert_eq!(first["trace_id"], runs[0][0].trace);
    assert_eq!(first["signal"], 15);
    assert_eq!(first["processes"][0]["pid"], first["pid"]);
    // The state directories are gone, and with them their parent.
    assert!(!out.join("state").exists());
}

#[track_caller]
fn check_run(spans: &[Span], index: usize) {
    assert_eq!(
        names(spans),
        [
            "run",
            "client.listener",
            "client.health",
            "client.action",
            "client.session",
            "client.session",
            "client.shutdown"
        ]
    );
    let run = run_of(spans);
    let action = only(spans, "client.action");
    let (listener, health) = (only(spans, "client.listener"), only(spans, "client.health"));
    assert_eq!(run.parent, "");
    assert!(spans.iter().all(|span| span.trace == run.trace));
    assert!(spans.iter().all(|span| !span.failed));
    for span in spans {
        assert!(run.start <= span.start && span.end <= run.end, "{span:?}");
    }
    let sessions: Vec<&Span> = spans
        .iter()
        .filter(|span| span.name == "client.session")
        .collect();
    assert_eq!(
        sessions.iter().map(|span| &span.parent).collect::<Vec<_>>(),
        [&action.id, &run.id]
    );
    assert_eq!(
        sessions
            .iter()
            .map(|span| span.text("coldpath.session.temperature"))
            .collect::<Vec<_>>(),
        ["cold", "warm"]
    );
    assert_eq!(sessions[0].text("session.id"), "s-1");
    assert_eq!(
        (action.start, action.end),
        (sessions[0].start, sessions[0].end)
    );
    assert_eq!(action.text("coldpath.session.temperature"), "cold");
    assert_eq!(listener.start, run.start);
    assert!(listener.end <= health.start && health.end <= action.start);
    check_run_attributes(run, index);
}

#[track_caller]
fn check_run_attributes(run: &Span, index: usize) {
    assert_eq!(run.number("coldpath.run.index"), index as u64);
    assert_eq!(run.number("coldpath.run.pair.index"), index as u64);
    assert!(!run.has("coldpath.run.pair.order"));
    assert_eq!(run.text("coldpath.run.scenario"), "cold");
    assert_eq!(
        run.text("coldpath.run.warmup"),
        (index == 0).to_string().as_str()
    );
    assert_eq!(run.text("coldpath.run.exit_code"), "-15");
    assert!(!run.has("coldpath.run.failure"));
    let listener = run.number("coldpath.rss.listener_bytes");
    assert!(listener > 0 && run.number("coldpath.rss.peak_bytes") >= listener);
    assert!(run.number("coldpath.rss.session_bytes") > 0);
    assert!(run.has("coldpath.host.rss_read_ns"));
    for name in ["cpu_pressure", "loadavg_1m", "cpu_khz", "steal_share"] {
        let key = format!("coldpath.host.{name}");
        let reason = format!("{key}.reason");
        assert!(run.has(&key) != run.has(&reason), "{:?}", run.attributes);
    }
}

#[test]
fn context_crosses_by_environment_and_by_header() {
    let lab = Lab::new();
    let child = lab
        .command("good", &ONE_RUN)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let measure = child.id();
    wait(child);
    let runs = lab.runs();
    let (spans, log) = (&runs[0], lab.log());
    let run = run_of(spans);
    let parent = |span: &Span| format!("00-{}-{}-01", span.trace, span.id);
    let environment = |name: &str| {
        let start = format!("env {name}=");
        log.iter()
            .find_map(|line| line.strip_prefix(&start))
            .unwrap_or_else(|| panic!("no {name} in {log:#?}"))
            .to_owned()
    };
    assert_eq!(environment("TRACEPARENT"), parent(run));
    let out = lab.out().canonicalize().unwrap();
    // A directory of its own, whose files are put into --out when the run is over.
    assert_eq!(
        environment("COLDPATH_TRACE_DIR"),
        out.join("state/0/traces").to_str().unwrap()
    );
    assert!(environment("COLDPATH_STATE_DIR").starts_with(out.to_str().unwrap()));
    let stamp = environment("COLDPATH_SPAWN");
    let fields: Vec<&str> = stamp.split(':').collect();
    let number = |nth: usize| fields[nth].parse::<u64>().unwrap();
    // Wall time of the spawn by the stamp alone is where the root span starts.
    assert_eq!(number(1) + number(3) - number(2), run.start);
    assert_eq!(number(4), u64::from(measure));
    assert_eq!(environment("COLDPATH_RUN_TOKEN").len(), 32 + "-0-".len());
    let requests: Vec<&String> = log
        .iter()
        .filter(|line| !line.starts_with("env "))
        .collect();
    let sessions: Vec<&Span> = spans
        .iter()
        .filter(|span| span.name == "client.session")
        .collect();
    assert_eq!(
        requests,
        [
            &format!(
                "GET /health HTTP/1.1 {}",
                parent(only(spans, "client.health"))
            ),
            &format!("POST /session HTTP/1.1 {}", parent(sessions[0])),
            &format!("POST /session HTTP/1.1 {}", parent(sessions[1])),
        ]
    );
}

#[test]
fn without_telemetry_the_program_gets_no_trace_directory() {
    let lab = Lab::new();
    let output = lab
        .command("good", &["--scenario", "no-telemetry"])
        .env("COLDPATH_TRACE_DIR", lab.path("inherited"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    let log = lab.log();
    assert!(log.iter().any(|line| line.starts_with("env TRACEPARENT=")));
    assert!(
        !log.iter()
            .any(|line| line.starts_with("env COLDPATH_TRACE_DIR"))
    );
    assert_eq!(
        run_of(&lab.runs()[0]).text("coldpath.run.scenario"),
        "no-telemetry"
    );
}

#[test]
fn a_stop_ends_a_run_early() {
    for (stop, expected) in [
        ("ready", &["run", "client.listener", "client.shutdown"][..]),
        (
            "health",
            &["run", "client.listener", "client.health", "client.shutdown"],
        ),
    ] {
        let lab = Lab::new();
        let mut options = ONE_RUN.to_vec();
        options.extend(["--stop-at", stop, "--rss", "untimed"]);
        assert_eq!(lab.measure("good", &options).status.code(), Some(0));
        let runs = lab.runs();
        assert_eq!(names(&runs[0]), expected);
        let run = run_of(&runs[0]);
        assert!(run.has("coldpath.rss.peak_bytes"));
        assert!(!run.has("coldpath.rss.session_bytes"));
        assert!(!run.has("coldpath.rss.listener_bytes"));
    }
}

#[test]
fn two_arms_stand_in_one_balanced_schedule() {
    let lab = Lab::new();
    let arm = |name: &str, behaviour: &str| {
        let words = fake::command().join(" ");
        format!("{name}=env {}={behaviour} {words}", fake::BEHAVIOUR)
    };
    let output = lab
        .bare(&["--runs", "4", "--warmup", "0", "--seed", "42"])
        .args(["--arm", &arm("plain", "good")])
        .args(["--arm", &arm("short", "session-500")])
        .args(["--stop-at", "short=health"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let read: Vec<String> = lab
        .runs()
        .iter()
        .map(|spans| {
            let run = run_of(spans);
            let key = |name: &str| run.text(&format!("coldpath.run.{name}")).to_owned();
            format!(
                "{} {} {} {}",
                key("pair.index"),
                key("pair.order"),
                key("cohort"),
                spans.len()
            )
        })
        .collect();
    // The order of seed 42 is that of the schedule's own test.
    assert_eq!(
        read,
        [
            "0 ab plain 7",
            "0 ab short 4",
            "1 ba short 4",
            "1 ba plain 7",
            "2 ba short 4",
            "2 ba plain 7",
            "3 ab plain 7",
            "3 ab short 4",
        ]
    );
}

#[test]
fn outputs_of_any_size_block_nobody() {
    let lab = Lab::new();
    assert_eq!(lab.measure("chatty", &ONE_RUN).status.code(), Some(0));
}

/// A failed run: exit 1, the reason on the root span and in the manifest, the
/// spans of the steps up to the failing one.
#[track_caller]
fn check_failure(behaviour: &str, options: &[&str], reason: &str, expected: &[&str]) -> Lab {
    let lab = Lab::new();
    let mut all = ONE_RUN.to_vec();
    all.extend(options);
    let output = lab.measure(behaviour, &all);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let runs = lab.runs();
    let run = run_of(&runs[0]);
    let failure = run.text("coldpath.run.failure");
    assert!(failure.contains(reason), "{failure}");
    assert!(run.failed);
    assert_eq!(names(&runs[0]), expected);
    let result = lab.result(0);
    assert_eq!(result["succeeded"], false);
    assert_eq!(result["failure"]["code"], run.text("error.type"));
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(stdout.contains("0 of 1 runs succeeded"), "{stdout}");
    assert!(stdout.contains("first failure: run 0 (cli-"), "{stdout}");
    lab
}

const UP_TO_LISTENER: [&str; 2] = ["run", "client.listener"];
const UP_TO_HEALTH: [&str; 4] = ["run", "client.listener", "client.health", "client.shutdown"];
const UP_TO_SESSION: [&str; 6] = [
    "run",
    "client.listener",
    "client.health",
    "client.action",
    "client.session",
    "client.shutdown",
];

#[test]
fn a_program_that_ends_early_fails_with_its_code_and_its_last_words() {
    let lab = check_failure(
        "exit-early",
        &[],
        "exited_early: the program ended while waiting for the ready line, with code 7",
        &UP_TO_LISTENER,
    );
    let result = lab.result(0);
    assert_eq!(result["exit_code"], 7);
    assert_eq!(result["stderr_tail"], "no good reason\n");
    let output = Lab::new().measure("exit-early", &ONE_RUN);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("\n  stderr: no good reason\n"), "{said}");
    check_failure(
        "dies-in-session",
        &[],
        "exited_early: ",
        &UP_TO_SESSION[..5],
    );
}

#[test]
fn a_program_that_is_never_ready_is_given_up_in_time() {
    check_failure(
        "never-ready",
        &["--timeout-ms", "200"],
        "ready_timeout: waited for the ready line for 200 ms",
        &["run", "client.listener", "client.shutdown"],
    );
    check_failure(
        "floods",
        &["--timeout-ms", "200"],
        "ready_timeout: ",
        &["run", "client.listener", "client.shutdown"],
    );
}

#[test]
fn a_step_that_fails_is_named() {
    check_failure("wrong-port", &[], "connect_failed: ", &UP_TO_HEALTH);
    check_failure("garbage-health", &[], "bad_response: ", &UP_TO_HEALTH);
    check_failure(
        "session-500",
        &[],
        "http_status: POST /session answered 500: `{\"error\":\"out of tea\"}`",
        &UP_TO_SESSION,
    );
    check_failure("no-session-id", &[], "bad_body: ", &UP_TO_SESSION);
    check_failure(
        "silent-session",
        &["--timeout-ms", "300"],
        "request_timeout: waited for the response for 300 ms",
        &UP_TO_SESSION,
    );
}

#[test]
fn the_schedule_goes_on_after_a_failure_and_failed_state_is_kept() {
    let lab = Lab::new();
    let output = lab.measure("session-500", &["--runs", "3", "--warmup", "0"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(lab.runs().len(), 3);
    assert!(lab.out().join("state/2").is_dir());
}

#[test]
fn a_program_that_cannot_be_started_is_not_measured() {
    use std::os::unix::fs::PermissionsExt as _;
    let lab = Lab::new();
    let broken = lab.path("broken");
    std::fs::write(&broken, "\u{7f}ELF but no more").unwrap();
    std::fs::set_permissions(&broken, std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = lab.bare(&ONE_RUN).arg("--").arg(&broken).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(lab.result(0)["failure"]["code"], "spawn_failed");
    assert_eq!(names(&lab.runs()[0]), ["run"]);
}

#[test]
fn leftovers_are_ended_and_fail_the_run() {
    let lab = Lab::new();
    let mut signs = lab.signs();
    let child = lab
        .command("leaves-child", &ONE_RUN)
        .env(fake::SIGN, &signs.path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    signs.await_line("stubborn child");
    signs.await_end();
    assert_eq!(wait(child), Some(1));
    let result = lab.result(0);
    assert_eq!(result["failure"]["code"], "leftovers");
    assert_eq!(result["leftovers"].as_array().unwrap().len(), 1);
    assert!(
        run_of(&lab.runs()[0])
            .text("coldpath.run.failure")
            .contains("left 1 processes")
    );
}

#[test]
fn nothing_is_left_when_measure_is_killed() {
    let lab = Lab::new();
    let mut signs = lab.signs();
    let mut child = lab
        .command("leaves-child", &ONE_RUN)
        .env(fake::SIGN, &signs.path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    signs.await_line("stubborn child");
    child.kill().unwrap();
    child.wait().unwrap();
    // The stubborn child holds the FIFO until SIGKILL; only the watchdog is left to send it.
    signs.await_end();
    assert_eq!(lab.manifest()["status"], "running");
}

#[test]
fn a_signal_ends_the_run_and_leaves_a_record() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let lab = Lab::new();
        let mut signs = lab.signs();
        let child = lab
            .command("ignores-term", &["--runs", "5"])
            .env(fake::SIGN, &signs.path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        signs.await_line("asked for a session");
        kill_process(pid(&child), signal).unwrap();
        signs.await_end();
        assert_eq!(wait(child), Some(code));
        let manifest = lab.manifest();
        assert_eq!(manifest["status"], "interrupted");
        let result = &manifest["schedule"][0]["result"];
        assert_eq!(result["failure"]["code"], "interrupted");
        assert_eq!(result["signal"], 9);
        assert_eq!(manifest["schedule"][1]["result"], serde_json::Value::Null);
    }
}

#[test]
fn a_signal_cuts_the_grace_of_a_program_that_does_not_stop() {
    let lab = Lab::new();
    let mut signs = lab.signs();
    let mut options = ONE_RUN.to_vec();
    options.extend(["--stop-at", "health"]);
    let child = lab
        .command("notes-term", &options)
        .env(fake::SIGN, &signs.path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    signs.await_line("told to end");
    kill_process(pid(&child), Signal::INT).unwrap();
    signs.await_end();
    assert_eq!(wait(child), Some(130));
    // And not `stop_timeout`, which is what the whole grace would have given.
    assert_eq!(lab.result(0)["failure"]["code"], "interrupted");
}

#[test]
fn results_are_never_overwritten() {
    let lab = Lab::new();
    std::fs::create_dir(lab.out()).unwrap();
    std::fs::write(lab.out().join("old.jsonl"), "{}").unwrap();
    let output = lab.measure("good", &ONE_RUN);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("is not empty\nhint:"), "{message}");
    assert!(lab.log().is_empty(), "something was started");
}

#[test]
fn a_directory_has_one_measure_at_a_time() {
    let lab = Lab::new();
    let mut signs = lab.signs();
    let mut first = lab
        .command("silent-session", &ONE_RUN)
        .env(fake::SIGN, &signs.path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    signs.await_line("asked for a session");
    for options in [&ONE_RUN[..], &["--runs", "1", "--warmup", "0", "--resume"]] {
        let output = lab.measure("good", options);
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(message.contains("another `measure`"), "{message}");
    }
    first.kill().unwrap();
    first.wait().unwrap();
    signs.await_end();
    // The claim goes with the process, however it went.
    let output = lab.measure("good", &["--runs", "1", "--warmup", "0", "--resume"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(!message.contains("another `measure`"), "{message}");
}

#[test]
fn a_program_that_is_replaced_meanwhile_ends_the_experiment() {
    use std::os::unix::fs::PermissionsExt as _;
    let lab = Lab::new();
    let target = lab.path("target");
    let script =
        "#!/bin/sh\necho '#' > \"$0.new\" && chmod 755 \"$0.new\" && mv \"$0.new\" \"$0\"\n";
    std::fs::write(&target, script).unwrap();
    std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o755)).unwrap();
    let options = ["--runs", "3", "--warmup", "0", "--driver", "command"];
    let output = lab.bare(&options).arg("--").arg(&target).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("target has changed since"), "{message}");
    assert_eq!(lab.manifest()["status"], "aborted");
    assert_eq!(lab.runs().len(), 1, "the run before it is kept");
}

#[test]
fn a_reader_that_goes_away_hides_no_failure() {
    let lab = Lab::new();
    let mut child = lab
        .command("session-500", &ONE_RUN)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(wait(child), Some(1));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let lab = Lab::new();
    let mut child = lab
        .command("good", &ONE_RUN)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(wait(child), Some(0));
    assert_eq!(lab.manifest()["status"], "complete");
}

#[test]
fn wrong_usage_is_exit_2_and_help_is_exit_0() {
    let lab = Lab::new();
    for options in [&["--runs", "0"][..], &["--arm", "x"], &[]] {
        let output = lab.bare(options).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(!output.stderr.is_empty());
    }
    let output = lab.bare(&["--help"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(!lab.out().exists());
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap()
}

fn wait(mut child: Child) -> Option<i32> {
    child.wait().unwrap().code()
}
