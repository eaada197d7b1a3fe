//! The stages of a window before they are placed: from spans, from families of
//! spans, from attributes, from the session profile.

use hashbrown::HashMap;

use crate::chain::Run;
use crate::model::lens::{Lens, to_nanos};
use crate::model::window_rules::{Placement, StageRule, Unit};
use crate::units::Nanos;

use super::windows::{Draft, Few, Frame, StageTime, UNATTRIBUTED};

/// Adds the stages that one rule gives.
pub(super) fn draft<'a>(
    lens: &Lens<'a>,
    run: &Run<'_>,
    frame: &Frame,
    rule: &'a StageRule,
    into: &mut Vec<Draft<'a>>,
) {
    match (&rule.span, &rule.spans, &rule.session_profile) {
        (Some(kind), _, _) => into.push(one_stage(lens, run, rule, kind)),
        (None, Some(kind), _) => family(lens, run, rule, kind, into),
        (None, None, Some(kind)) => into.extend(from_session_profile(lens, run, rule, kind)),
        (None, None, None) => into.extend(from_attributes(lens, run, frame, rule)),
    }
}

/// Stages of the session profile that bears the session id of a span.
fn from_session_profile<'a>(
    lens: &Lens<'a>,
    run: &Run<'_>,
    rule: &'a StageRule,
    kind: &str,
) -> Vec<Draft<'a>> {
    let session = run
        .first(lens, kind)
        .and_then(|span| lens.text(span, &lens.model.keys.session));
    let profile = session.and_then(|session| {
        // They are sorted by session.
        let profiles = &lens.data.session_profiles;
        let first = profiles.partition_point(|profile| profile.session.as_str() < session);
        let found = profiles.get(first);
        found.filter(|profile| profile.session == session)
    });
    let stages = profile.into_iter().flat_map(|profile| &profile.stages);
    let draft = |(name, length): &'a (String, Nanos)| {
        let mut stage = new_stage(rule, name);
        stage.present = true;
        stage.placed = true;
        Draft {
            stage,
            length: Some((*length, Placement::End)),
        }
    };
    stages.map(draft).collect()
}

/// A stage without any time yet.
fn new_stage<'a>(rule: &'a StageRule, name: &'a str) -> StageTime<'a> {
    StageTime {
        name,
        time: Nanos(0),
        present: false,
        placed: false,
        intervals: Few::new(),
        spans: Few::new(),
        sched_from: rule.sched_from.as_deref(),
    }
}

/// One stage of all spans of a kind.
fn one_stage<'a>(lens: &Lens<'_>, run: &Run<'_>, rule: &'a StageRule, kind: &'a str) -> Draft<'a> {
    let spans = run.all(lens, kind);
    let mut stage = new_stage(rule, rule.name.as_deref().unwrap_or(kind));
    stage.present = !spans.is_empty();
    stage.spans = spans.into();
    stage.intervals = spans
        .iter()
        .map(|span| lens.data.span(*span).interval)
        .collect();
    Draft {
        stage,
        length: None,
    }
}

/// Adds one stage for each rest of the span's name, in the order of their starts.
fn family<'a>(
    lens: &Lens<'a>,
    run: &Run<'_>,
    rule: &'a StageRule,
    kind: &str,
    drafts: &mut Vec<Draft<'a>>,
) {
    let mut places: HashMap<&str, usize> = HashMap::new();
    for span in run.all(lens, kind) {
        let name = lens.rest_of_name(*span);
        let index = *places.entry(name).or_insert_with(|| {
            drafts.push(Draft {
                stage: new_stage(rule, name),
                length: None,
            });
            drafts.len() - 1
        });
        let stage = &mut drafts[index].stage;
        stage.present = true;
        stage.spans.push(*span);
        stage.intervals.push(lens.data.span(*span).interval);
    }
}

/// Stages whose lengths attributes give.
fn from_attributes<'a>(
    lens: &Lens<'a>,
    run: &Run<'_>,
    frame: &Frame,
    rule: &'a StageRule,
) -> Vec<Draft<'a>> {
    let span = rule
        .on
        .as_ref()
        .map_or(frame.span, |kind| run.first(lens, kind));
    let unit = rule.unit.unwrap_or(Unit::Ms);
    let with = |name: &'a str, length: Option<Nanos>| {
        let mut stage = new_stage(rule, name);
        stage.present = length.is_some();
        stage.placed = rule.place == Placement::End;
        Draft {
            stage,
            length: length.map(|length| (length, rule.place)),
        }
    };
    if let (Some(key), Some(name)) = (&rule.attribute, &rule.name) {
        return vec![with(
            name,
            span.and_then(|span| lens.length(span, key, unit)),
        )];
    }
    let (Some(prefix), Some(span)) = (&rule.attribute_prefix, span) else {
        return Vec::new();
    };
    let suffix = rule.attribute_suffix.as_deref().unwrap_or("");
    let stages = lens
        .data
        .span(span)
        .attributes
        .iter()
        .filter_map(|(key, value)| {
            let key = lens.data.names.text(key);
            let name = key.strip_prefix(prefix.as_str())?.strip_suffix(suffix)?;
            (name != UNATTRIBUTED).then_some(())?;
            Some(with(name, Some(to_nanos(value, unit)?)))
        });
    stages.collect()
}
