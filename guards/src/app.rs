//! The program: arguments in, report out, exit code back. Reads, judges and renders
//! in this order; the only module that knows all three, and the calendar.

use crate::check::{CheckOptions, InspectError, PathReport, Report, check_path, inspect};
use crate::cli::{
    BuildArgs, CheckArgs, Cli, Common, EVIDENCE_DEFAULT, Format, GraphFrom, POLICY_DEFAULT, Verb,
};
use crate::evidence::{
    BuildError, BuildOptions, Evidence, EvidenceError, build, folder_of, read_evidence, read_lock,
    sha256_of,
};
use crate::exit;
use crate::finding::{Code, Finding};
use crate::packages::Routes;
use crate::policy::{self, Date, PolicyError, StartPath};
use crate::reachable::Source;
use crate::report::{write_human, write_json};
use clap::Parser;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AppError {
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error("the policy has no path `{name}`\nhint: it has {known}")]
    UnknownPath { name: String, known: String },
    #[error("`{text}` is not a day like 2027-01-31")]
    Date { text: String },
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(transparent)]
    Evidence(EvidenceError),
    #[error("{source}\nhint: run `{command}`")]
    BrokenBuild {
        source: EvidenceError,
        command: String,
    },
    #[error("{missing}\nhint: run `{command}`")]
    NoBuild { missing: String, command: String },
    #[error("path `{path}`: {source}")]
    Inspect { path: String, source: InspectError },
    #[error("{message}")]
    Usage { message: String },
    #[error("cannot write the report: {0}")]
    Write(#[from] io::Error),
}

/// Runs the program with the arguments of the command line, its name first.
///
/// Returns the exit code, one of [`exit`].
pub fn run(
    args: impl IntoIterator<Item = OsString>,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> u8 {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, stdout, stderr),
    };
    match dispatch(cli, stdout) {
        Ok(code) => code,
        Err(AppError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => exit::OK,
        Err(error) => {
            // Where standard error is gone too, the exit code still speaks.
            let _ = writeln!(stderr, "error: {error}");
            exit::USAGE
        }
    }
}

fn usage(error: &clap::Error, stdout: &mut dyn Write, stderr: &mut dyn Write) -> u8 {
    if error.use_stderr() {
        let _ = write!(stderr, "{error}");
        exit::USAGE
    } else {
        let _ = write!(stdout, "{error}");
        exit::OK
    }
}

fn dispatch(cli: Cli, stdout: &mut dyn Write) -> Result<u8, AppError> {
    match cli.verb {
        Verb::Build(args) => run_build(&args, stdout),
        Verb::Check(args) => run_check(&args, stdout),
        Verb::Explain(args) => crate::explain::run(&args, stdout),
        Verb::Closure(args) => crate::closure::run(&args, stdout),
    }
}

/// The paths of the policy that were asked for.
pub(crate) fn chosen_paths(common: &Common) -> Result<Vec<StartPath>, AppError> {
    let policy = policy::load(&common.policy)?;
    let unknown = common
        .paths
        .iter()
        .find(|name| !policy.paths.iter().any(|path| path.name == **name));
    if let Some(name) = unknown {
        let known: Vec<&str> = policy.paths.iter().map(|path| path.name.as_str()).collect();
        return Err(AppError::UnknownPath {
            name: name.clone(),
            known: known.join(", "),
        });
    }
    let wanted = |path: &StartPath| common.paths.is_empty() || common.paths.contains(&path.name);
    Ok(policy.paths.into_iter().filter(wanted).collect())
}

fn run_build(args: &BuildArgs, stdout: &mut dyn Write) -> Result<u8, AppError> {
    let options = BuildOptions {
        manifest: args.manifest_path.clone(),
        target_dir: args.target_dir.clone(),
    };
    let programs: BTreeSet<_> = chosen_paths(&args.common)?
        .into_iter()
        .map(|path| path.program)
        .collect();
    for program in programs {
        let folder = folder_of(&args.common.evidence, &program);
        let record = build(&program, &folder, &options)?;
        writeln!(
            stdout,
            "{}: {} bytes, {} unstripped, build-id {}",
            folder.join(&record.shipped.name).display(),
            record.shipped.bytes,
            record.unstripped.bytes,
            record.shipped.build_id.as_deref().unwrap_or("none")
        )?;
    }
    Ok(exit::OK)
}

fn run_check(args: &CheckArgs, stdout: &mut dyn Write) -> Result<u8, AppError> {
    let options = CheckOptions {
        today: match &args.date {
            Some(text) => Date::parse(text).ok_or_else(|| AppError::Date { text: text.clone() })?,
            None => today(),
        },
        routes: if args.all_paths {
            Routes::All
        } else {
            Routes::Shortest
        },
        source: match args.graph_from {
            GraphFrom::Decode => Source::Decoded,
            GraphFrom::Relocations => Source::Relocations,
        },
    };
    let mut report = Report {
        policy: args.common.policy.display().to_string(),
        paths: Vec::new(),
    };
    for path in chosen_paths(&args.common)? {
        report.paths.push(check_one(&args.common, &path, options)?);
    }
    match args.format {
        Format::Human => write_human(&report, stdout)?,
        Format::Json => write_json(&report, stdout)?,
    }
    Ok(report.verdict().exit_code())
}

fn check_one(
    common: &Common,
    path: &StartPath,
    options: CheckOptions,
) -> Result<PathReport, AppError> {
    let evidence = match evidence_of(common, path) {
        Ok(evidence) => evidence,
        Err(error) => return without_evidence(common, path, error),
    };
    let seen = inspect(&evidence, &path.program).map_err(|source| AppError::Inspect {
        path: path.name.clone(),
        source,
    })?;
    let mut report = check_path(path, &evidence, &seen, options);
    report
        .findings
        .extend(stale_lock(&evidence, &seen.workspace.root));
    Ok(report)
}

/// A lock file that is not the build's any more. A workspace that is not here cannot
/// have changed: builds may be judged on another machine.
fn stale_lock(evidence: &Evidence, root: &Path) -> Option<Finding> {
    let file = root.join("Cargo.lock");
    let lock = read_lock(&file)?;
    (sha256_of(&lock) != evidence.record.lock_sha256).then(|| {
        Finding::new(
            Code::EvidenceStale,
            file.display().to_string(),
            "run `guard build` again",
        )
    })
}

/// The recorded build of a path's program.
fn evidence_of(common: &Common, path: &StartPath) -> Result<Evidence, EvidenceError> {
    let folder = folder_of(&common.evidence, &path.program);
    let evidence = read_evidence(&folder)?;
    if evidence.record.is_of(&path.program) {
        Ok(evidence)
    } else {
        Err(EvidenceError::Missing { folder })
    }
}

/// The same for verbs that have nothing to say without it.
pub(crate) fn need_evidence(common: &Common, path: &StartPath) -> Result<Evidence, AppError> {
    evidence_of(common, path).map_err(|error| match error {
        EvidenceError::Missing { .. } => AppError::NoBuild {
            missing: missing(common, &error).join("; "),
            command: build_command(common, path),
        },
        other => broken(common, path, other),
    })
}

/// A build that is there and cannot be read, with what mends it.
fn broken(common: &Common, path: &StartPath, source: EvidenceError) -> AppError {
    match source {
        // Another build would be as large.
        EvidenceError::TooLarge { .. } => AppError::Evidence(source),
        _ => AppError::BrokenBuild {
            source,
            command: build_command(common, path),
        },
    }
}

/// A build that is missing or was changed cannot be judged; a broken one is an error.
fn without_evidence(
    common: &Common,
    path: &StartPath,
    error: EvidenceError,
) -> Result<PathReport, AppError> {
    let (code, evidence) = match &error {
        EvidenceError::Missing { .. } => (Code::EvidenceMissing, missing(common, &error)),
        EvidenceError::Changed { .. } => (Code::TwinMismatch, vec![error.to_string()]),
        _ => return Err(broken(common, path, error)),
    };
    let hint = format!("run `{}`", build_command(common, path));
    Ok(PathReport {
        name: path.name.clone(),
        program: format!("{} of {}", path.program.bin, path.program.package),
        level: path.level,
        inputs: Vec::new(),
        layers: Vec::new(),
        findings: vec![Finding::new(code, path.program.bin.clone(), hint).with_evidence(evidence)],
    })
}

/// What is not there: the build, or the whole folder of builds.
fn missing(common: &Common, error: &EvidenceError) -> Vec<String> {
    let root = common.evidence.display();
    let mut lines = vec![error.to_string()];
    if common.evidence.is_file() {
        lines.push(format!(
            "{root} is a file; --evidence is a folder of builds"
        ));
    } else if !common.evidence.exists() && common.evidence.is_relative() {
        lines.push(format!(
            "there is no folder {root} below the current one, from which --evidence is taken"
        ));
    } else if !common.evidence.exists() {
        lines.push(format!("there is no folder {root}"));
    }
    lines
}

/// The command that makes the build of `path`, as it is typed.
fn build_command(common: &Common, path: &StartPath) -> String {
    let mut words = vec!["guard build".to_owned()];
    let mut option = |name: &str, value: &Path, default: &str| {
        if value != Path::new(default) {
            words.push(format!("{name} {}", quoted(&value.to_string_lossy())));
        }
    };
    option("--policy", &common.policy, POLICY_DEFAULT);
    option("--evidence", &common.evidence, EVIDENCE_DEFAULT);
    words.push(format!("--path {}", quoted(&path.name)));
    words.join(" ")
}

/// As a POSIX shell reads it back; plain where nothing needs quotes.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./+:@".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the calendar day on which exemptions end; nothing is timed with it"
)]
fn today() -> Date {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Date::from_unix_seconds(since_epoch.map_or(0, |duration| duration.as_secs()))
}
