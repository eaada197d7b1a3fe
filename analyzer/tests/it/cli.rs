//! The command line: exit codes, errors, formats.

use serde_json::json;

use crate::support::{analyze, analyze_stdin, fixture, report};

#[track_caller]
fn refused(args: &[&str], hint: &str) {
    let answer = analyze(args);
    assert_eq!(answer.code, 2, "{args:?}");
    assert!(answer.stderr.starts_with("error: "), "{}", answer.stderr);
    assert!(answer.stderr.contains(hint), "{}", answer.stderr);
    assert_eq!(answer.stdout, "");
}

#[test]
fn help_and_version_are_answers() {
    let help = analyze(["--help"]);
    assert_eq!(help.code, 0);
    for word in [
        "--format",
        "--strict",
        "--model",
        "--quantile",
        "Exit codes",
    ] {
        assert!(
            help.stdout.contains(word),
            "{word} is not in {}",
            help.stdout
        );
    }
    let version = analyze(["--version"]);
    assert_eq!(
        (version.code, version.stdout),
        (0, format!("analyze {}\n", env!("CARGO_PKG_VERSION")))
    );
}

#[test]
fn wrong_usage_and_unreadable_input_exit_with_2() {
    refused(&[], "required");
    refused(&["/nonexistent/trace.jsonl"], "hint: quote a glob");
    refused(&["/nonexistent/*.jsonl"], "no such file");
    refused(&["-", "--format", "yaml"], "yaml");
    refused(
        &["-", "--model", "qven"],
        "built-in models are coldpath, qwen, generic",
    );
    refused(&["-", "-"], "named twice");
}

#[test]
fn names_of_other_versions_are_not_taken_for_files() {
    for name in ["compare", "gate", "placebo", "plan", "explain", "trend"] {
        refused(
            &[name, "x"],
            &format!("`analyze {name}` is not in this version"),
        );
    }
}

#[test]
fn no_runs_cannot_be_judged() {
    assert_eq!(analyze_stdin(["-"], b"").code, 3);
}

#[test]
fn a_model_that_is_shown_can_be_given_back() {
    let shown = analyze(["model", "show", "coldpath"]);
    assert_eq!(shown.code, 0);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, shown.stdout).unwrap();
    let runs = fixture("coldpath/valid/one-run");
    let args = [runs.as_os_str(), "--model".as_ref(), path.as_os_str()];
    assert_eq!(analyze(args).stdout, analyze([runs.as_os_str()]).stdout);
    std::fs::write(&path, "schema = 1\nname = 7\n").unwrap();
    let broken = analyze(args);
    assert_eq!(broken.code, 2);
    assert!(
        broken.stderr.contains("mine.toml") && broken.stderr.contains("line 2"),
        "{}",
        broken.stderr
    );
}

#[test]
fn the_output_file_holds_what_would_have_been_printed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.md");
    let runs = fixture("coldpath/valid/one-run");
    let printed = analyze([runs.as_os_str(), "--format".as_ref(), "markdown".as_ref()]);
    let args = [
        "--format".as_ref(),
        "markdown".as_ref(),
        "-o".as_ref(),
        path.as_os_str(),
    ];
    let written = analyze([runs.as_os_str()].into_iter().chain(args));
    assert_eq!((written.code, written.stdout.as_str()), (0, ""));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), printed.stdout);
}

#[test]
fn the_quantile_definition_is_named_and_used() {
    let runs = fixture("qwen-serve-0.24.4/cold");
    let args = ["--format", "json", "--quantile", "nearest-rank"].map(AsRef::as_ref);
    let report = analyze([runs.as_os_str()].into_iter().chain(args)).json();
    assert_eq!(report["quantile"], "nearest-rank");
    // The sixth of twelve totals; type 7 would be 1034.5.
    assert_eq!(report["windows"][0]["total"]["p50"], 1013.0);
}

#[test]
fn the_table_opens_with_findings_and_coverage() {
    let answer = analyze([fixture("qwen-serve-0.24.4/cold")]);
    let lines: Vec<&str> = answer.stdout.lines().collect();
    assert_eq!(lines[0], "Findings");
    assert_eq!(
        lines[1],
        "  `channel.wait` is 59.4 % of the session request at P50 and 48.3 % of its variance"
    );
    assert_eq!(
        lines[2],
        "  58.2 % of the agent startup is module loading (`gemini_import` + `acp_import`)"
    );
    assert!(
        answer
            .stdout
            .contains("\nCoverage\n  model qwen; chains complete 12/12\n")
    );
    assert!(
        answer
            .stdout
            .contains("168 spans, 252 logs, 264 metrics, 24 profiles parsed; profile joins 24/24")
    );
}

#[test]
fn markdown_tables_have_a_rule_and_as_many_cells_in_every_row() {
    let answer = analyze([
        fixture("qwen-serve-0.24.4/cold").as_os_str(),
        "--format".as_ref(),
        "markdown".as_ref(),
    ]);
    let mut cells = None;
    for line in answer.stdout.lines() {
        if line.starts_with('|') {
            let count = line.matches('|').count();
            assert_eq!(count, *cells.get_or_insert(count), "{line}");
        } else {
            cells = None;
        }
    }
    assert!(answer.stdout.contains("|---"), "{}", answer.stdout);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    use std::process::{Command, Stdio};
    let mut child = Command::new(env!("CARGO_BIN_EXE_analyze"))
        .arg(fixture("qwen-serve-0.24.4/cold"))
        .args(["--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The report is larger than a pipe holds, so the writer meets the closed end.
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn help_of_every_subcommand_can_be_typed_as_it_stands() {
    for (args, usage) in [
        (&["--help"][..], "Usage: analyze [OPTIONS] <FILES>"),
        (&["model", "--help"], "Usage: analyze model <COMMAND>"),
        (
            &["model", "show", "--help"],
            "Usage: analyze model show <NAME>",
        ),
        (
            &["check", "--help"],
            "Usage: analyze check [OPTIONS] --model",
        ),
        (
            &["chrome", "--help"],
            "Usage: analyze chrome [OPTIONS] <FILES>",
        ),
    ] {
        let help = analyze(args);
        assert_eq!(help.code, 0);
        assert!(help.stdout.contains(usage), "{}", help.stdout);
    }
    refused(&["check"], "Usage: analyze check --model");
    refused(&["model"], "Usage: analyze model <COMMAND>");
}

#[test]
fn an_argument_cannot_steer_the_terminal_through_an_error() {
    let steering = "\u{1b}]0;x\u{7}\u{202e}";
    let option = format!("--{steering}");
    let format = format!("--format={steering}");
    for args in [
        &[steering][..],
        &[&option],
        &[&format],
        &["check", steering, "--model", steering],
        &["model", "show", steering],
        &["model", steering],
        &["-", "--model", steering],
    ] {
        let answer = analyze(args);
        assert_eq!(answer.code, 2, "{args:?}");
        assert!(answer.stderr.contains("\\u{1b}"), "{}", answer.stderr);
        assert!(!answer.stderr.contains('\u{1b}'), "{:?}", answer.stderr);
        assert!(!answer.stderr.contains('\u{202e}'), "{:?}", answer.stderr);
    }
}

#[test]
fn a_report_never_goes_over_what_it_is_made_from() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (trace, link, hard) = (path("a.jsonl"), path("link.jsonl"), path("hard.jsonl"));
    let (model, manifest) = (path("model.toml"), path("manifest.json"));
    let text = std::fs::read(fixture("coldpath/valid/curl-only.jsonl")).unwrap();
    std::fs::write(&trace, &text).unwrap();
    std::fs::write(&manifest, r#"{"schema":"coldpath.manifest/1"}"#).unwrap();
    std::fs::write(&model, analyze(["model", "show", "coldpath"]).stdout).unwrap();
    std::os::unix::fs::symlink(&trace, &link).unwrap();
    std::fs::hard_link(&trace, &hard).unwrap();
    let own = folder.path().to_str().unwrap();
    for (input, output) in [
        (trace.as_str(), &trace),
        (&link, &trace),
        (&trace, &link),
        (&trace, &hard),
        (own, &trace),
        (&trace, &manifest),
        (&trace, &model),
    ] {
        let args = [input, "--model", &model, "-o", output];
        refused(&args, "is one of the inputs");
    }
    assert_eq!(std::fs::read(&trace).unwrap(), text);
    // It is refused before anything is read: here the model would be an error.
    refused(
        &[&trace, "--model", "none", "-o", &trace],
        "one of the inputs",
    );
    assert_eq!(analyze([trace.as_str(), "-o", "/dev/null"]).code, 0);
}

#[test]
fn an_output_that_cannot_be_written_is_an_error_with_its_name() {
    refused(
        &[
            fixture("coldpath/valid/curl-only.jsonl").to_str().unwrap(),
            "-o",
            "/nonexistent/report.json",
        ],
        "cannot write /nonexistent/report.json",
    );
}

#[test]
fn a_file_with_several_names_is_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    std::fs::copy(fixture("coldpath/valid/curl-only.jsonl"), &path).unwrap();
    std::fs::create_dir(folder.path().join("d")).unwrap();
    let roundabout = folder.path().join("d/../a.jsonl");
    let link = folder.path().join("link.jsonl");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let report = report([path, roundabout, link]);
    assert_eq!(report["input"]["files"], 1);
    assert_eq!(report["input"]["problems"], json!([]));
}

#[test]
fn json_holds_no_invisible_character_and_says_the_same() {
    let line = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","name":"a\udb40\udc41b","startTimeUnixNano":"1","endTimeUnixNano":"5"},{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203332","parentSpanId":"b7ad6b7169203331","name":"c\u00add","startTimeUnixNano":"2","endTimeUnixNano":"3"}]}]}]}"#;
    let args = ["-", "--model", "generic", "--format", "json"];
    let answer = analyze_stdin(args, line.as_bytes());
    let hidden = |char: char| char == '\u{ad}' || char == '\u{e0041}';
    assert!(!answer.stdout.contains(hidden), "{}", answer.stdout);
    let stage = &answer.json()["windows"][0]["stages"][0]["name"];
    assert_eq!(stage, "c\u{ad}d");
}
