//! What the agent says to people, on stderr: few lines, never the protocol.

use std::io::Write;

/// Writes whole lines with the program's name before them.
pub(crate) struct Diagnostics {
    out: Box<dyn Write>,
}

impl Diagnostics {
    /// Diagnostics that go to `out`.
    pub(crate) fn new(out: impl Write + 'static) -> Self {
        Self { out: Box::new(out) }
    }

    /// Something that ends the program.
    pub(crate) fn error(&mut self, text: &str) {
        self.line("error", text);
    }

    /// Something that was ignored and should be put right.
    pub(crate) fn warn(&mut self, text: &str) {
        self.line("warning", text);
    }

    fn line(&mut self, level: &str, text: &str) {
        // One write, so that lines of several processes stay whole. Nothing can
        // be said about a stderr that is closed.
        let line = format!("coldpath-agent: {level}: {text}\n");
        let _ = self.out.write_all(line.as_bytes());
    }
}
