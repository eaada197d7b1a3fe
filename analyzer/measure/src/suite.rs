//! The functional claims about a daemon, each judged over the runs of a campaign.
//!
//! Looks at what every run left: its record, and the spans that the daemon wrote
//! about concurrent sessions. Times are no claim: those are `analyze`'s. Computes
//! no statistics and starts nothing.

use crate::arm::Arm;
use crate::run::record::{ClientSpan, Exit, RunRecord};
use coldpath_trace_format::attributes as keys;
use coldpath_trace_format::spans;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;

/// Scenarios of the campaign.
pub const SCENARIOS: [&str; 9] = [
    "cold",
    "preheated=3s",
    "concurrent=2",
    "default-single",
    "no-telemetry",
    "delay=250",
    "early-preheat=250",
    "await-preheat",
    "direct-after-bootstrap",
];

/// Largest trace file that is looked at for a channel id.
const TRACE_MAX_BYTES: u64 = 64 * 1024 * 1024;

/// What the claims are judged by.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    runs: Vec<RunFacts>,
}

/// What one run left.
#[derive(Clone, Debug)]
struct RunFacts {
    name: String,
    scenario: String,
    traced: bool,
    failure: Option<String>,
    exit: Option<Exit>,
    leftovers: usize,
    sessions: Vec<SessionFacts>,
    files: usize,
    /// Channels of the sessions in the daemon's own words; absent where it has none.
    channels: Option<BTreeSet<String>>,
}

/// An answer to a session request.
#[derive(Clone, Debug)]
struct SessionFacts {
    id: String,
    /// Keys of the answer, in their order; absent where it is too long.
    keys: Option<Vec<String>>,
    expected: Vec<String>,
    attached: Option<bool>,
}

/// How a claim stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Pass,
    /// It does not.
    Fail,
    /// There is nothing to judge it by.
    NotJudged,
}

/// A claim, judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its name.
    pub name: &'static str,
    /// How it stands.
    pub verdict: Verdict,
    /// By what, or why not.
    pub detail: String,
}

impl Facts {
    /// Adds what a run left; `out` holds its files.
    pub fn add(&mut self, index: usize, arm: &Arm, record: &RunRecord, out: &Path) {
        let name = format!("run {index} ({})", arm.scenario);
        let traced = arm.driver.traces(&arm.scenario);
        self.runs.push(RunFacts {
            name,
            scenario: arm.scenario.name.clone(),
            traced,
            failure: record.failure.as_ref().map(ToString::to_string),
            exit: record.ended.as_ref().map(|ended| ended.exit),
            leftovers: record.leftovers.len(),
            sessions: record.spans.iter().filter_map(SessionFacts::new).collect(),
            files: record.files.len() + record.strays.len(),
            channels: channels(record, out),
        });
    }

    /// Judges every claim. `oom_kills` are those of this host meanwhile; absent
    /// where the kernel does not say.
    #[must_use]
    pub fn judge(&self, oom_kills: Option<u64>) -> Vec<Claim> {
        vec![
            self.over_runs("success", |_| true, |run| run.failure.clone()),
            self.over_runs("exit 0", |_| true, exit_trouble),
            self.distinct_ids(),
            self.one_channel(),
            self.response_keys(),
            self.over_runs(
                "no files when telemetry is off",
                |run| !run.traced,
                |run| (run.files > 0).then(|| format!("{} files", run.files)),
            ),
            self.over_runs("default-single shape", is_single, single_trouble),
            self.over_runs(
                "no leftovers",
                |_| true,
                |run| (run.leftovers > 0).then(|| format!("{} processes", run.leftovers)),
            ),
            no_oom(oom_kills),
        ]
    }

    /// A claim about each of some runs; `trouble` says why it does not hold.
    fn over_runs(
        &self,
        name: &'static str,
        concerns: impl Fn(&RunFacts) -> bool,
        trouble: impl Fn(&RunFacts) -> Option<String>,
    ) -> Claim {
        let concerned: Vec<&RunFacts> = self.runs.iter().filter(|run| concerns(run)).collect();
        let troubles: Vec<(&str, String)> = concerned
            .iter()
            .filter_map(|run| Some((run.name.as_str(), trouble(run)?)))
            .collect();
        let n = concerned.len();
        let held = n - troubles.len();
        match troubles.first() {
            None if n == 0 => Claim::not_judged(name, "no such run"),
            None => Claim::pass(name, format!("{held} of {n} runs")),
            Some((run, why)) => {
                Claim::fail(name, format!("{held} of {n} runs; first: {run}: {why}"))
            }
        }
    }

    /// Sessions that were not attached to another have an id of their own.
    fn distinct_ids(&self) -> Claim {
        const NAME: &str = "distinct session ids";
        let created = self.runs.iter().filter(|run| !is_single(run));
        let ids: Vec<&str> = created
            .flat_map(|run| run.sessions.iter().map(|session| session.id.as_str()))
            .collect();
        let distinct: BTreeSet<&str> = ids.iter().copied().collect();
        let detail = format!("{} ids of {} sessions", distinct.len(), ids.len());
        if ids.is_empty() {
            Claim::not_judged(NAME, "no session")
        } else if distinct.len() == ids.len() {
            Claim::pass(NAME, detail)
        } else {
            Claim::fail(NAME, detail)
        }
    }

    /// Concurrent cold sessions share one agent.
    fn one_channel(&self) -> Claim {
        const NAME: &str = "one channel for concurrent colds";
        let concurrent = |run: &RunFacts| run.scenario == "concurrent";
        let judged = |run: &RunFacts| concurrent(run) && run.channels.is_some();
        if !self.runs.iter().any(judged) {
            return Claim::not_judged(NAME, "no trace of the program names a channel");
        }
        self.over_runs(NAME, concurrent, |run| match &run.channels {
            Some(channels) if channels.len() == 1 => None,
            Some(channels) => Some(format!("{} channels", channels.len())),
            None => Some("its trace names no channel".to_owned()),
        })
    }

    /// Answers begin with the keys that the driver names; more may follow.
    fn response_keys(&self) -> Claim {
        const NAME: &str = "response keys";
        let named = |run: &RunFacts| run.sessions.iter().any(|one| !one.expected.is_empty());
        if !self.runs.iter().any(named) {
            return Claim::not_judged(NAME, "the driver names none");
        }
        self.over_runs(NAME, named, |run| {
            let mut sessions = run.sessions.iter();
            sessions.find_map(|session| {
                let keys = session.keys.as_deref();
                let begins = |keys: &[String]| keys.starts_with(&session.expected);
                (!keys.is_some_and(begins)).then(|| match keys {
                    Some(keys) => format!("answered with {}", keys.join(", ")),
                    None => "an answer that is no object".to_owned(),
                })
            })
        })
    }
}

impl SessionFacts {
    fn new(span: &ClientSpan) -> Option<Self> {
        let id = span.session_id.clone()?;
        // The action repeats what its session says.
        if span.name != spans::CLIENT_SESSION {
            return None;
        }
        let body = span.body.as_deref();
        let object: Option<serde_json::Value> =
            body.and_then(|body| serde_json::from_slice(body).ok());
        Some(Self {
            id,
            keys: body.and_then(keys_in_order),
            expected: span.keys.clone(),
            attached: object.and_then(|object| object.get("attached")?.as_bool()),
        })
    }
}

impl Claim {
    fn pass(name: &'static str, detail: String) -> Self {
        let verdict = Verdict::Pass;
        Self {
            name,
            verdict,
            detail,
        }
    }

    fn fail(name: &'static str, detail: String) -> Self {
        let verdict = Verdict::Fail;
        Self {
            name,
            verdict,
            detail,
        }
    }

    fn not_judged(name: &'static str, why: &str) -> Self {
        Self {
            name,
            verdict: Verdict::NotJudged,
            detail: why.to_owned(),
        }
    }
}

impl Verdict {
    /// As it is printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::NotJudged => "n/a",
        }
    }
}

/// Writes one row for each claim.
///
/// # Errors
/// What writing gives.
pub fn write(claims: &[Claim], out: &mut dyn Write) -> io::Result<()> {
    let width = claims.iter().map(|claim| claim.name.len()).max();
    let width = width.unwrap_or(0);
    for claim in claims {
        let (verdict, name, detail) = (claim.verdict.name(), claim.name, &claim.detail);
        writeln!(out, "{verdict:<4}  {name:<width$}  {detail}")?;
    }
    Ok(())
}

/// Processes that this host's kernel has killed for want of memory since it was
/// started; absent where it does not say.
#[must_use]
pub fn read_oom_kills() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/vmstat").ok()?;
    let count = text
        .lines()
        .find_map(|line| line.strip_prefix("oom_kill "))?;
    count.trim().parse().ok()
}

fn no_oom(kills: Option<u64>) -> Claim {
    const NAME: &str = "no process killed for memory";
    match kills {
        None => Claim::not_judged(NAME, "the kernel does not count them"),
        Some(0) => Claim::pass(NAME, "0 on this host".to_owned()),
        Some(kills) => Claim::fail(NAME, format!("{kills} on this host")),
    }
}

fn exit_trouble(run: &RunFacts) -> Option<String> {
    match run.exit {
        Some(Exit::Code(0)) => None,
        Some(exit) => Some(format!("ended with {exit}")),
        None => Some("was not started".to_owned()),
    }
}

fn is_single(run: &RunFacts) -> bool {
    run.scenario == "default-single"
}

/// The first makes the session, the second is attached to it.
fn single_trouble(run: &RunFacts) -> Option<String> {
    let [first, second] = &run.sessions[..] else {
        return Some(format!("{} sessions answered", run.sessions.len()));
    };
    if first.id != second.id {
        return Some("the second is another session".to_owned());
    }
    match (first.attached, second.attached) {
        (Some(false), Some(true)) => None,
        _ => Some("`attached` is not false, then true".to_owned()),
    }
}

/// Channel ids of the session requests, in the program's own traces.
fn channels(record: &RunRecord, out: &Path) -> Option<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let paths = record.files.iter().map(|name| out.join(name));
    for path in paths.filter(|path| path.extension().is_some_and(|end| end == "jsonl")) {
        let small = std::fs::metadata(&path).is_ok_and(|meta| meta.len() <= TRACE_MAX_BYTES);
        let text = small.then(|| std::fs::read_to_string(&path).ok()).flatten();
        for line in text.unwrap_or_default().lines() {
            found.extend(channels_in(line));
        }
    }
    (!found.is_empty()).then_some(found)
}

fn channels_in(line: &str) -> Vec<String> {
    let lines: Option<serde_json::Value> = serde_json::from_str(line).ok();
    let list =
        |value: &serde_json::Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let resources = lines.map(|line| list(&line, "resourceSpans"));
    let scopes = resources.into_iter().flatten();
    scopes
        .flat_map(|resource| list(&resource, "scopeSpans"))
        .flat_map(|scope| list(&scope, "spans"))
        .filter(|span| span["name"] == spans::POST_SESSION)
        .flat_map(|span| list(&span, "attributes"))
        .filter(|pair| pair["key"] == keys::CHANNEL_ID)
        .filter_map(|pair| pair["value"]["stringValue"].as_str().map(str::to_owned))
        .collect()
}

/// Keys of a JSON object as they stand in the text.
fn keys_in_order(text: &[u8]) -> Option<Vec<String>> {
    struct Keys(Vec<String>);
    struct KeysVisitor;
    impl<'de> Visitor<'de> for KeysVisitor {
        type Value = Keys;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
            let mut keys = Vec::new();
            while let Some((key, IgnoredAny)) = map.next_entry()? {
                keys.push(key);
            }
            Ok(Keys(keys))
        }
    }
    impl<'de> Deserialize<'de> for Keys {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(KeysVisitor)
        }
    }
    serde_json::from_slice::<Keys>(text)
        .ok()
        .map(|Keys(keys)| keys)
}

#[cfg(test)]
mod tests;
