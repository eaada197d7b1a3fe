//! The program: arguments in, report out, exit code back. Reads, computes and
//! renders in this order; the only module that knows all three.

use std::ffi::OsString;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use clap::Parser;

use crate::chain::{Run, assemble};
use crate::chrome;
use crate::cli::{Args, CheckArgs, ChromeArgs, ModelArgs, ModelVerb, RESERVED};
use crate::commands;
use crate::exit;
use crate::halves::both;
use crate::input::sources::{self, Source};
use crate::input::{self, Checksums};
use crate::inspect;
use crate::model::builtin;
use crate::model::lens::Lens;
use crate::model::matches;
use crate::model::schema::{Model, ModelError};
use crate::output::{self, OutputError};
use crate::problems::Problems;
use crate::report::Report;
use crate::report::build::{Items, Read as WasRead, Wanted, build};
use crate::report::dependency::{Asked, Drags};
use crate::report::numbers::escape;
use crate::report::render::{Format, render};
use crate::retime::names::UnknownStage;
use crate::stats::quantile::Definition;
use crate::trace::dataset::Dataset;
use crate::trace::tree::Tree;

/// The streams of the program.
pub struct Streams<'a> {
    /// Standard input, read for `-`.
    pub stdin: &'a mut dyn Read,
    /// Standard output.
    pub stdout: &'a mut dyn Write,
    /// Standard error.
    pub stderr: &'a mut dyn Write,
}

/// Why there is no report; its text goes to standard error.
pub(crate) struct Refusal {
    pub(crate) code: u8,
    pub(crate) text: String,
}

impl<E: std::error::Error> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self {
            code: exit::USAGE,
            text: error.to_string(),
        }
    }
}

/// Runs the program with the arguments of the command line, its name first.
pub fn run(args: impl IntoIterator<Item = OsString>, streams: Streams<'_>) -> u8 {
    let args: Vec<OsString> = args.into_iter().collect();
    let Streams {
        stdin,
        stdout,
        stderr,
    } = streams;
    let refusal = match dispatch(&args, stdin, stdout, &mut *stderr) {
        Ok(code) => return code,
        Err(refusal) => refusal,
    };
    // Names of files and options may hold anything that steers a terminal.
    let lines: Vec<String> = refusal.text.lines().map(escape).collect();
    // Where standard error is gone too, the exit code still speaks.
    let _ = writeln!(stderr, "error: {}", lines.join("\n"));
    refusal.code
}

fn dispatch(
    args: &[OsString],
    stdin: &mut dyn Read,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> Result<u8, Refusal> {
    let first = args.get(1).and_then(|arg| arg.to_str()).unwrap_or("");
    if RESERVED.contains(&first) {
        let text = format!(
            "`analyze {first}` is not in this version\nhint: a file of this name is written ./{first}"
        );
        return Err(Refusal {
            code: exit::USAGE,
            text,
        });
    }
    if commands::NAMES.contains(&first) {
        return commands::run(args, stdin, stdout);
    }
    if first == "model" {
        return match ModelArgs::try_parse_from(&args[1..]) {
            Ok(ModelArgs {
                verb: ModelVerb::Show { name },
            }) => done(
                stdout.write_all(builtin::text_of(&name)?.as_bytes()),
                "standard output",
            ),
            Err(error) => usage(&error, stdout),
        };
    }
    if first == "check" {
        return match CheckArgs::try_parse_from(&args[1..]) {
            Ok(parsed) => check_model(&parsed, stdin, stdout),
            Err(error) => usage(&error, stdout),
        };
    }
    if first == "chrome" {
        return match ChromeArgs::try_parse_from(&args[1..]) {
            Ok(parsed) => draw(&parsed, stdin, stdout, stderr),
            Err(error) => usage(&error, stdout),
        };
    }
    match Args::try_parse_from(args) {
        Ok(parsed) => analyze(&parsed, args, stdin, stdout),
        Err(error) => usage(&error, stdout),
    }
}

/// Help and version are answers; everything else is a refusal.
pub(crate) fn usage(error: &clap::Error, stdout: &mut dyn Write) -> Result<u8, Refusal> {
    if error.use_stderr() {
        let text = error.to_string();
        let text = text
            .strip_prefix("error: ")
            .unwrap_or(&text)
            .trim_end()
            .to_owned();
        return Err(Refusal {
            code: exit::USAGE,
            text,
        });
    }
    done(write!(stdout, "{error}"), "standard output")
}

/// Says what the rules of a model match in the files.
fn check_model(
    args: &CheckArgs,
    stdin: &mut dyn Read,
    stdout: &mut dyn Write,
) -> Result<u8, Refusal> {
    let model = load_model(&args.model)?;
    let (_, batch) = input::read_all(&sources::expand(&args.files)?, stdin, Checksums::Left)?;
    let (data, _) = Dataset::from_batch(batch);
    let (tree, _) = Tree::new(&data);
    let found = matches::matches(&Lens::new(&data, &tree, &model));
    let code = if args.strict && !found.is_whole() {
        exit::CANNOT_JUDGE
    } else {
        exit::OK
    };
    let mut out = BufWriter::new(stdout);
    let written = found.write(&mut out).and_then(|()| out.flush());
    done(written, "standard output").map(|_| code)
}

/// Writes cold starts as a Chrome trace, and says on standard error which they are.
fn draw(
    args: &ChromeArgs,
    stdin: &mut dyn Read,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> Result<u8, Refusal> {
    let sources = sources::expand(&args.files)?;
    if let Some(path) = &args.output {
        spare_inputs(path, args.model.as_deref(), &sources)?;
    }
    let given = args.model.as_deref().map(load_model).transpose()?;
    let (_, batch) = input::read_all(&sources, stdin, Checksums::Left)?;
    let (data, problems) = Dataset::from_batch(batch);
    let (tree, cycles) = Tree::new(&data);
    let model = match given {
        Some(model) => model,
        None => choose(&data, &tree)?,
    };
    let lens = Lens::new(&data, &tree, &model);
    let runs = assemble::runs(&lens);
    let selected =
        chrome::select::select(&lens, &runs, &args.wanted()).map_err(|error| Refusal {
            code: error.code(),
            text: error.to_string(),
        })?;
    let trace = chrome::trace(&lens, &runs, &selected.places);
    let flawed = !(problems.is_empty() && cycles.is_empty());
    let flawed = flawed.then(|| "the input has problems; the report lists them".to_owned());
    for note in selected.notes.iter().chain(&trace.notes).chain(&flawed) {
        // The trace is worth having without what is said about it.
        let _ = writeln!(stderr, "{}", escape(note));
    }
    write_out(args.output.as_deref(), stdout, |out| {
        chrome::write::write(&trace, out)
    })
}

/// Success of writing; a reader that went away has seen what it wanted.
pub(crate) fn done(result: io::Result<()>, what: &str) -> Result<u8, Refusal> {
    match result {
        Ok(()) => Ok(exit::OK),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(exit::OK),
        Err(error) => Err(Refusal {
            code: exit::USAGE,
            text: format!("cannot write {what}: {error}"),
        }),
    }
}

fn analyze(
    args: &Args,
    words: &[OsString],
    stdin: &mut dyn Read,
    stdout: &mut dyn Write,
) -> Result<u8, Refusal> {
    let command: Vec<String> = words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let mut sources = sources::expand(&args.files)?;
    let own_report = leave_out_report(args, &mut sources);
    if let Some(path) = &args.output {
        spare_inputs(path, args.model.as_deref(), &sources)?;
    }
    let model = args.model.as_deref().map(load_model).transpose()?;
    // Only JSON and the page show every run by itself and the checksums of the files.
    let (items, checksums) = match args.format.into() {
        Format::Json => (Items::Every, Checksums::Taken),
        Format::Html => (Items::Drawn, Checksums::Taken),
        Format::Table | Format::Markdown => (Items::None, Checksums::Left),
    };
    let (files, mut batch) = input::read_all(&sources, stdin, checksums)?;
    batch.counts.not_traces += own_report;
    let (data, problems) = Dataset::from_batch(batch);
    let request = Request {
        command: &command,
        files: &files,
        model,
        definition: args.quantile.into(),
        items,
        dependency: Asked {
            changes: args.what_if.clone(),
            drag: if args.drag { Drags::Taken } else { Drags::Left },
        },
        afterwards: Afterwards::TheEnd,
    };
    let report = report_of(&data, problems, request)?;
    write_report(&report, args, stdout)?;
    let code = verdict(&report, args.strict);
    // The process ends here; to take millions of records apart would only take time.
    std::mem::forget((data, report));
    Ok(code)
}

/// Takes the report that is about to be replaced out of the files that a folder
/// was found to hold, and says how many names it had there. One that was named
/// itself stays, and is then refused as an input.
fn leave_out_report(args: &Args, sources: &mut Vec<Source>) -> u64 {
    let Some(output) = args.output.as_deref() else {
        return 0;
    };
    let is_own = |source: &Source| matches!(source, Source::Listed(path) if output::is_same_file(path, output));
    if !output::is_report(output) {
        return 0;
    }
    let before = sources.len();
    sources.retain(|source| !is_own(source));
    (before - sources.len()) as u64
}

/// Refuses to write the report over anything that it is made from.
fn spare_inputs(output: &Path, model: Option<&str>, sources: &[Source]) -> Result<(), OutputError> {
    let manifests = sources::manifests_beside(sources);
    let named = sources.iter().filter_map(Source::path);
    let beside = manifests.iter().map(PathBuf::as_path);
    let model = model.map(Path::new);
    let stdin = sources.contains(&Source::Stdin);
    output::refuse_inputs(output, named.chain(beside).chain(model), stdin)
}

/// What a report is asked for.
pub struct Request<'a> {
    /// The command line, for provenance.
    pub command: &'a [String],
    /// The files, for provenance.
    pub files: &'a [input::InputFile],
    /// The model; `None` chooses by content.
    pub model: Option<Model>,
    /// Definition of quantiles.
    pub definition: Definition,
    /// Whether the report carries every run.
    pub items: Items,
    /// What it predicts.
    pub dependency: Asked,
    /// What the process does next.
    pub afterwards: Afterwards,
}

/// What a process does when it has a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Afterwards {
    /// Other things: memory is given back.
    GoesOn,
    /// It ends, and its memory with it.
    TheEnd,
}

/// Why a dataset has no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The model cannot be used.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A prediction is asked of a stage that no run has.
    #[error(transparent)]
    Stage(#[from] UnknownStage),
}

/// Computes the report of a dataset. Pure.
///
/// # Errors
/// [`ReportError`] for a model that cannot be used, or a stage that no run has.
pub fn report_of(
    data: &Dataset,
    mut problems: Problems,
    request: Request<'_>,
) -> Result<Report, ReportError> {
    let (tree, cycles) = Tree::new(data);
    problems.merge(cycles);
    let model = match request.model {
        Some(model) => model,
        None => choose(data, &tree)?,
    };
    let lens = Lens::new(data, &tree, &model);
    let (runs, found): (Vec<Run<'_>>, _) = both(
        data.spans.len(),
        || assemble::runs(&lens),
        || inspect::inspect(&lens),
    );
    problems.merge(found);
    let read = WasRead {
        command: request.command,
        files: request.files,
        problems,
    };
    let wanted = Wanted {
        definition: request.definition,
        items: request.items,
        dependency: &request.dependency,
    };
    let report = build(&lens, &runs, read, &wanted)?;
    if request.afterwards == Afterwards::TheEnd {
        // To take what was computed of thousands of runs apart would only take time.
        std::mem::forget(runs);
    }
    Ok(report)
}

pub(crate) fn load_model(name: &str) -> Result<Model, ModelError> {
    Model::parse(name, &builtin::text_of(name)?)
}

/// The built-in model that knows most spans; of equals the first. Client
/// records without any span choose the model that can read them.
pub(crate) fn choose(data: &Dataset, tree: &Tree) -> Result<Model, ModelError> {
    let score = |model: &Model| {
        let known = Lens::known_in_sample(data, tree, model);
        (
            // Who knows everything knows nothing in particular.
            known.min(if model.fallback { 1 } else { usize::MAX }),
            known == 0 && model.client.record.is_some() && !data.clients.is_empty(),
        )
    };
    let mut best: Option<((usize, bool), Model)> = None;
    for model in builtin::all()? {
        let score = score(&model);
        if best.as_ref().is_none_or(|(found, _)| score > *found) {
            best = Some((score, model));
        }
    }
    match best {
        Some((_, model)) => Ok(model),
        None => Err(ModelError::Unknown {
            name: String::new(),
            builtin: String::new(),
        }),
    }
}

fn write_report(report: &Report, args: &Args, stdout: &mut dyn Write) -> Result<(), Refusal> {
    let format: Format = args.format.into();
    write_out(args.output.as_deref(), stdout, |out| {
        render(report, format, out)
    })
    .map(|_| ())
}

/// Writes to a file or to standard output.
fn write_out(
    path: Option<&Path>,
    stdout: &mut dyn Write,
    render: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<u8, Refusal> {
    match path {
        None => {
            let mut out = BufWriter::new(stdout);
            let written = render(&mut out).and_then(|()| out.flush());
            done(written, "standard output")
        }
        Some(path) => done(output::write(path, render), &path.display().to_string()),
    }
}

/// The exit code of a report that was written.
#[must_use]
pub fn verdict(report: &Report, strict: bool) -> u8 {
    let flawed = !report.input.problems.is_empty() || !report.runs.incomplete.is_empty();
    if report.runs.total == 0 || strict && flawed {
        exit::CANNOT_JUDGE
    } else {
        exit::OK
    }
}
