//! The predicted closure is what cargo builds, on a workspace made of the cases in
//! which plain metadata is wrong. Expectations come from
//! `cargo tree -e normal,no-proc-macro --target …` and from reading the manifests.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a panic in a test is the report"
)]

mod program;

use program::{Guard, fixture};

/// Builds once and asks each path of the fixture's policy.
#[test]
fn closures_are_what_cargo_builds() {
    let guard = Guard::new();
    let policy = fixture("features/policy.toml");
    let built = guard
        .verb("build", &policy)
        .arg("--manifest-path")
        .arg(fixture("features/Cargo.toml"))
        .arg("--target-dir")
        .arg(guard.folder().join("target"))
        .args(["--path", "app", "--path", "together"])
        .output()
        .unwrap();
    assert!(built.status.success(), "{built:?}");
    for (path, code, packages, words) in [
        // Build and dev dependencies, a proc-macro, cfg(windows) and a weak feature all
        // ask for `uilib`, `uiweak` or `win`; none is compiled into the program.
        ("app", 0, 9, ""),
        ("lib-name", 1, 9, "tiny-name 0.1.0"),
        ("new-dup", 1, 9, "dup 2.1.0, there named `dup_next`"),
        ("old-dup", 0, 9, ""),
        (
            "override",
            1,
            9,
            "overlib 0.1.0, opened by feature `over/unix-ui`, turned on by `app`",
        ),
        (
            "together",
            1,
            10,
            "opened by feature `helper/draw`, turned on by `client`, built in the same cargo invocation",
        ),
        ("typing-error", 1, 9, "rule-unmatched"),
    ] {
        let (found, text) = guard.check(&policy, &["--path", path]);
        assert_eq!(found, code, "{path}: {text}");
        let counted = format!("{packages} packages in the closure; the artifact stream agrees");
        assert!(text.contains(&counted), "{path}: {text}");
        assert!(text.contains(words), "{path}: {text}");
    }
}

#[test]
fn a_package_that_is_not_there_is_a_sentence() {
    let guard = Guard::new();
    let policy = fixture("features/policy.toml");
    let (code, text) = guard.check(&policy, &["--path", "no-such-package"]);
    assert_eq!(code, 3);
    assert!(text.contains("run `guard build`"), "{text}");
    let (code, text) = guard.check(&policy, &["--path", "nothing"]);
    assert_eq!(code, 2);
    assert!(text.contains("the policy has no path `nothing`"), "{text}");
}
