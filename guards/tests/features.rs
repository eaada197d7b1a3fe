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
use std::path::Path;
use std::process::Command;

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
    assert!(text.contains("run `guard build --policy "), "{text}");
    let (code, text) = guard.check(&policy, &["--path", "nothing"]);
    assert_eq!(code, 2);
    assert!(text.contains("the policy has no path `nothing`"), "{text}");
    assert!(text.contains("hint: it has app, lib-name, "), "{text}");
}

/// One name and version from a folder and from a git repository: two packages.
#[test]
fn two_sources_of_one_crate_are_two_packages() {
    let guard = Guard::new();
    let root = guard.folder().join("workspace");
    let repository = guard.folder().join("repository");
    write_package(&root.join("one"), "one", "", "lib.rs", "pub fn f() {}\n");
    write_package(&repository, "one", "", "lib.rs", "pub fn f() {}\n");
    for arguments in [
        &["init", "-q"][..],
        &["add", "."],
        &[
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.org",
            "commit",
            "-q",
            "-m",
            "t",
        ],
    ] {
        let mut git = Command::new("git");
        let done = git.arg("-C").arg(&repository).args(arguments).status();
        assert!(done.unwrap().success());
    }
    let dependencies = format!(
        "[workspace]\nexclude = ['one']\n[dependencies]\none = {{ path = 'one' }}\nother = {{ package = 'one', git = 'file://{}' }}\n",
        repository.display()
    );
    let main = "fn main() {\n    one::f();\n    other::f();\n}\n";
    write_package(&root, "app", &dependencies, "main.rs", main);
    let policy = root.join("policy.toml");
    let text = "schema = 1\n[[path]]\nname = 'app'\npackage = 'app'\nlevel = 'packages'\ndeny = [{ crate = 'one' }]\n";
    std::fs::write(&policy, text).unwrap();
    let manifest = root.join("Cargo.toml");
    let locked = Command::new("cargo")
        .args(["generate-lockfile", "--manifest-path"])
        .arg(&manifest)
        .output()
        .unwrap();
    assert!(locked.status.success(), "{locked:?}");
    let built = guard
        .verb("build", &policy)
        .arg("--manifest-path")
        .arg(&manifest)
        .arg("--target-dir")
        .arg(guard.folder().join("target"))
        .output()
        .unwrap();
    assert!(built.status.success(), "{built:?}");
    let (code, text) = guard.check(&policy, &[]);
    assert_eq!(code, 1, "{text}");
    for words in [
        "3 packages in the closure; the artifact stream agrees",
        "evidence: path package",
        "evidence: git package",
        "one 0.1.0, there named `other`",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

fn write_package(folder: &Path, name: &str, rest: &str, file: &str, source: &str) {
    std::fs::create_dir_all(folder.join("src")).unwrap();
    let manifest =
        format!("[package]\nname = '{name}'\nversion = '0.1.0'\nedition = '2024'\n{rest}");
    std::fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    std::fs::write(folder.join("src").join(file), source).unwrap();
}
