//! The call graph by relocations that the linker keeps, on programs that are built
//! with them and with the standard library's debug information.
//!
//! Expectations are those of `fixtures/guards/matrix/expected.txt`, which say nothing of
//! where references come from.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a panic in a test is the report"
)]

mod program;

use program::{Guard, fixture};

#[test]
fn verdicts_are_those_of_decoded_instructions() {
    let guard = Guard::new();
    let matrix = std::fs::read_to_string(fixture("matrix/policy.toml")).unwrap();
    let kept = "rustflags = [\"-Cstrip=none\", \"-Clink-arg=-Wl,--emit-relocs\"]";
    let policy = guard.folder().join("policy.toml");
    std::fs::write(&policy, matrix.replace("rustflags = []", kept)).unwrap();
    let cells = ["clean.release", "hook.release", "separate.release"];
    let paths: Vec<&str> = cells.iter().flat_map(|cell| ["--path", cell]).collect();
    let built = guard
        .verb("build", &policy)
        .arg("--manifest-path")
        .arg(fixture("matrix/Cargo.toml"))
        .arg("--target-dir")
        .arg(guard.folder().join("target"))
        .args(paths)
        .output()
        .unwrap();
    assert!(built.status.success(), "{built:?}");
    for (cell, code) in [
        ("clean.release", 0),
        ("hook.release", 1),
        ("separate.release", 0),
    ] {
        for source in ["decode", "relocations"] {
            let words = ["--path", cell, "--graph-from", source];
            let (found, text) = guard.check(&policy, &words);
            assert_eq!(found, code, "{cell} by {source}: {text}");
        }
    }
}
