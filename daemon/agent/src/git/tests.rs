//! Repositories made with the real `git`; expectations come from `git rev-parse`.

use super::*;
use std::process::Command;

fn git(directory: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(directory)
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t",
            "-c",
            "commit.gpgSign=false",
        ])
        .args([
            "-c",
            "init.defaultBranch=main",
            "-c",
            "protocol.file.allow=always",
        ])
        .args(arguments)
        .env_remove("GIT_DIR")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().trim_end().to_owned();
    if output.status.success() {
        Ok(text(output.stdout))
    } else {
        Err(text(output.stderr))
    }
}

#[track_caller]
fn run(directory: &Path, arguments: &[&str]) {
    git(directory, arguments).unwrap();
}

/// A repository with one commit.
fn repository(init: &[&str]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    run(dir.path(), &[&["init", "-q"], init].concat());
    commit(dir.path());
    dir
}

fn commit(directory: &Path) {
    run(directory, &["commit", "-q", "--allow-empty", "-m", "c"]);
}

/// What git says about `directory`.
fn expected(directory: &Path) -> Head {
    Head {
        branch: git(directory, &["symbolic-ref", "-q", "HEAD"])
            .ok()
            .map(|name| name.strip_prefix("refs/heads/").unwrap_or(&name).to_owned()),
        commit: git(directory, &["rev-parse", "-q", "--verify", "HEAD"]).ok(),
    }
}

#[track_caller]
fn check(directory: &Path) -> Head {
    let directory = directory.canonicalize().unwrap();
    let repository = Repository::find(&directory).unwrap();
    assert_eq!(
        repository.root().display().to_string(),
        git(&directory, &["rev-parse", "--show-toplevel"]).unwrap()
    );
    let head = repository.head();
    assert_eq!(head, expected(&directory));
    head
}

#[test]
fn a_loose_ref_a_packed_ref_and_a_newer_loose_one() {
    let dir = repository(&[]);
    let first = check(dir.path()).commit;
    run(dir.path(), &["pack-refs", "--all"]);
    assert!(!dir.path().join(".git/refs/heads/main").exists());
    assert_eq!(check(dir.path()).commit, first);
    commit(dir.path());
    assert_ne!(check(dir.path()).commit, first);
}

#[test]
fn a_branch_with_slashes_among_many_packed_ones() {
    let dir = repository(&[]);
    for name in ["a", "feat/x/deep", "feat/x/other", "z"] {
        run(dir.path(), &["checkout", "-q", "-b", name]);
        commit(dir.path());
    }
    run(dir.path(), &["tag", "-a", "-m", "t", "v1"]);
    run(dir.path(), &["pack-refs", "--all"]);
    for name in ["a", "feat/x/deep", "feat/x/other", "z", "main"] {
        run(dir.path(), &["checkout", "-q", name]);
        assert_eq!(check(dir.path()).branch.as_deref(), Some(name));
    }
}

#[test]
fn a_detached_head_has_no_branch() {
    let dir = repository(&[]);
    run(dir.path(), &["checkout", "-q", "--detach"]);
    let head = check(dir.path());
    assert_eq!(head.branch, None);
    assert!(head.commit.is_some());
}

#[test]
fn an_unborn_branch_has_no_commit() {
    let dir = tempfile::tempdir().unwrap();
    run(dir.path(), &["init", "-q", "-b", "new/born"]);
    assert_eq!(
        check(dir.path()),
        Head {
            branch: Some("new/born".to_owned()),
            commit: None
        }
    );
}

#[test]
fn a_directory_below_the_root_belongs_to_the_repository() {
    let dir = repository(&[]);
    let deep = dir.path().join("a/b/c");
    std::fs::create_dir_all(&deep).unwrap();
    check(&deep);
}

#[test]
fn a_worktree_has_its_own_head_and_the_shared_refs() {
    let dir = repository(&[]);
    let trees = tempfile::tempdir().unwrap();
    let tree = trees.path().join("tree");
    let path = tree.to_str().unwrap();
    run(
        dir.path(),
        &["worktree", "add", "-q", "-b", "side/line", path],
    );
    commit(&tree);
    assert_eq!(check(&tree).branch.as_deref(), Some("side/line"));
    run(dir.path(), &["pack-refs", "--all"]);
    check(&tree);
    run(&tree, &["checkout", "-q", "--detach"]);
    assert_eq!(check(&tree).branch, None);
    assert_eq!(check(dir.path()).branch.as_deref(), Some("main"));
}

#[test]
fn a_submodule_is_a_repository_of_its_own() {
    let inner = repository(&[]);
    let outer = repository(&[]);
    let url = inner.path().to_str().unwrap();
    run(outer.path(), &["submodule", "--quiet", "add", url, "sub"]);
    assert!(outer.path().join("sub/.git").is_file());
    check(&outer.path().join("sub"));
}

#[test]
fn ids_of_sha256_repositories_are_read() {
    let dir = repository(&["--object-format=sha256"]);
    assert_eq!(check(dir.path()).commit.unwrap().len(), 64);
    run(dir.path(), &["pack-refs", "--all"]);
    check(dir.path());
}

#[test]
fn a_symbolic_ref_behind_head_and_a_head_outside_of_heads() {
    let dir = repository(&[]);
    run(
        dir.path(),
        &["symbolic-ref", "refs/heads/alias", "refs/heads/main"],
    );
    run(dir.path(), &["symbolic-ref", "HEAD", "refs/heads/alias"]);
    // git resolves the chain to its end; what is checked out is the first name.
    let head = Repository::find(dir.path()).unwrap().head();
    assert_eq!(head.commit, expected(dir.path()).commit);
    run(
        dir.path(),
        &["update-ref", "refs/other/x", "refs/heads/main"],
    );
    run(dir.path(), &["symbolic-ref", "HEAD", "refs/other/x"]);
    assert_eq!(check(dir.path()).branch.as_deref(), Some("refs/other/x"));
}

#[test]
fn a_head_that_is_a_link_is_a_symbolic_ref() {
    let dir = repository(&[]);
    let head = dir.path().join(".git/HEAD");
    std::fs::remove_file(&head).unwrap();
    std::os::unix::fs::symlink("refs/heads/main", &head).unwrap();
    assert_eq!(check(dir.path()).branch.as_deref(), Some("main"));
}

#[test]
fn reftable_storage_is_unknown() {
    let dir = tempfile::tempdir().unwrap();
    if git(dir.path(), &["init", "-q", "--ref-format=reftable"]).is_err() {
        // git before 2.45 cannot make one.
        return;
    }
    commit(dir.path());
    let repository = Repository::find(dir.path()).unwrap();
    assert_eq!(repository.head(), Head::default());
}

#[test]
fn what_is_no_repository_has_no_head() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    assert_eq!(Repository::find(&root.join("none")), None);
    for text in ["", "gitdir: ", "gitdir: nowhere", "gitdir: a\0b", "nothing"] {
        std::fs::write(root.join(".git"), text).unwrap();
        assert_eq!(Repository::find(&root), None, "{text:?}");
    }
}

#[test]
fn a_forged_head_reads_nothing_outside_of_the_repository() {
    let dir = tempfile::tempdir().unwrap();
    let secret = "0123456789abcdef0123456789abcdef01234567";
    std::fs::write(dir.path().join("secret"), secret).unwrap();
    let git_dir = dir.path().join(".git");
    std::fs::create_dir_all(git_dir.join("refs")).unwrap();
    for text in [
        "ref: ../secret",
        "ref: refs/../../secret",
        "ref: refs//x",
        "ref: /etc/hostname",
        "ref:",
        "0123",
        "zz23456789abcdef0123456789abcdef01234567",
    ] {
        std::fs::write(git_dir.join("HEAD"), text).unwrap();
        let head = Repository::find(dir.path()).unwrap().head();
        assert_eq!(head, Head::default(), "{text}");
    }
    std::fs::write(
        git_dir.join("HEAD"),
        format!("ref: refs/{}", "x".repeat(5_000)),
    )
    .unwrap();
    assert_eq!(
        Repository::find(dir.path()).unwrap().head(),
        Head::default()
    );
    // A ring of symbolic refs ends.
    std::fs::write(git_dir.join("HEAD"), "ref: refs/a\n").unwrap();
    std::fs::write(git_dir.join("refs/a"), "ref: refs/a\n").unwrap();
    assert_eq!(Repository::find(dir.path()).unwrap().head().commit, None);
}
