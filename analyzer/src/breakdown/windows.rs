//! Finds the windows and stages of a run by the model's rules and cuts each
//! window exactly.
//!
//! Spans are never moved. A stage that has a length and no times is laid at the
//! place its rule names and marked `placed`.

use smallvec::SmallVec;

use crate::chain::Run;
use crate::input::profile::PhaseProfile;
use crate::model::lens::Lens;
use crate::model::schema::Part;
use crate::model::window_rules::{Placement, WindowRule, WindowSource};
use crate::problems::{Code, Problems};
use crate::trace::dataset::SpanIndex;
use crate::units::{Interval, Nanos, Timestamp};

use super::partition::partition;
use super::stages::draft;

/// Name of the remainder, in profiles too.
pub const UNATTRIBUTED: &str = "unattributed";
/// Coarsest resolution that values without a clock of their own are said to have.
const COARSEST: i64 = 1_000_000;

/// What a stage most often has one of, and then without memory of its own.
pub type Few<T> = SmallVec<[T; 1]>;

/// A stage of one window of one run.
#[derive(Clone, Debug)]
pub struct StageTime<'a> {
    /// Name in reports.
    pub name: &'a str,
    /// Its exclusive time within the window.
    pub time: Nanos,
    /// Whether it was there at all; an absent stage has no time.
    pub present: bool,
    /// Whether its place in time is assumed.
    pub placed: bool,
    /// Where it stands, not cut to the window.
    pub intervals: Few<Interval>,
    /// Its spans, where it has some.
    pub spans: Few<SpanIndex>,
    /// Kind of the span whose scheduler figures stand for it.
    pub sched_from: Option<&'a str>,
}

/// One window of one run.
#[derive(Clone, Debug)]
pub struct RunWindow<'a> {
    /// Name in reports.
    pub name: &'a str,
    /// When it was.
    pub interval: Interval,
    /// Its stages, in the order of rules and data.
    pub stages: Vec<StageTime<'a>>,
    /// The rest.
    pub unattributed: Nanos,
    /// Time that several stages covered.
    pub overlap: Nanos,
    /// Time of its stages outside of it.
    pub outside: Nanos,
    /// Finest difference that its times can show.
    pub quantum: Nanos,
    /// Which of the run's cold requests it belongs to, from 1; 1 for what all share.
    pub request: usize,
}

/// A window before it is cut.
pub(super) struct Frame {
    interval: Interval,
    pub(super) span: Option<SpanIndex>,
    quantum: Nanos,
}

/// A stage before it is placed.
pub(super) struct Draft<'a> {
    pub(super) stage: StageTime<'a>,
    /// Length to lay, for a stage without times.
    pub(super) length: Option<(Nanos, Placement)>,
}

/// All windows of a run, in the model's order. With several cold requests each
/// has its own windows; what they share is there once, with the first.
#[must_use]
pub fn windows<'a>(lens: &Lens<'a>, run: &Run<'_>, problems: &mut Problems) -> Vec<RunWindow<'a>> {
    let mut found = windows_by(lens, run, problems, |_| true);
    for (place, request) in run.cold_requests(lens).iter().enumerate().skip(1) {
        let alone = run.with_only(request);
        let own = windows_by(lens, &alone, problems, |rule| is_of_request(lens, rule));
        found.extend(own.into_iter().map(|window| RunWindow {
            request: place + 1,
            ..window
        }));
    }
    found
}

fn windows_by<'a>(
    lens: &Lens<'a>,
    run: &Run<'_>,
    problems: &mut Problems,
    wanted: impl Fn(&WindowRule) -> bool,
) -> Vec<RunWindow<'a>> {
    let mut found: Vec<RunWindow<'a>> = Vec::new();
    let mut bare: Vec<RunWindow<'a>> = Vec::new();
    for rule in lens.model.windows.iter().filter(|rule| wanted(rule)) {
        if found.iter().any(|window| window.name == rule.name)
            || is_shared_elsewhere(lens, run, rule)
        {
            continue;
        }
        let Some(window) = window(lens, run, rule, problems) else {
            continue;
        };
        let has_stages = window.stages.iter().any(|stage| stage.present);
        if has_stages || rule.stages.is_empty() && !matches!(rule.of, WindowSource::Profile { .. })
        {
            found.push(window);
        } else if !bare.iter().any(|other| other.name == window.name) {
            bare.push(window);
        }
    }
    // A window without stages stands where no alternative had any.
    bare.retain(|window| !found.iter().any(|other| other.name == window.name));
    found.extend(bare);
    let order = |name: &str| lens.model.windows.iter().position(|rule| rule.name == name);
    found.sort_by_key(|window| order(window.name));
    found
}

/// The process part is shared: only the first run of a process shows it.
fn is_shared_elsewhere(lens: &Lens<'_>, run: &Run<'_>, rule: &WindowRule) -> bool {
    part_of(lens, rule) == Some(Part::Process) && !run.first_of_process
}

fn is_of_request(lens: &Lens<'_>, rule: &WindowRule) -> bool {
    part_of(lens, rule) == Some(Part::Request)
}

/// The part of a run that a window's span belongs to.
fn part_of(lens: &Lens<'_>, rule: &WindowRule) -> Option<Part> {
    let (WindowSource::Span { span: kind } | WindowSource::Attribute { on: kind, .. }) = &rule.of
    else {
        return None;
    };
    lens.kind_and_part(kind).map(|(_, part)| part)
}

fn window<'a>(
    lens: &Lens<'a>,
    run: &Run<'_>,
    rule: &'a WindowRule,
    problems: &mut Problems,
) -> Option<RunWindow<'a>> {
    if let WindowSource::Profile { profile } = &rule.of {
        return profile_window(run, rule, find_profile(lens, run, profile)?, problems);
    }
    let frame = frame(lens, run, &rule.of)?;
    let mut drafts = Vec::with_capacity(rule.stages.len());
    for stage in &rule.stages {
        draft(lens, run, &frame, stage, &mut drafts);
    }
    let mut quantum = frame.quantum;
    for span in drafts.iter().flat_map(|draft| &draft.stage.spans) {
        quantum = quantum.max(lens.quantum(*span));
    }
    if frame.span.is_none() {
        quantum = quantum.max(resolution(&frame, &drafts));
    }
    Some(cut(rule, &Frame { quantum, ..frame }, drafts, problems))
}

fn frame(lens: &Lens<'_>, run: &Run<'_>, source: &WindowSource) -> Option<Frame> {
    match source {
        WindowSource::Span { span } => {
            let span = run.first(lens, span)?;
            Some(Frame {
                interval: lens.data.span(span).interval,
                span: Some(span),
                quantum: lens.quantum(span),
            })
        }
        WindowSource::Envelope { envelope } => {
            let spans: Vec<_> = envelope
                .iter()
                .flat_map(|kind| run.all(lens, kind))
                .copied()
                .collect();
            let intervals = spans.iter().map(|span| lens.data.span(*span).interval);
            let start = intervals.clone().map(Interval::start).min()?;
            let interval = Interval::new(start, intervals.map(Interval::end).max()?)?;
            let quantum = spans.iter().map(|span| lens.quantum(*span)).max()?;
            Some(Frame {
                interval,
                span: spans.first().copied(),
                quantum,
            })
        }
        WindowSource::Attribute {
            attribute,
            on,
            unit,
            end_before,
        } => {
            let span = run.first(lens, on)?;
            let length = lens.length(span, attribute, *unit)?;
            let transport = end_before
                .as_ref()
                .and_then(|key| lens.length(span, key, *unit))
                .unwrap_or_default();
            let end = Interval::ending(lens.data.span(span).interval.end(), transport).start();
            Some(Frame {
                interval: Interval::ending(end, length),
                span: None,
                quantum: Nanos(1),
            })
        }
        WindowSource::Profile { .. } => None,
    }
}

/// Lays stages without times, then cuts the window.
fn cut<'a>(
    rule: &'a WindowRule,
    frame: &Frame,
    mut drafts: Vec<Draft<'a>>,
    problems: &mut Problems,
) -> RunWindow<'a> {
    let mut end = frame.interval.end();
    for draft in drafts.iter_mut().rev() {
        let interval = match draft.length {
            Some((length, Placement::Start)) => Interval::starting(frame.interval.start(), length),
            Some((length, Placement::End)) => {
                let interval = Interval::ending(end, length);
                end = interval.start();
                interval
            }
            None => continue,
        };
        draft.stage.intervals.push(interval);
    }
    let intervals: Vec<&[Interval]> = drafts
        .iter()
        .map(|draft| draft.stage.intervals.as_slice())
        .collect();
    let parts = partition(frame.interval, &intervals, frame.quantum);
    let mut outside = Nanos(0);
    let stages = drafts.into_iter().enumerate().map(|(index, draft)| {
        if parts.outside[index] > frame.quantum {
            let (name, excess) = (&draft.stage.name, parts.outside[index].as_ms());
            let reason = format!(
                "stage `{name}` has {excess} ms outside of its window `{}`",
                rule.name
            );
            problems.add(Code::StageOutsideWindow, None, reason);
        }
        outside.0 += parts.outside[index].0;
        StageTime {
            time: parts.stages[index],
            ..draft.stage
        }
    });
    let stages = stages.collect();
    RunWindow {
        name: &rule.name,
        interval: frame.interval,
        stages,
        unattributed: parts.unattributed,
        overlap: parts.overlap,
        outside,
        quantum: frame.quantum,
        request: 1,
    }
}

/// The coarsest power of ten of nanoseconds that divides every length: values
/// written with two decimals show no more than 10 µs.
fn resolution(frame: &Frame, drafts: &[Draft<'_>]) -> Nanos {
    let lengths = drafts
        .iter()
        .filter_map(|draft| draft.length)
        .map(|(length, _)| length.0);
    let lengths: Vec<i64> = lengths.chain([frame.interval.length().0]).collect();
    let mut step = COARSEST;
    while step > 1 && lengths.iter().any(|length| length % step != 0) {
        step /= 10;
    }
    Nanos(step)
}

fn find_profile<'a>(lens: &Lens<'a>, run: &Run<'_>, kind: &str) -> Option<&'a PhaseProfile> {
    let wanted = (run.channel_id?, kind);
    // They are sorted by both.
    let of = |profile: &'_ PhaseProfile| (profile.channel.as_str(), profile.kind.as_str()) < wanted;
    let first = lens.data.profiles.partition_point(of);
    let found = lens.data.profiles.get(first)?;
    ((found.channel.as_str(), found.kind.as_str()) == wanted).then_some(found)
}

fn profile_window<'a>(
    run: &Run<'_>,
    rule: &'a WindowRule,
    profile: &'a PhaseProfile,
    problems: &mut Problems,
) -> Option<RunWindow<'a>> {
    let start = profile.start.unwrap_or(Timestamp(run.start.0));
    let interval = Interval::starting(start, profile.total);
    let phases = profile
        .phases
        .iter()
        .filter(|phase| phase.name != UNATTRIBUTED);
    let drafts: Vec<Draft<'a>> = phases
        .map(|phase| {
            let from = phase
                .start
                .and_then(|offset| u64::try_from(offset.0).ok())
                .map(|offset| start.0.saturating_add(offset));
            let intervals = from.map(|from| Interval::starting(Timestamp(from), phase.length));
            Draft {
                stage: StageTime {
                    name: &phase.name,
                    time: Nanos(0),
                    present: true,
                    placed: intervals.is_none(),
                    intervals: intervals.into_iter().collect(),
                    spans: Few::new(),
                    sched_from: None,
                },
                length: from.is_none().then_some((phase.length, Placement::End)),
            }
        })
        .collect();
    if drafts.is_empty() {
        return None;
    }
    let frame = Frame {
        interval,
        span: None,
        quantum: Nanos(1),
    };
    let quantum = resolution(&frame, &drafts);
    Some(cut(rule, &Frame { quantum, ..frame }, drafts, problems))
}
