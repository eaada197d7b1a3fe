//! An arm: what one side of an experiment runs, how, and how far.

use std::ffi::OsString;
use std::path::PathBuf;

/// One side of an experiment, checked and ready to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    /// Name, unique in the experiment; the value of `coldpath.run.cohort`.
    pub name: String,
    /// Absolute path of the program.
    pub program: PathBuf,
    /// The command as given: program first, placeholders not yet replaced.
    pub words: Vec<OsString>,
    /// What the arm's runs do.
    pub scenario: Scenario,
    /// After which step the program is stopped.
    pub stop_at: StopAt,
}

/// What a run does with the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// Start, `/health`, first session, second session; the program traces.
    Cold,
    /// The same, without a trace directory in the program's environment.
    NoTelemetry,
}

/// The last step of a run before the program is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopAt {
    /// The ready line.
    Ready,
    /// The first `/health` response.
    Health,
    /// The sessions.
    Session,
}

impl Scenario {
    /// Every scenario.
    pub const ALL: [Self; 2] = [Self::Cold, Self::NoTelemetry];

    /// Name on the command line and in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::NoTelemetry => "no-telemetry",
        }
    }

    /// The scenario of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }
}

impl StopAt {
    /// Every stop, in the order of a run.
    pub const ALL: [Self; 3] = [Self::Ready, Self::Health, Self::Session];

    /// Name on the command line and in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Health => "health",
            Self::Session => "session",
        }
    }

    /// The stop of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }
}
