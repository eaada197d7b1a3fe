//! `guard build`: one cargo build that leaves everything the layers need.
//!
//! The program is kept as it was linked, and a copy of that very file is stripped:
//! a build with `strip = true` beside one without is not the same program.

use super::record::{FileRecord, Record, SCHEMA, sha256_of};
use crate::binary;
use crate::linked;
use crate::packages::{Built, PackagesError, check_names, read_metadata, read_stream};
use crate::policy::{DefaultFeatures, Program};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where and how to build.
#[derive(Debug, Clone)]
pub(crate) struct BuildOptions {
    /// Manifest of the workspace; none: found by cargo from the current folder.
    pub(crate) manifest: Option<PathBuf>,
    /// Cargo's target folder; none: cargo's own choice.
    pub(crate) target_dir: Option<PathBuf>,
}

/// Why there is no build.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BuildError {
    #[error("cannot start `{tool}`: {source}\nhint: {hint}")]
    Start {
        tool: String,
        hint: &'static str,
        source: std::io::Error,
    },
    #[error("`{tool}` failed ({status})")]
    Failed { tool: String, status: String },
    #[error(
        "`cargo` failed ({status}): the policy asks for a static program, and the C library has no libc.a here\nhint: install it (Debian: libc6-dev); a program that is linked otherwise is another program, so none is built in its place"
    )]
    NoStaticLibc { status: String },
    #[error(
        "cannot make the folder {folder}: {source}\nhint: name one that can be written with --evidence DIR"
    )]
    Folder {
        folder: PathBuf,
        source: std::io::Error,
    },
    #[error("cannot write {file}: {source}")]
    Write {
        file: PathBuf,
        source: std::io::Error,
    },
    #[error("cargo did not say where it put program `{bin}`")]
    NoProgram { bin: String },
    #[error("cargo left no {what} for `{bin}`\nhint: remove its target folder and build again")]
    NoFile { what: &'static str, bin: String },
    #[error(transparent)]
    Stream(#[from] PackagesError),
}

/// Builds `program` and writes its evidence to `folder`.
///
/// # Errors
/// When a tool is missing or fails, or the folder cannot be written.
pub(crate) fn build(
    program: &Program,
    folder: &Path,
    options: &BuildOptions,
) -> Result<Record, BuildError> {
    std::fs::create_dir_all(folder).map_err(|source| BuildError::Folder {
        folder: folder.to_owned(),
        source,
    })?;
    // Linkers run in folders of their own choice.
    let folder = &std::path::absolute(folder).map_err(|source| BuildError::Write {
        file: folder.to_owned(),
        source,
    })?;
    let version = output("rustc", Command::new(tool("RUSTC", "rustc")).arg("-vV"))?;
    let version = String::from_utf8_lossy(&version).into_owned();
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .unwrap_or_default()
        .to_owned();
    let target = program.target.clone().unwrap_or_else(|| host.clone());
    let metadata = output("cargo metadata", &mut metadata_command(options))?;
    // Cargo's own sentences do not know of the policy.
    check_names(
        &read_metadata(&String::from_utf8_lossy(&metadata))?,
        program,
    )?;
    let lock = lock_digest(&metadata);
    let unstripped = folder.join(format!("{}.unstripped", program.bin));
    let mut stream = link(program, folder, options, &target, Strip::AsProfile)?;
    if !has_symbols(&unstripped)? {
        stream = link(program, folder, options, &target, Strip::DebugInfo)?;
    }
    let shipped = folder.join(&program.bin);
    output(
        "strip",
        Command::new("strip")
            .arg("-o")
            .arg(&shipped)
            .arg(&unstripped),
    )?;
    write(&folder.join("metadata.json"), &metadata)?;
    write(&folder.join("artifacts.jsonl"), &stream)?;
    let single = program.together_with.is_empty();
    if single {
        write_link_bytes(folder)?;
    }
    let optional = |name: &str| single.then(|| describe(folder, name)).transpose();
    let record = Record {
        schema: SCHEMA.to_owned(),
        package: program.package.clone(),
        bin: program.bin.clone(),
        features: program.features.clone(),
        default_features: program.default_features == DefaultFeatures::On,
        together_with: program.together_with.clone(),
        profile: program.profile.clone(),
        rustflags: program.rustflags.clone(),
        target,
        host,
        rustc: version.lines().next().unwrap_or_default().to_owned(),
        lock_sha256: lock,
        metadata: describe(folder, "metadata.json")?,
        artifacts: describe(folder, "artifacts.jsonl")?,
        link_args: optional(LINK_ARGS)?,
        link_map: optional(LINK_MAP)?,
        link_bytes: optional(LINK_BYTES)?,
        unstripped: describe(folder, &format!("{}.unstripped", program.bin))?,
        shipped: describe(folder, &program.bin)?,
    };
    let mut text = serde_json::to_vec_pretty(&record).unwrap_or_default();
    text.push(b'\n');
    write(&folder.join("build.json"), &text)?;
    Ok(record)
}

/// What becomes of symbols when the program is linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strip {
    /// As the profile says.
    AsProfile,
    /// Symbols stay: the profile strips, and only the copy that ships is to be stripped.
    DebugInfo,
}

/// Builds the program, copies it to `NAME.unstripped`, and returns the artifact stream.
fn link(
    program: &Program,
    folder: &Path,
    options: &BuildOptions,
    target: &str,
    strip: Strip,
) -> Result<Vec<u8>, BuildError> {
    let (stream, built) = run_cargo(program, folder, options, target, strip)?;
    let linked = built
        .programs
        .get(&program.bin)
        .ok_or_else(|| BuildError::NoProgram {
            bin: program.bin.clone(),
        })?;
    copy(linked, &folder.join(format!("{}.unstripped", program.bin)))?;
    Ok(stream)
}

fn has_symbols(program: &Path) -> Result<bool, BuildError> {
    let bytes = std::fs::read(program).map_err(|source| BuildError::Write {
        file: program.to_owned(),
        source,
    })?;
    // What is no program for the guard is refused when it is checked.
    Ok(binary::read(&bytes).map_or(true, |image| image.has_symtab))
}

const LINK_ARGS: &str = "link-args.txt";
const LINK_MAP: &str = "link.map";
const LINK_BYTES: &str = "link-bytes.txt";

/// Writes what the linker's map says of each library.
fn write_link_bytes(folder: &Path) -> Result<(), BuildError> {
    let map = folder.join(LINK_MAP);
    let unreadable = |source| BuildError::Write {
        file: map.clone(),
        source,
    };
    let file = std::fs::File::open(&map).map_err(unreadable)?;
    let text = linked::sum_map(std::io::BufReader::new(file)).map_err(unreadable)?;
    write(&folder.join(LINK_BYTES), text.as_bytes())
}

/// Runs the build; once more after removing the program when cargo found it fresh
/// and this folder has no files of its link.
fn run_cargo(
    program: &Program,
    folder: &Path,
    options: &BuildOptions,
    target: &str,
    strip: Strip,
) -> Result<(Vec<u8>, Built), BuildError> {
    let attempt = || -> Result<(Vec<u8>, Built), BuildError> {
        let mut command = build_command(program, folder, options, target, strip);
        let stream = output("cargo", &mut command)
            .map_err(|error| explain_static(error, program, target))?;
        let built = read_stream(stream.as_slice(), target)?;
        Ok((stream, built))
    };
    let (stream, built) = attempt()?;
    let names = [LINK_ARGS, LINK_MAP];
    let has_all = names.iter().all(|name| folder.join(name).exists());
    if has_all || !program.together_with.is_empty() {
        return Ok((stream, built));
    }
    for file in built
        .programs
        .get(&program.bin)
        .into_iter()
        .flat_map(|file| hard_links(file))
    {
        std::fs::remove_file(&file).map_err(|source| BuildError::Write { file, source })?;
    }
    let again = attempt()?;
    match names.iter().find(|name| !folder.join(name).exists()) {
        None => Ok(again),
        Some(_) => Err(BuildError::NoFile {
            what: "arguments or map of the linker",
            bin: program.bin.clone(),
        }),
    }
}

/// Says of a failed link what is missing, where that can be known: linkers say only
/// that they cannot find `-lc`.
fn explain_static(error: BuildError, program: &Program, target: &str) -> BuildError {
    // Other C libraries come with the compiler.
    let is_static = target.ends_with("-gnu")
        && program
            .rustflags
            .iter()
            .any(|flag| flag.contains("+crt-static"));
    match error {
        BuildError::Failed { status, .. } if is_static && !has_static_libc() => {
            BuildError::NoStaticLibc { status }
        }
        other => other,
    }
}

/// Whether the C compiler finds the static library; it answers with the bare name
/// when it does not. Without a C compiler nothing is known, so nothing is blamed.
fn has_static_libc() -> bool {
    let answer = Command::new(tool("CC", "cc"))
        .arg("-print-file-name=libc.a")
        .stdin(Stdio::null())
        .output();
    answer.map_or(true, |done| {
        Path::new(String::from_utf8_lossy(&done.stdout).trim()).is_absolute()
    })
}

/// The program and the files in `deps` that it may be a link of.
fn hard_links(program: &Path) -> Vec<PathBuf> {
    let name = program.file_name().and_then(|name| name.to_str());
    let stem = format!("{}-", name.unwrap_or_default().replace('-', "_"));
    let is_twin = |path: &PathBuf| {
        path.file_name()
            .and_then(|name| name.to_str())
            .map(|name| name.replace('-', "_"))
            .and_then(|name| {
                name.strip_prefix(&stem.replace('-', "_"))
                    .map(str::to_owned)
            })
            .is_some_and(|hash| hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    let entries = std::fs::read_dir(program.with_file_name("deps"));
    let paths = entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    paths.filter(is_twin).chain([program.to_owned()]).collect()
}

fn build_command(
    program: &Program,
    folder: &Path,
    options: &BuildOptions,
    target: &str,
    strip: Strip,
) -> Command {
    let mut command = Command::new(tool("CARGO", "cargo"));
    let single = program.together_with.is_empty();
    command.arg(if single { "rustc" } else { "build" });
    place(&mut command, options);
    command.args(["--locked", "--message-format=json-render-diagnostics"]);
    command.args(["--profile", &program.profile, "--target", target]);
    command.args(["-p", &program.package]);
    for other in &program.together_with {
        command.args(["-p", other]);
    }
    if strip == Strip::DebugInfo {
        let config = format!("profile.{}.strip=\"debuginfo\"", program.profile);
        command.args(["--config", &config]);
    }
    if program.default_features == DefaultFeatures::Off {
        command.arg("--no-default-features");
    }
    for feature in &program.features {
        command.args(["--features", &format!("{}/{feature}", program.package)]);
    }
    if single {
        let mut map = OsString::from("-Clink-arg=-Wl,-Map=");
        map.push(folder.join(LINK_MAP));
        let mut arguments = OsString::from("--print=link-args=");
        arguments.push(folder.join(LINK_ARGS));
        command
            .args(["--bin", &program.bin, "--"])
            .arg(arguments)
            .arg(map);
    }
    if !program.rustflags.is_empty() {
        command.env("CARGO_ENCODED_RUSTFLAGS", program.rustflags.join("\u{1f}"));
    }
    command
}

fn metadata_command(options: &BuildOptions) -> Command {
    let mut command = Command::new(tool("CARGO", "cargo"));
    command.args([
        "metadata",
        "--format-version",
        "1",
        "--all-features",
        "--locked",
    ]);
    if let Some(manifest) = &options.manifest {
        command.arg("--manifest-path").arg(manifest);
    }
    command
}

fn place(command: &mut Command, options: &BuildOptions) {
    if let Some(manifest) = &options.manifest {
        command.arg("--manifest-path").arg(manifest);
    }
    if let Some(target_dir) = &options.target_dir {
        command.arg("--target-dir").arg(target_dir);
    }
}

fn tool(variable: &str, default: &str) -> OsString {
    std::env::var_os(variable).unwrap_or_else(|| default.into())
}

/// Standard output of a tool; its messages go where ours go.
fn output(tool: &str, command: &mut Command) -> Result<Vec<u8>, BuildError> {
    let done = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|source| BuildError::Start {
            tool: tool.to_owned(),
            hint: if tool == "strip" {
                "install binutils"
            } else {
                "install a Rust toolchain"
            },
            source,
        })?;
    if done.status.success() {
        Ok(done.stdout)
    } else {
        Err(BuildError::Failed {
            tool: tool.to_owned(),
            status: done.status.to_string(),
        })
    }
}

/// Digest of the workspace's lock file; empty when it cannot be read.
fn lock_digest(metadata: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    struct Root {
        workspace_root: PathBuf,
    }
    serde_json::from_slice::<Root>(metadata)
        .ok()
        .and_then(|root| std::fs::read(root.workspace_root.join("Cargo.lock")).ok())
        .map(|lock| sha256_of(&lock))
        .unwrap_or_default()
}

fn copy(from: &Path, to: &Path) -> Result<(), BuildError> {
    std::fs::copy(from, to)
        .map(|_| ())
        .map_err(|source| BuildError::Write {
            file: to.to_owned(),
            source,
        })
}

fn write(file: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    std::fs::write(file, bytes).map_err(|source| BuildError::Write {
        file: file.to_owned(),
        source,
    })
}

fn describe(folder: &Path, name: &str) -> Result<FileRecord, BuildError> {
    let file = folder.join(name);
    let bytes = std::fs::read(&file).map_err(|source| BuildError::Write { file, source })?;
    Ok(FileRecord {
        name: name.to_owned(),
        bytes: bytes.len() as u64,
        sha256: sha256_of(&bytes),
        build_id: binary::read(&bytes).ok().and_then(|image| image.build_id),
    })
}
