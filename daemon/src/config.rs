//! What the daemon was asked to do: arguments, environment, defaults.
//!
//! Reading has no side effects and opens nothing but the token file; what is
//! valid only together (a token and a public address) is judged here, so that the
//! rest of the daemon cannot meet a bad combination.

use crate::channel::AgentCommand;
use crate::exit;
use coldpath_trace_format::emit::collector::Endpoint;
use coldpath_trace_format::env as vars;
use std::ffi::OsString;
use std::io::{self, Read as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Environment variable with the bearer token.
pub(crate) const TOKEN_VAR: &str = "COLDPATH_TOKEN";
/// Environment variable with the state directory.
const STATE_DIR_VAR: &str = "COLDPATH_STATE_DIR";
/// The port that is tried first, and the only one that walks up.
pub(crate) const DEFAULT_PORT: u16 = 4170;
/// Longest wait that an option takes: the largest timer of the daemon whose
/// contract this one keeps.
const MS_MAX: u64 = 2_147_483_647;
/// Longest start of the runtime: it opens a few files, which takes milliseconds; a
/// network file system that comes back at all does so in less than this, and
/// clients give up at about this time.
const RUNTIME_TIMEOUT_MS: u64 = 30_000;
/// A token file larger than this is not one.
const TOKEN_FILE_MAX_BYTES: u64 = 4_096;

/// Runs sessions of ACP agents behind one HTTP listener that answers /health first.
#[derive(Debug, clap::Parser)]
#[command(name = "coldpathd", version, about, max_term_width = 100)]
struct Args {
    /// Address to listen on: an IP address or `localhost`.
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    hostname: String,
    /// Port to listen on; 0 takes a free one. Only the default walks up when it is in use.
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Directory that the agent works in [default: the current directory].
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Command line of the ACP agent, quoted as in a shell but run without one
    /// [default: coldpath-agent beside this program].
    #[arg(long, value_name = "CMD")]
    agent: Option<String>,
    /// File that holds the bearer token; without it `COLDPATH_TOKEN` is read.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Also asks for the token on /health.
    #[arg(long)]
    require_auth: bool,
    /// Origin that browsers may call from, such as `http://localhost:3000`; may be repeated.
    /// `*` is every origin and needs a token.
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Directory for the daemon's state [default: `$XDG_STATE_HOME/coldpath/<hash of the workspace>`].
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Writes traces and profiles of this process and its agents to files in DIR.
    #[arg(long, value_name = "DIR")]
    trace_dir: Option<PathBuf>,
    /// Sends the same spans to an OTLP/HTTP collector at URL as well; needs a trace directory.
    #[arg(long, value_name = "URL")]
    otlp_endpoint: Option<String>,
    /// Shows stages as they happen in FILE, a Chrome trace; agents write beside it, with
    /// `.agent-PID` before the extension. Needs a trace directory.
    #[arg(long, value_name = "FILE")]
    chrome: Option<PathBuf>,
    /// What starts the runtime: the first answered /health, or nothing but the bind.
    #[arg(long, value_name = "WHEN", default_value = "health", value_parser = ["health", "immediate"])]
    runtime_start: String,
    /// Wait between the first answered /health and the start of the runtime; a request that
    /// needs the runtime starts it at once.
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=MS_MAX))]
    health_grace_ms: u64,
    /// Starts the runtime after this time when no /health came.
    #[arg(long, value_name = "MS", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(..=MS_MAX))]
    fallback_ms: u64,
    /// Longest wait for the runtime to start; then requests that need it get 503.
    #[arg(long, value_name = "MS", default_value_t = RUNTIME_TIMEOUT_MS, value_parser = clap::value_parser!(u64).range(1..=MS_MAX))]
    runtime_timeout_ms: u64,
    /// Longest wait for an agent to start and answer `initialize`, and for each `session/new`.
    #[arg(long, value_name = "MS", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=MS_MAX))]
    initialize_timeout_ms: u64,
    /// Live sessions at most; 0 means no limit.
    #[arg(long, value_name = "N", default_value_t = 32)]
    max_sessions: usize,
}

/// What the daemon was asked to do, valid as a whole.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) address: SocketAddr,
    /// Whether the next ports may be tried when this one is in use.
    pub(crate) port_walks: bool,
    /// Canonical, existing directory.
    pub(crate) workspace: PathBuf,
    pub(crate) agent: AgentCommand,
    pub(crate) access: crate::http::Access,
    pub(crate) state_dir: PathBuf,
    pub(crate) trace_dir: Option<PathBuf>,
    pub(crate) otlp_endpoint: Option<Endpoint>,
    /// File of the live view.
    pub(crate) chrome: Option<PathBuf>,
    pub(crate) start: StartPolicy,
    pub(crate) initialize_timeout: Duration,
    /// `None` is no limit.
    pub(crate) max_sessions: Option<usize>,
}

/// When the runtime starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StartPolicy {
    /// At once after bind.
    pub(crate) immediate: bool,
    /// After the first answered `/health`.
    pub(crate) health_grace: Duration,
    /// When neither `/health` nor a request came.
    pub(crate) fallback: Duration,
    /// Longest wait for the runtime once it was started.
    pub(crate) timeout: Duration,
}

/// Why the daemon does not start, or text that was asked for instead.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// clap's answer: help and version on stdout, usage errors on stderr.
    Clap(clap::Error),
    /// One sentence.
    Usage(String),
}

impl Refusal {
    pub(crate) fn print(&self) -> ExitCode {
        match self {
            Self::Clap(error) => {
                // A closed stdout or stderr is nothing to report.
                let _ = error.print();
                ExitCode::from(if error.use_stderr() {
                    exit::USAGE
                } else {
                    exit::CLEAN
                })
            }
            Self::Usage(text) => {
                crate::log::error(text);
                ExitCode::from(exit::USAGE)
            }
        }
    }
}

/// Reads this process's arguments and environment.
pub(crate) fn from_process() -> Result<Config, Refusal> {
    use clap::Parser as _;
    let args = Args::try_parse().map_err(Refusal::Clap)?;
    resolve(args, &|name| std::env::var_os(name)).map_err(Refusal::Usage)
}

type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

fn resolve(args: Args, env: Environment<'_>) -> Result<Config, String> {
    let address = address(&args.hostname, args.port)?;
    let token = token(args.token_file.as_deref(), env)?;
    if !address.ip().is_loopback() && token.is_none() {
        return Err(format!(
            "{} is reachable from other machines and no token is set\nhint: set COLDPATH_TOKEN or --token-file, or listen on 127.0.0.1",
            address.ip()
        ));
    }
    if args.require_auth && token.is_none() {
        return Err(
            "--require-auth needs a token\nhint: set COLDPATH_TOKEN or --token-file".to_owned(),
        );
    }
    for origin in &args.allow_origin {
        check_origin(origin, token.as_ref())?;
    }
    let workspace = workspace(args.workspace.as_deref())?;
    let state_dir = args
        .state_dir
        .or_else(|| set(env, STATE_DIR_VAR))
        .map_or_else(|| default_state_dir(&workspace, env), Ok)?;
    let trace_dir = args.trace_dir.or_else(|| set(env, vars::TRACE_DIR));
    if args.chrome.is_some() && trace_dir.is_none() {
        return Err("--chrome needs --trace-dir: the trace is the record, the view shows less\nhint: add --trace-dir DIR".to_owned());
    }
    Ok(Config {
        address,
        port_walks: args.port.is_none(),
        agent: AgentCommand::resolve(args.agent.as_deref())?,
        access: crate::http::Access {
            ip: address.ip(),
            token,
            require_auth: args.require_auth,
            allowed_origins: args.allow_origin,
        },
        state_dir,
        otlp_endpoint: otlp_endpoint(args.otlp_endpoint, trace_dir.is_some(), env)?,
        trace_dir,
        chrome: args.chrome,
        workspace,
        start: StartPolicy {
            immediate: args.runtime_start == "immediate",
            health_grace: Duration::from_millis(args.health_grace_ms),
            fallback: Duration::from_millis(args.fallback_ms),
            timeout: Duration::from_millis(args.runtime_timeout_ms),
        },
        initialize_timeout: Duration::from_millis(args.initialize_timeout_ms),
        max_sessions: (args.max_sessions > 0).then_some(args.max_sessions),
    })
}

/// The flag must make sense; an inherited variable without a trace directory is
/// somebody else's business.
fn otlp_endpoint(
    flag: Option<String>,
    traced: bool,
    env: Environment<'_>,
) -> Result<Option<Endpoint>, String> {
    if flag.is_some() && !traced {
        return Err("--otlp-endpoint needs --trace-dir: the file is the record".to_owned());
    }
    let variable = || env(vars::OTLP_ENDPOINT)?.into_string().ok();
    match flag
        .or_else(variable)
        .filter(|text| traced && !text.is_empty())
    {
        None => Ok(None),
        Some(text) => Endpoint::parse(&text)
            .map(Some)
            .map_err(|error| error.to_string()),
    }
}

/// A variable that is set and not empty.
fn set(env: Environment<'_>, name: &str) -> Option<PathBuf> {
    env(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

/// Names are not resolved: a static build has no name service, and a daemon that
/// listens where DNS says is a surprise.
fn address(hostname: &str, port: Option<u16>) -> Result<SocketAddr, String> {
    let bare = hostname
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(hostname);
    let ip = if hostname == "localhost" {
        IpAddr::V4(Ipv4Addr::LOCALHOST)
    } else {
        bare.parse().map_err(|_| {
            format!("--hostname `{hostname}` is not an IP address\nhint: use an address such as 127.0.0.1, or localhost")
        })?
    };
    Ok(SocketAddr::new(ip, port.unwrap_or(DEFAULT_PORT)))
}

fn token(file: Option<&Path>, env: Environment<'_>) -> Result<Option<crate::http::Token>, String> {
    let (source, text) = match file {
        Some(path) => {
            let text = read_token_file(path)
                .map_err(|error| format!("cannot read --token-file {}: {error}", path.display()))?;
            (path.display().to_string(), text)
        }
        None => match env(TOKEN_VAR) {
            None => return Ok(None),
            Some(value) => {
                let text = value
                    .into_string()
                    .map_err(|_| format!("{TOKEN_VAR} is not UTF-8"))?;
                (TOKEN_VAR.to_owned(), text)
            }
        },
    };
    let text = text.trim();
    if text.is_empty() {
        return Err(format!(
            "the token in {source} is empty\nhint: unset it, or put a token there"
        ));
    }
    // Nothing else can stand behind `Bearer` in a header.
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!(
            "the token in {source} has other characters than visible ASCII\nhint: use one of letters, digits and signs, without spaces"
        ));
    }
    Ok(Some(crate::http::Token::new(text.to_owned())))
}

/// Reads no more than a token may have: the path may name a device without an end.
fn read_token_file(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?
        .take(TOKEN_FILE_MAX_BYTES + 1)
        .read_to_string(&mut text)?;
    if text.len() as u64 > TOKEN_FILE_MAX_BYTES {
        return Err(io::Error::other(format!(
            "it is larger than {TOKEN_FILE_MAX_BYTES} bytes, which no token is"
        )));
    }
    Ok(text)
}

/// An origin is a scheme, a host and perhaps a port; `*` is every origin, which
/// only a token makes safe: any page could drive the daemon otherwise.
fn check_origin(origin: &str, token: Option<&crate::http::Token>) -> Result<(), String> {
    if origin == crate::http::ANY_ORIGIN {
        return if token.is_some() {
            Ok(())
        } else {
            Err("--allow-origin `*` needs a token\nhint: set COLDPATH_TOKEN or --token-file, or name the origins".to_owned())
        };
    }
    let host = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"));
    let valid =
        host.is_some_and(|host| !host.is_empty() && !host.contains(['/', '@', '?', '#', ' ']));
    if valid {
        return Ok(());
    }
    Err(format!(
        "--allow-origin `{origin}` is not an origin\nhint: write scheme, host and port only, such as http://localhost:3000, or `*`"
    ))
}

fn workspace(path: Option<&Path>) -> Result<PathBuf, String> {
    let asked = match path {
        Some(path) => path.to_owned(),
        None => std::env::current_dir()
            .map_err(|error| format!("the current directory cannot be used: {error}"))?,
    };
    let found = std::fs::canonicalize(&asked)
        .map_err(|error| format!("workspace {} cannot be used: {error}\nhint: name an existing directory with --workspace", asked.display()))?;
    if !found.is_dir() {
        return Err(format!(
            "workspace {} is not a directory\nhint: name an existing directory with --workspace",
            asked.display()
        ));
    }
    if found.to_str().is_none() {
        return Err(format!(
            "workspace {} is not UTF-8, which ACP needs",
            found.display()
        ));
    }
    Ok(found)
}

fn default_state_dir(workspace: &Path, env: Environment<'_>) -> Result<PathBuf, String> {
    let base = match set(env, "XDG_STATE_HOME").filter(|path| path.is_absolute()) {
        Some(base) => base,
        None => set(env, "HOME")
            .map(|home| home.join(".local/state"))
            .ok_or("neither XDG_STATE_HOME nor HOME is set\nhint: pass --state-dir")?,
    };
    Ok(base.join("coldpath").join(workspace_hash(workspace)))
}

/// 64-bit FNV-1a of the path, 16 hex digits: short, stable across versions of
/// Rust, and not a secret.
pub(crate) fn workspace_hash(workspace: &Path) -> String {
    use std::os::unix::ffi::OsStrExt as _;
    let hash = workspace
        .as_os_str()
        .as_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
    format!("{hash:016x}")
}

#[cfg(test)]
impl Config {
    /// What these arguments ask for, in an empty environment.
    pub(crate) fn of(args: &[&str]) -> Self {
        use clap::Parser as _;
        let args = Args::try_parse_from(["coldpathd"].iter().chain(args)).unwrap();
        resolve(args, &|_| None).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    fn resolve_with(args: &[&str], env: &[(&str, &str)]) -> Result<Config, String> {
        let args = Args::try_parse_from(["coldpathd"].iter().chain(args))
            .map_err(|error| error.to_string())?;
        resolve(args, &|name| {
            env.iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).into())
        })
    }

    #[track_caller]
    fn check_refused(args: &[&str], env: &[(&str, &str)], expected: &str) {
        let error = resolve_with(args, env).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }

    const HOME: (&str, &str) = ("HOME", "/home/user");

    #[test]
    fn defaults_listen_on_loopback_and_walk_from_4170() {
        let config = resolve_with(&["--agent", "true"], &[HOME]).unwrap();
        assert_eq!(config.address.to_string(), "127.0.0.1:4170");
        assert!(config.port_walks);
        assert!(
            config
                .state_dir
                .starts_with("/home/user/.local/state/coldpath")
        );
        assert!(
            !resolve_with(&["--agent", "true", "--port", "4170"], &[HOME])
                .unwrap()
                .port_walks
        );
    }

    #[test]
    fn flags_beat_the_environment() {
        let env = [
            ("COLDPATH_STATE_DIR", "/env/state"),
            ("COLDPATH_TRACE_DIR", "/env/trace"),
        ];
        let config = resolve_with(&["--agent", "true"], &env).unwrap();
        assert_eq!(config.state_dir, Path::new("/env/state"));
        assert_eq!(config.trace_dir.as_deref(), Some(Path::new("/env/trace")));
        let config = resolve_with(
            &["--agent", "true", "--state-dir", "/s", "--trace-dir", "/t"],
            &env,
        )
        .unwrap();
        assert_eq!(config.state_dir, Path::new("/s"));
        assert_eq!(config.trace_dir.as_deref(), Some(Path::new("/t")));
    }

    #[test]
    fn a_public_address_needs_a_token() {
        check_refused(
            &["--agent", "true", "--hostname", "0.0.0.0"],
            &[HOME],
            "no token is set",
        );
        assert!(
            resolve_with(
                &["--agent", "true", "--hostname", "0.0.0.0"],
                &[HOME, ("COLDPATH_TOKEN", "t")]
            )
            .is_ok()
        );
    }

    #[test]
    fn bad_values_are_refused_with_the_next_step() {
        check_refused(
            &["--workspace", "/nonexistent/dir"],
            &[HOME],
            "hint: name an existing directory",
        );
        check_refused(
            &["--workspace", "/etc/passwd"],
            &[HOME],
            "is not a directory",
        );
        check_refused(
            &["--hostname", "example.org"],
            &[HOME],
            "is not an IP address",
        );
        check_refused(
            &[
                "--agent",
                "true",
                "--otlp-endpoint",
                "http://127.0.0.1:4318",
            ],
            &[HOME],
            "needs --trace-dir",
        );
        check_refused(
            &[
                "--agent",
                "true",
                "--trace-dir",
                "/t",
                "--otlp-endpoint",
                "collector",
            ],
            &[HOME],
            "is not a collector",
        );
        check_refused(
            &["--agent", "true", "--chrome", "live.json"],
            &[HOME],
            "--chrome needs --trace-dir",
        );
        check_refused(&["--require-auth"], &[HOME], "needs a token");
        check_refused(
            &["--allow-origin", "http://a/b"],
            &[HOME],
            "is not an origin",
        );
        check_refused(&["--allow-origin", "*"], &[HOME], "needs a token");
        check_refused(&["--agent", "'unclosed"], &[HOME], "quote");
        check_refused(
            &["--agent", "true"],
            &[HOME, ("COLDPATH_TOKEN", " \n")],
            "is empty",
        );
        check_refused(&["--fallback-ms", "2147483648"], &[HOME], "2147483648");
        check_refused(&["--agent", "true"], &[], "HOME");
    }

    #[test]
    fn a_token_is_visible_ascii() {
        for token in ["two words", "tab\there", "clé", "line\nbreak", "nul\u{1}"] {
            check_refused(
                &["--agent", "true"],
                &[HOME, ("COLDPATH_TOKEN", token)],
                "visible ASCII",
            );
        }
        for token in ["~!a/+=Z09", " padded\n"] {
            let args = ["--agent", "true", "--allow-origin", "*"];
            assert!(resolve_with(&args, &[HOME, ("COLDPATH_TOKEN", token)]).is_ok());
        }
    }

    #[test]
    fn a_token_file_without_an_end_is_not_read_to_it() {
        let args = ["--agent", "true", "--token-file", "/dev/zero"];
        check_refused(&args, &[HOME], "larger than 4096 bytes");
    }

    #[test]
    fn the_workspace_hash_is_fnv_1a() {
        // Test vectors of the FNV reference code.
        assert_eq!(workspace_hash(Path::new("")), "cbf29ce484222325");
        assert_eq!(workspace_hash(Path::new("foobar")), "85944171f73967e8");
    }
}
