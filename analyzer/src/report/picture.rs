//! What a picture of one run needs and no table does: when each stage was.
//!
//! Made only where a report is to be drawn; JSON does not carry it.

use crate::breakdown::client;
use crate::breakdown::store::WindowView;
use crate::model::lens::Lens;
use crate::units::{Interval, Nanos, Timestamp, difference};

use super::build::Row;
use super::{CohortReport, WindowReport};

/// Cohorts of which a run is drawn; beyond, pictures repeat more than they say.
pub const PICTURES_MAX: usize = 8;
/// Stages of a window that are drawn; more rows than these are no picture.
pub const STAGES_MAX: usize = 60;

/// One run, drawn in time.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Its name.
    pub run: String,
    /// Its place among [`Runs::items`](super::Runs::items).
    pub place: usize,
    /// Its cohort; `None` where there is only one.
    pub cohort: Option<String>,
    /// From the start of its first window to the end of its last.
    pub length: Nanos,
    /// Its windows, in the order of the run's windows.
    pub windows: Vec<PictureWindow>,
}

/// One window of it.
#[derive(Clone, Debug)]
pub struct PictureWindow {
    /// Name.
    pub name: String,
    /// Name for people.
    pub title: String,
    /// Which cold request it belongs to, from 1.
    pub request: usize,
    /// From the start of the picture.
    pub start: Nanos,
    /// Length.
    pub length: Nanos,
    /// Finest difference that its times can show.
    pub quantum: Nanos,
    /// Time of no stage.
    pub unattributed: Nanos,
    /// Its stages that were there, [`STAGES_MAX`] at most.
    pub stages: Vec<PictureStage>,
    /// Stages that are not among them.
    pub left_out: usize,
}

/// One stage of a window.
#[derive(Clone, Debug)]
pub struct PictureStage {
    /// Name.
    pub name: String,
    /// Exclusive time.
    pub time: Nanos,
    /// Whether its place in time is assumed.
    pub placed: bool,
    /// Where it stands: start from the start of the picture, and length.
    pub parts: Vec<(Nanos, Nanos)>,
    /// Places among the windows of those that say what it waits for.
    pub explained_by: Vec<usize>,
}

/// The run nearest to the median of the first window, of every cohort.
#[must_use]
pub(super) fn pictures(
    lens: &Lens<'_>,
    rows: &[Row<'_>],
    pooled: &[WindowReport],
    cohorts: &[CohortReport],
) -> Vec<Picture> {
    if cohorts.is_empty() {
        return nearest(lens, rows, pooled, None).into_iter().collect();
    }
    let first = cohorts.iter().take(PICTURES_MAX);
    first
        .filter_map(|cohort| nearest(lens, rows, &cohort.windows, Some(&cohort.name)))
        .collect()
}

fn nearest(
    lens: &Lens<'_>,
    rows: &[Row<'_>],
    windows: &[WindowReport],
    cohort: Option<&str>,
) -> Option<Picture> {
    let main = windows.first()?;
    let middle = main.total.p50?;
    let distances = rows.iter().enumerate().filter_map(|(place, row)| {
        let mine = cohort.is_none_or(|cohort| row.run.cohort == cohort);
        let window = row.window(&main.name, 1).filter(|_| row.run.counts())?;
        let distance = window.interval.length().0.abs_diff(middle.0);
        mine.then_some((distance, place, row))
    });
    let (_, place, row) = distances.min_by_key(|(distance, place, _)| (*distance, *place))?;
    picture(lens, row, place, cohort)
}

fn picture(lens: &Lens<'_>, row: &Row<'_>, place: usize, cohort: Option<&str>) -> Option<Picture> {
    let views: Vec<WindowView<'_>> = row.windows().collect();
    let start = views.iter().map(|view| view.interval.start()).min()?;
    let end = views.iter().map(|view| view.interval.end()).max()?;
    Some(Picture {
        run: row.run.id.clone(),
        place,
        cohort: cohort.map(str::to_owned),
        length: difference(end, start),
        windows: views
            .iter()
            .map(|view| window(lens, view, &views, start))
            .collect(),
    })
}

fn window(
    lens: &Lens<'_>,
    view: &WindowView<'_>,
    all: &[WindowView<'_>],
    start: Timestamp,
) -> PictureWindow {
    let rules = &lens.model.windows;
    let title = rules.iter().find(|rule| rule.name == view.name);
    let part = |part: Interval| (difference(part.start(), start), part.length());
    let present = view.stages.iter().filter(|stage| stage.present);
    let mut stages: Vec<PictureStage> = present
        .map(|stage| PictureStage {
            name: stage.name.to_owned(),
            time: stage.time,
            placed: stage.placed,
            parts: stage
                .intervals
                .iter()
                .filter_map(|one| one.within(view.interval))
                .map(part)
                .collect(),
            explained_by: explaining(lens, view, stage.name, all),
        })
        .collect();
    let left_out = stages.len().saturating_sub(STAGES_MAX);
    stages.truncate(STAGES_MAX);
    PictureWindow {
        name: view.name.to_owned(),
        title: match title {
            Some(rule) => rule.title.clone(),
            None if view.name == client::WINDOW => client::TITLE.to_owned(),
            None => view.name.to_owned(),
        },
        request: view.request,
        start: difference(view.interval.start(), start),
        length: view.interval.length(),
        quantum: view.quantum,
        unattributed: view.unattributed,
        stages,
        left_out,
    }
}

/// Windows that the model's drill-through names for a stage.
fn explaining(
    lens: &Lens<'_>,
    view: &WindowView<'_>,
    stage: &str,
    all: &[WindowView<'_>],
) -> Vec<usize> {
    let rules = lens.model.drill_through.iter();
    let mine = rules.filter(|rule| rule.window == view.name && rule.stage == stage);
    let names = mine.flat_map(|rule| rule.phases.names());
    let place = |name: &String| {
        let of = |request: usize| {
            let is_it = |one: &WindowView<'_>| one.name == name.as_str() && one.request == request;
            all.iter().position(is_it)
        };
        of(view.request).or_else(|| of(1))
    };
    let mut found: Vec<usize> = names.filter_map(place).collect();
    found.dedup();
    found
}
