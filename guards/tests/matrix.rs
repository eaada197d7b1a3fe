//! Prebuilt programs against the verdicts that were written down before the guard was.
//!
//! `fixtures/guards/matrix/expected.txt` has all cells; these are the ones that are
//! checked in as binaries. `cargo xtask guard-selftest` rebuilds and checks all.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a panic in a test is the report"
)]

mod program;

use program::{Guard, fixture};
use serde_json::Value;

const LAYERS: [&str; 4] = ["packages", "linked", "present", "reachable"];

/// Answers by layer and the verdict, as `expected.txt` writes them.
fn row(report: &Value) -> Vec<String> {
    let path = &report["paths"][0];
    let layers = path["layers"].as_array().unwrap();
    let answer = |layer: &&str| {
        let found = layers
            .iter()
            .find(|entry| entry["layer"] == **layer)
            .unwrap();
        found["rules"][0]["answer"].as_str().unwrap().to_owned()
    };
    let mut row: Vec<String> = LAYERS.iter().map(answer).collect();
    row.push(path["verdict"].as_str().unwrap().to_owned());
    row
}

fn report(guard: &Guard, cell: &str, arguments: &[&str]) -> Value {
    let mut all = vec!["--path", cell, "--format", "json", "--date", "2026-11-30"];
    all.extend(arguments);
    let (_, text) = guard.check(&fixture("matrix/policy.toml"), &all);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{cell}: {error}: {text}"))
}

fn expected(cell: &str) -> Vec<String> {
    let text = std::fs::read_to_string(fixture("matrix/expected.txt")).unwrap();
    let line = text
        .lines()
        .find(|line| line.split_whitespace().next() == Some(cell));
    line.unwrap()
        .split_whitespace()
        .skip(1)
        .map(str::to_owned)
        .collect()
}

#[test]
fn prebuilt_cells_get_the_expected_verdicts() {
    let mut cells = 0;
    for entry in std::fs::read_dir(fixture("prebuilt")).unwrap() {
        let cell = entry.unwrap().file_name().into_string().unwrap();
        let guard = Guard::new();
        guard.unpack(&cell, |_, _| {});
        assert_eq!(row(&report(&guard, &cell, &[])), expected(&cell), "{cell}");
        cells += 1;
    }
    assert_eq!(cells, 12);
}

#[test]
fn the_same_inputs_give_the_same_bytes() {
    let run = || {
        let guard = Guard::new();
        guard.unpack("offending.small", |_, _| {});
        guard.check(
            &fixture("matrix/policy.toml"),
            &[
                "--path",
                "offending.small",
                "--format",
                "json",
                "--date",
                "2026-11-30",
            ],
        )
    };
    assert_eq!(run(), run());
}

/// Only the stripped program is there: offending code is still proved by its panic
/// locations, a clean one by its closure, and one without any trace is not guessed.
#[test]
fn a_stripped_program_alone_is_judged_by_what_it_still_shows() {
    for (cell, present, reachable, code) in [
        ("offending.small", "found", "found", 1),
        ("clean.small", "absent", "absent", 0),
        ("generic.small", "inconclusive", "inconclusive", 3),
    ] {
        let guard = Guard::new();
        let bin = cell.split('.').next().unwrap();
        let stripped = Guard::read_packed(cell, bin);
        guard.unpack(cell, |name, content| {
            if name.ends_with(".unstripped") {
                content.clone_from(&stripped);
            }
        });
        let row = row(&report(&guard, cell, &[]));
        assert_eq!(
            (row[2].as_str(), row[3].as_str()),
            (present, reachable),
            "{cell}"
        );
        let (found, _) = guard.check(&fixture("matrix/policy.toml"), &["--path", cell]);
        assert_eq!(found, code, "{cell}");
    }
}

#[test]
fn the_route_is_printed_with_the_feature_that_opens_it() {
    let guard = Guard::new();
    guard.unpack("offending.small", |_, _| {});
    let (_, text) = guard.check(
        &fixture("matrix/policy.toml"),
        &["--path", "offending.small"],
    );
    // Reading the source: main calls draw, draw calls show.
    for words in ["_start", "-> offending::main", "screen_ui::"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let opened = "screen-ui 0.3.1, opened by feature `agent-core/tui`, turned on by `offending`";
    assert!(text.contains(opened), "{text}");
    let explained = guard
        .verb("explain", &fixture("matrix/policy.toml"))
        .args(["screen-ui", "--path", "offending.small"])
        .output()
        .unwrap();
    let text = String::from_utf8(explained.stdout).unwrap();
    assert!(text.contains(opened), "{text}");
}

/// 426 is what `readelf --debug-dump=frames` lists for this file.
#[test]
fn functions_of_a_stripped_program_come_from_its_unwind_tables() {
    let guard = Guard::new();
    let stripped = Guard::read_packed("offending.small", "offending");
    guard.unpack("offending.small", |name, content| {
        if name.ends_with(".unstripped") {
            content.clone_from(&stripped);
        }
    });
    let report = report(&guard, "offending.small", &[]);
    let evidence = report["paths"][0]["findings"][0]["evidence"].to_string();
    assert!(
        evidence.contains("it uses panic locations of screen-ui 0.3.1"),
        "{evidence}"
    );
    let saw = report["paths"][0]["layers"][3]["saw"][0].as_str().unwrap();
    assert!(
        saw.ends_with("0 by symbols and 426 more by unwind tables"),
        "{saw}"
    );
}

#[test]
fn explain_says_what_is_behind_a_lazy_edge() {
    let guard = Guard::new();
    guard.unpack("thread.small", |_, _| {});
    let policy = fixture("matrix/policy.toml");
    let explained = guard
        .verb("explain", &policy)
        .args(["screen_ui::*", "--path", "thread.small"])
        .output()
        .unwrap();
    let text = String::from_utf8(explained.stdout).unwrap();
    for words in [
        "reachable: absent",
        "without the lazy edges: found",
        "-> thread::start_tui",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let code = guard
        .verb("explain", &policy)
        .arg("lazy-expired")
        .output()
        .unwrap();
    assert_eq!(code.stdout, b"lazy-expired: a lazy edge is past its date\n");
}

#[test]
fn explain_says_when_nothing_has_the_name() {
    let guard = Guard::new();
    guard.unpack("thread.small", |_, _| {});
    let explain = |what: &str| {
        let explained = guard
            .verb("explain", &fixture("matrix/policy.toml"))
            .args([what, "--path", "thread.small"])
            .output()
            .unwrap();
        assert_eq!(explained.status.code(), Some(0));
        String::from_utf8(explained.stdout).unwrap()
    };
    let package = "note: no package of the workspace or its dependencies has such a name";
    let path = "note: no function of the program has such a path";
    for (what, said) in [
        ("scren-ui", Some(package)),
        ("screen_ui::nothing", Some(path)),
        ("screen-ui", None),
        // In the workspace, but not in this program: known and absent.
        ("clean", None),
    ] {
        let text = explain(what);
        match said {
            Some(words) => assert!(text.contains(words), "{what}: {text}"),
            None => assert!(!text.contains("note:"), "{what}: {text}"),
        }
    }
}

#[test]
fn the_closure_is_listed_with_the_method_of_its_bytes() {
    let guard = Guard::new();
    guard.unpack("offending.small", |_, _| {});
    let listed = guard
        .verb("closure", &fixture("matrix/policy.toml"))
        .args(["--path", "offending.small"])
        .output()
        .unwrap();
    let text = String::from_utf8(listed.stdout).unwrap();
    // Three packages by the manifests; no map is kept in the fixture.
    for words in [
        "offending of offending: 3 packages, as cargo built them",
        "bytes: of symbols whose names mention the crate",
        "agent-core 0.1.0",
        "tui",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// A policy of one path about a prebuilt cell, with other lazy edges or roots.
fn check_policy(cell: &str, rest: &str) -> (i32, String) {
    let guard = Guard::new();
    guard.unpack(cell, |_, _| {});
    let bin = cell.split('.').next().unwrap();
    let package = if bin == "thread" || bin == "separate" {
        "traps"
    } else {
        bin
    };
    let policy = guard.folder().join("policy.toml");
    let text = format!(
        "schema = 1\n[[path]]\nname = 'p'\npackage = '{package}'\nbin = '{bin}'\nprofile = 'small'\ntarget = 'x86_64-unknown-linux-gnu'\nlevel = 'reachable'\n{rest}"
    );
    std::fs::write(&policy, text).unwrap();
    guard.check(&policy, &["--date", "2026-11-30"])
}

const DENY: &str = "deny = [{ crate = 'screen-ui' }]\n";

#[track_caller]
fn check(cell: &str, rest: &str, code: i32, words: &str) {
    let (found, text) = check_policy(cell, &format!("{DENY}{rest}"));
    assert!(text.contains(words), "{words}: {text}");
    assert_eq!(found, code, "{text}");
}

#[test]
fn an_edge_that_is_not_named_is_found() {
    check("thread.small", "", 1, "-> thread::start_tui");
}

#[test]
fn stale_and_expired_edges_fail() {
    let edge = |from: &str, to: &str, more: &str| {
        format!("[[path.lazy]]\nfrom = '{from}'\nto = '{to}'\nreason = 'r'\n{more}")
    };
    let good = edge("thread::run", "thread::start_tui", "");
    check("thread.small", &good, 0, "guard: ok");
    let until = edge(
        "thread::run",
        "thread::start_tui",
        "expires = '2026-11-30'\n",
    );
    check("thread.small", &until, 0, "guard: ok");
    let late = edge(
        "thread::run",
        "thread::start_tui",
        "expires = '2026-11-29'\n",
    );
    check("thread.small", &late, 1, "lazy-expired");
    let reversed = edge("thread::start_tui", "thread::run", "");
    check(
        "thread.small",
        &format!("{good}{reversed}"),
        1,
        "lazy-unmatched",
    );
    let wide = edge("thread::*", "thread::start_tui", "");
    check("thread.small", &format!("{good}{wide}"), 0, "guard: ok");
    let missing_alone = edge("clean::main", "clean::start_tui", "");
    check("clean.small", &missing_alone, 3, "lazy-endpoint-missing");
    let exec = "[[path.lazy]]\nexec = 'acp-tui'\nreason = 'r'\n";
    check("clean.small", exec, 1, "lazy-unmatched");
    let eager = "[[path.lazy]]\ndlopen = 'libc.so.6'\nreason = 'r'\n";
    check("clean.small", eager, 1, "lazy-eagerly-needed");
}

/// What may only be behind an edge with a missing end is not called a violation; what is
/// reached whatever the edge could excuse is.
#[test]
fn an_edge_without_an_end_leaves_open_what_it_could_excuse() {
    let edge = |from: &str, to: &str| {
        format!("[[path.lazy]]\nfrom = '{from}'\nto = '{to}'\nreason = 'r'\n")
    };
    let check_open = |from: &str, to: &str| {
        let (code, text) = check_policy("thread.small", &format!("{DENY}{}", edge(from, to)));
        assert_eq!(code, 3, "{text}");
        assert!(
            text.contains("cannot judge[lazy-endpoint-missing]"),
            "{text}"
        );
        let open = format!("an end is missing of {from} -> {to}");
        assert!(text.contains(&open), "{text}");
        assert!(!text.contains("reachable-denied"), "{text}");
    };
    check_open("thread::run", "thread::start_gui");
    check_open("thread::go", "thread::start_tui");
    check_open("thread::go", "thread::start_gui");
    let elsewhere = edge("thread::go", "agent_core::answer");
    check("thread.small", &elsewhere, 1, "lazy-endpoint-missing");
    check("thread.small", &elsewhere, 1, "-> thread::start_tui");
}

#[test]
fn roots_inside_the_program_are_reported_as_such() {
    let (code, text) = check_policy(
        "separate.small",
        &format!("{DENY}roots = ['separate::drive']\n"),
    );
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("interior-root"), "{text}");
    let (code, text) = check_policy(
        "separate.small",
        &format!("{DENY}roots = ['separate::nothing']\n"),
    );
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("root-missing"), "{text}");
}

#[test]
fn symbols_are_denied_by_path() {
    let with = |deny: &str| check_policy("offending.small", deny);
    let (code, text) = with("deny = [{ symbol = 'screen_ui::*' }]\n");
    assert_eq!(code, 1, "{text}");
    let (code, text) = with("deny = [{ symbol = 'screen_ui::nothing' }]\n");
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("rule-unmatched"), "{text}");
    let (code, text) = with("deny = [{ symbol = 'screen_ui::nothing', unmatched = 'allow' }]\n");
    assert_eq!(code, 0, "{text}");
}
