//! `session/new`: directories, repositories, instruction files, the dirty state.

use super::client::{Client, Ended, error_of, fake_git, git, repository};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

#[test]
fn a_directory_that_cannot_be_a_workspace_is_refused_with_the_reason() {
    let mut client = Client::initialized(&|_| {});
    let file = client.home.path().join("file");
    fs::write(&file, "").unwrap();
    for (cwd, reason) in [
        (json!("relative/path"), "`cwd` is not an absolute path"),
        (json!(""), "`cwd` is not an absolute path"),
        (json!("/nonexistent/x"), "`cwd` cannot be opened"),
        (json!(file), "`cwd` is not a directory"),
        (json!("/a\0b"), "`cwd` cannot be opened"),
        (json!(5), "`params`: invalid type"),
    ] {
        let answer = client.request("session/new", &json!({"cwd": cwd, "mcpServers": []}));
        let (code, message) = error_of(&answer);
        assert!(
            code == -32_602 && message.starts_with(reason),
            "{cwd}: {answer}"
        );
    }
    let answer = client.request("session/new", &json!({"cwd": "/", "mcpServers": {}}));
    assert_eq!(error_of(&answer), (-32_602, "`mcpServers` is not an array"));
    client.finish().is_clean();
}

/// What the agent said of the workspace at once, and what later.
fn workspace(directory: &Path) -> (Value, Value) {
    let mut client = Client::initialized(&|_| {});
    let session = client.new_session(directory);
    let update = client.receive();
    assert_eq!(update["method"], "session/update");
    let params = &update["params"];
    assert_eq!(params["sessionId"], session["sessionId"]);
    assert_eq!(params["update"]["sessionUpdate"], "session_info_update");
    let later = params["update"]["_meta"]["coldpath.workspace"].clone();
    client.finish().is_clean();
    (session["_meta"]["coldpath.workspace"].clone(), later)
}

#[test]
fn branch_and_commit_are_told_at_once_and_the_dirty_state_later() {
    let repository = repository();
    let directory = repository.path();
    let commit = git(directory, &["rev-parse", "HEAD"]);
    let branch = git(directory, &["symbolic-ref", "--short", "HEAD"]);
    let state = |dirty| json!({"branch": branch, "commit": commit, "dirty": dirty});
    let unknown = Value::Null;
    assert_eq!(
        workspace(directory),
        (state(unknown.clone()), state(json!(false)))
    );
    fs::write(directory.join("file"), "changed").unwrap();
    assert_eq!(
        workspace(directory),
        (state(unknown.clone()), state(json!(true)))
    );
    git(directory, &["checkout", "-q", "--", "file"]);
    fs::write(directory.join("untracked"), "").unwrap();
    assert_eq!(workspace(directory), (state(unknown), state(json!(true))));
}

#[test]
fn asking_git_leaves_the_index_as_it_was() {
    let repository = repository();
    let index = repository.path().join(".git/index");
    // Same content, newer time: a plain `git status` would refresh the index.
    fs::write(repository.path().join("file"), "text").unwrap();
    let before = fs::metadata(&index).unwrap().modified().unwrap();
    let (_, later) = workspace(repository.path());
    assert_eq!(later["dirty"], false);
    assert_eq!(fs::metadata(&index).unwrap().modified().unwrap(), before);
}

#[test]
fn a_workspace_reached_by_a_link_is_the_one_it_leads_to() {
    let repository = repository();
    let links = tempfile::tempdir().unwrap();
    let link = links.path().join("link");
    std::os::unix::fs::symlink(repository.path().join(".git/.."), &link).unwrap();
    let (at_once, _) = workspace(&link);
    assert_eq!(at_once["branch"], "work/one");
}

#[test]
fn outside_of_a_repository_nothing_is_known_and_nothing_is_asked() {
    let (_dir, path) = fake_git("echo started >> \"$HOME/git-ran\"");
    let mut client = Client::initialized(&|command| {
        command.env("PATH", &path);
    });
    let home = client.home.path().to_owned();
    let session = client.new_session(&home);
    assert_eq!(
        session["_meta"]["coldpath.workspace"],
        json!({"branch": null, "commit": null, "dirty": null})
    );
    let ran = home.join("git-ran");
    let Ended { lines, .. } = client.finish();
    assert_eq!(lines, Vec::<Value>::new());
    assert!(!ran.exists());
}

#[test]
fn a_git_that_hangs_delays_no_request_and_is_ended_with_the_agent() {
    let repository = repository();
    // The shell becomes `sleep`, so its id is that of what hangs.
    let (_dir, path) = fake_git("echo $$ > \"$HOME/pid\"\nexec sleep 600");
    let mut client = Client::initialized(&|command| {
        command.env("PATH", &path);
    });
    client.new_session(repository.path());
    let pid_file = client.home.path().join("pid");
    let pid = loop {
        // Each request is answered while git is started and hangs.
        client.new_session(repository.path());
        let text = fs::read_to_string(&pid_file).unwrap_or_default();
        if text.ends_with('\n') {
            break text.trim().to_owned();
        }
    };
    let Ended { status, lines, .. } = client.finish();
    assert_eq!(status.code(), Some(0));
    assert_eq!(lines, Vec::<Value>::new(), "unknown is not told");
    assert!(!Path::new("/proc").join(pid).exists());
}

#[test]
fn git_gets_nothing_that_leads_it_elsewhere_or_into_our_trace() {
    let repository = repository();
    let (_dir, path) = fake_git("env > \"$HOME/env\"; printf '%s\\n' \"$@\" > \"$HOME/args\"");
    let mut client = Client::initialized(&|command| {
        command
            .env("PATH", &path)
            .env("GIT_DIR", "/elsewhere")
            .env("GIT_WORK_TREE", "/elsewhere")
            .env("COLDPATH_SPAWN", "v1:1:2:3:4")
            .env(
                "TRACEPARENT",
                "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            )
            .env("KEPT", "yes");
    });
    let home = client.home.path().to_owned();
    client.new_session(repository.path());
    // The answer comes when git has ended.
    assert_eq!(client.receive()["method"], "session/update");
    let text = fs::read_to_string(home.join("env")).unwrap();
    let has = |name: &str| text.lines().any(|line| line.starts_with(name));
    assert!(has("KEPT=yes"));
    for name in [
        "GIT_DIR=",
        "GIT_WORK_TREE=",
        "COLDPATH_SPAWN=",
        "TRACEPARENT=",
    ] {
        assert!(!has(name), "{name}");
    }
    let arguments = fs::read_to_string(home.join("args")).unwrap();
    assert!(arguments.contains("core.fsmonitor=false\n"), "{arguments}");
    client.finish().is_clean();
}

#[test]
fn without_git_the_dirty_state_stays_unknown() {
    let repository = repository();
    let mut client = Client::initialized(&|command| {
        command.env("PATH", "/nonexistent");
    });
    let session = client.new_session(repository.path());
    assert_eq!(session["_meta"]["coldpath.workspace"]["branch"], "work/one");
    client.new_session(repository.path());
    let ended = client.finish();
    ended.is_clean();
    assert_eq!(ended.lines, Vec::<Value>::new());
}

#[test]
fn git_status_can_be_switched_off() {
    let repository = repository();
    let home = tempfile::tempdir().unwrap();
    fs::create_dir_all(home.path().join(".config/coldpath")).unwrap();
    let settings = home.path().join(".config/coldpath/agent.toml");
    fs::write(settings, "[git]\nstatus = false\n").unwrap();
    let (_dir, path) = fake_git("echo x > \"$HOME/git-ran\"");
    let ran = home.path().join("git-ran");
    let mut client = Client::start_in(home, &|command| {
        command.env("PATH", &path);
    });
    client.initialize(&json!({}));
    client.new_session(repository.path());
    client.new_session(repository.path());
    assert!(!ran.exists());
    client.finish().is_clean();
}

#[test]
fn instruction_files_are_those_of_the_session_s_directory_as_they_are_now() {
    let repository = repository();
    let root = repository.path().canonicalize().unwrap();
    fs::create_dir(root.join("sub")).unwrap();
    fs::write(root.join("AGENTS.md"), "0123456789").unwrap();
    let mut client = Client::initialized(&|command| {
        command.current_dir(&root);
    });
    let told = |session: &Value| session["_meta"]["coldpath.instructions"].clone();
    let agents = root.join("AGENTS.md");
    let first = client.new_session(&root);
    let expected = json!([{"path": agents, "bytes": 10, "truncated": false}]);
    assert_eq!(told(&first), expected);
    fs::write(&agents, "x".repeat(70_000)).unwrap();
    fs::write(root.join("sub/CLAUDE.md"), "sub").unwrap();
    let second = client.new_session(&root.join("sub"));
    let expected = json!([
        {"path": agents, "bytes": 65_536, "truncated": true},
        {"path": root.join("sub/CLAUDE.md"), "bytes": 3, "truncated": false},
    ]);
    assert_eq!(told(&second), expected);
    client.finish().is_clean();
}

#[test]
fn named_mcp_servers_are_told_to_be_unused() {
    let mut client = Client::initialized(&|_| {});
    let server = json!({"name": "a", "command": "/x", "args": [], "env": []});
    let params = json!({"cwd": "/", "mcpServers": [server]});
    let answer = client.request("session/new", &params);
    assert!(answer["result"]["sessionId"].is_string(), "{answer}");
    let Ended { stderr, .. } = client.finish();
    assert!(stderr.contains("MCP servers were named (1)"), "{stderr}");
}
