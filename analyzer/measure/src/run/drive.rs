//! Carries out the steps of a plan on a running program.
//!
//! Order matters to the microsecond between the ready line and the first
//! `/health`: there stand the search for the line's end, the RSS reading (whose
//! cost is recorded) and nothing else.

use super::child::{Awaited, Running, Wake};
use super::exchange::{Exchanged, exchange, stopped_waiting};
use super::failure::{Failure, FailureCode};
use super::plan::{Plan, PlannedRequest, PlannedStep};
use super::record::{ClientSpan, MemoryReadings, SeenProcesses};
use super::{RssReading, RunContext};
use crate::driver::Answer;
use crate::driver::http::Response;
use crate::driver::ready::{Listener, ReadyScanner};
use crate::host::covariates::AtClose;
use crate::host::tree::{ListenerProbe, Tree};
use coldpath_trace_format::emit::{MonoNanos, ReservedSpan};
use coldpath_trace_format::spans;
use std::time::Duration;

/// Bytes of stdout taken at once while the ready line is awaited.
const STDOUT_READ_BYTES: usize = 8 * 1024;
/// How long after a broken connection the end of the program counts as its cause:
/// the kernel closes the sockets of a process a moment before it is a zombie.
const END_PATIENCE: Duration = Duration::from_millis(100);
/// Bytes of an unexpected body that an error quotes.
const QUOTE_MAX_BYTES: usize = 300;

/// What driving gave.
#[derive(Debug)]
pub(super) struct Driven {
    /// The steps as the client saw them.
    pub(super) spans: Vec<ClientSpan>,
    /// Memory.
    pub(super) memory: MemoryReadings,
    /// Processes that were seen.
    pub(super) seen: SeenProcesses,
    /// Why the driver stopped before its end.
    pub(super) failure: Option<Failure>,
    close: Option<(AtClose, Tree)>,
}

/// Carries out all steps, or those before the first that fails.
pub(super) fn drive(plan: &mut Plan, running: &mut Running<'_>, context: RunContext<'_>) -> Driven {
    let scanner = ReadyScanner::new(plan.ready_marker);
    let steps = std::mem::take(&mut plan.steps);
    let mut driver = Driving {
        driven: Driven {
            spans: Vec::with_capacity(2 * steps.len()),
            memory: MemoryReadings::default(),
            seen: SeenProcesses::default(),
            failure: None,
            close: None,
        },
        listener: None,
        scanner,
        running,
        context,
    };
    for step in steps {
        if let Err(failure) = driver.step(step) {
            driver.driven.failure = Some(driver.explain(failure));
            break;
        }
    }
    driver.driven
}

struct Driving<'a, 'b> {
    driven: Driven,
    listener: Option<Listener>,
    scanner: ReadyScanner,
    running: &'a mut Running<'b>,
    context: RunContext<'a>,
}

impl Driving<'_, '_> {
    fn step(&mut self, step: PlannedStep) -> Result<(), Failure> {
        match step {
            PlannedStep::AwaitListener(ids) => self.await_listener(ids),
            PlannedStep::ReadListenerRss => {
                self.read_listener_rss();
                Ok(())
            }
            PlannedStep::Request(request) => self.request(*request),
            PlannedStep::CloseWindow => {
                self.close_window();
                Ok(())
            }
        }
    }

    fn await_listener(&mut self, ids: ReservedSpan) -> Result<(), Failure> {
        let (end, found) = self.find_listener();
        let found = found.map(|listener| self.listener = Some(listener));
        self.driven.spans.push(ClientSpan {
            ids,
            name: spans::CLIENT_LISTENER,
            start: self.running.spawned(),
            end,
            temperature: None,
            session_id: None,
            status: None,
            failure: found.clone().err(),
        });
        found
    }

    /// The listener, and the instant at which the bytes arrived that completed
    /// its line.
    fn find_listener(&mut self) -> (MonoNanos, Result<Listener, Failure>) {
        let timeout = self.context.step_timeout;
        let deadline = self.running.spawned().after(timeout);
        let mut buffer = [0_u8; STDOUT_READ_BYTES];
        loop {
            let wake = self.running.wait(Awaited::Stdout, deadline);
            if wake != Wake::Ready {
                let code = FailureCode::ReadyTimeout;
                let failure = stopped_waiting(wake, "for the ready line", timeout, code);
                return (MonoNanos::now(), Err(failure));
            }
            let read = self.running.read_stdout(&mut buffer);
            let now = MonoNanos::now();
            let found = match read {
                Ok(read) => self.scanner.push(&buffer[..read]),
                Err(_) => Ok(None),
            };
            match found {
                Ok(None) => {}
                Ok(Some(listener)) => return (now, Ok(listener)),
                Err(error) => {
                    let failure = Failure::new(FailureCode::BadReadyLine, error.to_string());
                    return (now, Err(failure));
                }
            }
        }
    }

    fn read_listener_rss(&mut self) {
        if self.context.rss == RssReading::Untimed {
            return;
        }
        let before = MonoNanos::now();
        let read = self.running.listener_probe().map(ListenerProbe::read);
        let cost = MonoNanos::now().since(before);
        if let Some(Ok(bytes)) = read {
            self.driven.memory.listener = Some(bytes);
            self.driven.memory.listener_cost = Some(cost);
        }
    }

    fn request(&mut self, mut request: PlannedRequest) -> Result<(), Failure> {
        let Some(listener) = &self.listener else {
            // A driver asks only after it has awaited.
            return Err(Failure::new(FailureCode::ConnectFailed, "no listener yet"));
        };
        let timeout = self.context.step_timeout;
        let exchanged = exchange(&mut request, listener, self.running, timeout);
        let status = exchanged.result.as_ref().ok().map(|answer| answer.status);
        let judged = judge(&request, &exchanged);
        let failure = judged.as_ref().err().cloned();
        let span = ClientSpan {
            ids: request.ids,
            name: request.step.span,
            start: exchanged.start,
            end: exchanged.end,
            temperature: request.step.temperature,
            session_id: judged.unwrap_or_default(),
            status,
            failure: failure.clone(),
        };
        if let Some(ids) = request.action {
            self.driven.spans.push(ClientSpan {
                ids,
                name: spans::CLIENT_ACTION,
                status: None,
                ..span.clone()
            });
        }
        self.driven.spans.push(span);
        failure.map_or(Ok(()), Err)
    }

    fn close_window(&mut self) {
        let close = AtClose::read();
        let tree = self.read_tree();
        // Only a run with a session has memory with a session.
        let has_session = self
            .driven
            .spans
            .iter()
            .any(|span| span.session_id.is_some());
        if has_session && !tree.processes.is_empty() {
            self.driven.memory.session = Some(tree.rss());
            self.driven.memory.session_process = tree.root_rss();
        }
        self.driven.close = Some((close, tree));
    }

    fn read_tree(&mut self) -> Tree {
        let tree = Tree::read(self.running.pid());
        let after_spawn = MonoNanos::now().since(self.running.spawned());
        self.driven.seen.add(&tree, after_spawn);
        tree
    }

    /// Adds what the step that failed could not know: which signal ended its
    /// wait, or that the connection broke because the program was ending.
    fn explain(&mut self, failure: Failure) -> Failure {
        match failure.code {
            FailureCode::Interrupted => match self.context.interrupts.caught() {
                Some(caught) => Failure::new(failure.code, format!("ended by {}", caught.name)),
                None => failure,
            },
            FailureCode::BadResponse | FailureCode::ConnectFailed
                if self.running.ends_within(END_PATIENCE) =>
            {
                let message = format!("the program ended ({})", failure.message);
                Failure::new(FailureCode::ExitedEarly, message)
            }
            _ => failure,
        }
    }
}

impl Driven {
    /// Reads the peak of the tree, while the program still runs; what is gone by
    /// then is not in it.
    pub(super) fn read_peak(&mut self, running: &Running<'_>) {
        let tree = Tree::read(running.pid());
        let after_spawn = MonoNanos::now().since(running.spawned());
        self.seen.add(&tree, after_spawn);
        if tree.peak().get() > 0 {
            self.memory.peak = Some(tree.peak());
        }
    }

    /// What was read when the window closed.
    pub(super) fn close_reading(&self) -> Option<(&AtClose, &Tree)> {
        self.close.as_ref().map(|(close, tree)| (close, tree))
    }
}

/// The session id of a successful answer that must have one; why it is none.
fn judge(request: &PlannedRequest, exchanged: &Exchanged) -> Result<Option<String>, Failure> {
    let response = exchanged.result.as_ref().map_err(Clone::clone)?;
    let step = &request.step;
    if !step.expect.contains(&response.status) {
        return Err(Failure::new(
            FailureCode::HttpStatus,
            format!(
                "{} {} answered {}: {}",
                step.method,
                step.path,
                response.status,
                quote(&response.body)
            ),
        ));
    }
    match step.answer {
        Answer::Any => Ok(None),
        Answer::Session => session_id(response).map(Some).ok_or_else(|| {
            Failure::new(
                FailureCode::BadBody,
                format!(
                    "{} {} answered without a `sessionId`: {}",
                    step.method,
                    step.path,
                    quote(&response.body)
                ),
            )
        }),
    }
}

fn session_id(response: &Response) -> Option<String> {
    let body: serde_json::Value = serde_json::from_slice(&response.body).ok()?;
    let id = body.get("sessionId")?.as_str()?;
    (!id.is_empty()).then(|| id.to_owned())
}

fn quote(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(QUOTE_MAX_BYTES)]);
    let more = if body.len() > QUOTE_MAX_BYTES {
        "…"
    } else {
        ""
    };
    format!("`{}{more}`", text.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_id(body: &str, expected: Option<&str>) {
        let response = Response {
            status: 200,
            body: body.into(),
        };
        assert_eq!(session_id(&response).as_deref(), expected, "{body}");
    }

    #[test]
    fn a_session_is_an_object_with_a_session_id() {
        check_id(r#"{"sessionId":"s-1","attached":false}"#, Some("s-1"));
        for body in [
            "",
            "null",
            "[]",
            "{",
            r#"{"sessionId":1}"#,
            r#"{"sessionId":""}"#,
            r#"{"id":"s"}"#,
        ] {
            check_id(body, None);
        }
    }

    #[test]
    fn a_long_body_is_quoted_in_part() {
        assert_eq!(quote(b" x\n"), "`x`");
        let long = "y".repeat(QUOTE_MAX_BYTES + 1);
        assert_eq!(quote(long.as_bytes()), format!("`{}…`", "y".repeat(300)));
    }
}
