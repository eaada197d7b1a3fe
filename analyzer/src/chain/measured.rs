//! Experiments: which run a measuring span measured, and what it says of it.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::chain_rules::Measured;
use crate::model::lens::{Kind, Lens, equals};
use crate::model::schema::{Literal, Part};
use crate::trace::dataset::SpanIndex;
use crate::trace::span::Value;

use super::assemble::{empty_run, short, sort};
use super::{ByKind, Run};

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
    for span in lens.all(kind) {
        let driven = drivers.iter().find(|(_, driver)| **driver == span);
        let process = driven.map(|(process, _)| *process);
        let place = served_by(lens, runs, span, process).unwrap_or_else(|| {
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

/// The run that holds the first request below a measuring span; else the first
/// run of the process that it drove.
fn served_by(
    lens: &Lens<'_>,
    runs: &[Run<'_>],
    measured: SpanIndex,
    process: Option<&str>,
) -> Option<usize> {
    let served = |run: &Run<'_>| {
        let requests = run.requests.iter();
        let own = requests.filter(|request| {
            lens.tree
                .ancestors(request.span)
                .any(|above| above == measured)
        });
        own.map(|request| (lens.data.span(request.span).start(), request.span))
            .min()
    };
    let by_request = runs
        .iter()
        .enumerate()
        .filter_map(|(index, run)| Some((served(run)?, index)));
    let by_request = by_request.min().map(|(_, index)| index);
    by_request.or_else(|| {
        process?;
        runs.iter()
            .position(|run| run.process_key == process && run.first_of_process)
    })
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
