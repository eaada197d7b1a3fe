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

/// A program with a vendored package that two others bring in, an embedded list for
/// audits, and another program that it starts.
fn write_vendored(root: &Path) {
    let painter = root.join("vendor/painter");
    write_package(
        &painter,
        "painter",
        "",
        "lib.rs",
        "#[inline(never)]\npub fn paint(at: usize) -> u8 { b\"colours\"[std::hint::black_box(at)] }\n",
    );
    let checksum = format!("{{\"files\":{{}},\"package\":\"{}\"}}", "0".repeat(64));
    std::fs::write(painter.join(".cargo-checksum.json"), checksum).unwrap();
    let config = "[source.crates-io]\nreplace-with = 'here'\n[source.here]\ndirectory = 'vendor'\n";
    std::fs::create_dir_all(root.join(".cargo")).unwrap();
    std::fs::write(root.join(".cargo/config.toml"), config).unwrap();
    for name in ["left", "right"] {
        let source = "pub fn f(at: usize) -> u8 { painter::paint(at) }\n";
        let rest = "[dependencies]\npainter = '0.1'\n";
        write_package(&root.join(name), name, rest, "lib.rs", source);
    }
    let rest = "[workspace]\nmembers = ['left', 'right']\n[dependencies]\nleft = { path = 'left' }\nright = { path = 'right' }\n";
    let main = "#[used]\n#[unsafe(link_section = \".dep-v0\")]\nstatic LIST: [u8; 7] = *b\"painter\";\n\
        fn main() {\n    let at = std::env::args().count();\n\
        println!(\"{} {}\", left::f(at), right::f(at));\n\
        let _ = std::process::Command::new(\"a-program-of-its-own\").spawn();\n}\n";
    write_package(root, "app", rest, "main.rs", main);
    let path = |name: &str, level: &str, rest: &str| {
        format!("[[path]]\nname = '{name}'\npackage = 'app'\nlevel = '{level}'\n{rest}\n")
    };
    let policy = [
        "schema = 1\n".to_owned(),
        path("closure", "packages", "deny = [{ crate = 'painter' }]"),
        path("seen", "present", "deny = [{ crate = 'painter' }]"),
        path(
            "runs",
            "present",
            "deny = [{ crate = 'crayon', unmatched = 'allow' }]\n[[path.lazy]]\nexec = 'a-program-of-its-own'\nreason = 'r'",
        ),
        path(
            "other",
            "packages",
            "bin = 'appp'\ndeny = [{ crate = 'painter' }]",
        ),
    ];
    std::fs::write(root.join("policy.toml"), policy.concat()).unwrap();
}

#[test]
fn a_vendored_package_is_found_by_every_route() {
    let guard = Guard::new();
    let root = guard.folder().join("workspace");
    write_vendored(&root);
    let locked = Command::new("cargo")
        .args(["generate-lockfile", "--offline"])
        .current_dir(&root)
        .output()
        .unwrap();
    assert!(locked.status.success(), "{locked:?}");
    let policy = root.join("policy.toml");
    let build = |path: &str| {
        let mut command = guard.verb("build", &policy);
        command.current_dir(&root).args(["--path", path]);
        command.args(["--target-dir", "target"]).output().unwrap()
    };
    let done = build("closure");
    assert!(done.status.success(), "{done:?}");
    let wrong = String::from_utf8(build("other").stderr).unwrap();
    assert!(
        wrong.contains("package `app` has no program `appp`\nhint: "),
        "{wrong}"
    );

    let (code, text) = guard.check(&policy, &["--path", "closure", "--all-paths"]);
    assert_eq!(code, 1, "{text}");
    for route in [
        "left 0.1.0\n      -> painter 0.1.0",
        "right 0.1.0\n      -> painter 0.1.0",
    ] {
        assert_eq!(text.matches(route).count(), 1, "{text}");
    }
    assert!(
        text.contains("    route 2:\n") && !text.contains("route 3"),
        "{text}"
    );
    let (_, text) = guard.check(&policy, &["--path", "closure"]);
    assert!(!text.contains("route 2"), "{text}");

    let (code, text) = guard.check(&policy, &["--path", "seen"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("vendor/painter/src/lib.rs"), "{text}");

    // What starts another program holds its name; the list for audits decides nothing.
    let (code, text) = guard.check(&policy, &["--path", "runs"]);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("an audit list of packages, a hint only"),
        "{text}"
    );
}

#[test]
fn a_package_that_the_workspace_does_not_have_is_named_with_a_hint() {
    let guard = Guard::new();
    let policy = guard.folder().join("policy.toml");
    for (names, words) in [
        (
            "package = 'ap'",
            "package `ap` is not a member of the workspace at ",
        ),
        (
            "package = 'app'\ntogether-with = ['clint']",
            "package `clint` is not a member",
        ),
        (
            "package = 'app'\nfeatures = ['gui']",
            "package `app` has no feature `gui`",
        ),
    ] {
        let text = format!(
            "schema = 1\n[[path]]\nname = 'p'\n{names}\nlevel = 'packages'\ndeny = [{{ crate = 'd' }}]\n"
        );
        std::fs::write(&policy, text).unwrap();
        let built = guard
            .verb("build", &policy)
            .arg("--manifest-path")
            .arg(fixture("features/Cargo.toml"))
            .output()
            .unwrap();
        assert_eq!(built.status.code(), Some(2), "{built:?}");
        let text = String::from_utf8(built.stderr).unwrap();
        assert!(
            text.contains(words) && text.contains("\nhint: correct "),
            "{text}"
        );
    }
}

fn write_package(folder: &Path, name: &str, rest: &str, file: &str, source: &str) {
    std::fs::create_dir_all(folder.join("src")).unwrap();
    let manifest =
        format!("[package]\nname = '{name}'\nversion = '0.1.0'\nedition = '2024'\n{rest}");
    std::fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    std::fs::write(folder.join("src").join(file), source).unwrap();
}
