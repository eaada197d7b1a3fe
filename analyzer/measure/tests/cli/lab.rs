//! What the tests of the program share: an experiment's directory, the program
//! started in it, and what it left there, read back as plain JSON.

use crate::fake;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A bound for what should take no time; reaching it is a failure. Under the
/// minute after which a fake daemon's test runner speaks up, on an output that
/// may be gone, and ends it.
const PATIENCE: Timespec = Timespec {
    tv_sec: 30,
    tv_nsec: 0,
};

pub(crate) struct Lab {
    dir: tempfile::TempDir,
}

/// A span with its attributes as text.
#[derive(Debug)]
pub(crate) struct Span {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) parent: String,
    pub(crate) trace: String,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) failed: bool,
    pub(crate) attributes: BTreeMap<String, String>,
}

impl Lab {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("workspace")).unwrap();
        Self { dir }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn out(&self) -> PathBuf {
        self.path("out")
    }

    /// `measure run` with options, on fake daemons of one behaviour.
    pub(crate) fn command(&self, behaviour: &str, options: &[&str]) -> Command {
        let mut command = self.bare(options);
        command
            .env(fake::BEHAVIOUR, behaviour)
            .arg("--")
            .args(fake::command());
        command
    }

    /// `measure run` with options alone.
    pub(crate) fn bare(&self, options: &[&str]) -> Command {
        self.verb("run", options)
    }

    /// A subcommand with options.
    pub(crate) fn verb(&self, verb: &str, options: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_measure"));
        command
            .arg(verb)
            .arg("--out")
            .arg(self.out())
            .arg("--workspace")
            .arg(self.path("workspace"))
            .args(options)
            .env(fake::LOG, self.path("log"))
            // What a test runner's own environment may hold.
            .env_remove("COLDPATH_TRACE_DIR")
            .env_remove("TRACEPARENT");
        command
    }

    pub(crate) fn measure(&self, behaviour: &str, options: &[&str]) -> Output {
        self.command(behaviour, options).output().unwrap()
    }

    /// Makes the FIFO on which fake daemons give signs of life.
    pub(crate) fn signs(&self) -> Signs {
        let path = self.path("signs");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK;
        let fifo = rustix::fs::open(&path, flags, rustix::fs::Mode::empty()).unwrap();
        Signs {
            path,
            fifo: fifo.into(),
            pending: String::new(),
        }
    }

    /// Lines that fake daemons wrote about themselves.
    pub(crate) fn log(&self) -> Vec<String> {
        std::fs::read_to_string(self.path("log"))
            .unwrap_or_default()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    pub(crate) fn manifest(&self) -> Value {
        let text = std::fs::read_to_string(self.out().join("manifest.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Result of the run at a position of the schedule.
    pub(crate) fn result(&self, index: usize) -> Value {
        self.manifest()["schedule"][index]["result"].clone()
    }

    /// The spans of every run, grouped by run in the order of the schedule.
    pub(crate) fn runs(&self) -> Vec<Vec<Span>> {
        let mut runs: Vec<Vec<Span>> = std::fs::read_dir(self.out())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
            .map(|path| read_spans(&path))
            .collect();
        runs.sort_by_key(|spans| run_of(spans).number("coldpath.run.index"));
        runs
    }
}

impl Span {
    #[track_caller]
    pub(crate) fn text(&self, key: &str) -> &str {
        self.attributes
            .get(key)
            .unwrap_or_else(|| panic!("`{}` has no `{key}`: {:?}", self.name, self.attributes))
    }

    #[track_caller]
    pub(crate) fn number(&self, key: &str) -> u64 {
        self.text(key).parse().unwrap()
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.attributes.contains_key(key)
    }
}

/// The one span of that name.
#[track_caller]
pub(crate) fn only<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let found: Vec<&Span> = spans.iter().filter(|span| span.name == name).collect();
    assert_eq!(found.len(), 1, "{name} in {spans:#?}");
    found[0]
}

#[track_caller]
pub(crate) fn run_of(spans: &[Span]) -> &Span {
    only(spans, "run")
}

pub(crate) fn names(spans: &[Span]) -> Vec<&str> {
    let mut sorted: Vec<&Span> = spans.iter().collect();
    sorted.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
    sorted.iter().map(|span| span.name.as_str()).collect()
}

pub(crate) struct Signs {
    pub(crate) path: PathBuf,
    fifo: File,
    /// What was read and not yet awaited.
    pending: String,
}

impl Signs {
    /// Waits for a line; panics when none comes.
    pub(crate) fn await_line(&mut self, expected: &str) {
        while !self.pending.contains('\n') {
            let read = self.read();
            let pending = &self.pending;
            assert!(!read.is_empty(), "every holder is gone, after {pending:?}");
            self.pending.push_str(&read);
        }
        let rest = self.pending.split_off(self.pending.find('\n').unwrap() + 1);
        let line = std::mem::replace(&mut self.pending, rest);
        assert_eq!(line.trim_end(), expected);
    }

    /// Waits until no process holds the other end any more.
    pub(crate) fn await_end(&mut self) {
        while !self.read().is_empty() {}
    }

    fn read(&mut self) -> String {
        let mut fds = [PollFd::new(&self.fifo, PollFlags::IN)];
        let ready = poll(&mut fds, Some(&PATIENCE)).unwrap();
        assert_eq!(ready, 1, "nothing came");
        let mut buffer = [0; 256];
        let read = self.fifo.read(&mut buffer).unwrap();
        String::from_utf8(buffer[..read].to_vec()).unwrap()
    }
}

fn read_spans(path: &Path) -> Vec<Span> {
    let text = std::fs::read_to_string(path).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let last = &lines.last().unwrap()["resourceSpans"][0]["resource"];
    let closing = attributes(last);
    assert_eq!(closing["coldpath.trace.final"], "true");
    assert_eq!(closing["coldpath.trace.dropped_spans"], "0");
    lines
        .iter()
        .flat_map(|line| line["resourceSpans"][0]["scopeSpans"].as_array().unwrap())
        .flat_map(|scope| scope["spans"].as_array().unwrap())
        .map(|span| Span {
            name: text_of(&span["name"]),
            id: text_of(&span["spanId"]),
            parent: text_of(&span["parentSpanId"]),
            trace: text_of(&span["traceId"]),
            start: text_of(&span["startTimeUnixNano"]).parse().unwrap(),
            end: text_of(&span["endTimeUnixNano"]).parse().unwrap(),
            failed: span["status"]["code"] == 2,
            attributes: attributes(span),
        })
        .collect()
}

fn attributes(holder: &Value) -> BTreeMap<String, String> {
    holder["attributes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pair| {
            let value = pair["value"].as_object().unwrap().values().next().unwrap();
            (text_of(&pair["key"]), text_of(value))
        })
        .collect()
}

fn text_of(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
