//! A daemon that is ended anywhere on its cold path: whatever the signal, the next
//! one with the same state directory and port serves a session, and no process is
//! left of either.

use coldpath_tests::{Client, Daemon, Launch, Request, Sandbox, Signal, reserve_port};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What brings a daemon to the span in which it stops.
#[derive(Clone, Copy)]
enum Drive {
    /// It gets there by itself.
    Nothing,
    Health,
    Session,
}

/// Every span with a fault point, in the order of a cold start.
const SPANS: [(&str, Drive); 9] = [
    ("boot.bind", Drive::Nothing),
    ("health.first", Drive::Health),
    ("runtime.start", Drive::Health),
    ("channel.spawn", Drive::Health),
    ("channel.initialize", Drive::Health),
    ("channel.wait", Drive::Session),
    ("session.new", Drive::Session),
    ("agent.startup", Drive::Health),
    ("agent.session_start", Drive::Session),
];
const SIGNALS: [Signal; 3] = [Signal::TERM, Signal::INT, Signal::KILL];

/// Cells that run at once: most of their time is spent in graces, not on a processor.
const THREADS: usize = 4;

#[test]
fn a_daemon_that_is_ended_anywhere_leaves_a_clean_start_to_the_next() {
    let cells: Vec<_> = SPANS
        .iter()
        .flat_map(|span| SIGNALS.map(|signal| (span, signal)))
        .collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some((span, signal)) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
                    check_cell(span.0, span.1, *signal);
                }
            });
        }
    });
}

/// One span and one signal, with and without traces: with them there is more to
/// close.
fn check_cell(span: &str, drive: Drive, signal: Signal) {
    for traced in [Launch::traced, |launch| launch] {
        let sandbox = Sandbox::new();
        let port = reserve_port();
        let launch = || traced(sandbox.daemon().port(port));
        let daemon = launch().fault(span).spawn();
        let (daemon, _waiting) = bring(daemon, drive);
        daemon.stderr.wait_for(&format!("fault {span}"));
        daemon.signal(signal);
        let exit = daemon.wait();
        let expected = if signal == Signal::KILL || span == "boot.bind" {
            // Before the listener stands, nothing catches a signal yet.
            (None, Some(signal.as_raw()))
        } else if span == "runtime.start" {
            // A thread that hangs for ever is left to the end of the process.
            (Some(1), None)
        } else {
            (Some(0), None)
        };
        assert_eq!(
            (exit.code, exit.signal),
            expected,
            "{span}, {signal:?}: {exit:?}"
        );
        if signal != Signal::KILL {
            sandbox.assert_deserted();
        }

        let daemon = launch().start();
        daemon.thread_session().expect_status(200);
        daemon.stop_cleanly();
    }
}

/// Brings a daemon to its span; the connection is kept open, as a client would.
fn bring(mut daemon: Daemon, drive: Drive) -> (Daemon, Option<Client>) {
    let request = match drive {
        Drive::Nothing => return (daemon, None),
        Drive::Health => Request::get("/health"),
        Drive::Session => Request::session("thread"),
    };
    daemon.wait_until_ready();
    let mut client = daemon.connect();
    client.send(&request);
    (daemon, Some(client))
}
