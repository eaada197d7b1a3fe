//! An arm: what one side of an experiment runs, how, and how far.

use crate::driver::{Driver, ScenarioError, Step};
use crate::injection::Injection;
use crate::scenario::Scenario;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// One side of an experiment, checked and ready to be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    /// Name, unique in the experiment; the value of `coldpath.run.cohort`.
    pub name: String,
    /// Absolute path of the program.
    pub program: PathBuf,
    /// The command as given: program first, placeholders of the run not yet replaced.
    pub words: Vec<OsString>,
    /// Variables that are added to the inherited environment.
    pub env: Vec<(String, String)>,
    /// The target's own files, absolute: the program, the files that its command
    /// names and those that its driver names.
    pub files: Vec<PathBuf>,
    /// How it is driven.
    pub driver: Arc<Driver>,
    /// What the arm's runs do.
    pub scenario: Scenario,
    /// After which step the program is stopped.
    pub stop_at: StopAt,
    /// Delays that the program is asked to make.
    pub injections: Vec<Injection>,
    /// Whether the memory of its tree is sampled.
    pub sampling: Sampling,
}

impl Arm {
    /// The steps of its runs.
    ///
    /// # Errors
    /// The driver does not have the scenario or the stop.
    pub fn steps(&self) -> Result<Vec<Step>, ScenarioError> {
        self.driver.steps(&self.scenario, self.stop_at)
    }
}

/// The last step of a run before the program is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopAt {
    /// The ready line.
    Ready,
    /// The first `/health` response.
    Health,
    /// The sessions, or whatever the driver's last step is.
    Session,
}

/// Whether the memory of a run's tree is read while it is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// Never.
    Off,
    /// At this interval, from the spawn on; a start that is shorter has no sample.
    Every(Duration),
}

impl Sampling {
    /// Between samples: what a process grows in less is not seen, and what a
    /// sample costs is less than a thousandth of it.
    pub const USUAL: Self = Self::Every(Duration::from_millis(50));
    /// Shortest interval: below, the sampler itself would be what is measured.
    pub const SHORTEST: Duration = Duration::from_millis(1);

    /// Reads `off` or a duration from [`Sampling::SHORTEST`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text == "off" {
            return Some(Self::Off);
        }
        crate::scenario::parse_duration(text)
            .filter(|every| *every >= Self::SHORTEST)
            .map(Self::Every)
    }

    /// Name in the manifest.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Off => "off".to_owned(),
            Self::Every(every) => format!("{}us", every.as_micros()),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampling_is_off_or_an_interval_from_a_millisecond() {
        assert_eq!(Sampling::parse("off"), Some(Sampling::Off));
        assert_eq!(Sampling::parse("50ms"), Some(Sampling::USUAL));
        for text in ["", "on", "0", "999us"] {
            assert_eq!(Sampling::parse(text), None, "{text}");
        }
    }
}
