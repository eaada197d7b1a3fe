//! Who waits for whom, as the model says: a stage that another span explains
//! (`[[drill_through]]`), one that is classified from another process
//! (`sched_from`), and what `[[wait]]` adds.

use hashbrown::HashMap;

use crate::breakdown::store::WindowView;
use crate::chain::Run;
use crate::model::chain_rules::WaitEdge;
use crate::model::lens::Lens;
use crate::model::window_rules::WindowSource;
use crate::trace::dataset::SpanIndex;

use super::graph::{Activity, Edge, Place, Wait};

/// Adds the waits of a run to its activities.
pub(super) fn add(
    lens: &Lens<'_>,
    views: &[&Run<'_>],
    windows: &[WindowView<'_>],
    of_span: &HashMap<SpanIndex, Place>,
    activities: &mut [Activity],
) {
    let mut add = |waiting: SpanIndex, for_what: SpanIndex, edge: Edge| {
        let (Some(place), Some(activity)) = (of_span.get(&waiting), of_span.get(&for_what)) else {
            return;
        };
        let wait = Wait {
            activity: *activity,
            edge,
        };
        if let Some(one) = activities.get_mut(*place as usize)
            && !one.waits.contains(&wait)
        {
            one.waits.push(wait);
        }
    };
    for window in windows {
        let view = views
            .get(window.request.saturating_sub(1))
            .or(views.first());
        let Some(view) = view else { continue };
        for stage in window.stages.iter().filter(|stage| !stage.spans.is_empty()) {
            let mut kinds: Vec<&str> = stage.sched_from.into_iter().collect();
            let drills = lens.model.drill_through.iter();
            for rule in drills.filter(|rule| rule.window == window.name && rule.stage == stage.name)
            {
                kinds.push(&rule.explained_by);
                kinds.extend(
                    rule.phases
                        .names()
                        .iter()
                        .flat_map(|name| kinds_of(lens, name)),
                );
            }
            for waiting in stage.spans {
                for other in kinds.iter().flat_map(|kind| view.all(lens, kind)) {
                    add(*waiting, *other, Edge::End);
                }
            }
        }
    }
    let by_kind = lens.by_kind(of_span.keys().copied().collect());
    let all = |kind: &str| lens.kind(kind).map_or(&[][..], |kind| by_kind.get(kind));
    for rule in &lens.model.waits {
        let edge = match rule.edge {
            WaitEdge::Start => Edge::Start,
            WaitEdge::End => Edge::End,
        };
        let named = |span: &&SpanIndex| {
            let name = rule.named.as_deref();
            name.is_none_or(|name| lens.rest_of_name(**span) == name)
        };
        for waiting in all(&rule.of).iter().filter(named) {
            for other in rule.what.iter().flat_map(|kind| all(kind)) {
                add(*waiting, *other, edge);
            }
        }
    }
}

/// Kinds of the spans that a window is made of; none of one without a span.
fn kinds_of<'a>(lens: &Lens<'a>, window: &str) -> Vec<&'a str> {
    let rules = lens.model.windows.iter().filter(|rule| rule.name == window);
    let kinds = rules.flat_map(|rule| match &rule.of {
        WindowSource::Span { span } => vec![span.as_str()],
        WindowSource::Envelope { envelope } => envelope.iter().map(String::as_str).collect(),
        WindowSource::Attribute { .. } | WindowSource::Profile { .. } => Vec::new(),
    });
    kinds.collect()
}
