//! Nothing stays behind: whatever an agent is and however the daemon stops.

use crate::{fake_agent, logging_agent, nth_agent};
use coldpath_tests::{Sandbox, Signal, Watched, processes_with_token};

/// A session is served, the daemon stops, and nothing is left of it.
#[track_caller]
fn check_deserted(words: &str) {
    let sandbox = Sandbox::new();
    let daemon = sandbox.daemon().agent(fake_agent(words)).start();
    daemon.thread_session().expect_status(200);
    let before = processes_with_token(sandbox.token());
    assert!(before.len() >= 2, "{before:?}");
    daemon.stop_cleanly();
}

#[test]
fn an_agent_that_ignores_the_end_of_its_input() {
    check_deserted("ignore-eof");
}

#[test]
fn an_agent_that_ignores_sigterm_too() {
    check_deserted("ignore-eof ignore-term");
}

#[test]
fn a_wrapper_whose_child_ignores_everything() {
    check_deserted("wrap ignore-eof ignore-term");
}

#[test]
fn an_orphan_in_a_session_of_its_own() {
    check_deserted("orphan");
}

#[test]
fn an_orphan_that_has_a_child() {
    check_deserted("orphan-family");
}

#[test]
fn a_wrapper_with_a_stubborn_family() {
    check_deserted("wrap orphan-family ignore-eof ignore-term");
}

#[test]
fn an_agent_that_dies_takes_its_orphans_with_it() {
    let sandbox = Sandbox::new();
    let agent = logging_agent(&sandbox, "orphan-family");
    let daemon = sandbox.daemon().agent(agent).start();
    daemon.thread_session().expect_status(200);
    let orphans: Vec<_> = processes_with_token(sandbox.token())
        .into_iter()
        .filter(|(_, command)| command.contains("orphan-end"))
        .filter_map(|(pid, _)| Watched::open(pid))
        .collect();
    assert_eq!(orphans.len(), 2);
    nth_agent(&sandbox, 0).unwrap().signal(Signal::KILL);
    for orphan in orphans {
        orphan.wait("an orphan of a killed agent");
    }
    daemon.thread_session().expect_status(200);
    daemon.stop_cleanly();
}

#[test]
fn a_second_signal_does_not_wait_and_leaves_nothing() {
    let sandbox = Sandbox::new();
    let agent = fake_agent("wrap orphan-family ignore-eof ignore-term");
    let daemon = sandbox.daemon().agent(agent).start();
    daemon.thread_session().expect_status(200);
    daemon.signal(Signal::TERM);
    daemon.stderr.wait_for("stopping");
    daemon.signal(Signal::INT);
    assert_eq!(daemon.wait().code, Some(1));
    sandbox.assert_deserted();
}

#[test]
fn what_a_killed_daemon_left_is_named_and_ended_by_the_next() {
    let sandbox = Sandbox::new();
    let agent = logging_agent(&sandbox, "ignore-eof ignore-term");
    let daemon = sandbox.daemon().agent(&agent).start();
    daemon.thread_session().expect_status(200);
    let survivor = nth_agent(&sandbox, 0).unwrap();
    daemon.signal(Signal::KILL);
    assert_eq!(daemon.wait().signal, Some(9));

    let next = sandbox.daemon().agent(&agent).start();
    next.thread_session().expect_status(200);
    next.stderr.wait_for(&format!("agent {} ", survivor.pid()));
    // At once: the survivor has had no time to see SIGTERM and ignore it.
    next.stop_cleanly();
}

#[test]
fn an_agent_that_was_only_just_started_is_found_by_the_next() {
    let sandbox = Sandbox::new();
    let agent = fake_agent("ignore-eof ignore-term");
    let daemon = sandbox
        .daemon()
        .agent(agent)
        .fault("channel.initialize")
        .start();
    daemon.get("/health").expect_status(200);
    daemon.stderr.wait_for("fault channel.initialize");
    daemon.signal(Signal::KILL);
    daemon.wait();
    let next = sandbox.daemon().agent(fake_agent("")).start();
    next.thread_session().expect_status(200);
    next.stderr.wait_for("survived an earlier daemon");
    next.stop_cleanly();
}

#[test]
fn a_survivor_is_not_forgotten_by_a_daemon_that_is_killed_too() {
    let sandbox = Sandbox::new();
    let agent = logging_agent(&sandbox, "ignore-eof ignore-term");
    let first = sandbox.daemon().agent(&agent).start();
    first.thread_session().expect_status(200);
    let survivor = nth_agent(&sandbox, 0).unwrap();
    first.signal(Signal::KILL);
    first.wait();
    let second = sandbox.daemon().agent(&agent).start();
    second.thread_session().expect_status(200);
    second.signal(Signal::KILL);
    second.wait();
    let third = sandbox.daemon().agent(&agent).start();
    third.thread_session().expect_status(200);
    third.stderr.wait_for(&format!("agent {} ", survivor.pid()));
    third.stop_cleanly();
}

#[test]
fn a_process_that_got_a_survivor_s_pid_is_left_alone() {
    let sandbox = Sandbox::new();
    let agent = fake_agent("");
    let daemon = sandbox.daemon().agent(&agent).start();
    daemon.thread_session().expect_status(200);
    daemon.stop_cleanly();
    // This very process, with a start time that it has not, and lines that nobody wrote.
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let own = std::process::id();
    let text = format!("{own} 1 {}\n-1 1 x\n0 0 0\nnonsense\n{own}\n", boot.trim());
    std::fs::write(sandbox.state_dir().join("spawned"), text).unwrap();
    let daemon = sandbox.daemon().agent(&agent).start();
    daemon.thread_session().expect_status(200);
    let exit = daemon.stop_cleanly();
    assert!(!exit.stderr.contains("survived"), "{exit:?}");
}
