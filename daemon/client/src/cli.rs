//! Arguments and outcome of the client.

use crate::http::{Endpoint, Token};
use crate::{exit, top};
use clap::{Parser, Subcommand};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Environment variable with the bearer token, as the daemon reads it.
const TOKEN_VAR: &str = "COLDPATH_TOKEN";

/// Looks at a running coldpathd.
#[derive(Debug, Parser)]
#[command(name = "coldpath", version, about, max_term_width = 100)]
struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Shows a daemon live: health, agent channel, start-up, sessions. `q` ends it.
    Top {
        /// Where the daemon listens.
        #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:4170")]
        url: String,
        /// File that holds the bearer token; without it `COLDPATH_TOKEN` is read.
        #[arg(long, value_name = "FILE")]
        token_file: Option<PathBuf>,
        /// Time between two looks, milliseconds.
        #[arg(long, value_name = "MS", default_value_t = 500, value_parser = clap::value_parser!(u64).range(50..=60_000))]
        every_ms: u64,
        /// Prints one look as text and ends, for scripts and pipes.
        #[arg(long)]
        once: bool,
    },
}

pub(crate) fn run() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // A closed stdout or stderr is nothing to report.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() {
                exit::USAGE
            } else {
                exit::CLEAN
            });
        }
    };
    let Verb::Top {
        url,
        token_file,
        every_ms,
        once,
    } = args.verb;
    let endpoint = match endpoint(&url, token_file) {
        Ok(endpoint) => endpoint,
        Err(message) => return refuse(&message, exit::USAGE),
    };
    let outcome = if once {
        top::once(&endpoint, &mut std::io::stdout())
    } else {
        top::live(&endpoint, Duration::from_millis(every_ms))
    };
    match outcome {
        Ok(()) => ExitCode::from(exit::CLEAN),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::from(exit::CLEAN),
        Err(error) => refuse(&error.to_string(), exit::REFUSED),
    }
}

fn endpoint(url: &str, token_file: Option<PathBuf>) -> Result<Endpoint, String> {
    let token = match token_file {
        Some(path) => Some(
            std::fs::read_to_string(&path)
                .map_err(|error| format!("cannot read --token-file {}: {error}", path.display()))?,
        ),
        None => std::env::var(TOKEN_VAR).ok(),
    };
    let token = token
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty());
    Endpoint::parse(url, token.map(Token::new)).map_err(|error| error.to_string())
}

fn refuse(message: &str, code: u8) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "coldpath: error: {message}");
    ExitCode::from(code)
}
