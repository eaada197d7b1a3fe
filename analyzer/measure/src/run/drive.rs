//! Carries out the steps of a plan on a running program.
//!
//! Order matters to the microsecond between the ready line and the first
//! `/health`: there stand the search for the line's end, the RSS reading (whose
//! cost is recorded) and nothing else.

mod edges;

use super::RunContext;
use super::acp::Lines;
use super::answer::{self, Answer};
use super::child::{Awaited, Running, Wake};
use super::failure::{Failure, FailureCode, stopped_waiting};
use super::flight::{Flight, Landed};
use super::plan::{Payload, Plan, PlannedRequest, PlannedSending, PlannedStep};
use super::record::{ClientSpan, MemoryReadings, SeenProcesses};
use crate::driver::ready::Listener;
use crate::driver::{Pace, Part, Refusal, RequestStep, Since};
use crate::host::covariates::AtClose;
use crate::host::tree::Tree;
use coldpath_trace_format::emit::{MonoNanos, ReservedSpan};
use coldpath_trace_format::spans;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A wait that is made in one piece: what it may be late by is 5 µs.
const LAST_PIECE: Duration = Duration::from_millis(1);

/// What driving gave.
#[derive(Debug)]
pub(super) struct Driven {
    /// The steps as the client saw them.
    pub(super) spans: Vec<ClientSpan>,
    /// Memory.
    pub(super) memory: MemoryReadings,
    /// Processes that were seen.
    pub(super) seen: SeenProcesses,
    /// What the program did not offer, and what was done instead.
    pub(super) fallbacks: Vec<String>,
    /// Why the driver stopped before its end.
    pub(super) failure: Option<Failure>,
    close: Option<(AtClose, Tree)>,
}

/// Carries out all steps, or those before the first that fails.
pub(super) fn drive(plan: &mut Plan, running: &mut Running<'_>, context: RunContext<'_>) -> Driven {
    let steps = std::mem::take(&mut plan.steps);
    let mut driver = Driving {
        driven: Driven {
            spans: Vec::with_capacity(2 * steps.len()),
            memory: MemoryReadings::default(),
            seen: SeenProcesses::default(),
            fallbacks: Vec::new(),
            failure: None,
            close: None,
        },
        listener: None,
        lines: Lines::default(),
        flights: Vec::new(),
        ready: Vec::with_capacity(8),
        answered: BTreeMap::new(),
        features: None,
        action: Action {
            ids: plan.action.clone(),
            begun: None,
        },
        running,
        context,
    };
    let done = steps.into_iter().try_for_each(|step| driver.step(step));
    // Whatever is still on its way has to come before the program is stopped.
    if let Err(failure) = done.and_then(|()| driver.pump(Until::Landed)) {
        let failure = driver.explain(failure);
        driver.give_up(&failure);
        driver.driven.failure = Some(failure);
    }
    driver.end_action();
    driver.driven
}

struct Driving<'a, 'b> {
    driven: Driven,
    listener: Option<Listener>,
    lines: Lines,
    flights: Vec<OnItsWay>,
    /// For [`Running::wait_any`], made once.
    ready: Vec<bool>,
    /// When the latest answer to each request was there, by the request's name.
    answered: BTreeMap<String, MonoNanos>,
    /// The program's feature tags, once it was asked.
    features: Option<BTreeSet<String>>,
    action: Action,
    running: &'a mut Running<'b>,
    context: RunContext<'a>,
}

/// The `client.action` around some requests.
struct Action {
    ids: ReservedSpan,
    /// Where in the list of spans it begins.
    begun: Option<usize>,
}

/// A request whose answer is not there yet.
struct OnItsWay {
    flight: Flight,
    step: RequestStep,
    ids: ReservedSpan,
    pace: Pace,
    part: Part,
}

/// Until when others are waited for.
#[derive(Clone, Copy)]
enum Until {
    /// Every answer that a step awaits is there.
    Awaited,
    /// Every answer is there.
    Landed,
    /// An instant.
    Instant(MonoNanos),
}

impl Driving<'_, '_> {
    fn step(&mut self, step: PlannedStep) -> Result<(), Failure> {
        match step {
            PlannedStep::AwaitListener(ids, rule) => self.await_listener(ids, &rule),
            PlannedStep::ReadListenerRss => {
                self.read_listener_rss();
                Ok(())
            }
            PlannedStep::Send(sending) => self.send(sending),
            PlannedStep::Wait(duration, since) => {
                let answered = match since {
                    Since::Now => None,
                    Since::Answer(name) => self.answered.get(&name).copied(),
                };
                let until = answered.unwrap_or_else(MonoNanos::now).after(duration);
                self.pump(Until::Instant(until))
            }
            PlannedStep::Signal(signal) => {
                self.running.signal(signal.signal());
                Ok(())
            }
            PlannedStep::AwaitEnd(ids) => self.await_end(ids),
            PlannedStep::CloseWindow => {
                self.end_action();
                self.close_window();
                Ok(())
            }
        }
    }

    fn send(&mut self, sending: PlannedSending) -> Result<(), Failure> {
        let PlannedSending {
            requests,
            pace,
            part,
        } = sending;
        for request in requests {
            if self.is_offered(&request.step) {
                self.send_one(request, pace, part)?;
            }
        }
        self.pump(Until::Awaited)
    }

    /// Whether the program offers what a request needs; what it does not is noted.
    fn is_offered(&mut self, step: &RequestStep) -> bool {
        let Some(tag) = &step.needs else { return true };
        let features = self.features.as_ref();
        let offered = features.is_some_and(|features| features.contains(tag));
        if !offered {
            let name = &step.name;
            let note = format!("no feature `{tag}`: `{name}` was not sent");
            self.driven.fallbacks.push(note);
        }
        offered
    }

    fn send_one(&mut self, request: PlannedRequest, pace: Pace, part: Part) -> Result<(), Failure> {
        let PlannedRequest { step, ids, payload } = request;
        if part == Part::Action && self.action.begun.is_none() {
            self.action.begun = Some(self.driven.spans.len());
        }
        let timeout = self.context.step_timeout;
        match payload {
            Payload::Http(payload) => {
                let Some(listener) = &self.listener else {
                    // A driver asks only after it has awaited.
                    return Err(Failure::new(FailureCode::ConnectFailed, "no listener yet"));
                };
                let flight = Flight::begin(payload, listener, timeout);
                self.flights.push(OnItsWay {
                    flight,
                    step,
                    ids,
                    pace,
                    part,
                });
                Ok(())
            }
            Payload::Call(call) => {
                let called = self.lines.call(&call, self.running, timeout);
                let answer = called.result.map(|body| Answer { status: None, body });
                let span = Span {
                    step: &step,
                    ids,
                    part,
                    start: called.start,
                    end: called.end,
                };
                self.note(span, answer)
            }
        }
    }

    /// Advances what is on its way until what is waited for is there.
    fn pump(&mut self, until: Until) -> Result<(), Failure> {
        loop {
            self.land()?;
            let now = MonoNanos::now();
            let waits = match until {
                Until::Awaited => self.flights.iter().any(|one| one.pace == Pace::Awaited),
                Until::Landed => !self.flights.is_empty(),
                Until::Instant(instant) => now < instant,
            };
            if !waits {
                return Ok(());
            }
            self.wait_once(until)?;
        }
    }

    fn wait_once(&mut self, until: Until) -> Result<(), Failure> {
        let timeout = self.context.step_timeout;
        let first = self.flights.iter().map(|one| one.flight.deadline).min();
        let deadline = match (until, first) {
            (Until::Instant(instant), Some(first)) => approach(instant).min(first),
            (Until::Instant(instant), None) => approach(instant),
            (_, Some(first)) => first,
            (_, None) => return Ok(()),
        };
        let awaited: Vec<Awaited<'_>> = self
            .flights
            .iter()
            .filter_map(|one| one.flight.awaited())
            .collect();
        let wake = self.running.wait_any(&awaited, deadline, &mut self.ready);
        drop(awaited);
        match wake {
            // Everything that has landed was taken off the list: all of them wait.
            Wake::Ready => {
                for (one, ready) in self.flights.iter_mut().zip(&self.ready) {
                    if *ready {
                        one.flight.advance();
                    }
                }
                Ok(())
            }
            Wake::TimedOut => {
                let now = MonoNanos::now();
                match self.flights.iter().find(|one| one.flight.deadline <= now) {
                    Some(late) => {
                        let (what, code) = (late.flight.waiting_for(), FailureCode::RequestTimeout);
                        Err(stopped_waiting(wake, what, timeout, code))
                    }
                    None => Ok(()),
                }
            }
            Wake::Exited | Wake::Interrupted => {
                let what = self
                    .flights
                    .first()
                    .map_or("before the next step", |one| one.flight.waiting_for());
                let code = FailureCode::RequestTimeout;
                Err(stopped_waiting(wake, what, timeout, code))
            }
        }
    }

    /// Takes what has landed off the list and notes it.
    fn land(&mut self) -> Result<(), Failure> {
        let mut at = 0;
        while at < self.flights.len() {
            let Some(Landed { end, result }) = self.flights[at].flight.landed().cloned() else {
                at += 1;
                continue;
            };
            let one = self.flights.remove(at);
            let answer = result.map(|response| Answer {
                status: Some(response.status),
                body: response.body,
            });
            let span = Span {
                step: &one.step,
                ids: one.ids,
                part: one.part,
                start: one.flight.start,
                end,
            };
            self.note(span, answer)?;
        }
        Ok(())
    }

    /// Notes an answer as a span; a failure where it is none that is wanted.
    fn note(&mut self, span: Span<'_>, answer: Result<Answer, Failure>) -> Result<(), Failure> {
        let step = span.step;
        self.answered.insert(step.name.clone(), span.end);
        let judged = answer.as_ref().map_err(Clone::clone);
        let judged = judged.and_then(|answer| answer::judge(step, answer));
        let refused = judged
            .as_ref()
            .is_err_and(|failure| failure.code == FailureCode::HttpStatus);
        let mut failure = judged.as_ref().err().cloned();
        if refused && step.refusal == Refusal::Noted {
            let (name, said) = (&step.name, failure.take());
            let said = said.map_or_else(String::new, |failure| failure.message);
            self.driven.fallbacks.push(format!("no `{name}`: {said}"));
        }
        let answer = answer.ok();
        if let (Some(key), Some(answer)) = (&step.features, &answer) {
            self.features = Some(answer::texts(&answer.body, key));
        }
        self.driven.spans.push(ClientSpan {
            temperature: step.temperature,
            session_id: judged.unwrap_or_default(),
            status: answer.as_ref().and_then(|answer| answer.status),
            of_action: span.part == Part::Action,
            body: answer
                .filter(|_| step.session.is_some())
                .and_then(|answer| answer::kept(answer.body)),
            keys: step.keys.clone(),
            ..ClientSpan::new(span.ids, step.span, span.start, span.end, failure.clone())
        });
        failure.map_or(Ok(()), Err)
    }

    /// Notes what is still on its way as failed.
    fn give_up(&mut self, failure: &Failure) {
        let end = MonoNanos::now();
        for one in std::mem::take(&mut self.flights) {
            let start = one.flight.start;
            self.driven.spans.push(ClientSpan {
                temperature: one.step.temperature,
                of_action: one.part == Part::Action,
                ..ClientSpan::new(one.ids, one.step.span, start, end, Some(failure.clone()))
            });
        }
    }

    /// Makes the action's span of its requests' spans, in front of them.
    fn end_action(&mut self) {
        let Some(begun) = self.action.begun.take() else {
            return;
        };
        let own = || self.driven.spans.iter().filter(|span| span.of_action);
        let (Some(start), Some(end)) = (
            own().map(|span| span.start).min(),
            own().map(|span| span.end).max(),
        ) else {
            return;
        };
        let session = own().find(|span| span.temperature.is_some());
        let failure = own().find_map(|span| span.failure.clone());
        let action = ClientSpan {
            temperature: session.and_then(|span| span.temperature),
            session_id: session.and_then(|span| span.session_id.clone()),
            ..ClientSpan::new(
                self.action.ids.clone(),
                spans::CLIENT_ACTION,
                start,
                end,
                failure,
            )
        };
        self.driven.spans.insert(begun, action);
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
                if self.running.ends_within(answer::END_PATIENCE) =>
            {
                let message = format!("the program ended ({})", failure.message);
                Failure::new(FailureCode::ExitedEarly, message)
            }
            _ => failure,
        }
    }
}

/// An instant on the way to that one: the kernel may let a `poll` sleep longer by a
/// thousandth of its timeout, or five where this process is nice, so that a long wait
/// in one piece would be late by milliseconds.
fn approach(instant: MonoNanos) -> MonoNanos {
    let now = MonoNanos::now();
    let left = instant.since(now);
    if left > LAST_PIECE {
        now.after(left / 8 * 7)
    } else {
        instant
    }
}

/// What is known of a request's span before its answer is judged.
struct Span<'s> {
    step: &'s RequestStep,
    ids: ReservedSpan,
    part: Part,
    start: MonoNanos,
    end: MonoNanos,
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
        if let Some(sampler) = running.sampler() {
            self.memory.sampled_peak = sampler.peak();
            self.memory.samples = Some((sampler.samples(), sampler.cost()));
            sampler
                .first_seen()
                .for_each(|first| self.seen.add_first(first));
        }
    }

    /// What was read when the window closed.
    pub(super) fn close_reading(&self) -> Option<(&AtClose, &Tree)> {
        self.close.as_ref().map(|(close, tree)| (close, tree))
    }
}
