use super::*;

fn stopped(exit: Exit, killed: Option<KillReason>) -> Stopped {
    let at = MonoNanos::from_nanos(1);
    Stopped {
        shutdown: Some((at, at)),
        ended: at,
        exit,
        killed,
    }
}

#[track_caller]
fn check(exit: Exit, killed: Option<KillReason>, expected: Option<&str>) {
    let failure = stopped(exit, killed).failure();
    assert_eq!(
        failure.map(|failure| failure.to_string()).as_deref(),
        expected
    );
}

#[test]
fn only_a_clean_end_or_the_signal_that_was_sent_is_a_success() {
    check(Exit::Code(0), None, None);
    check(Exit::Signal(15), None, None);
    check(Exit::Code(143), None, None);
    check(
        Exit::Code(1),
        None,
        Some("bad_exit: ended when it was stopped with code 1"),
    );
    check(
        Exit::Signal(11),
        None,
        Some("bad_exit: ended when it was stopped with signal 11"),
    );
    check(
        Exit::Signal(9),
        Some(KillReason::Overdue(Duration::from_secs(12))),
        Some("stop_timeout: did not end within 12 s of SIGTERM"),
    );
    check(
        Exit::Signal(9),
        Some(KillReason::Interrupted),
        Some("interrupted: ended by a signal while it was being stopped"),
    );
}
