//! How a program is driven: a list of steps for each scenario, as data.
//!
//! A driver says what is awaited and asked in which order; [`crate::run`] carries
//! it out and owns every clock reading. Drivers are TOML, read by [`file`]; three
//! come with the program. This module only has their meaning.

pub mod file;
pub mod http;
pub mod ready;

use crate::arm::StopAt;
use crate::scenario::Scenario;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// A driver, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Driver {
    /// Name in the manifest.
    pub name: String,
    /// SHA-256 of its text, lower-case hex.
    pub sha256: String,
    /// By what means the program is driven.
    pub kind: Kind,
    /// The program's own files beside its command, `{program_dir}` not yet replaced.
    pub files: Vec<String>,
    /// How the program is told to end.
    pub stop: StopRule,
    pub(super) scenarios: BTreeMap<String, Script>,
}

/// By what means a program is driven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Requests to the address that it prints.
    Http(ReadyRule),
    /// ACP lines over its stdin and stdout.
    AcpStdio,
    /// Nothing is asked; it ends by itself.
    Command,
}

/// Where a program says that it listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadyRule {
    /// The output.
    pub stream: Stream,
    /// Text in a line of it after which `HOST:PORT` stands.
    pub marker: String,
}

/// An output of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// How a program is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopRule {
    /// SIGTERM.
    Terminate,
    /// End of its input, and SIGTERM after this long.
    CloseInput(Duration),
}

/// What a scenario does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Script {
    /// What the value behind `=` is.
    pub(crate) value: ValueRule,
    /// Whether the program gets a trace directory.
    pub(crate) telemetry: bool,
    /// The steps, values not yet filled in.
    pub(crate) lines: Vec<Line>,
}

/// What a scenario takes behind `=`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ValueRule {
    /// Nothing.
    None,
    /// A duration, and the one that is meant without a value.
    Duration(Duration),
    /// A count from 1, and the one that is meant without a value.
    Count(usize),
}

/// A step of a script.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Line {
    /// Send a request.
    Send {
        request: Box<RequestStep>,
        times: Amount<usize>,
        pace: Pace,
        part: Part,
    },
    /// Let time pass.
    Wait(Amount<Duration>, Since),
    /// Send a signal.
    Signal(SignalName),
}

/// A figure, or the value of the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount<T> {
    Fixed(T),
    OfScenario,
}

/// One step of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Read an output until the ready line is complete.
    AwaitListener(ReadyRule),
    /// Read the RSS of the listening program.
    ReadListenerRss,
    /// Send requests together.
    Send(Sending),
    /// Let time pass.
    Wait(Duration, Since),
    /// Send a signal.
    Signal(SignalName),
    /// Wait until the program has ended by itself.
    AwaitEnd,
    /// The start that is being explained is over: read the covariates, and the
    /// memory of the process tree with its first session.
    CloseWindow,
}

/// What a wait counts from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Since {
    /// The end of the step before it.
    Now,
    /// The answer to the request of this name, so that what is sent meanwhile does
    /// not put off what follows; where that has none yet, as [`Since::Now`].
    Answer(String),
}

/// Requests that are sent together.
#[derive(Clone, Debug, PartialEq)]
pub struct Sending {
    /// At least one.
    pub requests: Vec<RequestStep>,
    /// Whether their answers are awaited before the next step.
    pub pace: Pace,
    /// Where they stand in the run.
    pub part: Part,
}

/// Whether an answer is awaited before the next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// It is.
    Awaited,
    /// The steps go on; the answer must come before the program is stopped.
    Background,
}

/// Where a request stands in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Directly under `run`.
    Run,
    /// Under `client.action`, which lasts from the first of these to the last.
    Action,
}

/// A signal that a driver may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalName {
    /// SIGHUP.
    Hup,
    /// SIGUSR1.
    Usr1,
    /// SIGUSR2.
    Usr2,
}

/// A request and what makes its answer a success.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestStep {
    /// Name in the driver.
    pub name: String,
    /// Name of the span.
    pub span: &'static str,
    /// What is sent.
    pub message: Message,
    /// Value of `coldpath.session.temperature`.
    pub temperature: Option<&'static str>,
    /// Status codes that are a success, of an HTTP request.
    pub expect: Vec<u16>,
    /// Key of the answer that must hold a non-empty text: the session's id.
    pub session: Option<String>,
    /// Keys with which an answer begins, for those who check it.
    pub keys: Vec<String>,
    /// Key of the answer that holds the list of feature tags.
    pub features: Option<String>,
    /// Feature tag without which it is not sent.
    pub needs: Option<String>,
    /// What an answer that is no success means.
    pub refusal: Refusal,
}

/// What an answer that is no success means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The run has failed.
    Fails,
    /// The program does not offer this; the run is labelled and goes on.
    Noted,
}

/// What a request is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// HTTP.
    Http {
        /// Method.
        method: String,
        /// Path, with its query.
        path: String,
        /// JSON body, placeholders not yet replaced.
        body: Option<serde_json::Value>,
    },
    /// A JSON-RPC call.
    Call {
        /// Method.
        method: String,
        /// Parameters, placeholders not yet replaced.
        params: serde_json::Value,
    },
}

/// Why a scenario cannot be run by a driver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// The driver has none of that name.
    #[error("driver `{driver}` has no scenario `{name}`\nhint: it has {known}")]
    Unknown {
        /// The driver.
        driver: String,
        /// The name.
        name: String,
        /// What it has.
        known: String,
    },
    /// The value is missing, superfluous or wrong.
    #[error("scenario `{scenario}`: {reason}")]
    Value {
        /// As it was asked for.
        scenario: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// There is nothing to stop behind.
    #[error("driver `{driver}` has no step `{stop}` in scenario `{scenario}` to stop behind")]
    Stop {
        /// The driver.
        driver: String,
        /// The stop.
        stop: &'static str,
        /// The scenario.
        scenario: String,
    },
}

impl Driver {
    /// Whether the program gets a trace directory under that scenario.
    #[must_use]
    pub fn traces(&self, scenario: &Scenario) -> bool {
        self.scenarios
            .get(&scenario.name)
            .is_none_or(|script| script.telemetry)
    }

    /// The steps of a run, up to a stop.
    ///
    /// # Errors
    /// The driver has no such scenario, takes no such value, or has no such stop.
    pub fn steps(&self, scenario: &Scenario, stop_at: StopAt) -> Result<Vec<Step>, ScenarioError> {
        let script = self.script(scenario)?;
        let value = Value::of(scenario, &script.value)?;
        let mut steps: Vec<Step> = script.lines.iter().map(|line| value.fill(line)).collect();
        let no_stop = || ScenarioError::Stop {
            driver: self.name.clone(),
            stop: stop_at.name(),
            scenario: scenario.to_string(),
        };
        match stop_at {
            StopAt::Session => {}
            StopAt::Ready if matches!(self.kind, Kind::Http(_)) => steps.clear(),
            StopAt::Ready => return Err(no_stop()),
            StopAt::Health => {
                let health = steps.iter().position(is_health).ok_or_else(no_stop)?;
                steps.truncate(health + 1);
            }
        }
        steps.insert(close_at(&steps), Step::CloseWindow);
        match &self.kind {
            Kind::Http(rule) => {
                let begin = [Step::AwaitListener(rule.clone()), Step::ReadListenerRss];
                steps.splice(0..0, begin);
            }
            Kind::AcpStdio => {}
            Kind::Command => steps.insert(0, Step::AwaitEnd),
        }
        Ok(steps)
    }

    fn script(&self, scenario: &Scenario) -> Result<&Script, ScenarioError> {
        self.scenarios.get(&scenario.name).ok_or_else(|| {
            let known: Vec<&str> = self.scenarios.keys().map(String::as_str).collect();
            ScenarioError::Unknown {
                driver: self.name.clone(),
                name: scenario.name.clone(),
                known: known.join(", "),
            }
        })
    }
}

/// The value of a scenario, read.
enum Value {
    None,
    Duration(Duration),
    Count(usize),
}

impl Value {
    fn of(scenario: &Scenario, rule: &ValueRule) -> Result<Self, ScenarioError> {
        let wrong = |reason| ScenarioError::Value {
            scenario: scenario.to_string(),
            reason,
        };
        match (rule, scenario.value.as_deref()) {
            (ValueRule::None, None) => Ok(Self::None),
            (ValueRule::None, Some(_)) => Err(wrong("it takes no value")),
            (ValueRule::Duration(default), None) => Ok(Self::Duration(*default)),
            (ValueRule::Duration(_), Some(text)) => crate::scenario::parse_duration(text)
                .map(Self::Duration)
                .ok_or_else(|| wrong("its value is a duration, as in `250`, `250ms` or `3s`")),
            (ValueRule::Count(default), None) => Ok(Self::Count(*default)),
            (ValueRule::Count(_), Some(text)) => match text.parse() {
                Ok(count) if (1..=crate::scenario::TIMES_MAX).contains(&count) => {
                    Ok(Self::Count(count))
                }
                _ => Err(wrong("its value is a number from 1 to 64")),
            },
        }
    }

    fn fill(&self, line: &Line) -> Step {
        match line {
            Line::Send {
                request,
                times,
                pace,
                part,
            } => {
                let times = match (times, self) {
                    (Amount::Fixed(times), _) => *times,
                    (Amount::OfScenario, Self::Count(count)) => *count,
                    // Refused when the driver was read.
                    (Amount::OfScenario, Self::None | Self::Duration(_)) => 1,
                };
                Step::Send(Sending {
                    requests: vec![(**request).clone(); times],
                    pace: *pace,
                    part: *part,
                })
            }
            Line::Wait(Amount::Fixed(duration), since) => Step::Wait(*duration, since.clone()),
            Line::Wait(Amount::OfScenario, since) => {
                let duration = match self {
                    Self::Duration(duration) => *duration,
                    // Refused when the driver was read.
                    Self::None | Self::Count(_) => Duration::ZERO,
                };
                Step::Wait(duration, since.clone())
            }
            Line::Signal(signal) => Step::Signal(*signal),
        }
    }
}

fn is_health(step: &Step) -> bool {
    let health = coldpath_trace_format::spans::CLIENT_HEALTH;
    matches!(step, Step::Send(sending) if sending.requests.iter().any(|one| one.span == health))
}

/// Behind the last step of the action; without one, behind all.
fn close_at(steps: &[Step]) -> usize {
    let of_action =
        |step: &Step| matches!(step, Step::Send(sending) if sending.part == Part::Action);
    steps
        .iter()
        .rposition(of_action)
        .map_or(steps.len(), |last| last + 1)
}

impl SignalName {
    /// The signal.
    #[must_use]
    pub const fn signal(self) -> rustix::process::Signal {
        match self {
            Self::Hup => rustix::process::Signal::HUP,
            Self::Usr1 => rustix::process::Signal::USR1,
            Self::Usr2 => rustix::process::Signal::USR2,
        }
    }
}

/// Replaces `{workspace}` in every text of a JSON value.
pub(crate) fn fill_json(value: &serde_json::Value, workspace: &Path) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::String(text) => {
            Value::String(text.replace("{workspace}", &workspace.to_string_lossy()))
        }
        Value::Array(items) => items.iter().map(|one| fill_json(one, workspace)).collect(),
        Value::Object(pairs) => pairs
            .iter()
            .map(|(key, one)| (key.clone(), fill_json(one, workspace)))
            .collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;
