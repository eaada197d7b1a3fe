//! `guard`: see `guard --help`.

use std::io::{self, Write};
use std::process::ExitCode;

use coldpath_guards::{app, exit};

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
    let code = app::run(std::env::args_os(), &mut io::stdout(), &mut io::stderr());
    ExitCode::from(code)
}
