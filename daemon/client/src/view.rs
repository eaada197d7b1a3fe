//! Draws a snapshot. Pure: a value and a frame in, cells out.
//!
//! Colour repeats what a word says and never says it alone.

use crate::snapshot::{Snapshot, Status, plain};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Wrap};

/// What is on the screen.
#[derive(Clone, Debug)]
pub struct Screen<'a> {
    /// `HOST:PORT` of the daemon.
    pub authority: &'a str,
    /// The newest look.
    pub snapshot: &'a Snapshot,
    /// Whether colours are wanted (`NO_COLOR` is not set).
    pub colour: bool,
}

/// Draws the whole screen; any size of it, down to nothing, is fine.
pub fn draw(frame: &mut Frame<'_>, screen: &Screen<'_>) {
    let [main, help] =
        Layout::vertical([Constraint::Min(0), Constraint::Length(1)]).areas(frame.area());
    let title = format!(" coldpath top · {} ", plain(screen.authority));
    let body = Paragraph::new(lines(screen))
        .wrap(Wrap { trim: false })
        .block(Block::bordered().title(title));
    frame.render_widget(body, main);
    frame.render_widget(Paragraph::new(" q quit "), help);
}

/// The screen's content as lines of text, also for output that is no terminal.
#[must_use]
pub fn lines(screen: &Screen<'_>) -> Vec<Line<'static>> {
    match screen.snapshot {
        Snapshot::Down(why) => vec![
            state(screen, "down", Color::Red),
            row("reason", why.clone()),
        ],
        Snapshot::Refused { status, said } => {
            vec![
                state(screen, "refused", Color::Yellow),
                row("status", status.to_string()),
                row("said", said.clone()),
            ]
        }
        Snapshot::Up(status) => up(screen, status),
    }
}

fn up(screen: &Screen<'_>, status: &Status) -> Vec<Line<'static>> {
    let colour = match status.status.as_str() {
        "ok" => Color::Green,
        "warning" => Color::Yellow,
        _ => Color::Red,
    };
    let daemon = &status.daemon;
    let version = daemon
        .coldpath_version
        .as_deref()
        .unwrap_or("unknown version");
    let mut lines = vec![
        state(screen, &plain(&status.status), colour),
        row(
            "daemon",
            format!(
                "pid {}, {}, up {}",
                daemon.pid,
                plain(version),
                duration(daemon.uptime_ms)
            ),
        ),
        row("workspace", plain(&daemon.workspace_cwd)),
        row("listener", listener(status)),
        row("preheat", preheat(status)),
        row("agent", channel(status)),
        row("sessions", sessions(status)),
    ];
    for issue in &status.issues {
        lines.push(row(
            "issue",
            format!("{}: {}", plain(&issue.code), plain(&issue.message)),
        ));
    }
    lines
}

fn state(screen: &Screen<'_>, word: &str, colour: Color) -> Line<'static> {
    let mut style = Style::new().add_modifier(Modifier::BOLD);
    if screen.colour {
        style = style.fg(colour);
    }
    Line::from(vec![label("health"), Span::styled(word.to_owned(), style)])
}

fn row(name: &'static str, value: String) -> Line<'static> {
    Line::from(vec![label(name), Span::raw(value)])
}

fn label(name: &'static str) -> Span<'static> {
    Span::raw(format!("{name:<10} "))
}

fn listener(status: &Status) -> String {
    let startup = &status.daemon.startup;
    let at = startup
        .process_started_at
        .as_ref()
        .map_or_else(String::new, |at| format!(" at {}", plain(at)));
    match (startup.process_to_listen_ms, startup.main_to_listen_ms) {
        (Some(ms), _) => format!("{} after process start{at}", milliseconds(ms)),
        // Whoever started it did not say when: the time before `main` is not known.
        (None, Some(ms)) => format!("{} after main{at}", milliseconds(ms)),
        (None, None) => "unknown".to_owned(),
    }
}

fn preheat(status: &Status) -> String {
    let preheat = &status.daemon.startup.preheat;
    let mut text = plain(&preheat.status);
    if let Some(ms) = preheat.duration_ms {
        text.extend([" in ", &milliseconds(ms)]);
    }
    if let Some(error) = &preheat.error {
        text.extend([": ", &plain(error)]);
    }
    text
}

fn channel(status: &Status) -> String {
    let runtime = &status.runtime;
    match &runtime.error {
        Some(error) => format!("none, the runtime failed: {}", plain(error)),
        None if runtime.loading => "not asked for yet, the runtime is starting".to_owned(),
        None if runtime.channel.live => "connected".to_owned(),
        None => "not connected".to_owned(),
    }
}

fn sessions(status: &Status) -> String {
    match status.limits.max_sessions {
        Some(limit) => format!("{} of {limit}", status.runtime.sessions.active),
        None => status.runtime.sessions.active.to_string(),
    }
}

/// Three significant digits; microseconds below a millisecond.
fn milliseconds(ms: f64) -> String {
    match ms {
        ms if !ms.is_finite() || ms < 0.0 => "unknown".to_owned(),
        ms if ms < 1.0 => format!("{:.0} µs", ms * 1e3),
        ms if ms < 10.0 => format!("{ms:.2} ms"),
        ms if ms < 1e3 => format!("{ms:.0} ms"),
        ms => format!("{:.2} s", ms / 1e3),
    }
}

fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{}.{} s", seconds, ms % 1000 / 100),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Answer;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn draw_at(snapshot: &Snapshot, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let screen = Screen {
            authority: "127.0.0.1:4170",
            snapshot,
            colour: false,
        };
        terminal.draw(|frame| draw(frame, &screen)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let mut text = String::new();
        for y in 0..height {
            let row: String = (0..width).map(|x| buffer[(x, y)].symbol()).collect();
            text.push_str(row.trim_end());
            text.push('\n');
        }
        text
    }

    fn up() -> Snapshot {
        let body = r#"{"status":"ok","issues":[],"daemon":{"pid":42,"uptimeMs":65400,"workspaceCwd":"/home/user/project",
            "startup":{"processStartedAt":"2026-11-30T19:33:30.879Z","processToListenMs":0.512,
            "preheat":{"status":"succeeded","durationMs":1.25}},"coldpathVersion":"0.1.0"},
            "limits":{"maxSessions":32},"runtime":{"sessions":{"active":2},"channel":{"live":true}}}"#;
        Snapshot::of(Ok(Answer {
            status: 200,
            body: body.to_owned(),
        }))
    }

    #[test]
    fn a_running_daemon_is_one_screen() {
        assert_eq!(
            draw_at(&up(), 72, 10),
            "\
┌ coldpath top · 127.0.0.1:4170 ───────────────────────────────────────┐
│health     ok                                                         │
│daemon     pid 42, 0.1.0, up 1 min 5 s                                │
│workspace  /home/user/project                                         │
│listener   512 µs after process start at 2026-11-30T19:33:30.879Z     │
│preheat    succeeded in 1.25 ms                                       │
│agent      connected                                                  │
│sessions   2 of 32                                                    │
└──────────────────────────────────────────────────────────────────────┘
 q quit
"
        );
    }

    #[test]
    fn a_start_that_nobody_timed_counts_from_main() {
        let body = r#"{"status":"ok","daemon":{"pid":42,"startup":{"processToListenMs":null,"mainToListenMs":0.25}}}"#;
        let text = draw_at(
            &Snapshot::of(Ok(Answer {
                status: 200,
                body: body.to_owned(),
            })),
            80,
            12,
        );
        assert!(text.contains("listener   250 µs after main"), "{text}");
    }

    #[test]
    fn issues_and_a_failed_runtime_are_said_in_words() {
        let body = r#"{"status":"error","issues":[{"code":"daemon_runtime_failed","message":"state is \u001b[31mlocked"}],
            "daemon":{"pid":42},"runtime":{"error":"locked"}}"#;
        let text = draw_at(
            &Snapshot::of(Ok(Answer {
                status: 200,
                body: body.to_owned(),
            })),
            80,
            12,
        );
        assert!(text.contains("health     error"), "{text}");
        assert!(text.contains("none, the runtime failed: locked"), "{text}");
        assert!(
            text.contains("daemon_runtime_failed: state is  [31mlocked"),
            "{text}"
        );
    }

    #[test]
    fn nobody_there_and_a_refusal_are_told_apart() {
        let down = draw_at(&Snapshot::Down("no daemon answers".to_owned()), 50, 6);
        assert!(
            down.contains("health     down") && down.contains("no daemon answers"),
            "{down}"
        );
        let refused = draw_at(
            &Snapshot::Refused {
                status: 401,
                said: "Unauthorized".to_owned(),
            },
            50,
            6,
        );
        assert!(
            refused.contains("refused") && refused.contains("401"),
            "{refused}"
        );
    }

    #[test]
    fn every_size_can_be_drawn() {
        for (width, height) in [(0, 0), (1, 1), (2, 2), (10, 3), (400, 1)] {
            draw_at(&up(), width, height);
        }
    }

    #[test]
    fn numbers_keep_three_digits() {
        for (ms, text) in [
            (0.0, "0 µs"),
            (0.512, "512 µs"),
            (1.25, "1.25 ms"),
            (42.0, "42 ms"),
            (2907.0, "2.91 s"),
            (-1.0, "unknown"),
            (f64::NAN, "unknown"),
        ] {
            assert_eq!(milliseconds(ms), text);
        }
        assert_eq!(
            (duration(900), duration(65_400), duration(7_260_000)),
            ("0.9 s".into(), "1 min 5 s".into(), "2 h 1 min".into())
        );
    }
}
