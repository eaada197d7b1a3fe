//! The embedded default agent of Coldpath: ACP version 1 over stdio.
//!
//! One thread, blocking, no runtime: stdin carries requests, stdout answers,
//! stderr is for people. Start-up and each new session are cut into named parts
//! (`startup`, `session_stages`), timed at their edges, and told to the client as a
//! profile and to a trace file as spans; with neither asked for, nothing is
//! written. It holds sessions but runs no turn: no model endpoint can be
//! configured yet, and `session/prompt` says so.

mod agent;
mod arguments;
mod diagnostics;
mod edges;
mod git;
mod initialize;
mod instructions;
mod regular_file;
mod session;
mod session_stages;
mod settings;
mod startup;
mod stdio;
mod tools;
mod trace;

use agent::Agent;
use arguments::{Arguments, Command};
use coldpath_trace_format::emit::MonoNanos;
use diagnostics::Diagnostics;
use edges::{Edge, EdgeClock};
use git::Repository;
use instructions::Instructions;
use settings::Settings;
use startup::Startup;
use std::io::Write as _;
use std::process::ExitCode;
use tools::Registry;
use trace::TraceSetup;

/// Clean end: stdin ended or the client went away.
pub const EXIT_OK: u8 = 0;
/// stdin cannot be read.
pub const EXIT_BROKEN: u8 = 1;
/// Bad arguments.
pub const EXIT_USAGE: u8 = 2;

/// Runs the program; `main` is the first clock reading of the process.
#[must_use]
pub fn main_impl(main: MonoNanos) -> ExitCode {
    let mut clock = EdgeClock::default();
    let trace_dir = trace::dir_from_env();
    let sched = trace_dir.is_some().then(|| clock.take_figures()).flatten();
    let probed = sched.map(|_| clock.edge());
    let mut setup = TraceSetup::from_env(trace_dir, main);
    let mut startup = Startup::begin(Edge { at: main, sched }, setup.stamp());
    if let Some(probed) = probed {
        startup.mark_at("trace_probe", probed);
    }
    let mut diagnostics = Diagnostics::new(std::io::stderr());
    let code = match Command::parse(std::env::args_os().skip(1)) {
        Ok(Command::Run(Arguments { trace_dir, chrome })) => {
            startup.mark("arguments", &clock);
            if let Some(file) = chrome {
                setup.set_chrome(file);
            }
            if let Some(dir) = trace_dir {
                setup.set_dir(dir);
                if sched.is_none() {
                    clock.take_figures();
                    startup.mark("trace_probe", &clock);
                }
            }
            run(setup, clock, startup, &mut diagnostics)
        }
        Ok(Command::Print(text)) => {
            // A closed pipe is the reader's choice.
            let _ = std::io::stdout().write_all(text.as_bytes());
            EXIT_OK
        }
        Err(error) => {
            diagnostics.error(&error);
            EXIT_USAGE
        }
    };
    ExitCode::from(code)
}

fn run(
    setup: TraceSetup,
    clock: EdgeClock,
    mut startup: Startup,
    diagnostics: &mut Diagnostics,
) -> u8 {
    let settings = Settings::load(settings::path_from_env().as_deref());
    for problem in &settings.problems {
        diagnostics.warn(problem);
    }
    let settings = settings.value;
    startup.mark("settings_load", &clock);

    let workspace = std::env::current_dir().unwrap_or_default();
    let repository = Repository::find(&workspace);
    let root = repository.as_ref().map(Repository::root);
    let instructions = Instructions::discover(&workspace, root, &settings.instructions, None);
    startup.mark("instructions", &clock);

    let tools = Registry::build(&settings.disabled_tools);
    startup.mark("tools", &clock);

    let transport = stdio::Transport::open();
    startup.mark("transport", &clock);

    let mut agent = Agent::new(settings, tools, instructions, setup, clock, startup);
    match transport.serve(&mut agent, diagnostics) {
        Ok(()) => EXIT_OK,
        Err(error) => {
            diagnostics.error(&format!("cannot read requests from stdin: {error}"));
            EXIT_BROKEN
        }
    }
}
