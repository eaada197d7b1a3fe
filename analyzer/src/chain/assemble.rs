//! Puts runs together: channel attempts, the requests joined to them, the
//! process they share, the experiment that measured them.
//!
//! Pure, and independent of the order of reading: everything is keyed by ids
//! and sorted by start.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;

use crate::model::lens::Lens;
use crate::model::schema::Part;
use crate::trace::dataset::SpanIndex;
use crate::trace::span::{Status, Value};
use crate::units::Timestamp;

use super::join::{ChannelKey, Channels, channel_of};
use super::{ChainState, Outcome, Request, Run, clients, complete, measured};
use crate::model::by_kind::ByKind;

/// Bytes of a process key or channel id that name a run: the first block of a UUID.
const SHORT_ID_BYTES: usize = 8;

/// A session request with what it belongs to.
struct Joined<'a> {
    request: Request,
    process: Option<&'a str>,
    channel: Option<ChannelKey<'a>>,
}

/// All runs of the data, by start.
#[must_use]
pub fn runs<'a>(lens: &Lens<'a>) -> Vec<Run<'a>> {
    let processes = process_parts(lens);
    let mut channels = channel_attempts(lens);
    let mut requests = session_requests(lens, &channels);
    for joined in &requests {
        if let Some(key) = joined.channel {
            channels.entry(key).or_default();
        }
    }
    adopt_unjoined(lens, &mut requests, &channels);
    let mut runs: Vec<Run<'a>> = channels
        .iter()
        .map(|(key, spans)| channel_run(lens, *key, spans, &processes))
        .collect();
    place_requests(lens, requests, &mut runs, &processes);
    runs.extend(loose_runs(lens));
    for run in &mut runs {
        run.start = first_instant(lens, run);
    }
    sort(&mut runs);
    mark_first_of_process(&mut runs);
    measured::attach(lens, &mut runs, &processes);
    clients::attach(lens, &mut runs);
    measured::spread_words(&mut runs);
    for run in &mut runs {
        run.start = first_instant(lens, run);
        complete::judge(lens, run);
    }
    name_runs(lens, &mut runs);
    runs
}

/// A run of which only its keys are known.
pub(super) fn empty_run<'a>(process: Option<&'a str>, channel: Option<&'a str>) -> Run<'a> {
    Run {
        id: String::new(),
        cohort: String::new(),
        warmup: false,
        pair: None,
        start: Timestamp(u64::MAX),
        process: ByKind::default(),
        channel: ByKind::default(),
        channel_id: channel,
        process_key: process,
        first_of_process: false,
        requests: Vec::new(),
        client: ByKind::default(),
        record: None,
        chain: ChainState::NotTraced,
        failure: None,
    }
}

/// The spans of each process that its runs share.
fn process_parts<'a>(lens: &Lens<'a>) -> BTreeMap<&'a str, ByKind> {
    let mut spans: BTreeMap<&str, Vec<SpanIndex>> = BTreeMap::new();
    for span in lens
        .data
        .indices()
        .filter(|span| lens.part(*span) == Some(Part::Process))
    {
        if let Some(process) = lens.resource_text(span, &lens.model.keys.process) {
            spans.entry(process).or_default().push(span);
        }
    }
    spans
        .into_iter()
        .map(|(process, spans)| (process, lens.by_kind(spans)))
        .collect()
}

fn channel_attempts<'a>(lens: &Lens<'a>) -> Channels<'a> {
    let kinds = lens.kinds(&lens.model.chain.channel);
    let mut channels = Channels::new();
    for span in lens.data.indices().filter(|span| {
        lens.kind_of(*span)
            .is_some_and(|kind| kinds.contains(&kind))
    }) {
        if let Some(channel) = lens.text(span, &lens.model.keys.channel) {
            let process = lens.resource_text(span, &lens.model.keys.process);
            channels.entry((process, channel)).or_default().push(span);
        }
    }
    channels
}

fn session_requests<'a>(lens: &Lens<'a>, channels: &Channels<'a>) -> Vec<Joined<'a>> {
    let Some(kind) = lens.kind(&lens.model.chain.request) else {
        return Vec::new();
    };
    let joined = lens.all(kind).map(|span| {
        let below = lens.below(span);
        let process = lens.resource_text(span, &lens.model.keys.process);
        let channel = channel_of(lens, process, &below, channels);
        let outcome = outcome(lens, span, &below);
        Joined {
            request: Request {
                span,
                outcome,
                below,
            },
            process,
            channel,
        }
    });
    let mut joined: Vec<_> = joined
        .filter(|joined| joined.request.outcome != Outcome::Rejected)
        .collect();
    joined.sort_by_key(|joined| {
        (
            lens.data.span(joined.request.span).start(),
            joined.request.span,
        )
    });
    joined
}

/// What the request says of itself, else what its status and children say.
fn outcome(lens: &Lens<'_>, span: SpanIndex, below: &ByKind) -> Outcome {
    let chain = &lens.model.chain;
    match chain.outcome.as_ref().and_then(|key| lens.text(span, key)) {
        Some("created") => return Outcome::Created,
        Some("attached") => return Outcome::Attached,
        Some("coalesced") => return Outcome::Coalesced,
        Some("rejected") => return Outcome::Rejected,
        Some("failed") => return Outcome::Failed,
        _ => {}
    }
    let http = lens
        .attribute(span, coldpath_trace_format::attributes::HTTP_STATUS)
        .and_then(Value::integer);
    let made = lens
        .kind(&chain.created_by)
        .is_some_and(|kind| !below.get(kind).is_empty());
    match http {
        Some(400..=499) => Outcome::Rejected,
        Some(500..) => Outcome::Failed,
        _ if lens.data.span(span).status == Status::Error => Outcome::Failed,
        _ if made => Outcome::Created,
        _ => Outcome::Attached,
    }
}

/// Gives requests that no rule joins to the channel of their process that
/// started last before they ended: an attached session, or a failure before
/// there was a channel.
fn adopt_unjoined<'a>(lens: &Lens<'a>, requests: &mut [Joined<'a>], channels: &Channels<'a>) {
    for joined in requests
        .iter_mut()
        .filter(|joined| joined.channel.is_none())
    {
        let end = lens.data.span(joined.request.span).interval.end();
        let mut own: Vec<_> = channels
            .iter()
            .filter(|((process, _), spans)| *process == joined.process && !spans.is_empty())
            .map(|(key, spans)| (earliest(lens, spans), *key))
            .collect();
        own.sort_unstable();
        let before = own.iter().rev().find(|(start, _)| *start <= end);
        joined.channel = before.or(own.first()).map(|(_, key)| *key);
    }
}

fn earliest(lens: &Lens<'_>, spans: &[SpanIndex]) -> Timestamp {
    spans
        .iter()
        .map(|span| lens.data.span(*span).start())
        .min()
        .unwrap_or(Timestamp(u64::MAX))
}

fn channel_run<'a>(
    lens: &Lens<'a>,
    (process, channel): ChannelKey<'a>,
    spans: &[SpanIndex],
    processes: &BTreeMap<&'a str, ByKind>,
) -> Run<'a> {
    let mut run = empty_run(process, Some(channel));
    run.process = process_part(processes, process);
    let below = spans
        .iter()
        .flat_map(|span| lens.tree.descendants(*span, |_| true));
    run.channel = lens.by_kind(spans.iter().copied().chain(below).collect());
    run
}

/// Puts each request into the run of its channel, or into one of its own process
/// where that never had a channel.
fn place_requests<'a>(
    lens: &Lens<'a>,
    requests: Vec<Joined<'a>>,
    runs: &mut Vec<Run<'a>>,
    processes: &BTreeMap<&'a str, ByKind>,
) {
    let keys = runs.iter().enumerate();
    let mut places: HashMap<(Option<&str>, Option<&str>), usize> = keys
        .map(|(place, run)| ((run.process_key, run.channel_id), place))
        .collect();
    for joined in requests {
        let key = match joined.channel {
            Some((owner, id)) => (owner, Some(id)),
            None => (joined.process, None),
        };
        let shared = !lens.model.chain.run_per_request;
        if let Some(place) = places.get(&key).filter(|_| shared) {
            // Requests come by start, so those of one run do as well.
            runs[*place].requests.push(joined.request);
            continue;
        }
        let mut run = empty_run(joined.process, None);
        run.process = process_part(processes, joined.process);
        run.requests.push(joined.request);
        places.insert(key, runs.len());
        runs.push(run);
    }
}

/// The part that all runs of a process share.
fn process_part(processes: &BTreeMap<&str, ByKind>, process: Option<&str>) -> ByKind {
    process
        .and_then(|key| processes.get(key))
        .cloned()
        .unwrap_or_default()
}

/// Runs of which only the agent's spans are left, as after a killed daemon: one
/// for each process that wrote them.
fn loose_runs<'a>(lens: &Lens<'a>) -> Vec<Run<'a>> {
    let kinds = lens.kinds(&lens.model.chain.created_agent);
    let request = lens.kind(&lens.model.chain.request);
    let is_loose = |span: &SpanIndex| {
        lens.kind_of(*span)
            .is_some_and(|kind| kinds.contains(&kind))
            && !lens
                .tree
                .ancestors(*span)
                .any(|above| lens.kind_of(above) == request)
    };
    let mut groups: BTreeMap<Option<&str>, Vec<SpanIndex>> = BTreeMap::new();
    for span in lens.data.indices().filter(is_loose) {
        let process = lens.resource_text(span, &lens.model.keys.process);
        groups.entry(process).or_default().push(span);
    }
    let run = |(process, spans): (Option<&'a str>, Vec<SpanIndex>)| {
        let mut run = empty_run(process, None);
        run.channel = lens.by_kind(spans);
        run
    };
    groups.into_iter().map(run).collect()
}

fn first_instant(lens: &Lens<'_>, run: &Run<'_>) -> Timestamp {
    let client = run.client.spans();
    if !client.is_empty() {
        return earliest(lens, client);
    }
    let requests = run.requests.iter().map(|request| &request.span);
    // The process part is shared, so it cannot order the runs of one process.
    let own: Vec<_> = run
        .channel
        .spans()
        .iter()
        .chain(requests)
        .copied()
        .collect();
    let shared = run.process.spans();
    let start = earliest(lens, if own.is_empty() { shared } else { &own });
    run.record
        .and_then(|record| clients::start_of(lens, record))
        .map_or(start, |record| record.min(start))
}

fn mark_first_of_process(runs: &mut [Run<'_>]) {
    let mut seen = BTreeSet::new();
    for run in runs {
        run.first_of_process = run.process_key.is_none_or(|process| seen.insert(process));
    }
}

/// Runs in the order of reports.
pub(super) fn sort(runs: &mut [Run<'_>]) {
    let key = |run: &Run<'_>| {
        (
            run.start,
            run.process_key.map(str::to_owned),
            run.channel_id.map(str::to_owned),
            run.id.clone(),
        )
    };
    runs.sort_by_cached_key(key);
}

/// The first block of a UUID, the start of anything else.
pub(super) fn short(id: &str) -> String {
    id.chars().take(SHORT_ID_BYTES).collect()
}

/// Names what has no name yet, and makes every name unique.
fn name_runs(lens: &Lens<'_>, runs: &mut [Run<'_>]) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for run in runs {
        if run.id.is_empty() {
            let unknown = run
                .requests
                .first()
                .map_or_else(|| "unknown".to_owned(), |request| trace_name(lens, request));
            if lens.model.chain.run_per_request {
                (run.process_key, run.channel_id) = (None, None);
            }
            run.id = match (run.process_key, run.channel_id) {
                (Some(process), Some(channel)) => {
                    format!("{}/{}", process_name(process), short(channel))
                }
                (Some(process), None) => process_name(process),
                (None, Some(channel)) => short(channel),
                (None, None) => unknown.clone(),
            };
        }
        let count = seen.entry(run.id.clone()).or_default();
        *count += 1;
        if *count > 1 {
            run.id = format!("{}~{count}", run.id);
        }
    }
}

/// The first half of a request's trace id, which no other trace shares by chance.
fn trace_name(lens: &Lens<'_>, request: &Request) -> String {
    let trace = lens.data.span(request.span).trace.0;
    trace.iter().take(8).fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A UUID is cut to its first block; other keys are short and stay.
fn process_name(key: &str) -> String {
    let uuid = key.len() == 36 && key.bytes().filter(|byte| *byte == b'-').count() == 4;
    if uuid {
        key.chars().take(SHORT_ID_BYTES).collect()
    } else {
        key.to_owned()
    }
}
