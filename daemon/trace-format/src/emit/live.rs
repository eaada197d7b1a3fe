//! The live view: stages as they happen, in a file that trace viewers open.
//!
//! tracing-chrome writes it; this module keeps that from harming the process: its
//! writer swallows and counts errors, because the crate panics on them, stops at
//! [`CHROME_FILE_MAX_BYTES`], and leaves what can be read. It has no global state.
//!
//! Limits, which come with the crate: times are those of the calls, so a stage that
//! is told afterwards seems to begin late; a stage that began before the view is not
//! shown; ids of spans stand in `args`, each span on a track of its own; the process
//! is number 1; up to 8 KiB are on their way until the view is closed, and events
//! wait in memory while the disk is slow. The trace file is the record.

use super::clock::{Anchor, MonoNanos};
use crate::limits::{CHROME_CLOSE_TIMEOUT, CHROME_FILE_MAX_BYTES};
use opentelemetry::trace::{SpanContext, SpanId};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use tracing::field::{Field, Visit};
use tracing::{Dispatch, Span, Subscriber, dispatcher, span};
use tracing_chrome::{ChromeLayerBuilder, EventOrSpan, FlushGuard, TraceStyle};
use tracing_subscriber::layer::{Context, Layer, Layered, SubscriberExt as _};
use tracing_subscriber::registry::{LookupSpan, Registry};

/// What the view is of.
#[derive(Clone, Debug)]
pub struct LiveConfig<'a> {
    /// File to write; one that is there is replaced.
    pub path: &'a Path,
    /// Name of the process in viewers.
    pub service: &'a str,
    /// Dates the first event.
    pub anchor: Anchor,
    /// What came before the view, in words, for its first event.
    pub precedes: &'a str,
}

/// How a view was closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveReport {
    /// Writes that failed; nothing was written after the first.
    pub errors: u64,
    /// Whether the file reached its bound.
    pub full: bool,
    /// Whether all that was written reached the file in the time allowed.
    pub flushed: bool,
}

/// The view of one process.
pub struct LiveView {
    dispatch: Dispatch,
    begun: MonoNanos,
    state: Arc<State>,
    guard: Mutex<Option<FlushGuard>>,
}

impl std::fmt::Debug for LiveView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveView")
            .field("begun", &self.begun)
            .finish_non_exhaustive()
    }
}

/// What the writer tells.
#[derive(Debug, Default)]
struct State {
    errors: AtomicU64,
    full: AtomicBool,
}

/// Where an agent writes beside the daemon's `path`: `.agent-PID` before the
/// extension, or at the end where there is none.
#[must_use]
pub fn agent_path(path: &Path, pid: u32) -> PathBuf {
    let mut name = OsString::from(path.file_stem().unwrap_or_default());
    name.push(format!(".agent-{pid}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

impl LiveView {
    /// Makes the file and begins; about 0.1 ms, so not for the path to an answer.
    ///
    /// # Errors
    /// The file cannot be made, or is a pipe that nobody reads.
    pub fn open(config: &LiveConfig<'_>) -> io::Result<Self> {
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            // A pipe without a reader is an error, not a wait.
            .custom_flags(nonblocking)
            .open(config.path)?;
        let state = Arc::new(State::default());
        let heading = serde_json::json!({
            "ph": "M", "name": "process_name", "pid": 1, "tid": 0,
            "args": { "name": format!("{} (pid {})", config.service, std::process::id()) },
        });
        let writer = Bounded::new(file, CHROME_FILE_MAX_BYTES, &state, &heading.to_string());
        let (layer, guard) = ChromeLayerBuilder::<Named>::new()
            .writer(writer)
            .include_args(true)
            .include_locations(false)
            .trace_style(TraceStyle::Async)
            .name_fn(Box::new(name))
            .category_fn(Box::new(|_| "stage".to_owned()))
            .build();
        let view = Self {
            dispatch: Dispatch::new(Registry::default().with(Names).with(layer)),
            begun: MonoNanos::now(),
            state,
            guard: Mutex::new(Some(guard)),
        };
        let unix_nano = config.anchor.wall_at(view.begun).as_unix_nanos();
        dispatcher::with_default(&view.dispatch, || {
            tracing::info!(
                name = %"live view begins",
                pid = std::process::id(),
                unix_nano,
                precedes = %config.precedes
            );
        });
        Ok(view)
    }

    /// The view's span of a stage; none for a stage that began before the view, or
    /// when nothing more is written.
    pub(super) fn span(
        &self,
        name: &str,
        own: &SpanContext,
        parent: Option<&SpanContext>,
        start: MonoNanos,
    ) -> Span {
        if start < self.begun || self.state.full.load(Ordering::Relaxed) {
            return Span::none();
        }
        let parent = parent.map_or(SpanId::INVALID, SpanContext::span_id);
        // A root of its own each: overlapping spans of one root would be mixed up.
        dispatcher::with_default(&self.dispatch, || {
            tracing::info_span!(
                parent: None,
                "stage",
                name = %name,
                trace_id = %own.trace_id(),
                span_id = %own.span_id(),
                parent_id = %parent
            )
        })
    }

    /// Writes what is queued, in bounded time. Later stages are not shown.
    pub(super) fn close(&self) -> LiveReport {
        let guard = self
            .guard
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let (done, finished) = sync_channel(1);
        // Dropping the guard joins the writer, which a dead disk may hold for ever.
        let closing = std::thread::Builder::new()
            .name("chrome-close".to_owned())
            .spawn(move || {
                drop(guard);
                let _ = done.try_send(());
            });
        let flushed = closing.is_ok() && finished.recv_timeout(CHROME_CLOSE_TIMEOUT).is_ok();
        LiveReport {
            errors: self.state.errors.load(Ordering::Relaxed),
            full: self.state.full.load(Ordering::Relaxed),
            flushed,
        }
    }
}

impl LiveReport {
    /// What is wrong with the file, in words; `None` when nothing is.
    #[must_use]
    pub fn problem(&self) -> Option<&'static str> {
        match self {
            Self { errors: 1.., .. } => Some("the live view could not be written to its end"),
            Self { full: true, .. } => Some("the live view is full; what came later is not in it"),
            Self { flushed: false, .. } => Some("the live view could not be closed in time"),
            _ => None,
        }
    }
}

type Named = Layered<Names, Registry>;

/// Keeps the names of stages, which tracing wants at compile time.
struct Names;

struct StageName(String);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Names {
    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, at: Context<'_, S>) {
        let mut found = StageName(String::new());
        attributes.record(&mut found);
        if let Some(span) = at.span(id) {
            span.extensions_mut().insert(found);
        }
    }
}

impl Visit for StageName {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "name" {
            self.0 = format!("{value:?}");
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "name" {
            value.clone_into(&mut self.0);
        }
    }
}

fn name(of: &EventOrSpan<'_, '_, Named>) -> String {
    match of {
        EventOrSpan::Span(span) => {
            let extensions = span.extensions();
            let name = extensions.get::<StageName>();
            name.map_or_else(String::new, |name| name.0.clone())
        }
        EventOrSpan::Event(event) => {
            let mut found = StageName(String::new());
            event.record(&mut found);
            found.0
        }
    }
}

/// A writer that never fails: it counts errors, and once one came or the bound is
/// reached, ends the file behind the last whole event.
///
/// What it is given is JSON with one event a line, where a newline stands between
/// events only.
struct Bounded<F> {
    file: F,
    /// Largest size of the file.
    max: u64,
    written: u64,
    /// Where the last whole event ends: at the newline behind it, or at its comma.
    whole: u64,
    /// The byte that was written last.
    last: u8,
    stopped: bool,
    /// Put behind the first line, which opens the list.
    heading: Option<String>,
    state: Arc<State>,
}

/// What ends the list: no longer than the comma and newline that a cut sets free.
const END: &[u8] = b"\n]";

/// A file that can be cut.
trait Cut: Write {
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

impl Cut for File {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)?;
        self.seek(SeekFrom::Start(length)).map(|_| ())
    }
}

impl<F: Cut> Bounded<F> {
    fn new(file: F, max: u64, state: &Arc<State>, heading: &str) -> Self {
        Self {
            file,
            max,
            written: 0,
            whole: 0,
            last: 0,
            stopped: false,
            heading: Some(format!("[\n{heading},\n")),
            state: Arc::clone(state),
        }
    }

    fn put(&mut self, data: &[u8]) {
        if self.stopped {
            return;
        }
        if self.written + data.len() as u64 + END.len() as u64 > self.max {
            self.state.full.store(true, Ordering::Relaxed);
            self.stop();
        } else if self.file.write_all(data).is_err() {
            self.state.errors.fetch_add(1, Ordering::Relaxed);
            self.stop();
        } else {
            if let Some(at) = data.iter().rposition(|byte| *byte == b'\n') {
                let before = at.checked_sub(1).map_or(self.last, |before| data[before]);
                let end = self.written + at as u64;
                self.whole = if before == b',' { end - 1 } else { end };
            }
            self.last = data.last().copied().unwrap_or(self.last);
            self.written += data.len() as u64;
        }
    }

    /// Cuts what is not whole, with the comma before it, and ends the list. On a
    /// disk that takes nothing more the end is missing, which readers know.
    fn stop(&mut self) {
        self.stopped = true;
        if self.file.cut(self.whole).is_ok() && self.file.write_all(END).is_err() {
            self.state.errors.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl<F: Cut> Write for Bounded<F> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match self.heading.take() {
            // The crate opens with `[` and a newline, and an event follows always.
            Some(heading) if data.starts_with(b"[\n") => {
                self.put(heading.as_bytes());
                self.put(&data[2..]);
            }
            _ => self.put(data),
        }
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with room for so many bytes.
    struct Disk {
        bytes: Vec<u8>,
        room: usize,
    }

    impl Write for Disk {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            let room = self.room.saturating_sub(self.bytes.len());
            if room == 0 && !data.is_empty() {
                return Err(io::Error::other("full"));
            }
            let taken = data.len().min(room);
            self.bytes.extend(&data[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Cut for Disk {
        fn cut(&mut self, length: u64) -> io::Result<()> {
            self.bytes.truncate(usize::try_from(length).unwrap());
            Ok(())
        }
    }

    /// Writes ten events in pieces of `piece` bytes; the file, its events and the state.
    fn write(max: u64, room: usize, piece: usize) -> (String, usize, Arc<State>) {
        let state = Arc::new(State::default());
        let disk = Disk {
            bytes: Vec::new(),
            room,
        };
        let mut writer = Bounded::new(disk, max, &state, r#"{"at":"first"}"#);
        let events: Vec<String> = (0..10).map(|at| format!(r#"{{"at":{at}}}"#)).collect();
        let text = format!("{}\n]", events.join(",\n"));
        writer.write_all(b"[\n").unwrap();
        for piece in text.as_bytes().chunks(piece) {
            writer.write_all(piece).unwrap();
        }
        writer.flush().unwrap();
        let text = String::from_utf8(writer.file.bytes).unwrap();
        let list: serde_json::Value = serde_json::from_str(&text).unwrap();
        (text, list.as_array().unwrap().len(), state)
    }

    #[test]
    fn everything_is_written_behind_the_heading_where_there_is_room() {
        let (text, events, state) = write(1_000, 1_000, 7);
        assert!(
            text.starts_with("[\n{\"at\":\"first\"},\n{\"at\":0},\n"),
            "{text}"
        );
        assert_eq!(events, 11);
        assert!(!state.full.load(Ordering::Relaxed));
    }

    #[test]
    fn a_file_at_its_bound_ends_behind_a_whole_event() {
        for max in 30..120 {
            for piece in [1, 3, 10, 100] {
                let (text, events, state) = write(max, 1_000, piece);
                assert!(text.len() as u64 <= max, "{max} {piece}");
                let whole = events == 11;
                assert!(whole || state.full.load(Ordering::Relaxed), "{max} {piece}");
                assert!(text.ends_with("\n]"));
            }
        }
    }

    #[test]
    fn errors_are_swallowed_and_counted_and_the_file_stays_whole() {
        for room in 40..100 {
            let (_, events, state) = write(1_000, room, 5);
            assert!(events < 11);
            assert_eq!(state.errors.load(Ordering::Relaxed), 1, "{room}");
        }
    }

    #[test]
    fn an_agent_writes_beside_the_daemon() {
        let check = |path: &str, expected: &str| {
            assert_eq!(agent_path(Path::new(path), 42), Path::new(expected));
        };
        check("/a/live.json", "/a/live.agent-42.json");
        check("live", "live.agent-42");
        check("/a.b/live.trace.json", "/a.b/live.trace.agent-42.json");
    }

    #[test]
    fn a_pipe_without_a_reader_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        rustix::fs::mkfifoat(
            rustix::fs::CWD,
            &path,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        )
        .unwrap();
        let opened = LiveView::open(&LiveConfig {
            path: &path,
            service: "test",
            anchor: Anchor::take(),
            precedes: "nothing",
        });
        assert!(opened.is_err());
    }
}
