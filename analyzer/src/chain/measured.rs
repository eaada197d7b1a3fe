//! Experiments: which run a measuring span measured, and what it says of it.

use std::collections::BTreeSet;

use hashbrown::HashMap;

use crate::model::chain_rules::Measured;
use crate::model::lens::{Lens, equals};
use crate::model::schema::{Literal, Part};
use crate::trace::dataset::SpanIndex;
use crate::trace::names::Symbol;
use crate::trace::slots::Slots;
use crate::trace::span::Value;
use crate::units::Timestamp;

use super::Run;
use super::assemble::{Processes, empty_run, process_part, short, sort};

/// Gives each measured cold start's client spans and words to the run that
/// served it, or to a run of its own where no trace came.
pub(super) fn attach<'a>(lens: &Lens<'a>, runs: &mut Vec<Run<'a>>, processes: &Processes) {
    let Some(measured) = &lens.model.measured else {
        return;
    };
    let Some(kind) = lens.kind(&measured.kind) else {
        return;
    };
    let above = lens.nearest_above(&BTreeSet::from([kind]));
    let driven = driven(lens, &above);
    let served = Served::new(lens, &above, runs);
    for span in lens.all(kind) {
        let process = driven.get(&span).copied();
        let place = served.place(span, process).unwrap_or_else(|| {
            let text = process.map(|process| lens.data.names.text(process));
            let mut run = empty_run(text, None);
            run.process = process_part(processes, process);
            run.first_of_process = true;
            runs.push(run);
            runs.len() - 1
        });
        // What another measuring span has below it is that one's.
        let other = |found: &SpanIndex| lens.kind_of(*found) != Some(kind);
        let below = lens
            .tree
            .descendants(span, |found| other(&found))
            .into_iter();
        let own = below.filter(|span| lens.part(*span) == Some(Part::Client) && other(span));
        runs[place].client = lens.by_kind(own.chain([span]).collect());
        take_words(lens, measured, span, &mut runs[place]);
    }
    sort(runs);
}

/// Which run served what a measuring span measured.
struct Served {
    /// The run with the first request below each measuring span.
    by_request: HashMap<SpanIndex, usize>,
    /// The first run of each process.
    by_process: HashMap<Symbol, usize>,
}

impl Served {
    /// `above` is the nearest measuring span above each span.
    fn new(lens: &Lens<'_>, above: &Slots, runs: &[Run<'_>]) -> Self {
        let mut first: HashMap<SpanIndex, (Timestamp, SpanIndex, usize)> = HashMap::new();
        let mut by_process = HashMap::new();
        for (place, run) in runs.iter().enumerate() {
            let process = run.process_key.filter(|_| run.first_of_process);
            if let Some(process) = process.and_then(|key| lens.data.names.find(key)) {
                by_process.entry(process).or_insert(place);
            }
            for request in &run.requests {
                let key = (lens.data.span(request.span).start(), request.span, place);
                if let Some(above) = above.get(request.span.0 as usize) {
                    let old = first.entry(above).or_insert(key);
                    *old = key.min(*old);
                }
            }
        }
        Self {
            by_request: first
                .into_iter()
                .map(|(span, (_, _, place))| (span, place))
                .collect(),
            by_process,
        }
    }

    /// By request first; else the first run of the process that was driven.
    fn place(&self, measured: SpanIndex, process: Option<Symbol>) -> Option<usize> {
        let by_request = self.by_request.get(&measured);
        by_request
            .or_else(|| self.by_process.get(&process?))
            .copied()
    }
}

/// What a measuring span says of its run.
fn take_words(lens: &Lens<'_>, measured: &Measured, span: SpanIndex, run: &mut Run<'_>) {
    let truth = |key: &str| {
        lens.attribute(span, key)
            .is_some_and(|value| equals(lens.data, value, &Literal::Bool(true)))
    };
    let number = |key: &str| lens.attribute(span, key).and_then(Value::integer);
    run.warmup = truth(&measured.warmup);
    lens.text(span, &measured.cohort)
        .unwrap_or("")
        .clone_into(&mut run.cohort);
    run.pair = number(&measured.pair);
    run.failure = lens.text(span, &measured.failure).map(str::to_owned);
    let cohort = if run.cohort.is_empty() {
        &measured.kind
    } else {
        &run.cohort
    };
    run.id = match number(&measured.index) {
        Some(index) => format!("{cohort}#{index}"),
        None => cohort.clone(),
    };
}

/// Other channel attempts of a process that a client measured share its cohort,
/// its being a warm-up, and its name.
pub(super) fn spread_words(runs: &mut [Run<'_>]) {
    let mut words = HashMap::new();
    let measured = |run: &Run<'_>| !run.client.is_empty() || run.record.is_some();
    for run in runs.iter().filter(|run| measured(run)) {
        if let Some(process) = run.process_key {
            words.insert(process, (run.cohort.clone(), run.warmup, run.id.clone()));
        }
    }
    for run in runs.iter_mut().filter(|run| !measured(run)) {
        if let Some((cohort, warmup, id)) = run.process_key.and_then(|key| words.get(key)) {
            run.cohort.clone_from(cohort);
            run.warmup = *warmup;
            run.id = format!("{id}/{}", short(run.channel_id.unwrap_or("")));
        }
    }
}

/// The process that each measuring span drove: the one whose own spans or
/// requests are below it; of several the first by name. `above` is the nearest
/// measuring span above each span.
fn driven(lens: &Lens<'_>, above: &Slots) -> HashMap<SpanIndex, Symbol> {
    let chain = &lens.model.chain;
    // The agent is a process of its own below the daemon's spans; only spans that
    // stand for the daemon tie it to an experiment.
    let mut agent = lens.kinds(&chain.channel_agent);
    agent.extend(lens.kinds(&chain.created_agent));
    let below_agent = lens.nearest_above(&agent);
    let stands_for_daemon = |span: &SpanIndex| {
        let part = lens.part(*span);
        matches!(part, Some(Part::Process | Part::Request | Part::Channel))
            && !lens
                .kind_of(*span)
                .is_some_and(|kind| agent.contains(&kind))
            && below_agent.get(span.0 as usize).is_none()
    };
    let mut drivers: HashMap<Symbol, SpanIndex> = HashMap::new();
    for span in lens.data.indices().filter(stands_for_daemon) {
        if let (Some(process), Some(driver)) = (lens.process_of(span), above.get(span.0 as usize)) {
            drivers.entry(process).or_insert(driver);
        }
    }
    let name = |process: Symbol| lens.data.names.text(process);
    let mut driven: HashMap<SpanIndex, Symbol> = HashMap::new();
    for (process, driver) in drivers {
        let first = driven.entry(driver).or_insert(process);
        if name(process) < name(*first) {
            *first = process;
        }
    }
    driven
}
