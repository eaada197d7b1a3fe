//! What a program writes, line by line, as somebody can wait for it.

use crate::Deadline;
use std::io::{BufRead as _, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

/// The lines of one stream, read by a thread so that the writer never blocks.
#[derive(Debug)]
pub struct Lines {
    name: &'static str,
    shared: Arc<Shared>,
    reader: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    seen: Mutex<Seen>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Seen {
    lines: Vec<String>,
    ended: bool,
}

impl Lines {
    /// Begins to read; `name` is for messages.
    pub(crate) fn read(name: &'static str, stream: impl Read + Send + 'static) -> Self {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let reader = std::thread::spawn(move || {
            let mut stream = BufReader::new(stream);
            let mut line = Vec::new();
            while matches!(stream.read_until(b'\n', &mut line), Ok(1..)) {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                theirs.change(|seen| seen.lines.push(text));
                line.clear();
            }
            theirs.change(|seen| seen.ended = true);
        });
        Self {
            name,
            shared,
            reader: Some(reader),
        }
    }

    /// Waits for the first line that contains `text`, in the past or to come.
    ///
    /// # Panics
    /// The stream ends or [`crate::WAIT`] passes without it.
    #[track_caller]
    pub fn wait_for(&self, text: &str) -> String {
        self.wait_for_times(text, 1)
    }

    /// Waits until `times` lines contain `text`, and returns the last of them.
    ///
    /// # Panics
    /// The stream ends or [`crate::WAIT`] passes without them.
    #[track_caller]
    pub fn wait_for_times(&self, text: &str, times: usize) -> String {
        let deadline = Deadline::standard();
        let mut seen = self.shared.seen.lock().unwrap();
        let how = loop {
            let mut hits = seen.lines.iter().filter(|line| line.contains(text));
            if let Some(line) = hits.nth(times - 1) {
                return line.clone();
            }
            let left = deadline.left();
            if seen.ended {
                break "ended";
            }
            if left.is_zero() {
                break "went on";
            }
            seen = self.shared.changed.wait_timeout(seen, left).unwrap().0;
        };
        // A panic under the lock would spoil it for the reader.
        drop(seen);
        panic!(
            "{} {how} without {times} x `{text}`; it says:\n{}",
            self.name,
            self.text()
        );
    }

    /// Everything up to now.
    #[must_use]
    pub fn text(&self) -> String {
        self.shared.seen.lock().unwrap().lines.join("\n")
    }

    /// Everything, once the stream has ended.
    ///
    /// # Panics
    /// The stream does not end within [`crate::WAIT`].
    #[track_caller]
    pub(crate) fn finish(&mut self) -> String {
        let deadline = Deadline::standard();
        let mut seen = self.shared.seen.lock().unwrap();
        while !seen.ended && !deadline.left().is_zero() {
            let wait = self.shared.changed.wait_timeout(seen, deadline.left());
            seen = wait.unwrap().0;
        }
        let ended = seen.ended;
        drop(seen);
        assert!(ended, "{} does not end:\n{}", self.name, self.text());
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        self.text()
    }
}

impl Shared {
    fn change(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.seen.lock().unwrap());
        self.changed.notify_all();
    }
}
