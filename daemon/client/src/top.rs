//! The loop around looking and drawing.

use crate::http::Endpoint;
use crate::snapshot::Snapshot;
use crate::view::{self, Screen};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use std::io::{self, IsTerminal as _, Write};
use std::time::Duration;

/// Prints one look as text. A daemon that is down or refuses is an error.
pub(crate) fn once(endpoint: &Endpoint, out: &mut impl Write) -> io::Result<()> {
    let snapshot = Snapshot::take(endpoint);
    let screen = Screen {
        authority: endpoint.authority(),
        snapshot: &snapshot,
        colour: false,
    };
    for line in view::lines(&screen) {
        writeln!(out, "{line}")?;
    }
    match snapshot {
        Snapshot::Up(_) => Ok(()),
        Snapshot::Down(why) => Err(io::Error::other(why)),
        Snapshot::Refused { status, .. } => Err(io::Error::other(format!(
            "the daemon answered with status {status}"
        ))),
    }
}

/// Shows the daemon until `q`, Escape or Ctrl-C. The terminal is given back as it
/// was, also when drawing fails.
pub(crate) fn live(endpoint: &Endpoint, every: Duration) -> io::Result<()> {
    if !io::stdout().is_terminal() {
        let text =
            "top draws on a terminal, and stdout is none\nhint: --once prints one look as text";
        return Err(io::Error::other(text));
    }
    let mut terminal = ratatui::try_init()?;
    let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let outcome = loop {
        let snapshot = Snapshot::take(endpoint);
        let screen = Screen {
            authority: endpoint.authority(),
            snapshot: &snapshot,
            colour,
        };
        if let Err(error) = terminal.draw(|frame| view::draw(frame, &screen)) {
            break Err(error);
        }
        match wants_to_quit(every) {
            Ok(false) => {}
            Ok(true) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    ratatui::try_restore()?;
    outcome
}

/// Waits for a key for as long as the look is fresh.
fn wants_to_quit(fresh: Duration) -> io::Result<bool> {
    if !event::poll(fresh)? {
        return Ok(false);
    }
    Ok(match event::read()? {
        Event::Key(key) if key.kind == KeyEventKind::Press => {
            matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
                || (key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL))
        }
        _ => false,
    })
}
