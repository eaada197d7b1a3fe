//! `-o`: the report goes where `>` of a shell would put it, and nothing is lost.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use crate::support::{analyze, fixture};

const TRACE: &str = "findings/wrapper.jsonl";

fn trace() -> String {
    fixture(TRACE).to_str().unwrap().to_owned()
}

/// Runs a shell script whose `$0` is the program and whose `$1` is a trace.
fn shell(script: &str, folder: &Path) {
    let done = Command::new("sh")
        .args(["-ec", script, env!("CARGO_BIN_EXE_analyze"), &trace()])
        .current_dir(folder)
        .status()
        .unwrap();
    assert!(done.success(), "{script}");
}

#[test]
fn a_descriptor_is_written_behind_what_it_holds() {
    let report = analyze([trace()]).stdout;
    for (name, script) in [
        (
            "the own output",
            r#"{ echo before; "$0" "$1" -o /dev/stdout; echo behind; } > out"#,
        ),
        (
            "through proc",
            r#"{ echo before; "$0" "$1" -o /proc/self/fd/1; echo behind; } > out"#,
        ),
        (
            "another number",
            r#"{ echo before >&3; "$0" "$1" -o /dev/fd/3; echo behind >&3; } 3>> out"#,
        ),
        (
            "a link to it",
            r#"ln -s /dev/stdout link; { echo before; "$0" "$1" -o link; echo behind; } > out; test -h link"#,
        ),
        (
            "a pipe",
            r#"{ echo before; "$0" "$1" -o /dev/stdout; echo behind; } | cat > out"#,
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        shell(script, folder.path());
        let out = fs::read_to_string(folder.path().join("out")).unwrap();
        assert_eq!(out, format!("before\n{report}behind\n"), "{name}");
    }
}

#[test]
fn a_link_to_a_file_that_is_not_there_yet_makes_that_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    let link = folder.path().join("link");
    symlink("sub/report", &link).unwrap();
    let answer = analyze([trace(), "-o".to_owned(), link.to_str().unwrap().to_owned()]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(folder.path().join("sub/report").is_file());
}

#[test]
fn a_name_may_be_as_long_as_names_can_be() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("n".repeat(255));
    let name = path.to_str().unwrap().to_owned();
    assert_eq!(analyze([trace(), "-o".to_owned(), name.clone()]).code, 0);
    assert!(path.is_file());
    let answer = analyze([trace(), "-o".to_owned(), format!("{name}n")]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("too long"), "{}", answer.stderr);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_file_or_folder_without_leave_to_write_is_as_for_a_shell() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report");
    let run = || analyze([trace(), "-o".to_owned(), path.to_str().unwrap().to_owned()]);
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    for (file, of_folder) in [(0o444, 0o755), (0o644, 0o555), (0o444, 0o555)] {
        fs::write(&path, "old").unwrap();
        mode(&path, file);
        mode(folder.path(), of_folder);
        // Who may do everything may do this as well.
        let may = fs::OpenOptions::new().write(true).open(&path).is_ok();
        let answer = run();
        assert_eq!(answer.code == 0, may, "{file:o} {}", answer.stderr);
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text == "old", !may);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        mode(folder.path(), 0o755);
        mode(&path, 0o644);
    }
}

#[test]
fn the_report_may_lie_in_the_folder_that_is_read() {
    for format in ["json", "table", "markdown"] {
        let folder = tempfile::tempdir().unwrap();
        fs::copy(fixture(TRACE), folder.path().join("a.jsonl")).unwrap();
        let own = folder.path().to_str().unwrap();
        let report = folder.path().join("report.json");
        let args = [own, "--format", format, "-o", report.to_str().unwrap()];
        assert_eq!(analyze(args).code, 0);
        let first = fs::read_to_string(&report).unwrap();
        let again = analyze(args);
        assert_eq!(again.code, 0, "{format}: {}", again.stderr);
        let second = fs::read_to_string(&report).unwrap();
        // It is counted as a file that holds no trace, and nothing else differs.
        let (without, with) = match format {
            "json" => ("\"not_traces\": 0", "\"not_traces\": 1"),
            _ => (" parsed\n", " parsed; 1 file holds no trace\n"),
        };
        assert_eq!(second, first.replacen(without, with, 1), "{format}");
        // Named itself, or a trace, it is refused.
        let named = analyze([
            report.to_str().unwrap(),
            own,
            "-o",
            report.to_str().unwrap(),
        ]);
        assert_eq!(named.code, 2);
        let trace = folder.path().join("a.jsonl");
        let over = analyze([own, "-o", trace.to_str().unwrap()]);
        assert!(over.stderr.contains("one of the inputs"), "{}", over.stderr);
    }
}
