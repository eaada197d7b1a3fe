//! `analyze`: see `analyze --help`.

use std::io::{self, Write};
use std::process::ExitCode;

use coldpath_analyzer::app::{Streams, run};
use coldpath_analyzer::exit;

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic
            .location()
            .map_or_else(String::new, |at| format!(" at {at}"));
        let _ = writeln!(
            io::stderr(),
            "internal error{place}; please report it with the input"
        );
        std::process::exit(i32::from(exit::INTERNAL));
    }));
    let streams = Streams {
        stdin: &mut io::stdin(),
        stdout: &mut io::stdout(),
        stderr: &mut io::stderr(),
    };
    ExitCode::from(run(std::env::args_os(), streams))
}
