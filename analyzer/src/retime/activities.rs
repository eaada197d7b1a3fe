//! Reads a run into activities: its spans, and the stages that have a length and
//! no span.
//!
//! A span is a part of its nearest ancestor in the run, unless the model marks it
//! `asynchronous`. Stages from attributes and profiles stand where the breakdown
//! laid them; of those only the lengths are known. Whether they are laid early or
//! late makes no difference to a replay, as long as they run one behind the other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::breakdown::client;
use crate::breakdown::store::{StageView, WindowView};
use crate::chain::Run;
use crate::model::by_kind::ByKind;
use crate::model::lens::Lens;
use crate::model::schema::Part;
use crate::model::window_rules::{StageRule, WindowRule, WindowSource};
use crate::trace::dataset::SpanIndex;
use crate::units::{Interval, Nanos, Timestamp};

use super::graph::{Activity, Bond, Edge, Graph, Node, Place, Wait, end_of, short};
use super::waits;

/// Ancestors that are looked at for one that belongs to the run; between the
/// spans of a known program there are none, and looking at all of a deep tree for
/// each span would take the square of its size.
const ANCESTORS_MAX: usize = 64;

/// A stage, by its window and its name; a window that is meant whole has its own
/// name as its stage's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StageKey<'a> {
    /// Name of the window.
    pub window: &'a str,
    /// Name of the stage.
    pub stage: &'a str,
}

/// One run as a graph.
#[derive(Clone, Debug)]
pub struct RunGraph<'a> {
    /// The graph.
    pub graph: Graph,
    /// The activities of each stage.
    pub stages: BTreeMap<StageKey<'a>, Vec<Place>>,
    /// The activities from the first start of which to the last end of which each
    /// window is, those of the first cold request and of what all share.
    pub windows: Vec<(&'a str, Vec<Place>)>,
    of_span: HashMap<SpanIndex, Place>,
}

impl<'a> RunGraph<'a> {
    /// The graph of a run, given once for each of its cold requests, and cut into
    /// windows.
    #[must_use]
    pub fn of(lens: &Lens<'a>, views: &[&Run<'_>], windows: &[WindowView<'a>]) -> Self {
        let mut reading = Reading::of_spans(lens, views);
        for window in windows
            .iter()
            .filter(|window| window.name != client::WINDOW)
        {
            let view = views
                .get(window.request.saturating_sub(1))
                .or(views.first());
            if let Some(view) = view {
                reading.take_window(lens, view, window);
            }
        }
        waits::add(
            lens,
            views,
            windows,
            &reading.of_span,
            &mut reading.activities,
        );
        Self {
            graph: Graph::new(&reading.activities),
            stages: reading.stages,
            windows: reading.windows,
            of_span: reading.of_span,
        }
    }

    /// The activity of a span.
    #[must_use]
    pub fn place(&self, span: SpanIndex) -> Option<Place> {
        self.of_span.get(&span).copied()
    }

    /// The instant at which the run's session is there: where the client has it,
    /// else where the first cold request ends. `None` without either.
    #[must_use]
    pub fn session(&self, lens: &Lens<'_>, run: &Run<'_>) -> Option<Node> {
        let measured = lens.model.measured.iter();
        let kinds = measured.flat_map(|measured| &measured.session);
        let mut client = kinds.filter_map(|kind| run.first(lens, kind));
        let span = client.next().or_else(|| Some(run.cold()?.span))?;
        self.place(span).map(end_of)
    }
}

/// A run while it is read.
struct Reading<'a> {
    activities: Vec<Activity>,
    of_span: HashMap<SpanIndex, Place>,
    stages: BTreeMap<StageKey<'a>, Vec<Place>>,
    windows: Vec<(&'a str, Vec<Place>)>,
}

impl<'a> Reading<'a> {
    fn of_spans(lens: &Lens<'a>, views: &[&Run<'_>]) -> Self {
        let mut reading = Self {
            activities: Vec::new(),
            of_span: HashMap::new(),
            stages: BTreeMap::new(),
            windows: Vec::new(),
        };
        for (span, parent) in in_order(lens, views) {
            let rule = lens.rule(span);
            let asynchronous = rule.is_some_and(|rule| rule.asynchronous);
            let parent = parent.and_then(|parent| reading.of_span.get(&parent).copied());
            let bond = if asynchronous {
                Bond::Cause
            } else {
                Bond::Part
            };
            let interval = lens.data.span(span).interval;
            let place = reading.push(interval, parent, bond, lens.quantum(span));
            reading.of_span.insert(span, place);
        }
        let known: Vec<(SpanIndex, Place)> = reading
            .of_span
            .iter()
            .map(|(span, place)| (*span, *place))
            .collect();
        for (span, place) in known {
            let links = lens.data.span(span).links().iter();
            let targets = links.filter_map(|link| lens.data.find(link.trace, link.span));
            for target in targets.filter_map(|target| reading.of_span.get(&target).copied()) {
                let activity = &mut reading.activities[place as usize];
                match activity.bond {
                    Bond::Cause => activity.set_going.push(target),
                    Bond::Part => activity.waits.push(Wait {
                        activity: target,
                        edge: Edge::End,
                    }),
                }
            }
        }
        reading
    }

    fn push(
        &mut self,
        interval: Interval,
        parent: Option<Place>,
        bond: Bond,
        quantum: Nanos,
    ) -> Place {
        self.activities.push(Activity {
            interval,
            parent,
            bond,
            waits: SmallVec::new(),
            set_going: SmallVec::new(),
            quantum,
        });
        short(self.activities.len() - 1)
    }

    fn take_window(&mut self, lens: &Lens<'a>, run: &Run<'_>, window: &WindowView<'a>) {
        let holder = self.holder(lens, run, window);
        if let Some((place, _)) = holder {
            self.note(window.name, window.name, place);
        }
        if window.request == 1 {
            let places = match holder {
                Some((place, _)) => vec![place],
                None => self.envelope(lens, run, window.name),
            };
            self.windows.push((window.name, places));
        }
        for stage in window.stages.iter().filter(|stage| stage.present) {
            let spans = stage.spans.iter();
            let places: Vec<Place> = spans
                .filter_map(|span| self.of_span.get(span).copied())
                .collect();
            for place in places {
                self.note(window.name, stage.name, place);
            }
            if let Some((holder, later)) = holder.filter(|_| stage.spans.is_empty()) {
                self.lay(window, &stage, holder, later);
            }
        }
    }

    /// Makes activities of a stage without spans, `later` than the breakdown has it.
    fn lay(&mut self, window: &WindowView<'a>, stage: &StageView<'a>, holder: Place, later: Nanos) {
        for interval in stage.intervals {
            let interval = moved(*interval, later);
            let place = self.push(interval, Some(holder), Bond::Part, window.quantum);
            self.note(window.name, stage.name, place);
        }
    }

    fn note(&mut self, window: &'a str, stage: &'a str, place: Place) {
        let key = StageKey { window, stage };
        self.stages.entry(key).or_default().push(place);
    }

    /// The activity that a window is, and how much later it is than the breakdown
    /// has it. `None` for an envelope of several spans.
    fn holder(
        &mut self,
        lens: &Lens<'a>,
        run: &Run<'_>,
        window: &WindowView<'a>,
    ) -> Option<(Place, Nanos)> {
        let rules = lens.model.windows.iter();
        for rule in rules.filter(|rule| rule.name == window.name) {
            match &rule.of {
                WindowSource::Span { span } => {
                    let span = run.first(lens, span)?;
                    if lens.data.span(span).interval == window.interval {
                        return Some((*self.of_span.get(&span)?, Nanos(0)));
                    }
                }
                WindowSource::Attribute { attribute, on, .. } => {
                    let span = run.first(lens, on)?;
                    let on = *self.of_span.get(&span)?;
                    if let Some(stage) = self.stage_of_attribute(lens, attribute) {
                        let ends = self.activities[stage as usize].interval.end();
                        let later = crate::units::difference(ends, window.interval.end());
                        return Some((stage, later));
                    }
                    return Some((self.awaited(on, window), Nanos(0)));
                }
                WindowSource::Profile { .. } => {
                    let by = explained_by(lens, window.name)?;
                    let on = *self.of_span.get(&run.first(lens, by)?)?;
                    return Some((self.awaited(on, window), Nanos(0)));
                }
                WindowSource::Envelope { .. } => {}
            }
        }
        None
    }

    /// The activities of the spans that a window envelops.
    fn envelope(&self, lens: &Lens<'_>, run: &Run<'_>, window: &str) -> Vec<Place> {
        let rules = lens.model.windows.iter().filter(|rule| rule.name == window);
        let kinds = rules.filter_map(|rule| match &rule.of {
            WindowSource::Envelope { envelope } => Some(envelope),
            _ => None,
        });
        let spans = kinds.flatten().flat_map(|kind| run.all(lens, kind));
        spans
            .filter_map(|span| self.of_span.get(span).copied())
            .collect()
    }

    /// An activity of the window's length that the one of `on` waits for.
    fn awaited(&mut self, on: Place, window: &WindowView<'_>) -> Place {
        let place = self.push(window.interval, Some(on), Bond::Cause, window.quantum);
        self.activities[on as usize].waits.push(Wait {
            activity: place,
            edge: Edge::End,
        });
        place
    }

    /// The activity of the stage whose length this attribute is, where another
    /// window has one: that window divides the stage.
    fn stage_of_attribute(&self, lens: &Lens<'a>, attribute: &str) -> Option<Place> {
        let of = |window: &'a WindowRule| {
            let stages = window.stages.iter();
            stages.filter_map(|rule| Some((window.name.as_str(), name_of(rule, attribute)?)))
        };
        let found = lens
            .model
            .windows
            .iter()
            .flat_map(of)
            .find_map(|(window, stage)| {
                let mut own = self.stages.iter();
                own.find(|(key, _)| key.window == window && key.stage == stage)
            });
        found.and_then(|(_, places)| places.last().copied())
    }
}

/// Name of the stage that a rule makes of an attribute.
fn name_of<'t>(rule: &'t StageRule, attribute: &'t str) -> Option<&'t str> {
    match (&rule.attribute, &rule.attribute_prefix) {
        (Some(own), _) if own == attribute => rule.name.as_deref(),
        (_, Some(prefix)) => {
            let suffix = rule.attribute_suffix.as_deref().unwrap_or("");
            attribute
                .strip_prefix(prefix.as_str())?
                .strip_suffix(suffix)
        }
        _ => None,
    }
}

/// Kind of the span that a window explains.
fn explained_by<'a>(lens: &Lens<'a>, window: &str) -> Option<&'a str> {
    let mut rules = lens.model.drill_through.iter();
    let rule = rules.find(|rule| rule.phases.names().iter().any(|name| name == window))?;
    Some(&rule.explained_by)
}

fn moved(interval: Interval, later: Nanos) -> Interval {
    let at = |at: Timestamp| Timestamp(at.0.saturating_add_signed(later.0));
    Interval::new(at(interval.start()), at(interval.end())).unwrap_or(interval)
}

/// The spans of a run, parents before their children, each with its nearest
/// ancestor in the run.
fn in_order(lens: &Lens<'_>, views: &[&Run<'_>]) -> Vec<(SpanIndex, Option<SpanIndex>)> {
    let parts = views.iter().flat_map(|run| {
        let requests = run.requests.iter().map(|request| &request.below);
        [&run.process, &run.channel, &run.client]
            .into_iter()
            .chain(requests)
    });
    let mut spans: BTreeSet<SpanIndex> = parts.flat_map(ByKind::spans).copied().collect();
    // What set a channel going is of its part and no attempt by itself.
    let of_channel = |above: &SpanIndex| lens.part(*above) == Some(Part::Channel);
    let above = spans
        .iter()
        .flat_map(|span| lens.tree.ancestors(*span).take(ANCESTORS_MAX));
    let above: Vec<SpanIndex> = above.filter(of_channel).collect();
    spans.extend(above);
    let mut below: HashMap<SpanIndex, Vec<SpanIndex>> = HashMap::new();
    let mut open: VecDeque<(SpanIndex, Option<SpanIndex>)> = VecDeque::new();
    for span in &spans {
        let mut above = lens.tree.ancestors(*span).take(ANCESTORS_MAX);
        match above.find(|above| spans.contains(above)) {
            Some(parent) => below.entry(parent).or_default().push(*span),
            None => open.push_back((*span, None)),
        }
    }
    let mut order = Vec::with_capacity(spans.len());
    while let Some((span, parent)) = open.pop_front() {
        order.push((span, parent));
        let children = below.remove(&span).unwrap_or_default();
        open.extend(children.into_iter().map(|child| (child, Some(span))));
    }
    order
}
