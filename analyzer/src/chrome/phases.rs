//! Phases and stages that have a length and no span: an agent that makes no
//! spans reports them as attributes of another process's span or in a profile.
//!
//! Windows that explain a stage are drawn beside the span that explains it, as
//! the breakdown places them; where spans exist they are drawn, never both.

use crate::breakdown::windows::{RunWindow, windows};
use crate::chain::Run;
use crate::model::lens::Lens;
use crate::model::window_rules::WindowSource;
use crate::problems::Problems;
use crate::trace::dataset::SpanIndex;
use crate::units::Interval;

/// A slice that is no span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// Name of its window.
    pub window: String,
    /// When it was.
    pub interval: Interval,
    /// Whether its place in time is assumed.
    pub placed: bool,
    /// Whether it is on the critical path.
    pub critical: bool,
}

/// The phases beside one span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phases {
    /// The span that they explain.
    pub host: SpanIndex,
    /// Their window, where it is not just that span.
    pub window: Option<Phase>,
    /// Each of them.
    pub parts: Vec<Phase>,
}

/// All phases of a run.
#[must_use]
pub fn phases(lens: &Lens<'_>, run: &Run<'_>) -> Vec<Phases> {
    let found = windows(lens, run, &mut Problems::default());
    let found = found
        .iter()
        .filter_map(|window| of_window(lens, run, window));
    found.collect()
}

fn of_window(lens: &Lens<'_>, run: &Run<'_>, window: &RunWindow<'_>) -> Option<Phases> {
    let bare = window
        .stages
        .iter()
        .filter(|stage| stage.present && stage.spans.is_empty());
    let parts = bare.flat_map(|stage| {
        stage.intervals.iter().map(|interval| Phase {
            name: stage.name.to_owned(),
            window: window.name.to_owned(),
            interval: *interval,
            placed: stage.placed,
            critical: false,
        })
    });
    let parts: Vec<Phase> = parts.collect();
    if parts.is_empty() {
        return None;
    }
    let host = host(lens, run, window)?;
    let own = Phase {
        name: window.name.to_owned(),
        window: window.name.to_owned(),
        interval: window.interval,
        placed: false,
        critical: false,
    };
    let same = lens.data.span(host).interval == window.interval;
    Some(Phases {
        host,
        window: (!same).then_some(own),
        parts,
    })
}

/// The span that a window's phases stand beside: the window's own, else the one
/// that its drill-through names. What divides only a part of another window's
/// phase has none, because it would have to stand within an assumed place.
fn host(lens: &Lens<'_>, run: &Run<'_>, window: &RunWindow<'_>) -> Option<SpanIndex> {
    let cold = run.cold_requests(lens);
    let alone = cold
        .get(window.request.saturating_sub(1))
        .map(|request| run.with_only(request));
    let run = alone.as_ref().unwrap_or(run);
    let drills = lens.model.drill_through.iter();
    let mut drills =
        drills.filter(|drill| drill.phases.names().iter().any(|name| name == window.name));
    let explains = drills.next().map(|drill| drill.explained_by.as_str());
    let rules = lens.model.windows.iter();
    let spans = rules.filter(|rule| rule.name == window.name);
    let mut spans = spans.filter_map(|rule| match &rule.of {
        WindowSource::Span { span } => Some(span.as_str()),
        _ => None,
    });
    let own = spans.find_map(|kind| run.first(lens, kind));
    own.filter(|span| lens.data.span(*span).interval == window.interval)
        .or_else(|| run.first(lens, explains?))
}
