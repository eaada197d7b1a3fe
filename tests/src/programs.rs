//! Where the programs under test are: built once per test process, or taken from
//! `COLDPATH_BIN_DIR`.
//!
//! Cargo tells a test only about programs of its own package, and a guess at
//! `target/debug` finds whatever was built last; so the harness builds, and reads
//! the paths that cargo reports.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

const PACKAGES: [&str; 4] = [
    "coldpath-daemon",
    "coldpath-agent",
    "coldpath-measure",
    "coldpath-analyzer",
];
const FEATURES: &str = "coldpath-daemon/fault-points,coldpath-agent/fault-points";
const NAMES: [&str; 4] = ["coldpathd", "coldpath-agent", "measure", "analyze"];

/// Paths of the programs under test.
#[derive(Debug)]
pub struct Programs {
    paths: BTreeMap<String, PathBuf>,
}

impl Programs {
    /// Path of a program by its file name.
    ///
    /// # Panics
    /// There is no such program.
    #[must_use]
    #[track_caller]
    pub fn path(&self, name: &str) -> &Path {
        self.paths
            .get(name)
            .unwrap_or_else(|| panic!("no program `{name}` among {:?}", self.paths.keys()))
    }

    /// `coldpathd`, with fault points unless `COLDPATH_BIN_DIR` brought another one.
    #[must_use]
    pub fn coldpathd(&self) -> &Path {
        self.path("coldpathd")
    }
}

/// The programs, built with the first call.
///
/// # Panics
/// The build fails; cargo's own words are in the message.
pub fn programs() -> &'static Programs {
    static PROGRAMS: OnceLock<Programs> = OnceLock::new();
    PROGRAMS.get_or_init(|| Programs {
        paths: match std::env::var_os("COLDPATH_BIN_DIR") {
            Some(dir) => in_dir(Path::new(&dir)),
            None => build(),
        },
    })
}

fn in_dir(dir: &Path) -> BTreeMap<String, PathBuf> {
    let dir = std::path::absolute(dir).expect("COLDPATH_BIN_DIR is a path");
    NAMES
        .iter()
        .map(|name| ((*name).to_owned(), dir.join(name)))
        .filter(|(_, path)| path.is_file())
        .collect()
}

/// Path of `coldpath`, built with the first call and apart from the others: no test
/// but its own needs what draws.
///
/// # Panics
/// The build fails; cargo's own words are in the message.
pub fn client_program() -> PathBuf {
    let built = build_with(&["-p", "coldpath-client", "--bins"]);
    built.get("coldpath").expect("the client's program").clone()
}

fn build() -> BTreeMap<String, PathBuf> {
    let mut arguments: Vec<&str> = PACKAGES.iter().flat_map(|name| ["-p", name]).collect();
    arguments.extend(["--bins", "--features", FEATURES]);
    build_with(&arguments)
}

fn build_with(arguments: &[&str]) -> BTreeMap<String, PathBuf> {
    let mut command = cargo();
    command
        .args(["build", "--locked"])
        .args(arguments)
        .arg("--target-dir")
        .arg(target_dir().join("e2e"))
        .arg("--message-format=json-render-diagnostics");
    run(&mut command)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["reason"] == "compiler-artifact")
        .filter_map(|message| {
            let path = message["executable"].as_str()?;
            Some((message["target"]["name"].as_str()?.to_owned(), path.into()))
        })
        .collect()
}

fn target_dir() -> PathBuf {
    let mut command = cargo();
    command.args([
        "metadata",
        "--locked",
        "--no-deps",
        "--offline",
        "--format-version=1",
    ]);
    let metadata: Value = serde_json::from_str(&run(&mut command)).expect("cargo writes JSON");
    metadata["target_directory"]
        .as_str()
        .expect("cargo names its target directory")
        .into()
}

/// The cargo that runs this test, in the workspace's root.
fn cargo() -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    command
}

fn run(command: &mut Command) -> String {
    let output = command
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?} failed ({}):\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("cargo writes UTF-8")
}
