//! `cargo xtask bench analyze`: the speed and memory of `analyze` on a large
//! input, beside `DuckDB` and `chDB` on the same file in the same run.
//!
//! The control does only a part of the work, the P50 of each span name, and its
//! P50s must be those of the report. The two come from pip into a folder below
//! the target folder. Every program runs once to warm the page cache and then in
//! turns; what counts is the least processor time, because other work on the
//! machine can only add to it.

use crate::cargo::{Build, build, program};
use crate::steps::{self, Outcome, output, root, say, target_dir};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Size of the input that the design's figures are about.
const BYTES: u64 = 200 * 1024 * 1024;
/// First instant in the input.
const EPOCH_NS: u64 = 1_780_000_000_000_000_000;
/// Spans of one cold start in the input.
const SPANS_A_RUN: u64 = 17;
/// The controls, with the versions that their figures were taken with.
const PACKAGES: [&str; 2] = ["duckdb==2.0.1", "chdb==4.4.0"];

/// Runs the benchmark with `rounds` turns for each program.
pub(crate) fn run(rounds: u32) -> Outcome {
    let tools = build(&Build {
        profile: "dist",
        packages: &["coldpath-analyzer"],
        ..Build::default()
    })?;
    let analyze = program(&tools, "analyze")?;
    let dir = target_dir().join("bench-analyze");
    std::fs::create_dir_all(&dir)
        .map_err(|error| format!("cannot make {}: {error}", dir.display()))?;
    let input = dir.join("large.jsonl");
    let spans = generate(&input)?;
    let peers = install(&dir)?;
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_else(|_| "unknown".to_owned());
    say(&format!(
        "{} spans in {} bytes; load before: {}\n",
        spans,
        size(&input)?,
        load.trim()
    ))?;
    let script = root().join("tests/xtask/control/p50.py");
    let mut command = Command::new("python3");
    command.env("PYTHONPATH", &peers).arg(script);
    command
        .arg(analyze)
        .arg(&input)
        .arg(rounds.to_string())
        .arg(spans.to_string());
    say(&output(&mut command)?)?;
    deep_and_wide(&dir, analyze)
}

/// One trace of 1,000,000 spans, and one that is 100,000 deep.
fn deep_and_wide(dir: &Path, analyze: &Path) -> Outcome {
    for (name, count, deep) in [("wide", 1_000_000, false), ("deep", 100_000, true)] {
        let input = dir.join(format!("{name}.jsonl"));
        one_trace(&input, count, deep)?;
        let script = root().join("tests/xtask/control/timed.py");
        let mut command = Command::new("python3");
        command.arg(script).arg(name).arg(count.to_string());
        command.arg(analyze).arg(&input);
        say(&output(&mut command)?)?;
    }
    Ok(())
}

fn size(path: &Path) -> Outcome<u64> {
    std::fs::metadata(path)
        .map(|found| found.len())
        .map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// The controls, installed once into a folder of their own.
fn install(dir: &Path) -> Outcome<PathBuf> {
    let peers = dir.join("peers");
    if !peers.join("duckdb").is_dir() || !peers.join("chdb").is_dir() {
        let arguments = [
            "-m".as_ref(),
            "pip".as_ref(),
            "install".as_ref(),
            "--quiet".as_ref(),
            "--target".as_ref(),
            peers.as_os_str(),
            PACKAGES[0].as_ref(),
            PACKAGES[1].as_ref(),
        ];
        steps::run("python3", &arguments)?;
    }
    Ok(peers)
}

/// Pseudo-random numbers that are the same on every machine (`SplitMix64`,
/// Steele, Lea and Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A length around `middle` nanoseconds, from half to twice of it.
    fn around(&mut self, middle: u64) -> u64 {
        middle / 2 + self.next() % middle + (self.next() % (middle / 2 + 1))
    }
}

/// Spans of one line, being written.
struct Line {
    text: String,
    trace: [u64; 2],
    run: u64,
    first: bool,
}

impl Line {
    fn new(service: &str, run: u64, trace: [u64; 2]) -> Self {
        let mut text = String::with_capacity(4096);
        let _ = write!(
            text,
            r#"{{"resourceSpans":[{{"resource":{{"attributes":[{{"key":"service.name","value":{{"stringValue":"{service}"}}}},{{"key":"service.version","value":{{"stringValue":"0.1.0"}}}},{{"key":"service.instance.id","value":{{"stringValue":"{service}-{run:012}"}}}},{{"key":"process.pid","value":{{"intValue":"{}"}}}},{{"key":"coldpath.trace.version","value":{{"intValue":"1"}}}},{{"key":"coldpath.process_start","value":{{"stringValue":"spawn"}}}},{{"key":"coldpath.trace.final","value":{{"boolValue":true}}}}]}},"scopeSpans":[{{"scope":{{"name":"coldpath","version":"0.1.0"}},"spans":["#,
            1000 + run % 30_000
        );
        Self {
            text,
            trace,
            run,
            first: true,
        }
    }

    fn span(
        &mut self,
        name: &str,
        (id, parent): (u64, u64),
        (start, end): (u64, u64),
        attributes: &[(&str, &str)],
    ) {
        if !self.first {
            self.text.push(',');
        }
        self.first = false;
        let [high, low] = self.trace;
        let kind = if name.starts_with("POST") { 2 } else { 1 };
        let id = self.run << 8 | id;
        let _ = write!(
            self.text,
            r#"{{"traceId":"{high:016x}{low:016x}","spanId":"{id:016x}","#
        );
        if parent > 0 {
            let _ = write!(
                self.text,
                r#""parentSpanId":"{:016x}","#,
                self.run << 8 | parent
            );
        }
        let _ = write!(
            self.text,
            r#""flags":257,"name":"{name}","kind":{kind},"startTimeUnixNano":"{start}","endTimeUnixNano":"{end}","attributes":["#
        );
        for (index, (key, value)) in attributes.iter().enumerate() {
            if index > 0 {
                self.text.push(',');
            }
            let _ = write!(self.text, r#"{{"key":"{key}","value":{{{value}}}}}"#);
        }
        self.text.push_str(r#"],"droppedAttributesCount":0,"events":[],"droppedEventsCount":0,"links":[],"droppedLinksCount":0,"status":{"code":1}}"#);
    }

    fn end(mut self) -> String {
        self.text.push_str("]}]}]}\n");
        self.text
    }
}

/// Writes cold starts until the file has [`BYTES`]; the number of spans.
fn generate(path: &Path) -> Outcome<u64> {
    let wrong = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
    let mut out = BufWriter::new(File::create(path).map_err(wrong)?);
    let mut random = Random(4748);
    let (mut written, mut run) = (0, 0);
    while written < BYTES {
        run += 1;
        for line in cold_start(&mut random, run) {
            written += line.len() as u64;
            out.write_all(line.as_bytes()).map_err(wrong)?;
        }
    }
    out.flush().map_err(wrong)?;
    Ok(run * SPANS_A_RUN)
}

/// Instants of one cold start and the values of its attributes.
struct Instants {
    start: u64,
    main: u64,
    bind: u64,
    boot: u64,
    health: u64,
    request: u64,
    waited: u64,
    made: u64,
    answered: u64,
}

impl Instants {
    fn new(random: &mut Random, run: u64) -> Self {
        let start = EPOCH_NS + run * 1_000_000_000;
        let main = start + random.around(300_000);
        let bind = main + random.around(40_000);
        let boot = bind + random.around(90_000);
        let health = boot + random.around(200_000);
        let request = health + random.around(60_000);
        let waited = request + 20_000 + random.around(3_000_000);
        let made = waited + 10_000 + random.around(900_000);
        let answered = made + random.around(40_000);
        Self {
            start,
            main,
            bind,
            boot,
            health,
            request,
            waited,
            made,
            answered,
        }
    }
}

/// The lines of one measured cold start of coldpathd: client, daemon, agent.
fn cold_start(random: &mut Random, run: u64) -> [String; 4] {
    let trace = [random.next() | 1, random.next()];
    let at = Instants::new(random, run);
    [
        client_line(&at, run, trace),
        boot_line(&at, run, trace),
        request_line(&at, run, trace),
        agent_line(&at, run, trace),
    ]
}

fn client_line(at: &Instants, run: u64, trace: [u64; 2]) -> String {
    let index = format!(r#""intValue":"{run}""#);
    let own = [
        ("coldpath.run.index", index.as_str()),
        ("coldpath.run.cohort", r#""stringValue":"cold""#),
        ("coldpath.run.warmup", r#""boolValue":false"#),
        ("coldpath.rss.session_bytes", r#""intValue":"8388608""#),
    ];
    let cold = [("coldpath.session.temperature", r#""stringValue":"cold""#)];
    let answer = at.answered + 30_000;
    let mut line = Line::new("measure", run, trace);
    line.span("run", (1, 0), (at.start, answer + 400_000), &own);
    line.span("client.listener", (2, 1), (at.start, at.boot + 20_000), &[]);
    line.span("client.health", (3, 1), (at.boot + 30_000, at.health), &[]);
    line.span("client.action", (4, 1), (at.request, answer), &[]);
    line.span("client.session", (5, 4), (at.request, answer), &cold);
    line.end()
}

fn boot_line(at: &Instants, run: u64, trace: [u64; 2]) -> String {
    let trigger = [("coldpath.runtime.trigger", r#""stringValue":"health""#)];
    let mut line = Line::new("coldpathd", run, trace);
    line.span("daemon.boot", (6, 1), (at.start, at.boot), &[]);
    line.span("boot.exec", (7, 6), (at.start, at.main), &[]);
    line.span("boot.args", (8, 6), (at.main, at.bind), &[]);
    line.span("boot.bind", (9, 6), (at.bind, at.boot - 5_000), &[]);
    line.span(
        "runtime.start",
        (10, 6),
        (at.health, at.health + 15_000),
        &trigger,
    );
    line.end()
}

fn request_line(at: &Instants, run: u64, trace: [u64; 2]) -> String {
    let channel = format!(r#""stringValue":"c4a22e10-0000-4000-8000-{run:012x}""#);
    let session = format!(r#""stringValue":"5e551000-0000-4000-8000-{run:012x}""#);
    let cpu = format!(r#""intValue":"{}""#, (at.waited - at.health) / 3);
    let key = ("coldpath.channel.id", channel.as_str());
    let session = ("session.id", session.as_str());
    let sched = [
        ("coldpath.sched.cpu_ns", cpu.as_str()),
        ("coldpath.sched.runq_ns", r#""intValue":"20000""#),
    ];
    let http = [
        ("http.request.method", r#""stringValue":"POST""#),
        ("http.route", r#""stringValue":"/session""#),
        ("http.response.status_code", r#""intValue":"200""#),
        session,
        ("coldpath.session.outcome", r#""stringValue":"created""#),
    ];
    let joined = ("coldpath.channel.path", r#""stringValue":"joined""#);
    let spawned = at.health + 50_000;
    let mut line = Line::new("coldpathd", run, trace);
    line.span("channel.spawn", (11, 10), (at.health, spawned), &[key]);
    line.span(
        "channel.initialize",
        (12, 10),
        (spawned, at.waited),
        &[key, sched[0], sched[1]],
    );
    line.span("POST /session", (13, 5), (at.request, at.answered), &http);
    line.span(
        "channel.wait",
        (14, 13),
        (at.request + 20_000, at.waited),
        &[joined, key],
    );
    line.span(
        "session.new",
        (15, 13),
        (at.waited + 10_000, at.made),
        &[key, session],
    );
    line.end()
}

fn agent_line(at: &Instants, run: u64, trace: [u64; 2]) -> String {
    let session = format!(r#""stringValue":"5e551000-0000-4000-8000-{run:012x}""#);
    let cpu = format!(r#""intValue":"{}""#, (at.waited - at.health) / 2);
    let sched = [
        ("coldpath.sched.cpu_ns", cpu.as_str()),
        ("coldpath.sched.runq_ns", r#""intValue":"15000""#),
    ];
    let mut line = Line::new("coldpath-agent", run, trace);
    line.span(
        "agent.startup",
        (16, 12),
        (at.health + 60_000, at.waited - 10_000),
        &sched,
    );
    line.span(
        "agent.session_start",
        (17, 15),
        (at.waited + 20_000, at.made - 5_000),
        &[("session.id", &session), sched[0], sched[1]],
    );
    line.end()
}

/// One trace of `count` spans: each the child of the one before, or all
/// children of the first.
fn one_trace(path: &Path, count: u64, deep: bool) -> Outcome {
    let wrong = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
    let mut out = BufWriter::new(File::create(path).map_err(wrong)?);
    let mut line = Line::new("one", 0, [1, 1]);
    for index in 0..count {
        let parent = if deep { index } else { u64::from(index > 0) };
        let start = EPOCH_NS + index * 1_000;
        let end = if deep || index == 0 {
            EPOCH_NS + 2 * count * 1_000 - index * 1_000
        } else {
            start + 900
        };
        line.span("step", (index + 1, parent), (start, end), &[]);
        if index % 8 == 7 || index + 1 == count {
            let full = std::mem::replace(&mut line, Line::new("one", 0, [1, 1]));
            out.write_all(full.end().as_bytes()).map_err(wrong)?;
        }
    }
    out.flush().map_err(wrong)
}
