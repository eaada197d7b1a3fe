//! Experiments: which run a measuring span measured, and what it says of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::model::chain_rules::Measured;
use crate::model::lens::{Kind, Lens, equals};
use crate::model::schema::{Literal, Part};
use crate::trace::dataset::SpanIndex;
use crate::trace::span::Value;
use crate::units::Timestamp;

use super::Run;
use super::assemble::{empty_run, short, sort};
use crate::model::by_kind::ByKind;

/// Gives each measured cold start's client spans and words to the run that
/// served it, or to a run of its own where no trace came.
pub(super) fn attach<'a>(
    lens: &Lens<'a>,
    runs: &mut Vec<Run<'a>>,
    processes: &BTreeMap<&'a str, ByKind>,
) {
    let Some(measured) = &lens.model.measured else {
        return;
    };
    let Some(kind) = lens.kind(&measured.kind) else {
        return;
    };
    let drivers = measured_processes(lens, kind);
    let driven: HashMap<SpanIndex, &str> = drivers
        .iter()
        .rev()
        .map(|(process, driver)| (*driver, *process))
        .collect();
    let served = Served::new(lens, kind, runs);
    for span in lens.all(kind) {
        let process = driven.get(&span).copied();
        let place = served.place(span, process).unwrap_or_else(|| {
            let mut run = empty_run(process, None);
            run.process = process
                .and_then(|key| processes.get(key))
                .cloned()
                .unwrap_or_default();
            run.first_of_process = true;
            runs.push(run);
            runs.len() - 1
        });
        let below = lens.tree.descendants(span, |_| true).into_iter();
        let own = below.filter(|span| lens.part(*span) == Some(Part::Client));
        runs[place].client = lens.by_kind(own.chain([span]).collect());
        take_words(lens, measured, span, &mut runs[place]);
    }
    sort(runs);
}

/// Which run served what a measuring span measured.
struct Served<'a> {
    /// The run with the first request below each measuring span.
    by_request: HashMap<SpanIndex, usize>,
    /// The first run of each process.
    by_process: HashMap<&'a str, usize>,
}

impl<'a> Served<'a> {
    fn new(lens: &Lens<'a>, measured: Kind, runs: &[Run<'a>]) -> Self {
        let mut first: HashMap<SpanIndex, (Timestamp, SpanIndex, usize)> = HashMap::new();
        let mut by_process = HashMap::new();
        for (place, run) in runs.iter().enumerate() {
            if let Some(process) = run.process_key.filter(|_| run.first_of_process) {
                by_process.entry(process).or_insert(place);
            }
            for request in &run.requests {
                let key = (lens.data.span(request.span).start(), request.span, place);
                for above in lens.tree.ancestors(request.span) {
                    if lens.kind_of(above) == Some(measured) {
                        let old = first.entry(above).or_insert(key);
                        *old = key.min(*old);
                    }
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
    fn place(&self, measured: SpanIndex, process: Option<&str>) -> Option<usize> {
        let by_request = self.by_request.get(&measured);
        by_request
            .or_else(|| self.by_process.get(process?))
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
    let mut words = BTreeMap::new();
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

/// The measuring span above each process: above its own spans or its requests.
fn measured_processes<'a>(lens: &Lens<'a>, measured: Kind) -> BTreeMap<&'a str, SpanIndex> {
    let mut found = BTreeMap::new();
    let relevant = |span: &SpanIndex| {
        matches!(
            lens.part(*span),
            Some(Part::Process | Part::Request | Part::Channel)
        )
    };
    for span in lens.data.indices().filter(relevant) {
        let Some(process) = lens.resource_text(span, &lens.model.keys.process) else {
            continue;
        };
        if found.contains_key(process) || !owns_process(lens, span) {
            continue;
        }
        if let Some(above) = lens
            .tree
            .ancestors(span)
            .find(|above| lens.kind_of(*above) == Some(measured))
        {
            found.insert(process, above);
        }
    }
    found
}

/// The agent is a process of its own below the daemon's spans; only spans that
/// stand for the daemon tie it to an experiment.
fn owns_process(lens: &Lens<'_>, span: SpanIndex) -> bool {
    let chain = &lens.model.chain;
    let agent = lens
        .kinds(&chain.channel_agent)
        .into_iter()
        .chain(lens.kinds(&chain.created_agent));
    let agent: BTreeSet<Kind> = agent.collect();
    let is_agent = |span: SpanIndex| lens.kind_of(span).is_some_and(|kind| agent.contains(&kind));
    !is_agent(span) && !lens.tree.ancestors(span).any(is_agent)
}
