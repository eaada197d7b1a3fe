//! Behaviour of the real programs, one module a subject.

#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod admission;
mod agent_pipes;
mod agents;
mod boot;
mod bootstrap;
mod context;
mod kill;
mod leftovers;
mod live_view;
mod measure;
mod pictures;
mod pipeline;
mod profiles;
mod readme;
mod report_page;
mod session;
mod timeline;
mod top;
mod traces;

use coldpath_tests::{Client, Daemon, Gate, Request, Sandbox, Span, Traces, Watched};
use rustix::time::{ClockId, clock_gettime};

/// `fake-agent` with these words, as a command line for `--agent`.
pub(crate) fn fake_agent(words: &str) -> String {
    format!("'{}' {words}", env!("CARGO_BIN_EXE_fake-agent"))
}

/// The same, which notes in the sandbox's log what it receives.
pub(crate) fn logging_agent(sandbox: &Sandbox, words: &str) -> String {
    let log = sandbox.path("agent.log");
    fake_agent(&format!("'log={}' {words}", log.display()))
}

/// Sends the request over `count` connections, and returns once the daemon has
/// read them all: it serves connections in their order on one thread, so that
/// answers to later ones tell.
pub(crate) fn send_at_once(daemon: &Daemon, request: &Request, count: usize) -> Vec<Client> {
    let mut clients: Vec<_> = (0..count).map(|_| daemon.connect()).collect();
    for client in &mut clients {
        client.send(request);
    }
    for _ in 0..3 {
        daemon.get("/workspace/acp/status").expect_status(200);
    }
    clients
}

/// The word that makes a fake agent stop at the gate before it answers `method`.
pub(crate) fn gate_word(gate: &Gate, method: &str) -> String {
    format!("'gate:{method}={}'", gate.path().display())
}

/// The process of the `nth` agent that was asked to initialize, counted from 0.
#[track_caller]
pub(crate) fn nth_agent(sandbox: &Sandbox, nth: usize) -> Option<Watched> {
    let pid = sandbox.agent_calls("initialize")[nth]["pid"].as_u64();
    Watched::open(u32::try_from(pid.unwrap()).unwrap())
}

/// Wall and monotonic clock, nanoseconds.
pub(crate) fn clocks() -> (u64, u64) {
    let read = |clock| {
        let time = clock_gettime(clock);
        u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap()
    };
    (read(ClockId::Realtime), read(ClockId::Monotonic))
}

/// Requests to make sessions, by start.
pub(crate) fn session_requests(traces: &Traces) -> Vec<&Span> {
    traces.named("POST /session")
}
