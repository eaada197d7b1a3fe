//! Project tasks: `cargo xtask demo`, `dist`, `bench`.
//!
//! Drives cargo and the built programs, prints what they print, and measures
//! nothing itself: timing belongs to `measure`, statistics to `analyze`. Standard
//! library only, so that it builds at once on a fresh clone.

mod bench;
mod bench_analyze;
mod bench_guard;
mod bench_live;
mod bench_page;
mod bench_qwen;
mod cargo;
mod decide;
mod demo;
mod dist;
mod figures;
mod fuzz;
mod guard_selftest;
mod inject_check;
mod pictures;
mod qwen;
mod steps;
mod tools;
mod workspace;

use std::io::Write as _;
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask TASK

  demo [--runs N]        report of the bundled real captures, then N (30) cold starts of
                         coldpathd with its embedded agent; leaves target/demo/traces,
                         target/demo/report.html and the median run as
                         target/demo/cold-start.trace.json
  dist                   the programs as they are shipped: static, optimised as a whole,
                         stripped; leaves target/dist/NAME and NAME.unstripped
  bench start [--runs N] process start to listener, first /health and first session,
                         traces on and off, interleaved with a static C program (N = 500)
  bench analyze [--runs N]
                         analyze on 200 MB of traces beside DuckDB and chDB from pip, in N turns (5),
                         then on one trace of 1,000,000 spans and on one that is 100,000 deep
  bench guard [--runs N] guard check on a closure of 800 packages and on programs of 30 MB and over
                         200 MB, beside cargo-deny and cargo-bloat, in N turns (5); the first run
                         builds nushell, some 5 minutes, and installs both controls
  bench qwen [--runs N]  a real qwen serve, coldpathd over the same agent, and that agent raw,
                         interleaved, N of each (12); installs node and qwen-code from npm below
                         the target folder
  inject-check [--runs N] [--from SEED]
                         delays injected at three stages, with ten seeds from SEED (1) and N pairs each (20):
                         the measured shift must lie where `analyze --what-if` said a repeat would
                         find it in 9 of 10 for each; leaves target/inject-check
  decide [CASE|QUESTION…]
                         the questions of docs/decisions (runtime-start, panic) in each case
                         (embedded, embedded-600, one-core, qwen), in pairs, beside identical arms
                         (placebo); leaves target/decide
  bench page [--runs N]  the page of 1,000 and of 20,000 cold starts: written beside the other formats
                         and opened in Chromium, in N turns (5)
  pictures               docs/pictures of the README, from the bundled captures; needs Chromium
  bench live [--runs N]  how far the live view's times are from the trace's, span by span (N = 20)
  fuzz [--minutes N] [TARGET…]
                         fuzz targets of tests/fuzz in turn (all), N minutes in all (20);
                         installs cargo-fuzz below the target folder; needs a C++ compiler
  guard-selftest [planted] [CELL…]
                         cells of fixtures/guards/matrix (all 70), built anew with `guard build`
                         and compared with what is expected of each layer; planted: ratatui and a
                         subscriber planted in a copy of this workspace are found, with the feature
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["demo", ref options @ ..] => steps::runs(options, 30).and_then(demo::run),
        ["dist"] => dist::build(&dist::PROGRAMS).map(|_| ()),
        ["bench", "start", ref options @ ..] => steps::runs(options, 500).and_then(bench::start),
        ["bench", "analyze", ref options @ ..] => {
            steps::runs(options, 5).and_then(bench_analyze::run)
        }
        ["bench", "guard", ref options @ ..] => steps::runs(options, 5).and_then(bench_guard::run),
        ["bench", "qwen", ref options @ ..] => steps::runs(options, 12).and_then(bench_qwen::run),
        ["inject-check", ref options @ ..] => inject_check::run(options),
        ["decide", ref words @ ..] => decide::run(words),
        ["bench", "page", ref options @ ..] => steps::runs(options, 5).and_then(bench_page::run),
        ["pictures"] => pictures::run(),
        ["bench", "live", ref options @ ..] => steps::runs(options, 20).and_then(bench_live::run),
        ["fuzz", ref options @ ..] => fuzz::run(options),
        ["guard-selftest", ref words @ ..] => guard_selftest::run_words(words),
        ["--help" | "-h" | "help"] => steps::say(HELP),
        _ => Err(format!("unknown task `{}`\n\n{HELP}", words.join(" "))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            // A closed stderr leaves the exit code.
            let _ = writeln!(std::io::stderr(), "xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
