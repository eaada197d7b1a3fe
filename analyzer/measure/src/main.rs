//! `measure`: the program around [`coldpath_measure::main_impl`].

use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        // One line, and the exit code of a defect whatever thread it is.
        let _ = writeln!(std::io::stderr(), "measure: internal error: {panic}");
        std::process::exit(coldpath_measure::exit::INTERNAL.into());
    }));
    let code = coldpath_measure::main_impl(
        std::env::args_os(),
        &mut std::io::stdout(),
        &mut std::io::stderr(),
    );
    ExitCode::from(code)
}
