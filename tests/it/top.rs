//! `coldpath top` in a real terminal: what it shows of a real daemon, and that the
//! terminal is as it was before once it ends. The terminal is tmux's, on a socket of
//! the test's own; without tmux the test says so and passes.

use coldpath_tests::{Deadline, Sandbox, client_program};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// Size of the terminal in cells.
const WIDTH: &str = "100";
const HEIGHT: &str = "30";

/// What runs in the terminal: the program between two looks at the terminal's modes.
/// It stays, so that the screen does.
const SCRIPT: &str = r#"
stty -g > "$1/modes-before"
echo "here before"
"$2" top --url "$3" --every-ms 50
echo "it ended with $?"
stty -g > "$1/modes-after"
echo "modes written"
exec cat
"#;

/// A tmux server with one terminal, ended with the value.
struct Terminal<'s> {
    sandbox: &'s Sandbox,
}

impl<'s> Terminal<'s> {
    fn open(sandbox: &'s Sandbox, arguments: [&str; 3]) -> Self {
        let terminal = Self { sandbox };
        let mut words = vec!["new-session", "-d", "-x", WIDTH, "-y", HEIGHT, "--"];
        words.extend(["sh", "-c", SCRIPT, "sh"]);
        words.extend(arguments);
        terminal.ask(&words);
        terminal
    }

    fn socket(&self) -> PathBuf {
        self.sandbox.path("tmux.sock")
    }

    fn run(&self, words: &[&str]) -> Output {
        Command::new("tmux")
            // Nobody's settings, and a server that goes with the sandbox whatever happens.
            .args(["-f", "/dev/null", "-S"])
            .arg(self.socket())
            .args(words)
            .env_remove("TMUX")
            .env("TERM", "xterm-256color")
            .env("LC_ALL", "C.UTF-8")
            .env("COLDPATH_RUN_TOKEN", self.sandbox.token())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    #[track_caller]
    fn ask(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tmux {words:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn screen(&self) -> String {
        self.ask(&["capture-pane", "-p"])
    }

    /// Looks again and again: tmux tells nobody that a screen shows something.
    #[track_caller]
    fn wait_for(&self, texts: &[&str]) -> String {
        let deadline = Deadline::standard();
        loop {
            let screen = self.screen();
            if texts.iter().all(|text| screen.contains(text)) {
                return screen;
            }
            assert!(
                !deadline.left().is_zero(),
                "the terminal does not show all of {texts:?}:\n{screen}"
            );
        }
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

fn has_tmux() -> bool {
    Command::new("tmux").arg("-V").output().is_ok()
}

#[test]
fn top_shows_a_daemon_in_a_terminal_and_gives_the_terminal_back() {
    if !has_tmux() {
        // The harness keeps what macros print of tests that pass; this is to be seen.
        let line = "SKIPPED: `coldpath top` was not tried in a terminal, tmux is not installed\n";
        std::io::stderr().write_all(line.as_bytes()).unwrap();
        return;
    }
    let sandbox = Sandbox::new();
    let daemon = sandbox.daemon().start();
    daemon.thread_session().expect_status(200);
    let program = client_program();
    let folder = sandbox.path("home");
    let url = format!("http://127.0.0.1:{}", daemon.port());
    {
        let arguments = [&folder, &program].map(|path| path.to_str().unwrap());
        let terminal = Terminal::open(&sandbox, [arguments[0], arguments[1], &url]);
        let pid = format!("daemon     pid {},", daemon.pid());
        let workspace = format!("workspace  {}", sandbox.workspace().display());
        let screen = terminal.wait_for(&[
            "coldpath top · 127.0.0.1:",
            "health     ok",
            &pid,
            &workspace,
            "preheat    succeeded in ",
            "agent      connected",
            "sessions   1",
            "q quit",
        ]);
        let listener = screen.lines().find(|line| line.contains("listener   "));
        assert!(
            listener.is_some_and(|line| line.contains("s after ")),
            "{screen}"
        );
        assert!(!screen.contains("here before"), "{screen}");
        let look = |what: &str| {
            let text = terminal.ask(&["display-message", "-p", what]);
            text.trim().to_owned()
        };
        assert_eq!(look("#{alternate_on} #{cursor_flag}"), "1 0");

        terminal.ask(&["send-keys", "q"]);
        let screen = terminal.wait_for(&["modes written"]);
        assert!(screen.contains("here before"), "{screen}");
        assert!(screen.contains("it ended with 0"), "{screen}");
        assert!(!screen.contains("coldpath top ·"), "{screen}");
        assert_eq!(look("#{alternate_on} #{cursor_flag}"), "0 1");
        let modes = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(modes("modes-before"), modes("modes-after"));
    }
    daemon.stop_cleanly();
    sandbox.assert_deserted();
}
