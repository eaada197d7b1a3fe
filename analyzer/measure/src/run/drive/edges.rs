//! The edges of a run's window: the ready line or the end of a command, and what is
//! read of host and tree when the window closes.

use super::super::child::{Awaited, Wake};
use super::super::failure::{Failure, FailureCode, stopped_waiting};
use super::super::record::ClientSpan;
use super::Driving;
use crate::driver::ReadyRule;
use crate::driver::ready::{Listener, ReadyScanner};
use crate::host::covariates::AtClose;
use crate::host::tree::{ListenerProbe, Tree};
use crate::run::RssReading;
use coldpath_trace_format::emit::{MonoNanos, ReservedSpan};
use coldpath_trace_format::spans;

/// Bytes of an output taken at once while the ready line is awaited.
const OUTPUT_READ_BYTES: usize = 8 * 1024;

impl Driving<'_, '_> {
    pub(super) fn await_listener(
        &mut self,
        ids: ReservedSpan,
        rule: &ReadyRule,
    ) -> Result<(), Failure> {
        let (end, found) = self.find_listener(rule);
        let found = found.map(|listener| self.listener = Some(listener));
        let start = self.running.spawned();
        let failure = found.clone().err();
        let span = ClientSpan::new(ids, spans::CLIENT_LISTENER, start, end, failure);
        self.driven.spans.push(span);
        found
    }

    /// The listener, and the instant at which the bytes arrived that completed
    /// its line.
    fn find_listener(&mut self, rule: &ReadyRule) -> (MonoNanos, Result<Listener, Failure>) {
        let timeout = self.context.step_timeout;
        let deadline = self.running.spawned().after(timeout);
        let mut scanner = ReadyScanner::new(&rule.marker);
        let mut buffer = [0_u8; OUTPUT_READ_BYTES];
        loop {
            let wake = self.running.wait(Awaited::Output(rule.stream), deadline);
            if wake != Wake::Ready {
                let code = FailureCode::ReadyTimeout;
                let failure = stopped_waiting(wake, "for the ready line", timeout, code);
                return (MonoNanos::now(), Err(failure));
            }
            let read = self.running.read_output(rule.stream, &mut buffer);
            let now = MonoNanos::now();
            let found = match read {
                Ok(read) => scanner.push(&buffer[..read]),
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

    /// Waits for a command that ends by itself.
    pub(super) fn await_end(&mut self, ids: ReservedSpan) -> Result<(), Failure> {
        let (start, timeout) = (self.running.spawned(), self.context.step_timeout);
        let mut ready = std::mem::take(&mut self.ready);
        let wake = self.running.wait_any(&[], start.after(timeout), &mut ready);
        self.ready = ready;
        let end = MonoNanos::now();
        let ended = match wake {
            Wake::Exited => Ok(()),
            wake => {
                let code = FailureCode::RequestTimeout;
                Err(stopped_waiting(
                    wake,
                    "for the command's end",
                    timeout,
                    code,
                ))
            }
        };
        let failure = ended.clone().err();
        let span = ClientSpan::new(ids, spans::CLIENT_COMMAND, start, end, failure);
        self.driven.spans.push(span);
        ended
    }

    pub(super) fn read_listener_rss(&mut self) {
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

    pub(super) fn close_window(&mut self) {
        let close = AtClose::read();
        let tree = self.read_tree();
        let heirs = self.context.heirs.ids();
        self.context.note.seen(self.driven.seen.ids().chain(heirs));
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
}
