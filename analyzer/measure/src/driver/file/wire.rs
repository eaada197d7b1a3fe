//! The shape of a driver file. Unknown keys are errors; what the values mean is
//! checked where they are read.

use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DriverFile {
    pub(super) schema: u32,
    pub(super) name: String,
    pub(super) kind: KindWord,
    #[serde(default)]
    pub(super) files: Vec<String>,
    pub(super) ready: Option<ReadyTable>,
    pub(super) stop: Option<StopTable>,
    #[serde(default)]
    pub(super) requests: BTreeMap<String, RequestTable>,
    pub(super) scenarios: BTreeMap<String, ScenarioTable>,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum KindWord {
    Http,
    AcpStdio,
    Command,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadyTable {
    #[serde(default)]
    pub(super) stream: StreamWord,
    pub(super) marker: String,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum StreamWord {
    #[default]
    Stdout,
    Stderr,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StopTable {
    pub(super) how: StopWord,
    pub(super) grace: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum StopWord {
    Term,
    Eof,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestTable {
    pub(super) send: Option<String>,
    pub(super) body: Option<serde_json::Value>,
    pub(super) call: Option<String>,
    pub(super) params: Option<serde_json::Value>,
    pub(super) span: String,
    #[serde(default)]
    pub(super) expect: Vec<u16>,
    pub(super) session: Option<String>,
    #[serde(default)]
    pub(super) keys: Vec<String>,
    pub(super) features: Option<String>,
    pub(super) needs: Option<String>,
    #[serde(default)]
    pub(super) optional: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScenarioTable {
    pub(super) value: Option<ValueWord>,
    pub(super) default: Option<String>,
    #[serde(default = "yes")]
    pub(super) telemetry: bool,
    pub(super) steps: Vec<StepTable>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ValueWord {
    Duration,
    Count,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StepTable {
    pub(super) send: Option<String>,
    pub(super) r#as: Option<String>,
    #[serde(default)]
    pub(super) action: bool,
    pub(super) times: Option<Times>,
    #[serde(default)]
    pub(super) background: bool,
    pub(super) wait: Option<String>,
    pub(super) since: Option<String>,
    pub(super) signal: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Times {
    Number(usize),
    Word(String),
}

const fn yes() -> bool {
    true
}
