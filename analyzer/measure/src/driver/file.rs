//! Driver files: the TOML that people write, checked into a [`Driver`].
//!
//! The wire types refuse unknown keys; what is left to check is that names lead
//! somewhere and that values belong to their kind. Never looks at a program.

use super::{
    Amount, Driver, Kind, Line, Message, Pace, Part, ReadyRule, Refusal, RequestStep, Script,
    SignalName, Since, StopRule, Stream, ValueRule,
};
use crate::digest;
use crate::scenario::parse_duration;
use crate::toml_file::{self, FileError};
use coldpath_trace_format::spans;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use wire::{
    DriverFile, KindWord, RequestTable, ScenarioTable, StepTable, StopTable, StopWord, StreamWord,
    Times, ValueWord,
};

mod wire;

/// Version of the format.
pub const SCHEMA: u32 = 1;
/// Drivers that come with the program.
pub const BUILT_IN: [(&str, &str); 3] = [
    ("http", include_str!("../../drivers/http.toml")),
    ("acp-stdio", include_str!("../../drivers/acp-stdio.toml")),
    ("command", include_str!("../../drivers/command.toml")),
];
/// Spans that a request may be.
const SPANS: [&str; 6] = [
    spans::CLIENT_HEALTH,
    spans::CLIENT_CAPABILITIES,
    spans::CLIENT_PREHEAT,
    spans::CLIENT_SESSION,
    spans::CLIENT_INITIALIZE,
    spans::CLIENT_REQUEST,
];
/// Values of `as`.
const TEMPERATURES: [&str; 3] = ["cold", "warm", "preheated"];
/// Stands for the value behind the scenario's `=`.
const VALUE: &str = "{value}";

/// The driver that comes with the program under that name.
///
/// # Errors
/// Its text is wrong; a test holds that it is not.
#[must_use]
pub fn builtin(name: &str) -> Option<Driver> {
    let (name, text) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
    parse(text, name).ok()
}

/// The driver of that name, else of the file at that path.
///
/// # Errors
/// Neither is there, or the file is no driver.
pub fn load(name: &str) -> Result<Driver, FileError> {
    if let Some((_, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
        return parse(text, name);
    }
    if !name.contains(['/', '.']) {
        let known: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
        return Err(FileError::Meaning {
            file: name.to_owned(),
            reason: format!(
                "there is no such driver\nhint: {}, or the path of a file",
                known.join(", ")
            ),
        });
    }
    parse(&toml_file::read(Path::new(name))?, name)
}

/// Reads the text of a driver; `file` is for errors.
///
/// # Errors
/// It is no driver.
pub fn parse(text: &str, file: &str) -> Result<Driver, FileError> {
    let raw: DriverFile = toml_file::parse(text, file)?;
    let meaning = |reason: String| FileError::Meaning {
        file: file.to_owned(),
        reason,
    };
    if raw.schema != SCHEMA {
        return Err(meaning(format!("schema: {} is not {SCHEMA}", raw.schema)));
    }
    let kind = kind(&raw).map_err(meaning)?;
    let stop = stop(raw.stop.as_ref(), &kind).map_err(meaning)?;
    let mut requests = BTreeMap::new();
    for (name, table) in &raw.requests {
        let request = request(name, table, raw.kind)
            .map_err(|reason| meaning(format!("requests.{name}: {reason}")))?;
        requests.insert(name.as_str(), request);
    }
    if !raw.scenarios.contains_key("cold") {
        return Err(meaning("scenarios: there is no `cold`".to_owned()));
    }
    let mut scenarios = BTreeMap::new();
    for (name, table) in &raw.scenarios {
        let script = script(table, &requests, raw.kind)
            .map_err(|reason| meaning(format!("scenarios.{name}: {reason}")))?;
        scenarios.insert(name.clone(), script);
    }
    Ok(Driver {
        sha256: digest::of_bytes(text.as_bytes()),
        name: raw.name,
        kind,
        files: raw.files,
        stop,
        scenarios,
    })
}

fn kind(raw: &DriverFile) -> Result<Kind, String> {
    match (raw.kind, &raw.ready) {
        (KindWord::Http, Some(ready)) if !ready.marker.is_empty() => Ok(Kind::Http(ReadyRule {
            stream: match ready.stream {
                StreamWord::Stdout => Stream::Stdout,
                StreamWord::Stderr => Stream::Stderr,
            },
            marker: ready.marker.clone(),
        })),
        (KindWord::Http, _) => Err("kind `http` needs [ready] with a marker".to_owned()),
        (KindWord::AcpStdio, None) => Ok(Kind::AcpStdio),
        (KindWord::Command, None) => Ok(Kind::Command),
        (_, Some(_)) => Err("ready: only kind `http` has a ready line".to_owned()),
    }
}

fn stop(table: Option<&StopTable>, kind: &Kind) -> Result<StopRule, String> {
    let Some(StopTable { how, grace }) = table else {
        return Ok(StopRule::Terminate);
    };
    match (how, grace) {
        (StopWord::Term, None) => Ok(StopRule::Terminate),
        (StopWord::Term, Some(_)) => Err("stop.grace: only `eof` has one".to_owned()),
        (StopWord::Eof, _) if *kind != Kind::AcpStdio => {
            Err("stop.how: only kind `acp-stdio` has an input to end".to_owned())
        }
        (StopWord::Eof, grace) => parse_duration(grace.as_deref().unwrap_or("2s"))
            .map(StopRule::CloseInput)
            .ok_or_else(|| "stop.grace: is no duration".to_owned()),
    }
}

fn request(name: &str, table: &RequestTable, kind: KindWord) -> Result<RequestStep, String> {
    let span = SPANS
        .into_iter()
        .find(|span| *span == table.span)
        .ok_or_else(|| format!("span: `{}` is none of {}", table.span, SPANS.join(", ")))?;
    let message = match (kind, &table.send, &table.call) {
        (KindWord::Http, Some(line), None) if table.params.is_none() => {
            let (method, path) = line
                .split_once(' ')
                .filter(|(method, path)| is_token(method) && is_target(path))
                .ok_or_else(|| format!("send: `{line}` is not METHOD /PATH"))?;
            Message::Http {
                method: method.to_owned(),
                path: path.to_owned(),
                body: table.body.clone(),
            }
        }
        (KindWord::AcpStdio, None, Some(method)) if table.body.is_none() => Message::Call {
            method: method.clone(),
            params: table
                .params
                .clone()
                .unwrap_or_else(|| serde_json::json!({})),
        },
        (KindWord::Http, ..) => return Err("kind `http` needs `send`, and takes `body`".to_owned()),
        (KindWord::AcpStdio, ..) => {
            return Err("kind `acp-stdio` needs `call`, and takes `params`".to_owned());
        }
        (KindWord::Command, ..) => return Err("kind `command` asks nothing".to_owned()),
    };
    let expect = if table.expect.is_empty() {
        vec![200]
    } else {
        table.expect.clone()
    };
    Ok(RequestStep {
        name: name.to_owned(),
        span,
        message,
        temperature: None,
        expect,
        session: table.session.clone(),
        keys: table.keys.clone(),
        features: table.features.clone(),
        needs: table.needs.clone(),
        refusal: if table.optional {
            Refusal::Noted
        } else {
            Refusal::Fails
        },
    })
}

/// An HTTP method (RFC 9110, section 5.6.2, without the rarer signs).
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

fn is_target(text: &str) -> bool {
    text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn script(
    table: &ScenarioTable,
    requests: &BTreeMap<&str, RequestStep>,
    kind: KindWord,
) -> Result<Script, String> {
    let value = value_rule(table)?;
    let mut lines = Vec::new();
    for (index, step) in table.steps.iter().enumerate() {
        let line = line(step, requests, kind, &value)
            .map_err(|reason| format!("step {}: {reason}", index + 1))?;
        lines.push(line);
    }
    Ok(Script {
        value,
        telemetry: table.telemetry,
        lines,
    })
}

fn value_rule(table: &ScenarioTable) -> Result<ValueRule, String> {
    match (table.value, &table.default) {
        (None, None) => Ok(ValueRule::None),
        (None, Some(_)) => Err("default: there is no value".to_owned()),
        (Some(_), None) => Err("value: needs a default".to_owned()),
        (Some(ValueWord::Duration), Some(text)) => parse_duration(text)
            .map(ValueRule::Duration)
            .ok_or_else(|| format!("default: `{text}` is no duration")),
        (Some(ValueWord::Count), Some(text)) => match text.parse() {
            Ok(count @ 1..=crate::scenario::TIMES_MAX) => Ok(ValueRule::Count(count)),
            _ => Err(format!("default: `{text}` is no number from 1 to 64")),
        },
    }
}

fn line(
    step: &StepTable,
    requests: &BTreeMap<&str, RequestStep>,
    kind: KindWord,
    value: &ValueRule,
) -> Result<Line, String> {
    match (&step.send, &step.wait, &step.signal) {
        (Some(name), None, None) if step.since.is_none() => send(step, name, requests, kind, value),
        (None, Some(text), None) if is_bare(step) => {
            Ok(Line::Wait(wait(text, value)?, since(step, requests)?))
        }
        (None, None, Some(name)) if is_bare(step) && step.since.is_none() => match name.as_str() {
            "SIGHUP" => Ok(Line::Signal(SignalName::Hup)),
            "SIGUSR1" => Ok(Line::Signal(SignalName::Usr1)),
            "SIGUSR2" => Ok(Line::Signal(SignalName::Usr2)),
            _ => Err(format!(
                "signal: `{name}` is none of SIGHUP, SIGUSR1, SIGUSR2"
            )),
        },
        _ => Err(
            "is one of `send` (with `as`, `action`, `times`, `background`), `wait` (with `since`) and `signal`"
                .to_owned(),
        ),
    }
}

fn is_bare(step: &StepTable) -> bool {
    step.r#as.is_none() && step.times.is_none() && !step.action && !step.background
}

fn wait(text: &str, value: &ValueRule) -> Result<Amount<Duration>, String> {
    match value {
        ValueRule::Duration(_) if text == VALUE => Ok(Amount::OfScenario),
        _ => parse_duration(text)
            .map(Amount::Fixed)
            .ok_or_else(|| format!("wait: `{text}` is no duration")),
    }
}

fn since(step: &StepTable, requests: &BTreeMap<&str, RequestStep>) -> Result<Since, String> {
    match &step.since {
        None => Ok(Since::Now),
        Some(name) if requests.contains_key(name.as_str()) => Ok(Since::Answer(name.clone())),
        Some(name) => Err(format!("since: there is no request `{name}`")),
    }
}

fn send(
    step: &StepTable,
    name: &str,
    requests: &BTreeMap<&str, RequestStep>,
    kind: KindWord,
    value: &ValueRule,
) -> Result<Line, String> {
    let mut request = requests
        .get(name)
        .ok_or_else(|| format!("send: there is no request `{name}`"))?
        .clone();
    request.temperature = match &step.r#as {
        None => None,
        Some(word) => Some(
            TEMPERATURES
                .into_iter()
                .find(|known| known == word)
                .ok_or_else(|| format!("as: `{word}` is none of {}", TEMPERATURES.join(", ")))?,
        ),
    };
    if request.span == spans::CLIENT_SESSION && request.temperature.is_none() {
        return Err("as: a session is `cold`, `warm` or `preheated`".to_owned());
    }
    let times = match &step.times {
        None => Amount::Fixed(1),
        Some(Times::Number(times @ 1..=crate::scenario::TIMES_MAX)) => Amount::Fixed(*times),
        Some(Times::Word(word)) if word == VALUE && matches!(value, ValueRule::Count(_)) => {
            Amount::OfScenario
        }
        Some(_) => {
            return Err("times: is a number from 1 to 64, or `{value}` of a count".to_owned());
        }
    };
    if kind == KindWord::AcpStdio && (step.background || step.times.is_some()) {
        return Err("kind `acp-stdio` asks one thing at a time".to_owned());
    }
    Ok(Line::Send {
        request: Box::new(request),
        times,
        pace: if step.background {
            Pace::Background
        } else {
            Pace::Awaited
        },
        part: if step.action { Part::Action } else { Part::Run },
    })
}

#[cfg(test)]
mod tests;
