//! The command line: what was typed ([`args`]), and the draft of an experiment that
//! it means.

pub mod args;

use crate::arm::{Sampling, StopAt};
use crate::command::{self, CommandError};
use crate::draft::{ArmDraft, Draft, SetDraft, Sitting};
use crate::experiment::Kind;
use crate::experiment_file;
use crate::host::page_cache::PageCache;
use crate::injection::{BadInjection, Injection};
use crate::run::RssReading;
use crate::scenario::Scenario;
use crate::suite;
use crate::toml_file::FileError;
use args::{AaArgs, CacheChoice, ChoiceArgs, PairArgs, RssChoice, RunArgs, SharedArgs, SuiteArgs};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bound of each step where nobody says another.
const STEP_TIMEOUT_MS: u64 = 30_000;
/// Names of the arms of a pair.
const PAIR: [&str; 2] = ["control", "candidate"];

/// Why arguments make no experiment.
#[derive(Debug, thiserror::Error)]
pub enum UsageError {
    /// No command.
    #[error("nothing to run\nhint: give a command after `--`, or one or more `--arm NAME=CMD`")]
    NoCommand,
    /// `--arm` or `--define` without a name.
    #[error("`{0} {1}` is not NAME={2}")]
    NotNamed(&'static str, String, &'static str),
    /// A command that cannot be split.
    #[error("arm `{0}`: {1}")]
    Command(String, #[source] CommandError),
    /// A choice for an arm that is not there.
    #[error("`{option} {value}` names an arm that is not given")]
    UnknownArm {
        /// The option.
        option: &'static str,
        /// Its value.
        value: String,
    },
    /// A choice that does not exist.
    #[error("`{option} {value}` is not known\nhint: {known}")]
    UnknownChoice {
        /// The option.
        option: &'static str,
        /// Its value.
        value: String,
        /// What there is.
        known: String,
    },
    /// A delay that is none.
    #[error("--inject: {0}")]
    Injection(#[from] BadInjection),
    /// Choices beside an experiment file.
    #[error("`{0}` does not go with --experiment\nhint: the file says it for each arm")]
    BesideFile(&'static str),
    /// The experiment file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The campaign cannot be taken up again.
    #[error("`suite` cannot be resumed: its claims are judged by the runs of one sitting")]
    SuiteResumed,
}

impl RunArgs {
    /// What it asks for.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn into_draft(self) -> Result<Draft, UsageError> {
        if let Some(path) = &self.experiment {
            self.choices.refuse_beside_file()?;
            let defines = defines(&self.define)?;
            let file = experiment_file::load(path, &defines)?;
            let mut draft = self.shared.into_draft(Kind::Run, file.sets);
            draft.file_settings(
                file.seed,
                file.workspace,
                file.step_timeout,
                file.rss,
                file.page_cache,
            );
            return Ok(draft);
        }
        let mut arms = arms(self.command, &self.arm)?;
        self.choices.apply(&mut arms, None)?;
        let set = SetDraft {
            name: String::new(),
            runs: self.runs,
            warmup: self.warmup,
            arms,
        };
        Ok(self.shared.into_draft(Kind::Run, vec![set]))
    }
}

impl Draft {
    /// Takes what a file says where the command line said nothing. The draft holds
    /// the usual values there.
    fn file_settings(
        &mut self,
        seed: Option<u64>,
        workspace: Option<PathBuf>,
        step_timeout: Option<Duration>,
        rss: Option<RssReading>,
        page_cache: Option<PageCache>,
    ) {
        self.seed = self.seed.or(seed);
        self.workspace = self.workspace.take().or(workspace);
        if self.step_timeout == Duration::from_millis(STEP_TIMEOUT_MS) {
            self.step_timeout = step_timeout.unwrap_or(self.step_timeout);
        }
        if self.rss == RssReading::All {
            self.rss = rss.unwrap_or(self.rss);
        }
        if self.page_cache == PageCache::AsIs {
            self.page_cache = page_cache.unwrap_or(self.page_cache);
        }
    }
}

impl PairArgs {
    /// What it asks for.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn into_draft(self) -> Result<Draft, UsageError> {
        let [control, candidate] = PAIR;
        let mut arms = vec![
            arm(control, &self.control)?,
            arm(candidate, &self.candidate)?,
        ];
        self.choices.apply(&mut arms, Some(candidate))?;
        let set = SetDraft {
            name: String::new(),
            runs: self.pairs,
            warmup: self.warmup,
            arms,
        };
        Ok(self.shared.into_draft(Kind::Pair, vec![set]))
    }
}

impl AaArgs {
    /// What it asks for.
    ///
    /// # Errors
    /// The scenario is none.
    pub fn into_draft(self) -> Result<Draft, UsageError> {
        let scenario = scenario(&self.scenario);
        let arms = PAIR.map(|name| ArmDraft {
            scenario: scenario.clone(),
            driver: self.driver.clone(),
            ..ArmDraft::new(name.to_owned(), self.command.clone())
        });
        let set = SetDraft {
            name: String::new(),
            runs: self.pairs,
            warmup: self.warmup,
            arms: arms.to_vec(),
        };
        Ok(self.shared.into_draft(Kind::Aa, vec![set]))
    }
}

impl SuiteArgs {
    /// What it asks for: every scenario of the campaign in one interleaved schedule.
    ///
    /// # Errors
    /// It was to be resumed.
    pub fn into_draft(self) -> Result<Draft, UsageError> {
        if self.shared.resume {
            return Err(UsageError::SuiteResumed);
        }
        let arms = suite::SCENARIOS.map(|text| ArmDraft {
            scenario: scenario(text),
            driver: self.driver.clone(),
            ..ArmDraft::new(text.replace('=', "-"), self.command.clone())
        });
        let set = SetDraft {
            name: String::new(),
            runs: self.runs,
            warmup: 0,
            arms: arms.to_vec(),
        };
        Ok(self.shared.into_draft(Kind::Suite, vec![set]))
    }
}

impl SharedArgs {
    fn into_draft(self, kind: Kind, sets: Vec<SetDraft>) -> Draft {
        Draft {
            kind,
            sets,
            out: self.out,
            sitting: if self.resume {
                Sitting::Resumed
            } else {
                Sitting::First
            },
            seed: self.seed,
            workspace: self.workspace,
            step_timeout: Duration::from_millis(self.timeout_ms.unwrap_or(STEP_TIMEOUT_MS)),
            rss: match self.rss {
                Some(RssChoice::All) | None => RssReading::All,
                Some(RssChoice::Untimed) => RssReading::Untimed,
            },
            page_cache: match self.page_cache {
                Some(CacheChoice::AsIs) | None => PageCache::AsIs,
                Some(CacheChoice::EvictTarget) => PageCache::EvictTarget,
            },
        }
    }
}

impl ChoiceArgs {
    /// Gives the arms what was chosen for them. An injection that names no arm is
    /// for `injected`, or for all where that is `None`.
    fn apply(&self, arms: &mut [ArmDraft], injected: Option<&str>) -> Result<(), UsageError> {
        let names: Vec<String> = arms.iter().map(|arm| arm.name.clone()).collect();
        for (arm, text) in addressed(&self.scenario, &names) {
            let chosen = scenario(text);
            each(arms, arm, |draft| draft.scenario.clone_from(&chosen));
        }
        for (arm, text) in addressed(&self.driver, &names) {
            each(arms, arm, |draft| text.clone_into(&mut draft.driver));
        }
        for (arm, text) in addressed(&self.stop_at, &names) {
            let known = StopAt::ALL.map(StopAt::name).join(", ");
            let chosen = choice(
                "--stop-at",
                text,
                StopAt::from_name,
                &format!("one of {known}"),
            )?;
            each(arms, arm, |draft| draft.stop_at = chosen);
        }
        for (arm, text) in addressed(&self.sampler, &names) {
            let known = "`off`, or a duration from 1ms";
            let chosen = choice("--sampler", text, Sampling::parse, known)?;
            each(arms, arm, |draft| draft.sampling = chosen);
        }
        for (arm, text) in addressed(&self.inject, &names) {
            let one: Injection = text.parse()?;
            // One delay for each stage, as the program makes only one.
            each(arms, arm.or(injected), |draft| {
                draft.injections.retain(|known| known.stage != one.stage);
                draft.injections.push(one.clone());
            });
        }
        Ok(())
    }

    fn refuse_beside_file(&self) -> Result<(), UsageError> {
        for (option, values) in [
            ("--scenario", &self.scenario),
            ("--stop-at", &self.stop_at),
            ("--driver", &self.driver),
            ("--inject", &self.inject),
            ("--sampler", &self.sampler),
        ] {
            if !values.is_empty() {
                return Err(UsageError::BesideFile(option));
            }
        }
        Ok(())
    }
}

/// Splits `[ARM=]CHOICE` options: what stands before the first `=` is an arm if
/// there is one of that name. The last choice for an arm wins.
fn addressed<'t>(
    values: &'t [String],
    arms: &'t [String],
) -> impl Iterator<Item = (Option<&'t str>, &'t str)> {
    let split = |value: &'t String| match value.split_once('=') {
        Some((arm, choice)) if arms.iter().any(|known| known == arm) => (Some(arm), choice),
        _ => (None, value.as_str()),
    };
    // Those for all come first, so that those for one arm have the last word.
    let (all, one): (Vec<_>, Vec<_>) = values.iter().map(split).partition(|(arm, _)| arm.is_none());
    all.into_iter().chain(one)
}

fn each(arms: &mut [ArmDraft], arm: Option<&str>, mut change: impl FnMut(&mut ArmDraft)) {
    let concerned = |draft: &&mut ArmDraft| arm.is_none_or(|arm| draft.name == arm);
    arms.iter_mut().filter(concerned).for_each(&mut change);
}

fn choice<T>(
    option: &'static str,
    text: &str,
    read: impl Fn(&str) -> Option<T>,
    known: &str,
) -> Result<T, UsageError> {
    let value = text.to_owned();
    match (read(text), text.split_once('=')) {
        (Some(chosen), _) => Ok(chosen),
        (None, Some((_, rest))) if read(rest).is_some() => {
            Err(UsageError::UnknownArm { option, value })
        }
        (None, _) => Err(UsageError::UnknownChoice {
            option,
            value,
            known: known.to_owned(),
        }),
    }
}

fn scenario(text: &str) -> Scenario {
    text.parse().unwrap_or_else(|never| match never {})
}

/// The arms of a run. A command after `--` is named by its program.
fn arms(command: Vec<OsString>, given: &[String]) -> Result<Vec<ArmDraft>, UsageError> {
    if let Some(program) = command.first() {
        let name = Path::new(program).file_name().unwrap_or(program);
        let name = name.to_string_lossy().into_owned();
        return Ok(vec![ArmDraft::new(name, command)]);
    }
    if given.is_empty() {
        return Err(UsageError::NoCommand);
    }
    let named = |text: &String| match text.split_once('=') {
        Some((name, command)) => arm(name, command),
        None => Err(UsageError::NotNamed("--arm", text.clone(), "CMD")),
    };
    given.iter().map(named).collect()
}

fn arm(name: &str, command: &str) -> Result<ArmDraft, UsageError> {
    let words = command::split_words(command)
        .map_err(|error| UsageError::Command(name.to_owned(), error))?;
    Ok(ArmDraft::new(name.to_owned(), words))
}

fn defines(values: &[String]) -> Result<BTreeMap<String, String>, UsageError> {
    let pair = |text: &String| match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(UsageError::NotNamed("--define", text.clone(), "VALUE")),
    };
    values.iter().map(pair).collect()
}

#[cfg(test)]
mod tests;
