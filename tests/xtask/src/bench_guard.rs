//! `cargo xtask bench guard`: `guard check` on a large closure and on large programs,
//! beside cargo-deny and cargo-bloat on the same packages in the same run.
//!
//! The large program is nushell without optimisation and debug information: 800
//! packages in its lock file, over 200 MB with symbols, half of it code. The one of
//! 30 MB is the guard itself as `cargo build` leaves it. Both are built with v0 names,
//! the longer ones. The controls answer parts of the question: cargo-deny whether a
//! banned package is in the graph, cargo-bloat whose code is in the program.

use crate::cargo::{Build, build, cargo, host, program};
use crate::steps::{Outcome, fresh_dir, output, root, run as run_program, say, target_dir};
use crate::tools::{Tool, installed};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The large program. Later releases need a newer compiler than 1.95.
const NUSHELL: Tool = Tool {
    package: "nu",
    version: "0.115.1",
};
const CARGO_DENY: Tool = Tool {
    package: "cargo-deny",
    version: "0.20.2",
};
const CARGO_BLOAT: Tool = Tool {
    package: "cargo-bloat",
    version: "0.12.1",
};
/// Flags of both programs.
const RUSTFLAGS: &str = "-Csymbol-mangling-version=v0";
/// What is denied, so that every layer has something to find.
const DENIED: [&str; 3] = ["ratatui", "crossterm", "tokio"];
/// The guard's 30 MB are reached with its own dependencies; nothing of these is there.
const DENIED_OF_GUARD: [&str; 2] = ["guppy*", "object"];

/// One program that is judged.
struct Subject {
    package: &'static str,
    bin: &'static str,
    profile: &'static str,
    manifest: PathBuf,
    /// Where cargo builds it.
    target_dir: PathBuf,
    policy: PathBuf,
    evidence: PathBuf,
}

/// Runs the benchmark with `rounds` turns for each program.
pub(crate) fn run(rounds: u32) -> Outcome {
    let dir = target_dir().join("bench-guard");
    std::fs::create_dir_all(&dir)
        .map_err(|error| format!("cannot make {}: {error}", dir.display()))?;
    let built = build(&Build {
        profile: "dist",
        packages: &["coldpath-guards"],
        ..Build::default()
    })?;
    let guard = program(&built, "guard")?;
    let (deny, bloat) = (installed(CARGO_DENY)?, installed(CARGO_BLOAT)?);
    let nushell = Subject {
        package: "nu",
        bin: "nu",
        profile: "ci",
        manifest: nushell_source(&dir)?.join("Cargo.toml"),
        target_dir: dir.join("nu-target"),
        policy: dir.join("nu.toml"),
        evidence: dir.join("evidence"),
    };
    let own = Subject {
        package: "coldpath-guards",
        bin: "guard",
        profile: "dev",
        manifest: root().join("Cargo.toml"),
        target_dir: dir.join("guard-target"),
        policy: dir.join("guard.toml"),
        evidence: dir.join("evidence"),
    };
    write(&nushell.policy, &policy(&nushell, &DENIED))?;
    write(&own.policy, &policy(&own, &DENIED_OF_GUARD))?;
    let bans = dir.join("deny.toml");
    let list: Vec<String> = DENIED
        .iter()
        .map(|name| format!("{{ crate = \"{name}\" }}"))
        .collect();
    write(
        &bans,
        &format!(
            "[graph]\ntargets = [\"{}\"]\nexclude-dev = true\n[bans]\nmultiple-versions = \"allow\"\ndeny = [{}]\n",
            host()?,
            list.join(", ")
        ),
    )?;
    for subject in [&nushell, &own] {
        say(&format!("building {} (once)\n", subject.bin))?;
        make_evidence(guard, subject)?;
    }
    let cases = [
        case(
            "closure of nushell (level packages)",
            (1, 0),
            &[
                check(guard, &nushell, "packages")?,
                deny_words(&deny, &nushell, &bans)?,
            ],
        ),
        case(
            &format!("a program of {} (level reachable)", megabytes(&own)?),
            (1, 0),
            &[check(guard, &own, "reachable")?, bloat_words(&bloat, &own)?],
        ),
        case(
            &format!("a program of {} (level reachable)", megabytes(&nushell)?),
            (10, 600),
            &[
                check(guard, &nushell, "reachable")?,
                bloat_words(&bloat, &nushell)?,
            ],
        ),
    ];
    time(rounds, &dir, &cases.concat())
}

/// nushell's source as it was published, with its lock file. A package that depends
/// on it makes cargo bring it; nothing is built of that.
fn nushell_source(dir: &Path) -> Outcome<PathBuf> {
    let source = dir.join("nu");
    if source.join("Cargo.lock").exists() {
        return Ok(source);
    }
    let Tool { package, version } = NUSHELL;
    let fetch = dir.join("fetch");
    fresh_dir(&fetch.join("src"))?;
    write(&fetch.join("src/lib.rs"), "")?;
    write(
        &fetch.join("Cargo.toml"),
        &format!(
            "[workspace]\n[package]\nname = \"fetch\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[dependencies]\n{package} = {{ version = \"={version}\", default-features = false }}\n"
        ),
    )?;
    let manifest = fetch.join("Cargo.toml");
    let mut command = cargo();
    command.args(["fetch", "--target", &host()?, "--manifest-path"]);
    output(command.arg(&manifest))?;
    let mut command = cargo();
    command.args(["metadata", "--format-version", "1", "--manifest-path"]);
    let metadata = output(command.arg(&manifest))?;
    let folder = metadata
        .split('"')
        .filter_map(|word| word.strip_suffix("/Cargo.toml"))
        .find(|folder| folder.ends_with(&format!("/{package}-{version}")))
        .ok_or_else(|| format!("cargo does not say where {package} {version} is"))?;
    run_program("cp", &["-r".as_ref(), folder.as_ref(), source.as_os_str()])?;
    // It asks for a compiler of its own choice; the one at hand is to build it.
    let _ = std::fs::remove_file(source.join("rust-toolchain.toml"));
    Ok(source)
}

fn write(file: &Path, text: &str) -> Outcome {
    std::fs::write(file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))
}

/// One path for each level, of one build.
fn policy(subject: &Subject, denied: &[&str]) -> String {
    let mut text = "schema = 1\n".to_owned();
    for level in ["packages", "reachable"] {
        let rules: Vec<String> = denied
            .iter()
            .map(|name| format!("{{ crate = \"{name}\" }}"))
            .collect();
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n[[path]]\nname = \"{level}\"\npackage = \"{}\"\nbin = \"{}\"\nprofile = \"{}\"\nrustflags = [\"{RUSTFLAGS}\"]\nlevel = \"{level}\"\ndeny = [{}]\n",
            subject.package,
            subject.bin,
            subject.profile,
            rules.join(", ")
        );
    }
    text
}

fn make_evidence(guard: &Path, subject: &Subject) -> Outcome {
    let arguments = [
        "build".as_ref(),
        "--path".as_ref(),
        "reachable".as_ref(),
        "--policy".as_ref(),
        subject.policy.as_os_str(),
        "--evidence".as_ref(),
        subject.evidence.as_os_str(),
        "--manifest-path".as_ref(),
        subject.manifest.as_os_str(),
        "--target-dir".as_ref(),
        subject.target_dir.as_os_str(),
    ];
    run_program(guard, &arguments)
}

/// Size of the unstripped program that was built.
fn megabytes(subject: &Subject) -> Outcome<String> {
    let name = format!("{}.unstripped", subject.bin);
    let folders = std::fs::read_dir(&subject.evidence)
        .map_err(|error| format!("cannot read {}: {error}", subject.evidence.display()))?;
    let bytes = folders
        .filter_map(|folder| std::fs::metadata(folder.ok()?.path().join(&name)).ok())
        .map(|found| found.len())
        .max()
        .ok_or_else(|| format!("guard build left no {name}"))?;
    Ok(format!("{:.0} MB, {}", bytes as f64 / 1e6, subject.bin))
}

/// A program of a case as JSON: name, the exit code and the words that are its answer,
/// command, variables.
fn entry(
    name: &str,
    (code, says): (i32, &str),
    words: &[&Path],
    environment: &str,
) -> Outcome<String> {
    let words = words
        .iter()
        .map(|word| json_text(word))
        .collect::<Outcome<Vec<_>>>()?;
    Ok(format!(
        "{{\"name\": \"{name}\", \"code\": {code}, \"says\": \"{says}\", \"folder\": {}, \"words\": [{}], \"env\": {{{environment}}}}}",
        json_text(&root())?,
        words.join(", ")
    ))
}

fn json_text(path: &Path) -> Outcome<String> {
    let text = path
        .to_str()
        .filter(|text| !text.contains(['"', '\\']) && !text.contains(char::is_control))
        .ok_or_else(|| format!("{} needs quoting", path.display()))?;
    Ok(format!("\"{text}\""))
}

fn check(guard: &Path, subject: &Subject, path: &str) -> Outcome<String> {
    let words: [&Path; 8] = [
        guard,
        "check".as_ref(),
        "--path".as_ref(),
        path.as_ref(),
        "--policy".as_ref(),
        &subject.policy,
        "--evidence".as_ref(),
        &subject.evidence,
    ];
    // Something denied is found: that is the answer.
    entry("guard", (1, "guard: violated"), &words, "")
}

fn deny_words(deny: &Path, subject: &Subject, bans: &Path) -> Outcome<String> {
    let words: [&Path; 11] = [
        deny,
        "--offline".as_ref(),
        "--locked".as_ref(),
        "--config".as_ref(),
        bans,
        "--manifest-path".as_ref(),
        &subject.manifest,
        "--log-level".as_ref(),
        "error".as_ref(),
        "check".as_ref(),
        "bans".as_ref(),
    ];
    entry("cargo-deny", (2, "bans FAILED"), &words, "")
}

/// The same build, so that nothing is compiled, only looked at.
fn bloat_words(bloat: &Path, subject: &Subject) -> Outcome<String> {
    let host = host()?;
    let profile = ["--profile", subject.profile].map(Path::new);
    let words: [&Path; 9] = [
        bloat,
        "bloat".as_ref(),
        "--crates".as_ref(),
        "--bin".as_ref(),
        subject.bin.as_ref(),
        "--manifest-path".as_ref(),
        &subject.manifest,
        "--target".as_ref(),
        host.as_ref(),
    ];
    let mut all = words.to_vec();
    if subject.profile != "dev" {
        all.extend(profile);
    }
    let environment = format!(
        "\"CARGO_TARGET_DIR\": {}, \"CARGO_ENCODED_RUSTFLAGS\": \"{RUSTFLAGS}\"",
        json_text(&subject.target_dir)?
    );
    entry("cargo-bloat", (0, ".text section size"), &all, &environment)
}

fn case(name: &str, (seconds, mebibytes): (u32, u32), programs: &[String]) -> String {
    format!(
        "{{\"case\": \"{name}\", \"limit_s\": {seconds}, \"limit_mib\": {mebibytes}, \"programs\": [{}]}}\n",
        programs.join(", ")
    )
}

fn time(rounds: u32, dir: &Path, cases: &str) -> Outcome {
    let script = root().join("tests/xtask/control/guard.py");
    let mut child = Command::new("python3")
        .arg(script)
        .arg(rounds.to_string())
        .arg(dir.join("last-output.txt"))
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot run python3: {error}"))?;
    if let Some(mut input) = child.stdin.take() {
        input
            .write_all(cases.as_bytes())
            .map_err(|error| format!("cannot write to python3: {error}"))?;
    }
    let status = child
        .wait()
        .map_err(|error| format!("cannot wait for python3: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err("a program failed or a figure was missed, see above".to_owned())
    }
}
