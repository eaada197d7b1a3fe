//! The exact sum, over every fixture there is: stages and remainder are the
//! window in every run, and no part is negative.

use std::path::{Path, PathBuf};

use crate::support::{fixture, report};

/// Every folder with captures of runs, and every single file.
fn inputs() -> Vec<PathBuf> {
    let mut found = vec![fixture("planted"), fixture("qwen-serve-ab")];
    for folder in ["qwen-serve-0.24.4/cold", "qwen-serve-0.24.4/scenarios"] {
        found.extend(entries(&fixture(folder)));
    }
    for folder in [
        "coldpath/valid",
        "coldpath/invalid",
        "known-bad",
        "formats",
        "findings",
    ] {
        found.extend(entries(&fixture(folder)));
    }
    found
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(list) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    list.map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_none_or(|kind| kind != "py" && kind != "md")
        })
        .collect()
}

#[test]
fn parts_sum_to_their_window_in_every_run_of_every_fixture() {
    let mut windows = 0;
    for input in inputs() {
        let report = report([&input]);
        for run in report["runs"]["items"].as_array().unwrap() {
            for window in run["windows"].as_array().unwrap() {
                let stages = window["stages"].as_object().unwrap();
                let parts = stages.values().chain([&window["unattributed_ns"]]);
                let parts: Vec<i64> = parts.map(|part| part.as_i64().unwrap()).collect();
                let what = format!("{}: {} of {}", input.display(), window["name"], run["run"]);
                assert!(parts.iter().all(|part| *part >= 0), "{what}: {parts:?}");
                assert_eq!(
                    parts.iter().sum::<i64>(),
                    window["total_ns"].as_i64().unwrap(),
                    "{what}"
                );
                windows += 1;
            }
        }
    }
    // Twelve cold captures alone have seven windows each.
    assert!(windows > 12 * 7 + 30 * 7, "{windows}");
}
