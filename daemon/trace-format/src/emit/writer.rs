//! The writer thread: spans from a bounded channel to OTLP JSON lines.
//!
//! A sender never blocks: what does not fit is counted and the count stands in
//! the last line. The thread gathers spans for a moment before it writes, so that
//! a burst costs one wake-up and one line. It never ends the process: a disk that
//! is full loses spans, which are counted too.

use super::collector::Collector;
use super::file::RotatingFile;
use crate::attributes;
use crate::limits::TRACE_QUEUE_SPANS;
use opentelemetry::{KeyValue, Value};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SpanData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long spans are gathered before a line is written: far below what a person
/// who follows the file notices, far above the length of a burst.
const GATHER: Duration = Duration::from_millis(2);

/// Longest wait for the last line at close: a disk that is slower than this
/// loses the tail of the trace rather than hold the process.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

enum Message {
    Span(Box<SpanData>),
    Close(SyncSender<bool>),
}

/// The sending side; cheap to clone, never blocks.
#[derive(Clone, Debug)]
pub(super) struct SpanSender {
    sender: SyncSender<Message>,
    dropped: Arc<AtomicU64>,
}

/// The thread with its sending side.
#[derive(Debug)]
pub(super) struct Writer {
    sender: SpanSender,
    thread: JoinHandle<()>,
}

impl SpanSender {
    /// Hands a span over, or counts it as dropped.
    pub(super) fn send(&self, span: SpanData) {
        if self.sender.try_send(Message::Span(Box::new(span))).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Span(_) => "Span",
            Self::Close(_) => "Close",
        })
    }
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(
        file: RotatingFile,
        resource: Vec<KeyValue>,
        collector: Option<Collector>,
    ) -> std::io::Result<Self> {
        let (sender, receiver) = sync_channel(TRACE_QUEUE_SPANS);
        let dropped = Arc::new(AtomicU64::new(0));
        let task = Task {
            file,
            continued: false,
            collector,
            undelivered: None,
            resource,
            dropped: Arc::clone(&dropped),
        };
        let thread = std::thread::Builder::new()
            .name("trace-writer".to_owned())
            // The deepest frame serialises one line; the default 8 MiB would only
            // be address space, but a small stack keeps the intent visible.
            .stack_size(256 * 1024)
            .spawn(move || task.run(&receiver))?;
        Ok(Self {
            sender: SpanSender { sender, dropped },
            thread,
        })
    }

    pub(super) fn sender(&self) -> SpanSender {
        self.sender.clone()
    }

    /// Writes what is queued and the final line; returns the number of dropped
    /// spans, and whether the last line was written in time.
    pub(super) fn close(&self) -> (u64, bool) {
        let (done, finished) = sync_channel(1);
        let mut message = Message::Close(done);
        let mut sent = false;
        // The queue may be full for a moment; the writer empties it.
        for _ in 0..CLOSE_TIMEOUT.as_millis() {
            match self.sender.sender.try_send(message) {
                Ok(()) => {
                    sent = true;
                    break;
                }
                Err(TrySendError::Disconnected(_)) => break,
                Err(TrySendError::Full(back)) => message = back,
            }
            self.thread.thread().unpark();
            std::thread::park_timeout(Duration::from_millis(1));
        }
        self.thread.thread().unpark();
        let written = sent && finished.recv_timeout(CLOSE_TIMEOUT) == Ok(true);
        (self.sender.dropped.load(Ordering::Relaxed), written)
    }
}

struct Task {
    file: RotatingFile,
    /// Whether this file has its last line and only waits for the next one.
    continued: bool,
    collector: Option<Collector>,
    /// Lines that the collector did not get, known at the end.
    undelivered: Option<u64>,
    resource: Vec<KeyValue>,
    dropped: Arc<AtomicU64>,
}

impl Task {
    fn run(mut self, receiver: &Receiver<Message>) {
        let mut batch = Vec::new();
        let mut close = None;
        while close.is_none() {
            match receiver.recv() {
                Ok(Message::Span(span)) => batch.push(*span),
                Ok(Message::Close(done)) => close = Some(done),
                Err(_) => break,
            }
            if close.is_none() {
                std::thread::park_timeout(GATHER);
            }
            while let Ok(message) = receiver.try_recv() {
                match message {
                    Message::Span(span) => batch.push(*span),
                    Message::Close(done) => close = Some(done),
                }
            }
            if !batch.is_empty() {
                self.write(std::mem::take(&mut batch));
            }
        }
        let undelivered = self.collector.as_ref().map(Collector::close);
        self.undelivered = undelivered.filter(|lines| *lines > 0);
        let written = self.write_last(attributes::TRACE_FINAL);
        if let Some(done) = close {
            // The closer may have given up waiting.
            let _ = done.try_send(written);
        }
    }

    fn write(&mut self, spans: Vec<SpanData>) {
        let count = spans.len() as u64;
        let line = line(spans, &self.resource);
        if let Some(collector) = &self.collector {
            collector.send(line.clone());
        }
        if self.file.is_full(line.len()) {
            if !self.continued {
                self.write_last(attributes::TRACE_CONTINUED);
                self.continued = true;
            }
            if self.file.rotate().is_err() {
                // Tried again with the next line; this file has been ended.
                self.dropped.fetch_add(count, Ordering::Relaxed);
                return;
            }
            self.continued = false;
        }
        if self.file.append(&line).is_err() {
            self.dropped.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// The last line of a file: no spans, and how many were lost so far.
    fn write_last(&mut self, kind: &'static str) -> bool {
        let dropped = self.dropped.load(Ordering::Relaxed);
        let mut resource = self.resource.clone();
        resource.push(KeyValue::new(kind, true));
        resource.push(KeyValue::new(
            attributes::TRACE_DROPPED_SPANS,
            Value::I64(i64::try_from(dropped).unwrap_or(i64::MAX)),
        ));
        if let Some(lines) = self.undelivered {
            let lines = i64::try_from(lines).unwrap_or(i64::MAX);
            resource.push(KeyValue::new(attributes::TRACE_UNDELIVERED_LINES, lines));
        }
        // Nothing more can be done about a failure; the missing line says it too.
        self.file.append(&line(Vec::new(), &resource)).is_ok()
    }
}

fn line(spans: Vec<SpanData>, resource: &[KeyValue]) -> Vec<u8> {
    let resource = Resource::builder_empty()
        .with_attributes(resource.iter().cloned())
        .build();
    let resource_spans =
        group_spans_by_resource_and_scope(spans, &ResourceAttributesWithSchema::from(&resource));
    let mut line =
        serde_json::to_vec(&ExportTraceServiceRequest { resource_spans }).unwrap_or_default();
    line.push(b'\n');
    line
}
