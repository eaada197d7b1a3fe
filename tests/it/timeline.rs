//! Instants: both processes on one timeline, and each span where it belongs on it.

use crate::{clocks, fake_agent, logging_agent, nth_agent, session_requests};
use coldpath_tests::{Daemon, Request, Sandbox, Signal};

#[test]
fn both_processes_stand_on_one_timeline() {
    let sandbox = Sandbox::new();
    let daemon = sandbox.daemon().traced().start();
    daemon.thread_session().expect_status(200);
    daemon.stop_cleanly();
    let traces = sandbox.traces();
    let spawn = traces.one("channel.spawn").span();
    let initialize = traces.one("channel.initialize").span();
    let startup = traces.one("agent.startup").child_of("channel.initialize");
    // From the instant of the spawn to the answer; not to its arrival.
    assert!(spawn.start <= startup.span().start && startup.span().start <= spawn.end);
    assert!(startup.span().end <= initialize.end);
    assert_eq!(startup.span().resource["coldpath.process_start"], "spawn");
    assert_eq!(
        startup.span().resource["process.parent_pid"],
        spawn.resource["process.pid"]
    );
    startup.counts("coldpath.sched.cpu_ns");
    let mut phases: Vec<_> = traces
        .spans()
        .iter()
        .filter(|span| span.name.starts_with("agent.phase."))
        .collect();
    phases.sort_by_key(|span| span.start);
    let mut at = startup.span().start;
    for phase in &phases {
        traces
            .expect(phase)
            .child_of("agent.startup")
            .inside(startup.span());
        assert!(
            at <= phase.start,
            "`{}` overlaps the one before",
            phase.name
        );
        at = phase.end;
    }
    assert_eq!(phases[0].name, "agent.phase.exec");
}

/// A daemon on a clock whose wall time is the monotonic one, so that a test can
/// compare its own instants with those of spans to the nanosecond.
fn on_monotonic_clock(sandbox: &Sandbox) -> Daemon {
    let (_, mono) = clocks();
    let stamp = format!("v1:{mono}:{mono}:{mono}:{}", std::process::id());
    let launch = sandbox.daemon().agent(fake_agent("")).passive().traced();
    launch.env("COLDPATH_SPAWN", stamp).start()
}

/// The span of the only `/health`, which has its answer, began after it was `asked`
/// and was over when the daemon answered something else.
#[track_caller]
fn check_health_times(sandbox: &Sandbox, daemon: Daemon, asked: u64) {
    // The client can have its answer before the daemon knows that it is out.
    daemon.get("/capabilities").expect_status(200);
    let (_, answered) = clocks();
    daemon.stop_cleanly();
    let traces = sandbox.traces();
    let health = traces.one("health.first").child_of("daemon.boot").span();
    assert!(
        asked <= health.start && health.end <= answered,
        "asked {asked}, answered {answered}: {health:?}"
    );
}

#[test]
fn the_first_health_is_timed_from_its_own_bytes_to_its_answer() {
    // Before the runtime, and by the runtime.
    for starts_runtime in [false, true] {
        let prepare = |daemon: &Daemon| {
            if starts_runtime {
                daemon.thread_session().expect_status(200);
            }
        };
        let now = || clocks().1;

        // The bytes come with the connection.
        let sandbox = Sandbox::new();
        let daemon = on_monotonic_clock(&sandbox);
        prepare(&daemon);
        let asked = now();
        daemon.get("/health").expect_status(200);
        check_health_times(&sandbox, daemon, asked);

        // On a connection that was accepted and silent before.
        let sandbox = Sandbox::new();
        let daemon = on_monotonic_clock(&sandbox);
        prepare(&daemon);
        let mut silent = daemon.connect();
        daemon.get("/capabilities").expect_status(200);
        let asked = now();
        silent.ask(&Request::get("/health")).expect_status(200);
        check_health_times(&sandbox, daemon, asked);

        // On a connection that has been used; with a head in two pieces.
        let sandbox = Sandbox::new();
        let daemon = on_monotonic_clock(&sandbox);
        prepare(&daemon);
        let mut used = daemon.connect();
        // Looked at behind the other one: its answer says that both were.
        let mut other = daemon.connect();
        for client in [&mut used, &mut other] {
            client
                .ask(&Request::get("/capabilities"))
                .expect_status(200);
        }
        let asked = now();
        used.send_bytes(b"HEAD /health HTTP/1.1\r\n");
        // The first may be read in the same turn as the half head, and before it.
        for _ in 0..3 {
            other.ask(&Request::get("/capabilities")).expect_status(200);
        }
        let half = now();
        let rest = format!("Host: localhost:{}\r\n\r\n", daemon.port());
        used.send_bytes(rest.as_bytes());
        used.read_head().expect_status(200);
        check_health_times(&sandbox, daemon, asked);
        let traces = sandbox.traces();
        let health = traces
            .one("health.first")
            .has("http.request.method", "HEAD");
        let start = health.span().start;
        assert!(
            start <= half,
            "{start} is not that of the first byte, {half}"
        );
    }
}

#[test]
fn a_run_that_begins_after_the_clock_moved_stands_on_one_timeline() {
    let sandbox = Sandbox::new();
    let (wall, mono) = clocks();
    let hour = 3_600_000_000_000;
    let stamp = format!("v1:{}:{mono}:{mono}:{}", wall - hour, std::process::id());
    let agent = logging_agent(&sandbox, "");
    let launch = sandbox.daemon().agent(agent).traced();
    let daemon = launch.env("COLDPATH_SPAWN", stamp).start();
    daemon.thread_session().expect_status(200);
    let agent = nth_agent(&sandbox, 0).unwrap();
    agent.signal(Signal::KILL);
    daemon.stderr.wait_for("the agent ended");
    daemon.thread_session().expect_status(200);
    daemon.stop_cleanly();
    let traces = sandbox.traces();
    let requests = session_requests(&traces);
    let [old, new] = [requests[0], requests[1]];
    assert!(new.start - old.start >= hour - 60_000_000_000, "{new:?}");
    for name in ["channel.wait", "session.new"] {
        traces.child(new, name).inside(new);
    }
    let spawn = traces.named("channel.spawn")[1];
    traces.expect(spawn).inside(new);
}

#[test]
fn the_status_tells_the_time_of_the_calendar() {
    let sandbox = Sandbox::new();
    let (wall, mono) = clocks();
    let stamp = format!(
        "v1:{}:{mono}:{mono}:{}",
        wall - 3_600_000_000_000,
        std::process::id()
    );
    let launch = sandbox.daemon().agent(fake_agent("")).passive();
    let daemon = launch.traced().env("COLDPATH_SPAWN", stamp).start();
    let date = || {
        let mut date = std::process::Command::new("date");
        let output = date.args(["-u", "+%FT%T.%3NZ"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    for _ in 0..2 {
        let before = date();
        let status = daemon.get("/daemon/status").expect_status(200).json();
        let told = status["generatedAt"].as_str().unwrap();
        assert!(before.as_str() <= told && told <= date().as_str(), "{told}");
        daemon.thread_session().expect_status(200);
    }
    daemon.stop_cleanly();
}
