//! Why a run failed: a stable code and a sentence.

use super::child::Wake;
use std::fmt;
use std::time::Duration;

/// A run's failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind; the value of `error.type`.
    pub code: FailureCode,
    /// What happened.
    pub message: String,
}

/// Kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureCode {
    /// The program could not be started.
    SpawnFailed,
    /// The program ended before the driver was done with it.
    ExitedEarly,
    /// No ready line in time.
    ReadyTimeout,
    /// A ready line that names no usable address.
    BadReadyLine,
    /// No connection to the listener.
    ConnectFailed,
    /// An answer did not come in time.
    RequestTimeout,
    /// An answer is no HTTP, is cut off or is too long.
    BadResponse,
    /// An agent answered with a JSON-RPC error.
    RpcError,
    /// A status code that is no success.
    HttpStatus,
    /// A body that does not hold what it must.
    BadBody,
    /// The program did not end within the grace after SIGTERM.
    StopTimeout,
    /// The program ended on SIGTERM with a code that is no success.
    BadExit,
    /// Processes of the run outlived its program.
    Leftovers,
    /// A delay that the arm injects was not made.
    NotInjected,
    /// The run's own trace could not be written.
    TraceLost,
    /// The experiment was ended by a signal.
    Interrupted,
}

impl FailureCode {
    /// Stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SpawnFailed => "spawn_failed",
            Self::ExitedEarly => "exited_early",
            Self::ReadyTimeout => "ready_timeout",
            Self::BadReadyLine => "bad_ready_line",
            Self::ConnectFailed => "connect_failed",
            Self::RequestTimeout => "request_timeout",
            Self::BadResponse => "bad_response",
            Self::RpcError => "rpc_error",
            Self::HttpStatus => "http_status",
            Self::BadBody => "bad_body",
            Self::StopTimeout => "stop_timeout",
            Self::BadExit => "bad_exit",
            Self::Leftovers => "leftovers",
            Self::NotInjected => "not_injected",
            Self::TraceLost => "trace_lost",
            Self::Interrupted => "interrupted",
        }
    }
}

impl Failure {
    /// Makes one.
    #[must_use]
    pub fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

/// The failure of a wait that did not bring what it was for.
pub(super) fn stopped_waiting(
    wake: Wake,
    what: &str,
    timeout: Duration,
    on_timeout: FailureCode,
) -> Failure {
    match wake {
        Wake::Exited => Failure::new(
            FailureCode::ExitedEarly,
            format!("the program ended while waiting {what}"),
        ),
        Wake::Interrupted => Failure::new(FailureCode::Interrupted, "ended by a signal"),
        Wake::TimedOut | Wake::Ready => Failure::new(
            on_timeout,
            format!("waited {what} for {} ms", timeout.as_millis()),
        ),
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.name(), self.message)
    }
}
