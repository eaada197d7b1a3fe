//! A daemon that behaves well or badly on demand: this test binary itself,
//! started again by `measure` with `FAKE_DAEMON` in its environment.

use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Variable that says how to behave.
pub(crate) const BEHAVIOUR: &str = "FAKE_DAEMON";
/// File to which the environment and every request are appended.
pub(crate) const LOG: &str = "FAKE_LOG";
/// FIFO on which every process says that it is there, and which it keeps open.
pub(crate) const SIGN: &str = "FAKE_SIGN";

/// File that `waits-once` makes before it waits, and after which it does not.
pub(crate) const ONCE: &str = "FAKE_ONCE";

/// Name of the test that turns into the daemon.
pub(crate) const ENTRY: &str = "becomes_the_fake_daemon_when_asked";

/// The words that start the daemon.
pub(crate) fn command() -> Vec<String> {
    let program = std::env::current_exe().unwrap();
    let program = program.to_str().unwrap().to_owned();
    vec![
        program,
        "--exact".to_owned(),
        ENTRY.to_owned(),
        "--nocapture".to_owned(),
    ]
}

/// Behaves; never returns.
pub(crate) fn serve(behaviour: &str) -> ! {
    log_environment();
    if behaviour.starts_with("stubborn-at-") {
        start_stubborn_child();
        ignore_term();
    }
    match behaviour {
        "agent" => speak_acp(),
        "plain" => serve_pages(),
        "stubborn-at-start" => sign_and_hold("start"),
        "exit-early" => {
            say_on_stderr("no good reason\n");
            std::process::exit(7);
        }
        "never-ready" => hold(),
        "floods" => loop {
            chatter();
        },
        "wrong-port" => {
            // Bound and dropped: nobody listens there.
            let free = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = free.local_addr().unwrap().port();
            drop(free);
            say_ready(port);
            hold();
        }
        "stubborn-child" => {
            stubborn();
            hold();
        }
        "leaves-child" => start_stubborn_child(),
        "leaves-cleared" | "holds-cleared" => start_cleared_child(CLEARED, Left::Below),
        "leaves-telling" => start_cleared_child(TELLING, Left::Below),
        "leaves-telling-orphan" => start_cleared_child(TELLING, Left::Orphaned),
        "leaves-cleared-orphan" => start_cleared_child(CLEARED, Left::Orphaned),
        "ignores-term" => ignore_term(),
        "notes-term" | "stubborn-at-term" => note_term(),
        "chatty" => chatter(),
        _ => {}
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    say_ready(listener.local_addr().unwrap().port());
    if behaviour == "stubborn-at-ready" {
        sign_and_hold("ready");
    }
    for stream in listener.incoming() {
        answer(stream.unwrap(), behaviour);
    }
    unreachable!("a listener has no end")
}

fn answer(mut stream: TcpStream, behaviour: &str) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        head.push(line.trim().to_owned());
    }
    let traceparent = head
        .iter()
        .find_map(|line| line.strip_prefix("traceparent: "))
        .unwrap_or("none");
    log(&format!("{} {traceparent}", head[0]));
    let session = head[0].starts_with("POST /session ");
    let asked = match &head[0] {
        line if line.starts_with("GET /health") => "health",
        line if line.starts_with("POST /session ") => "session",
        _ => "other",
    };
    if behaviour.strip_prefix("stubborn-at-") == Some(asked) {
        sign_and_hold(asked);
    }
    let (status, body) = match (behaviour, session) {
        ("garbage-health", false) => {
            stream.write_all(b"SSH-2.0-nobody\r\n\r\n").unwrap();
            return;
        }
        ("silent-session" | "ignores-term" | "holds-cleared", true) => {
            sign("asked for a session");
            hold();
        }
        ("waits-once", true) if waits_now() => sign_and_hold("waits"),
        ("session-500", true) => ("500 Oops", r#"{"error":"out of tea"}"#),
        ("no-session-id", true) => ("200 OK", r#"{"sessionId":null}"#),
        ("dies-in-session", true) => std::process::exit(9),
        ("chatty", true) => {
            chatter();
            ("200 OK", r#"{"sessionId":"s-1"}"#)
        }
        (_, true) => ("200 OK", r#"{"sessionId":"s-1"}"#),
        ("modern", false) if head[0].starts_with("GET /capabilities") => (
            "200 OK",
            r#"{"features":["health","workspace_acp_preheat"]}"#,
        ),
        ("ancient", false) if head[0].starts_with("GET /capabilities") => {
            ("404 Not Found", r#"{"error":"no such route"}"#)
        }
        (_, false) => ("200 OK", r#"{"status":"ok"}"#),
    };
    let length = body.len();
    // In two pieces, so that the reader has to go on after the head.
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n"
    )
    .unwrap();
    stream.write_all(body.as_bytes()).unwrap();
}

/// An ACP agent: notifications, a request of its own, and answers.
fn speak_acp() -> ! {
    let mut stdout = std::io::stdout();
    let mut sessions = 0;
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        log(&format!("line {line}"));
        let message: serde_json::Value = serde_json::from_str(&line).unwrap();
        let result = match message["method"].as_str() {
            Some("initialize") => serde_json::json!({"protocolVersion": 1}),
            Some("session/new") => {
                sessions += 1;
                serde_json::json!({"sessionId": format!("s-{sessions}")})
            }
            _ => continue,
        };
        let notice =
            serde_json::json!({"method": "session/update", "params": {"x": "y".repeat(700_000)}});
        let asks = serde_json::json!({"id": 0, "method": "fs/read_text_file", "params": {}});
        let answer = serde_json::json!({"id": message["id"], "result": result});
        // The test runner's own words stand on a line of their own before.
        write!(stdout, "\n{notice}\n{asks}\n{answer}\n").unwrap();
        stdout.flush().unwrap();
    }
    std::process::exit(0);
}

/// A web server that knows nothing of sessions.
fn serve_pages() -> ! {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    say_on_stderr(&format!("Serving (http://127.0.0.1:{port}/) ...\n"));
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let mut line = String::new();
        BufReader::new(stream.try_clone().unwrap())
            .read_line(&mut line)
            .unwrap();
        let status = if line.starts_with("GET / ") {
            "200 OK"
        } else {
            "404 Gone"
        };
        write!(stream, "HTTP/1.0 {status}\r\n\r\n<p>page</p>").unwrap();
    }
    unreachable!("a listener has no end")
}

/// At the fifth request for a session over all runs, once.
fn waits_now() -> bool {
    let path = std::env::var_os(ONCE).unwrap();
    let counted = std::fs::read(&path).map_or(0, |bytes| bytes.len());
    let done = counted == 0 && path_exists(&path) || counted >= 5;
    if !done {
        let marks = "x".repeat(counted + 1);
        std::fs::write(&path, marks).unwrap();
    }
    !done && counted + 1 == 5
}

fn path_exists(path: &std::ffi::OsStr) -> bool {
    std::path::Path::new(path).exists()
}

fn sign_and_hold(text: &str) -> ! {
    sign(text);
    hold()
}

fn say_ready(port: u16) {
    let mut stdout = std::io::stdout();
    writeln!(stdout, "fake listening on http://127.0.0.1:{port} (x=y)").unwrap();
    stdout.flush().unwrap();
}

fn say_on_stderr(text: &str) {
    std::io::stderr().write_all(text.as_bytes()).unwrap();
}

/// More than any pipe holds, on both outputs.
fn chatter() {
    let line = format!("{}\n", "chatter ".repeat(127));
    for _ in 0..300 {
        std::io::stdout().write_all(line.as_bytes()).unwrap();
        say_on_stderr(&line);
    }
    std::io::stdout().flush().unwrap();
}

fn log(line: &str) {
    if let Some(path) = std::env::var_os(LOG) {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .unwrap();
        writeln!(file, "{line}").unwrap();
    }
}

fn log_environment() {
    for (name, value) in std::env::vars() {
        if name.starts_with("COLDPATH_") || name.starts_with("TRACE") {
            log(&format!("env {name}={value}"));
        }
    }
}

/// Says something on the FIFO and keeps it open for as long as this process lives.
fn sign(text: &str) {
    if let Some(path) = std::env::var_os(SIGN) {
        let mut fifo = OpenOptions::new().write(true).open(path).unwrap();
        writeln!(fifo, "{text}").unwrap();
        std::mem::forget(fifo);
    }
}

fn ignore_term() {
    let never = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGTERM, never).unwrap();
}

/// Says when SIGTERM has come, and does not end.
fn note_term() {
    let (mut reader, writer) = std::os::unix::net::UnixStream::pair().unwrap();
    signal_hook::low_level::pipe::register(signal_hook::consts::SIGTERM, writer).unwrap();
    std::thread::spawn(move || {
        std::io::Read::read_exact(&mut reader, &mut [0]).unwrap();
        sign("told to end");
        hold();
    });
}

/// A process that ends only by SIGKILL, in a session of its own.
fn stubborn() {
    ignore_term();
    let _ = rustix::process::setsid();
    sign("stubborn child");
    // Its parent goes on only now.
    let mut stdout = std::io::stdout();
    writeln!(stdout, "\nstubborn").unwrap();
    stdout.flush().unwrap();
}

fn start_stubborn_child() {
    let words = command();
    let mut child = Command::new(&words[0])
        .args(&words[1..])
        .env(BEHAVIOUR, "stubborn-child")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let said = stdout.lines().any(|line| line.unwrap() == "stubborn");
    assert!(said, "the child did not come up");
    std::mem::forget(child);
}

/// A shell's script, with the FIFO and [`CLEARED`] as its words: a process without
/// environment that ends only by SIGKILL, below the daemon.
pub(crate) const CLEARED: &str =
    r#"trap "" TERM HUP; exec 3>"$0"; echo "cleared child" >&3; echo up; exec /bin/sleep 60"#;
/// The same, but that it says when it is told to end.
const TELLING: &str = r#"trap 'echo "told to end" >&3' TERM; exec 3>"$0"
    echo "cleared child" >&3; echo up
    i=0; while [ $i -lt 600 ]; do /bin/sleep 0.1; i=$((i + 1)); done"#;
/// A shell's script that starts the one in its second word and leaves it.
const ORPHANED: &str = r#"/bin/sh -c "$1" "$0" &"#;

/// Whose child a process is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    /// The daemon's.
    Below,
    /// Nobody's.
    Orphaned,
}

fn start_cleared_child(script: &str, left: Left) {
    let mut shell = Command::new("/bin/sh");
    shell
        .arg("-c")
        .arg(if left == Left::Below {
            script
        } else {
            ORPHANED
        })
        .arg(std::env::var_os(SIGN).unwrap())
        .arg(script)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut shell = shell.spawn().unwrap();
    // The daemon goes on only now.
    let mut said = String::new();
    let mut stdout = BufReader::new(shell.stdout.take().unwrap());
    stdout.read_line(&mut said).unwrap();
    assert_eq!(said, "up\n");
    if left == Left::Orphaned {
        shell.wait().unwrap();
    } else {
        std::mem::forget(shell);
    }
}

fn hold() -> ! {
    loop {
        std::thread::park();
    }
}
