//! Experiment files: sets of arms with their counts, scenarios and delays, as TOML.
//!
//! The wire types refuse unknown keys; what the file says is checked as a draft,
//! by the same rules as the command line.

use crate::arm::{Sampling, StopAt};
use crate::command;
use crate::draft::{ArmDraft, RUNS_MAX, SetDraft};
use crate::host::page_cache::PageCache;
use crate::injection::Injection;
use crate::run::RssReading;
use crate::scenario::parse_duration;
use crate::toml_file::{self, FileError};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Version of the format.
pub const SCHEMA: u32 = 1;

/// What a file asks for.
#[derive(Clone, Debug)]
pub struct ExperimentFile {
    /// What fixes the order, if the file says.
    pub seed: Option<u64>,
    /// The workspace, if the file says.
    pub workspace: Option<PathBuf>,
    /// Bound of each step, if the file says.
    pub step_timeout: Option<Duration>,
    /// When memory is read, if the file says.
    pub rss: Option<RssReading>,
    /// What is done to the target's files, if the file says.
    pub page_cache: Option<PageCache>,
    /// The sets.
    pub sets: Vec<SetDraft>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: u32,
    seed: Option<u64>,
    workspace: Option<PathBuf>,
    timeout: Option<String>,
    rss: Option<RssWord>,
    page_cache: Option<CacheWord>,
    #[serde(default)]
    define: BTreeMap<String, String>,
    #[serde(rename = "set")]
    sets: Vec<SetTable>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RssWord {
    All,
    Untimed,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum CacheWord {
    AsIs,
    EvictTarget,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetTable {
    name: String,
    runs: u32,
    #[serde(default)]
    warmup: u32,
    #[serde(rename = "arm")]
    arms: Vec<ArmTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ArmTable {
    name: String,
    command: String,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    files: Vec<PathBuf>,
    driver: Option<String>,
    scenario: Option<String>,
    stop_at: Option<String>,
    #[serde(default)]
    inject: Vec<String>,
    sampler: Option<String>,
}

/// Reads a file. `defines` are the values of the person who runs it; they go
/// before the file's own.
///
/// # Errors
/// It cannot be read, or says something that is wrong.
pub fn load(path: &Path, defines: &BTreeMap<String, String>) -> Result<ExperimentFile, FileError> {
    let text = toml_file::read(path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    parse(&text, &path.display().to_string(), folder, defines)
}

/// Reads the text of a file; `file` is for errors, and drivers' paths count from
/// `folder`.
///
/// # Errors
/// It says something that is wrong.
pub fn parse(
    text: &str,
    file: &str,
    folder: &Path,
    defines: &BTreeMap<String, String>,
) -> Result<ExperimentFile, FileError> {
    let raw: File = toml_file::parse(text, file)?;
    let meaning = |reason: String| FileError::Meaning {
        file: file.to_owned(),
        reason,
    };
    if raw.schema != SCHEMA {
        return Err(meaning(format!("schema: {} is not {SCHEMA}", raw.schema)));
    }
    let mut values = raw.define;
    for (name, value) in defines {
        if values.insert(name.clone(), value.clone()).is_none() {
            let reason = format!("--define {name}: the file does not define `{name}`");
            return Err(meaning(reason));
        }
    }
    let step_timeout = match raw.timeout {
        None => None,
        Some(text) => Some(
            parse_duration(&text)
                .filter(|timeout| !timeout.is_zero())
                .ok_or_else(|| meaning(format!("timeout: `{text}` is no duration")))?,
        ),
    };
    let sets = raw.sets.into_iter().map(|table| {
        let name = table.name.clone();
        set(table, folder, &values).map_err(|reason| meaning(format!("set `{name}`: {reason}")))
    });
    Ok(ExperimentFile {
        sets: sets.collect::<Result<_, _>>()?,
        seed: raw.seed,
        workspace: raw.workspace,
        step_timeout,
        rss: raw.rss.map(|word| match word {
            RssWord::All => RssReading::All,
            RssWord::Untimed => RssReading::Untimed,
        }),
        page_cache: raw.page_cache.map(|word| match word {
            CacheWord::AsIs => PageCache::AsIs,
            CacheWord::EvictTarget => PageCache::EvictTarget,
        }),
    })
}

fn set(
    table: SetTable,
    folder: &Path,
    values: &BTreeMap<String, String>,
) -> Result<SetDraft, String> {
    for (key, count, least) in [("runs", table.runs, 1), ("warmup", table.warmup, 0)] {
        if !(least..=RUNS_MAX).contains(&count) {
            return Err(format!("{key}: {count} is not {least} to {RUNS_MAX}"));
        }
    }
    let arms = table.arms.into_iter().map(|one| {
        let name = one.name.clone();
        arm(one, folder, values).map_err(|reason| format!("arm `{name}`: {reason}"))
    });
    Ok(SetDraft {
        name: table.name,
        runs: table.runs,
        warmup: table.warmup,
        arms: arms.collect::<Result<_, _>>()?,
    })
}

fn arm(
    table: ArmTable,
    folder: &Path,
    values: &BTreeMap<String, String>,
) -> Result<ArmDraft, String> {
    let fill = |text: &str| {
        values.iter().fold(text.to_owned(), |text, (name, value)| {
            text.replace(&format!("{{{name}}}"), value)
        })
    };
    let words =
        command::split_words(&fill(&table.command)).map_err(|error| format!("command: {error}"))?;
    let mut draft = ArmDraft::new(table.name, words);
    draft.env = table
        .env
        .into_iter()
        .map(|(name, value)| (name, fill(&value)))
        .collect();
    draft.files = table.files;
    if let Some(driver) = table.driver {
        // A name stays one; a path counts from the file that names it.
        draft.driver = if driver.contains(['/', '.']) {
            folder.join(driver).to_string_lossy().into_owned()
        } else {
            driver
        };
    }
    if let Some(scenario) = table.scenario {
        draft.scenario = scenario.parse().unwrap_or_else(|never| match never {});
    }
    if let Some(stop) = table.stop_at {
        draft.stop_at = StopAt::from_name(&stop).ok_or_else(|| {
            let known = StopAt::ALL.map(StopAt::name).join(", ");
            format!("stop_at: `{stop}` is none of {known}")
        })?;
    }
    for text in table.inject {
        let one: Injection = text.parse().map_err(|error| format!("inject: {error}"))?;
        if draft
            .injections
            .iter()
            .any(|known| known.stage == one.stage)
        {
            return Err(format!("inject: `{}` is given twice", one.stage));
        }
        draft.injections.push(one);
    }
    if let Some(text) = table.sampler {
        draft.sampling = Sampling::parse(&text)
            .ok_or_else(|| format!("sampler: `{text}` is neither `off` nor a duration from 1ms"))?;
    }
    Ok(draft)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: &str = r#"
schema = 1
seed = 7
timeout = "5s"
[define]
daemon = "sh"
[[set]]
name = "cold"
runs = 2
[[set.arm]]
name = "a"
command = "{daemon} -c 'x {other}'"
scenario = "delay=250"
env = { X = "{daemon}" }
inject = ["session.new=+1ms"]
sampler = "off"
driver = "d.toml"
"#;

    fn read(text: &str, defines: &[(&str, &str)]) -> Result<ExperimentFile, FileError> {
        let defines = defines
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        parse(text, "e.toml", Path::new("folder"), &defines)
    }

    #[test]
    fn a_file_says_what_the_command_line_can_and_more() {
        let file = read(RIGHT, &[("daemon", "'/b in/d'")]).unwrap();
        assert_eq!(file.seed, Some(7));
        assert_eq!(file.step_timeout, Some(Duration::from_secs(5)));
        let arm = &file.sets[0].arms[0];
        assert_eq!(arm.words, ["/b in/d", "-c", "x {other}"]);
        assert_eq!(arm.env, [("X".to_owned(), "'/b in/d'".to_owned())]);
        assert_eq!(arm.scenario.to_string(), "delay=250");
        assert_eq!(arm.injections[0].stage, "session.new");
        assert_eq!(arm.sampling, Sampling::Off);
        assert_eq!(arm.driver, "folder/d.toml");
    }

    #[track_caller]
    fn check(from: &str, to: &str, expected: &str) {
        assert!(RIGHT.contains(from), "{from}");
        let error = read(&RIGHT.replacen(from, to, 1), &[]).unwrap_err();
        let message = error.to_string();
        assert!(
            message.starts_with(&format!("e.toml:{expected}")),
            "{message}"
        );
    }

    #[test]
    fn what_is_wrong_is_named_by_file_line_and_key() {
        check("seed", "sead", "3: unknown field `sead`");
        check("runs = 2", "runns = 2", "9: unknown field `runns`");
        check("sampler", "sampling", "16: unknown field `sampling`");
        check("runs = 2", "runs = 0", " set `cold`: runs: 0 is not 1 to");
        check("\"5s\"", "\"soon\"", " timeout: `soon`");
        check(
            "{daemon} -c '",
            "{daemon} -c ",
            " set `cold`: arm `a`: command: ",
        );
        check("=+1ms", "=1ms", " set `cold`: arm `a`: inject: ");
        check(
            "\"session.new=+1ms\"",
            "\"x=+1ms\", \"x=+2ms\"",
            " set `cold`: arm `a`: inject: `x` is given twice",
        );
        check("\"off\"", "\"on\"", " set `cold`: arm `a`: sampler: ");
        let unknown = read(RIGHT, &[("deamon", "x")]).unwrap_err().to_string();
        assert_eq!(
            unknown,
            "e.toml: --define deamon: the file does not define `deamon`"
        );
    }

    #[test]
    fn experiments_that_come_with_the_program_have_the_runs_they_say() {
        let none = BTreeMap::new();
        let runs = |text: &str| {
            let file = parse(text, "x", Path::new(""), &none).unwrap();
            let sets = file.sets.iter();
            let processes = sets.map(|set| (set.runs + set.warmup) as usize * set.arms.len());
            processes.sum::<usize>()
        };
        // 60 cold and 30 preheated pairs, and a warm-up pair of each.
        assert_eq!(runs(include_str!("../experiments/p0.toml")), 184);
        // Four delays with 30 pairs each, and seven blocks of three.
        assert_eq!(runs(include_str!("../experiments/p1b.toml")), 261);
    }
}
