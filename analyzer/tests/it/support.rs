//! How the tests run the program and look into its report.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// What a run of the program gave.
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Answer {
    /// The report, when it is JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error} in {}\n{}", self.stdout, self.stderr))
    }
}

/// Runs `analyze` with these arguments.
pub(crate) fn analyze<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Answer {
    analyze_stdin(args, b"")
}

/// Runs `analyze` with bytes on its standard input.
pub(crate) fn analyze_stdin<S: AsRef<OsStr>>(
    args: impl IntoIterator<Item = S>,
    stdin: &[u8],
) -> Answer {
    let mut child = Command::new(env!("CARGO_BIN_EXE_analyze"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let bytes = stdin.to_vec();
    let writer = std::thread::spawn(move || {
        // A program that refuses its arguments reads nothing.
        let _ = pipe.write_all(&bytes);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Answer {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The JSON report of these files.
#[track_caller]
pub(crate) fn report<S: AsRef<OsStr>>(files: impl IntoIterator<Item = S>) -> Value {
    let args: Vec<_> = files
        .into_iter()
        .map(|file| file.as_ref().to_owned())
        .collect();
    let fixed = ["--format", "json"].map(|word| OsStr::new(word).to_owned());
    let answer = analyze(fixed.into_iter().chain(args));
    answer.json()
}

/// A file or folder below `fixtures/`.
pub(crate) fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fixtures")
        .join(path)
}

/// The member of a list whose `name` is this.
#[track_caller]
pub(crate) fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
    let found = list
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {list}"))
}

/// Codes and counts of the problems.
pub(crate) fn problems(report: &Value) -> Vec<(String, u64)> {
    let list = report["input"]["problems"].as_array().unwrap().iter();
    list.map(|problem| {
        (
            problem["code"].as_str().unwrap().to_owned(),
            problem["count"].as_u64().unwrap(),
        )
    })
    .collect()
}
