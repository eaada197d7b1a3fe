//! Puts runs together: channel attempts, the requests joined to them, the
//! process they share, the experiment that measured them.
//!
//! Pure, and independent of the order of reading: everything is keyed by ids
//! and sorted by start.

use std::fmt::Write as _;

use hashbrown::{HashMap, HashSet};

use crate::halves::{both, each};
use crate::model::lens::Lens;
use crate::model::schema::Part;
use crate::trace::dataset::SpanIndex;
use crate::trace::names::Symbol;
use crate::trace::span::{Status, Value};
use crate::units::Timestamp;

use super::join::{Channel, ChannelKey, Channels, channel_of};
use super::{ChainState, Outcome, Request, Run, clients, complete, measured};
use crate::model::by_kind::ByKind;

/// Bytes of a process key or channel id that name a run: the first block of a UUID.
const SHORT_ID_BYTES: usize = 8;

/// The spans of each process that its runs share.
pub(super) type Processes = HashMap<Symbol, ByKind>;

/// A session request with what it belongs to.
struct Joined {
    request: Request,
    process: Option<Symbol>,
    channel: Option<ChannelKey>,
}

/// All runs of the data, by start.
#[must_use]
pub fn runs<'a>(lens: &Lens<'a>) -> Vec<Run<'a>> {
    let processes = process_parts(lens);
    let mut channels = channel_attempts(lens);
    let mut requests = session_requests(lens, &channels);
    for joined in &requests {
        if let Some(key) = joined.channel {
            channels.entry(key);
        }
    }
    adopt_unjoined(lens, &mut requests, &channels);
    let mut runs = each(channels.all(), channels.all().len(), |channel| {
        channel_run(lens, channel, &processes)
    });
    let keys = channels.all().iter().map(|channel| Key::of(channel.key));
    place_requests(lens, requests, &mut runs, keys, &processes);
    runs.extend(loose_runs(lens));
    for run in &mut runs {
        run.start = first_instant(lens, run);
    }
    sort(&mut runs);
    mark_first_of_process(&mut runs);
    measured::attach(lens, &mut runs, &processes);
    clients::attach(lens, &mut runs);
    measured::spread_words(&mut runs);
    let middle = runs.len() / 2;
    let weight = runs.len();
    let (first, second) = runs.split_at_mut(middle);
    both(weight, || judge(lens, first), || judge(lens, second));
    name_runs(lens, &mut runs);
    runs
}

fn judge(lens: &Lens<'_>, runs: &mut [Run<'_>]) {
    for run in runs {
        run.start = first_instant(lens, run);
        complete::judge(lens, run);
    }
}

/// What requests of one run have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    process: Option<Symbol>,
    channel: Option<Symbol>,
}

impl Key {
    fn of(key: ChannelKey) -> Self {
        Self {
            process: key.process,
            channel: Some(key.channel),
        }
    }
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

fn text_of<'a>(lens: &Lens<'a>, symbol: Option<Symbol>) -> Option<&'a str> {
    symbol.map(|symbol| lens.data.names.text(symbol))
}

fn process_parts(lens: &Lens<'_>) -> Processes {
    let mut spans: HashMap<Symbol, Vec<SpanIndex>> = HashMap::new();
    for span in lens
        .data
        .indices()
        .filter(|span| lens.part(*span) == Some(Part::Process))
    {
        if let Some(process) = lens.process_of(span) {
            spans.entry(process).or_default().push(span);
        }
    }
    spans
        .into_iter()
        .map(|(process, spans)| (process, lens.by_kind(spans)))
        .collect()
}

fn channel_attempts(lens: &Lens<'_>) -> Channels {
    let kinds = lens.kinds(&lens.model.chain.channel);
    let mut channels = Channels::default();
    for span in lens.data.indices().filter(|span| {
        lens.kind_of(*span)
            .is_some_and(|kind| kinds.contains(&kind))
    }) {
        if let Some(channel) = lens.channel_of(span) {
            let process = lens.process_of(span);
            let key = ChannelKey { process, channel };
            channels.entry(key).spans.push(span);
        }
    }
    channels.index_stretches(lens);
    channels
}

fn session_requests(lens: &Lens<'_>, channels: &Channels) -> Vec<Joined> {
    let Some(kind) = lens.kind(&lens.model.chain.request) else {
        return Vec::new();
    };
    let spans: Vec<SpanIndex> = lens.all(kind).collect();
    let mut joined = each(&spans, spans.len(), |span| {
        let span = *span;
        let below = lens.below(span);
        let process = lens.process_of(span);
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
    joined.retain(|joined| joined.request.outcome != Outcome::Rejected);
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
/// started last before they ended, or to its first where none had: an attached
/// session, or a failure before there was a channel.
fn adopt_unjoined(lens: &Lens<'_>, requests: &mut [Joined], channels: &Channels) {
    // The channels of a process by start, sorted when they are first asked for.
    let mut by_start: HashMap<Option<Symbol>, Vec<(Timestamp, ChannelKey)>> = HashMap::new();
    for joined in requests
        .iter_mut()
        .filter(|joined| joined.channel.is_none())
    {
        let end = lens.data.span(joined.request.span).interval.end();
        let own = by_start.entry(joined.process).or_insert_with(|| {
            let own = channels.of_process(joined.process);
            let own = own.filter(|channel| !channel.spans.is_empty());
            let mut own: Vec<_> = own
                .map(|channel| (earliest(lens, &channel.spans), channel.key))
                .collect();
            let rank =
                |(start, key): &(Timestamp, ChannelKey)| (*start, key.texts(&lens.data.names));
            own.sort_by(|a, b| rank(a).cmp(&rank(b)));
            own
        });
        let before = own.partition_point(|(start, _)| *start <= end);
        let chosen = own.get(before.saturating_sub(1));
        joined.channel = chosen.map(|(_, key)| *key);
    }
}

fn earliest(lens: &Lens<'_>, spans: &[SpanIndex]) -> Timestamp {
    spans
        .iter()
        .map(|span| lens.data.span(*span).start())
        .min()
        .unwrap_or(Timestamp(u64::MAX))
}

fn channel_run<'a>(lens: &Lens<'a>, channel: &Channel, processes: &Processes) -> Run<'a> {
    let ChannelKey {
        process,
        channel: id,
    } = channel.key;
    let mut run = empty_run(text_of(lens, process), text_of(lens, Some(id)));
    run.process = process_part(processes, process);
    // Each of its spans is walked from by itself, so no walk enters another one.
    let own: HashSet<SpanIndex> = channel.spans.iter().copied().collect();
    let below = channel
        .spans
        .iter()
        .flat_map(|span| lens.tree.descendants(*span, |found| !own.contains(&found)));
    run.channel = lens.by_kind(channel.spans.iter().copied().chain(below).collect());
    run
}

/// Puts each request into the run of its channel, or into one of its own process
/// where that never had a channel. `keys` are those of `runs`, in their order.
fn place_requests<'a>(
    lens: &Lens<'a>,
    requests: Vec<Joined>,
    runs: &mut Vec<Run<'a>>,
    keys: impl Iterator<Item = Key>,
    processes: &Processes,
) {
    let mut places: HashMap<Key, usize> =
        keys.enumerate().map(|(place, key)| (key, place)).collect();
    for joined in requests {
        let key = match joined.channel {
            Some(key) => Key::of(key),
            None => Key {
                process: joined.process,
                channel: None,
            },
        };
        let shared = !lens.model.chain.run_per_request;
        if let Some(place) = places.get(&key).filter(|_| shared) {
            // Requests come by start, so those of one run do as well.
            let requests = &mut runs[*place].requests;
            // Nearly all have one, and a list grows to four at once.
            if requests.is_empty() {
                requests.reserve_exact(1);
            }
            requests.push(joined.request);
            continue;
        }
        let mut run = empty_run(text_of(lens, joined.process), None);
        run.process = process_part(processes, joined.process);
        run.requests = vec![joined.request];
        places.insert(key, runs.len());
        runs.push(run);
    }
}

/// The part that all runs of a process share.
pub(super) fn process_part(processes: &Processes, process: Option<Symbol>) -> ByKind {
    process
        .and_then(|key| processes.get(&key))
        .cloned()
        .unwrap_or_default()
}

/// Runs of which only the agent's spans are left, as after a killed daemon: one
/// for each process that wrote them.
fn loose_runs<'a>(lens: &Lens<'a>) -> Vec<Run<'a>> {
    let kinds = lens.kinds(&lens.model.chain.created_agent);
    let request = lens.kind(&lens.model.chain.request).into_iter().collect();
    let request_above = lens.nearest_above(&request);
    let is_loose = |span: &SpanIndex| {
        lens.kind_of(*span)
            .is_some_and(|kind| kinds.contains(&kind))
            && request_above.get(span.0 as usize).is_none()
    };
    let mut groups: HashMap<Option<Symbol>, Vec<SpanIndex>> = HashMap::new();
    for span in lens.data.indices().filter(is_loose) {
        groups.entry(lens.process_of(span)).or_default().push(span);
    }
    let run = |(process, spans): (Option<Symbol>, Vec<SpanIndex>)| {
        let mut run = empty_run(text_of(lens, process), None);
        run.channel = lens.by_kind(spans);
        run
    };
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(process, _)| text_of(lens, *process));
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
    let mut seen = HashSet::new();
    for run in runs {
        run.first_of_process = run.process_key.is_none_or(|process| seen.insert(process));
    }
}

/// Runs in the order of reports.
pub(super) fn sort(runs: &mut [Run<'_>]) {
    runs.sort_by(|a, b| {
        a.start
            .cmp(&b.start)
            .then_with(|| a.process_key.cmp(&b.process_key))
            .then_with(|| a.channel_id.cmp(&b.channel_id))
            .then_with(|| a.id.cmp(&b.id))
    });
}

/// The first block of a UUID, the start of anything else.
pub(super) fn short(id: &str) -> String {
    id.chars().take(SHORT_ID_BYTES).collect()
}

/// Names what has no name yet, and makes every name unique.
fn name_runs(lens: &Lens<'_>, runs: &mut [Run<'_>]) {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for run in runs {
        if run.id.is_empty() {
            let unknown = || {
                let first = run.requests.first();
                first.map_or_else(|| "unknown".to_owned(), |request| trace_name(lens, request))
            };
            if lens.model.chain.run_per_request {
                (run.process_key, run.channel_id) = (None, None);
            }
            run.id = match (run.process_key, run.channel_id) {
                (Some(process), Some(channel)) => {
                    format!("{}/{}", process_name(process), short(channel))
                }
                (Some(process), None) => process_name(process),
                (None, Some(channel)) => short(channel),
                (None, None) => unknown(),
            };
        }
        let count = seen.entry_ref(run.id.as_str()).or_default();
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
