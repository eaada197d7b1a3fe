//! Damaged, foreign and hostile inputs: no panic, no hang, a sentence and the right code.
//!
//! Mutations are seeded, so that a failure repeats.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a panic in a test is the report"
)]

mod program;

use coldpath_guards::fuzzing;
use flate2::read::GzDecoder;
use program::{Guard, fixture};
use std::fs::Permissions;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

/// A small real program, linked at fixed addresses and with symbols.
fn real_program() -> Vec<u8> {
    let file = std::fs::File::open(fixture("tiny/tiny.gz")).unwrap();
    let mut bytes = Vec::new();
    GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    bytes
}

/// `SplitMix64`, for mutations that repeat.
struct Seeded(u64);

impl Seeded {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }
}

#[test]
fn truncated_programs_do_not_panic() {
    let whole = real_program();
    for length in (0..whole.len()).step_by(97) {
        fuzzing::object(&whole[..length]);
    }
}

#[test]
fn programs_with_changed_bytes_do_not_panic() {
    let whole = real_program();
    let mut seeded = Seeded(1);
    for _ in 0..300 {
        let mut bytes = whole.clone();
        for _ in 0..=seeded.below(8) {
            // Headers and tables more often than code.
            let region = if seeded.below(2) == 0 {
                4096.min(bytes.len())
            } else {
                bytes.len()
            };
            let at = seeded.below(region);
            bytes[at] = u8::try_from(seeded.below(256)).unwrap();
        }
        fuzzing::object(&bytes);
    }
}

#[test]
fn words_that_are_huge_do_not_allocate_or_overflow() {
    let whole = real_program();
    let mut seeded = Seeded(2);
    for value in [u64::MAX, u64::MAX - 7, 1 << 63, u64::from(u32::MAX)] {
        for _ in 0..100 {
            let mut bytes = whole.clone();
            let tail = seeded.below(2) == 0;
            let from = if tail { bytes.len() - 4096 } else { 0 };
            let at = (from + seeded.below(4088)) & !7;
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
            fuzzing::object(&bytes);
        }
    }
}

#[test]
fn names_and_policies_of_any_bytes_do_not_panic() {
    let mut seeded = Seeded(3);
    let pieces = [
        "_ZN",
        "_R",
        "NvC",
        "17h0123456789abcdefE",
        "$LT$",
        "$GT$",
        "<",
        ">",
        "::",
        " as ",
        "&",
        "{closure#",
        "}",
        "core::ptr::drop_in_place<",
        "a",
        "9",
        "-1.0.0",
        "/src/",
        "/registry/",
        "é",
        "schema = 1\n",
        "[[path]]\n",
        "name = 'x'\n",
        "deny = [{ crate = '*' }]\n",
        "{\"reason\":\"compiler-artifact\"}\n",
    ];
    for _ in 0..3000 {
        let text: String = (0..seeded.below(12))
            .map(|_| pieces[seeded.below(pieces.len())])
            .collect();
        fuzzing::names(text.as_bytes());
        fuzzing::policy(text.as_bytes());
        fuzzing::artifacts(text.as_bytes());
    }
}

/// A record whose files are `bytes`, checked; code and text.
fn check_program(bytes: &[u8]) -> (i32, String) {
    let guard = Guard::new();
    guard.unpack("clean.small", |name, content| {
        if name == "clean" || name == "clean.unstripped" {
            *content = bytes.to_vec();
        }
    });
    guard.check(&fixture("matrix/policy.toml"), &["--path", "clean.small"])
}

#[test]
fn what_is_no_program_is_a_sentence() {
    let elf = real_program();
    let mut arm = elf.clone();
    arm[18] = 183;
    let mut object = elf.clone();
    object[16] = 1;
    for (bytes, words) in [
        (&b""[..], "is empty"),
        (b"\xcf\xfa\xed\xfe\x07\0\0\x01", "looks like Mach-O"),
        (b"MZ\x90\0", "looks like a Windows program"),
        (b"!<arch>\n", "looks like an archive"),
        (b"#!/bin/sh\n", "looks like a script"),
        (b"hello", "first bytes are not those of a program"),
        (b"\x7fELF", "header is cut short"),
        (&elf[..200], "damaged or truncated ELF file"),
        (&arm, "is an ELF file for aarch64"),
        (&object, "is an object file"),
    ] {
        let (code, text) = check_program(bytes);
        assert_eq!(code, 2, "{text}");
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn a_program_without_rust_is_said_to_be_one() {
    let (code, text) = check_program(&real_program());
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("not-rust"), "{text}");
}

#[test]
fn a_changed_file_is_not_judged() {
    let guard = Guard::new();
    let folder = guard.unpack("clean.small", |_, _| {});
    std::fs::write(folder.join("clean"), real_program()).unwrap();
    let (code, text) = guard.check(&fixture("matrix/policy.toml"), &["--path", "clean.small"]);
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("its sha256 differs"), "{text}");
}

/// A build is judged against the lock file that it was made with, where that is there.
#[test]
fn a_changed_lock_file_is_noticed() {
    let guard = Guard::new();
    let workspace = guard.folder().join("workspace");
    std::fs::create_dir(&workspace).unwrap();
    std::fs::write(workspace.join("Cargo.lock"), "version = 4\n").unwrap();
    let here = workspace.to_str().unwrap().to_owned();
    guard.unpack("clean.small", |name, content| {
        if name == "metadata.json" || name == "artifacts.jsonl" {
            let text = String::from_utf8(std::mem::take(content)).unwrap();
            *content = text.replace("/build/matrix", &here).into_bytes();
        }
    });
    let (code, text) = guard.check(&fixture("matrix/policy.toml"), &["--path", "clean.small"]);
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("evidence-stale"), "{text}");
}

#[test]
fn a_missing_file_is_a_sentence() {
    let guard = Guard::new();
    let folder = guard.unpack("clean.small", |_, _| {});
    std::fs::remove_file(folder.join("clean")).unwrap();
    let (code, text) = guard.check(&fixture("matrix/policy.toml"), &["--path", "clean.small"]);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("cannot read"), "{text}");
    assert!(text.contains("hint: run `guard build --policy "), "{text}");
}

/// A program in the guard's folder that is run in place of a tool.
fn stand_in(guard: &Guard, name: &str, script: &str) -> PathBuf {
    let file = guard.folder().join(name);
    std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
    file
}

#[test]
fn a_static_program_without_a_static_c_library_is_a_sentence() {
    let guard = Guard::new();
    let script = format!(
        "case $1 in metadata) exec {} \"$@\" ;; *) exit 101 ;; esac",
        env!("CARGO")
    );
    let cargo = stand_in(&guard, "cargo", &script);
    let build = |cell: &str, answer: &str| {
        let compiler = stand_in(&guard, "cc", &format!("echo {answer}"));
        let done = guard
            .verb("build", &fixture("matrix/policy.toml"))
            .arg("--manifest-path")
            .arg(fixture("matrix/Cargo.toml"))
            .args(["--path", cell])
            .env("CARGO", &cargo)
            .env("CC", compiler)
            .output()
            .unwrap();
        assert_eq!(done.status.code(), Some(2), "{done:?}");
        String::from_utf8(done.stderr).unwrap()
    };
    let words = "has no libc.a here\nhint: install it (Debian: libc6-dev)";
    let missing = build("clean.nonpie", "libc.a");
    assert!(missing.contains(words), "{missing}");
    // Another failure, and a program that needs none, are not blamed on it.
    for text in [
        build("clean.nonpie", "/usr/lib/libc.a"),
        build("clean.release", "libc.a"),
    ] {
        assert!(!text.contains("libc.a"), "{text}");
        assert!(text.contains("`cargo` failed"), "{text}");
    }
}

#[test]
fn a_build_that_is_missing_is_named_with_the_command_that_makes_it() {
    let guard = Guard::new();
    let policy = fixture("matrix/policy.toml");
    let evidence = guard.folder().join("evidence");
    let command = format!(
        "run `guard build --policy {} --evidence {} --path clean.small`",
        policy.display(),
        evidence.display()
    );
    let (code, text) = guard.check(&policy, &["--path", "clean.small"]);
    assert_eq!(code, 3, "{text}");
    assert!(text.contains(&command), "{text}");
    let nowhere = format!("there is no folder {}", evidence.display());
    assert!(text.contains(&nowhere), "{text}");
    let explain = guard
        .verb("explain", &policy)
        .args(["screen-ui", "--path", "clean.small"])
        .output()
        .unwrap();
    assert_eq!(explain.status.code(), Some(2), "{explain:?}");
    let text = String::from_utf8(explain.stderr).unwrap();
    assert!(text.contains(&command), "{text}");
}

#[test]
fn an_evidence_folder_that_is_a_file_is_said_to_be_one() {
    let guard = Guard::new();
    let policy = fixture("matrix/policy.toml");
    std::fs::write(guard.folder().join("evidence"), "").unwrap();
    let (code, text) = guard.check(&policy, &["--path", "clean.small"]);
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("is a file; --evidence is a folder"), "{text}");
    let built = guard
        .verb("build", &policy)
        .args(["--path", "clean.small"])
        .output()
        .unwrap();
    assert_eq!(built.status.code(), Some(2), "{built:?}");
    let text = String::from_utf8(built.stderr).unwrap();
    assert!(text.contains("with --evidence DIR"), "{text}");
}

/// Reading either would never end.
#[test]
fn a_pipe_or_a_device_in_place_of_a_program_is_a_sentence() {
    let guard = Guard::new();
    let folder = guard.unpack("clean.small", |_, _| {});
    let program = folder.join("clean");
    let check = || {
        let (code, text) = guard.check(&fixture("matrix/policy.toml"), &["--path", "clean.small"]);
        assert_eq!(code, 2, "{text}");
        assert!(text.contains("a folder, a pipe or a device"), "{text}");
        std::fs::remove_file(&program).unwrap();
    };
    std::fs::remove_file(&program).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &program).unwrap();
    check();
    let made = Command::new("mkfifo").arg(&program).status().unwrap();
    assert!(made.success());
    check();
}

#[test]
fn unlike_twins_are_refused() {
    let guard = Guard::new();
    let other = Guard::read_packed("offending.small", "offending.unstripped");
    guard.unpack("clean.small", |name, content| {
        if name == "clean.unstripped" {
            content.clone_from(&other);
        }
    });
    let (code, text) = guard.check(&fixture("matrix/policy.toml"), &["--path", "clean.small"]);
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("twin-mismatch"), "{text}");
}

/// Body of a fuzz target.
type Body = fn(&[u8]);

/// Inputs that are worth keeping: made by hand, or found by fuzzing.
#[test]
fn the_corpus_is_replayed() {
    let targets: [(&str, Body); 4] = [
        ("object", fuzzing::object),
        ("policy", fuzzing::policy),
        ("artifacts", fuzzing::artifacts),
        ("names", fuzzing::names),
    ];
    for (target, body) in targets {
        let mut count = 0;
        for entry in std::fs::read_dir(fixture("corpus").join(target)).unwrap() {
            let input = std::fs::read(entry.unwrap().path()).unwrap();
            assert!(input.len() <= fuzzing::INPUT_BYTES_MAX);
            body(&input);
            count += 1;
        }
        assert!(count > 0, "{target}");
    }
}
