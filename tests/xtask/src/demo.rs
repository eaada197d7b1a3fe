//! `cargo demo`: the bundled real captures first, then cold starts of our own.

use crate::cargo::{Build, build, program};
use crate::steps::{self, Outcome, fresh_dir, quoted, root, say, target_dir};
use crate::workspace;
use std::path::Path;

/// Programs that the demo runs.
const PACKAGES: [&str; 4] = [
    "coldpath-daemon",
    "coldpath-agent",
    "coldpath-measure",
    "coldpath-analyzer",
];

/// Builds what it needs, reports the captures, measures `runs` cold starts and reports them.
pub(crate) fn run(runs: u32) -> Outcome {
    let programs = build(&Build {
        profile: "release",
        packages: &PACKAGES,
        ..Build::default()
    })?;
    let analyze = program(&programs, "analyze")?;
    say("Twelve cold starts of a real daemon (qwen serve 0.24.4), captured earlier:\n\n")?;
    steps::run(
        analyze,
        &[root().join("fixtures/qwen-serve-0.24.4/cold").as_ref()],
    )?;

    let demo = target_dir().join("demo");
    fresh_dir(&demo)?;
    let files = demo.join("workspace");
    workspace::make(&files)?;
    let traces = demo.join("traces");
    say(&format!(
        "\nNow {runs} cold starts of coldpathd with its embedded agent on this machine:\n\n"
    ))?;
    let count = runs.to_string();
    let daemon = format!(
        "{} --port 0 --workspace {}",
        quoted(program(&programs, "coldpathd")?)?,
        quoted(&files)?
    );
    steps::run(
        program(&programs, "measure")?,
        &[
            "run".as_ref(),
            "--runs".as_ref(),
            count.as_ref(),
            "--warmup".as_ref(),
            "1".as_ref(),
            "--workspace".as_ref(),
            files.as_ref(),
            "--out".as_ref(),
            traces.as_ref(),
            "--arm".as_ref(),
            format!("cold={daemon}").as_ref(),
        ],
    )?;
    say("\n")?;
    steps::run(analyze, &[traces.as_ref()])?;
    let page = demo.join("report.html");
    write_page(analyze, &traces, &page)?;
    say(&format!("\nThe same on one page: {}\n", page.display()))?;
    let picture = demo.join("cold-start.trace.json");
    draw(analyze, &traces, &picture)?;
    say(&format!(
        "One of them as a picture, for Perfetto, chrome://tracing or speedscope: {}\n",
        picture.display()
    ))
}

/// Writes the page of `input`.
pub(crate) fn write_page(analyze: &Path, input: &Path, page: &Path) -> Outcome {
    steps::run(
        analyze,
        &[
            "--format".as_ref(),
            "html".as_ref(),
            "-o".as_ref(),
            page.as_ref(),
            input.as_ref(),
        ],
    )
}

/// Draws the median run of `input` for a trace viewer.
pub(crate) fn draw(analyze: &Path, input: &Path, picture: &Path) -> Outcome {
    steps::run(
        analyze,
        &[
            "chrome".as_ref(),
            input.as_ref(),
            "--run".as_ref(),
            "p50".as_ref(),
            "-o".as_ref(),
            picture.as_ref(),
        ],
    )
}
