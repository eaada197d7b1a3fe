//! The programs as they are shipped, measured and guarded.
//!
//! Static, because loading shared libraries costs 0.25 ms of a 0.6 ms start. The
//! flags live here and not in `.cargo/config.toml`: there, or without `--target`,
//! they would reach build scripts and macros, which then do not build.

use crate::cargo::{Build, Programs, build as cargo_build, host, program};
use crate::steps::{Outcome, output, say, target_dir};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Everything that is shipped: package and program.
pub(crate) const PROGRAMS: [(&str, &str); 4] = [
    ("coldpath-daemon", "coldpathd"),
    ("coldpath-agent", "coldpath-agent"),
    ("coldpath-measure", "measure"),
    ("coldpath-analyzer", "analyze"),
];

/// glibc's `chdir` for `posix_spawn`. The standard library asks for it weakly, and a
/// static link leaves weak symbols out: every spawn with a working directory
/// would then fork, 0.07 ms to 0.27 ms at 3 MB and 22 ms at 600 MB.
const SPAWN_CHDIR: &str = "posix_spawn_file_actions_addchdir_np";

/// What a panic does. What is shipped unwinds; the other is there to be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Panic {
    Unwind,
    Abort,
}

/// Builds, strips and checks; returns the stripped programs by name.
pub(crate) fn build(wanted: &[(&str, &str)]) -> Outcome<Programs> {
    build_with(wanted, Panic::Unwind)
}

/// The same, with what a panic does; programs that abort go to a folder of their own.
pub(crate) fn build_with(wanted: &[(&str, &str)], panic: Panic) -> Outcome<Programs> {
    let host = host()?;
    let link_chdir = format!("-Clink-arg=-Wl,-u,{SPAWN_CHDIR}");
    let is_static = has_static_libc()?;
    let rustflags: &[&str] = if is_static {
        &["-Ctarget-feature=+crt-static", &link_chdir]
    } else {
        &[]
    };
    if !is_static {
        say("dist: libc.a is missing (Debian: libc6-dev), building dynamic programs\n")?;
    }
    let packages: Vec<&str> = wanted.iter().map(|(package, _)| *package).collect();
    let built = cargo_build(&Build {
        profile: "dist",
        packages: &packages,
        target: Some(&host),
        rustflags,
        env: match panic {
            Panic::Unwind => &[],
            Panic::Abort => &[("CARGO_PROFILE_DIST_PANIC", "abort")],
        },
        ..Build::default()
    })?;
    let dir = target_dir().join(match panic {
        Panic::Unwind => "dist-programs",
        Panic::Abort => "dist-programs-abort",
    });
    std::fs::create_dir_all(&dir)
        .map_err(|error| format!("cannot make {}: {error}", dir.display()))?;
    let mut shipped = Programs::new();
    for (_, name) in wanted {
        let path = ship(program(&built, name)?, &dir, name)?;
        if is_static {
            check_spawn(&dir.join(format!("{name}.unstripped")))?;
        }
        let bytes = std::fs::metadata(&path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?
            .len();
        say(&format!(
            "dist: {} ({bytes} bytes, {})\n",
            path.display(),
            if is_static { "static" } else { "dynamic" }
        ))?;
        shipped.insert((*name).to_owned(), path);
    }
    Ok(shipped)
}

/// Keeps the program as it was linked and strips a copy of the same file.
fn ship(built: &Path, dir: &Path, name: &str) -> Outcome<PathBuf> {
    let unstripped = dir.join(format!("{name}.unstripped"));
    let stripped = dir.join(name);
    std::fs::copy(built, &unstripped)
        .map_err(|error| format!("cannot copy {}: {error}", built.display()))?;
    output(
        Command::new("strip")
            .arg("-o")
            .arg(&stripped)
            .arg(&unstripped),
    )?;
    Ok(stripped)
}

fn check_spawn(unstripped: &Path) -> Outcome {
    let symbols = output(Command::new("nm").arg("--defined-only").arg(unstripped))?;
    if symbols
        .lines()
        .any(|line| line.ends_with(&format!(" {SPAWN_CHDIR}")))
    {
        Ok(())
    } else {
        Err(format!(
            "{} does not define {SPAWN_CHDIR}: it would fork for every agent",
            unstripped.display()
        ))
    }
}

fn has_static_libc() -> Outcome<bool> {
    // The compiler answers with the bare name when it does not find the file.
    let path = output(Command::new("cc").arg("-print-file-name=libc.a"))?;
    Ok(Path::new(path.trim()).is_absolute())
}
