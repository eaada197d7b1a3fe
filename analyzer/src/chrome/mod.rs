//! Cold starts as Chrome trace JSON, for Perfetto, `chrome://tracing` and
//! speedscope.
//!
//! [`select`] says which runs, [`members`] which spans are a run's, [`critical`]
//! which of them its end waited for, [`phases`] what stands where no span does.
//! [`slices`] puts them on one time axis and into processes, [`lanes`] packs them so
//! that they nest, [`numbers`] names both, [`arrows`] and [`counters`] lie over
//! them, [`event`] is what is written.
//! Pure but for [`write`], which writes to a given writer.
//!
//! Times are whole microseconds, `⌊(t − zero) ÷ 1 µs⌋`, where zero is the first
//! instant of the run. Rounding down is monotone, so what nests in nanoseconds
//! nests in the file; the exact length stands in the arguments of each slice.

pub mod arrows;
pub mod counters;
pub mod critical;
pub mod event;
pub mod lanes;
pub mod members;
pub mod numbers;
pub mod phases;
pub mod select;
pub mod slices;
pub mod write;

use crate::chain::Run;
use crate::model::lens::Lens;
use crate::report::numbers::counted;

use event::{Event, Text};
use members::Owners;
use numbers::Numbers;
use slices::Slices;

/// Slices of one file: a viewer holds millions, and with all their attributes
/// these stay below the 10 MB that the tests demand of a file.
pub const SLICES_MAX: usize = 16_384;

/// A trace, ready to be written.
#[derive(Debug, Default)]
pub struct Trace {
    /// Names of processes and lanes first, then by time, the longer first.
    pub events: Vec<Event>,
    /// What was left out, in words, for standard error.
    pub notes: Vec<String>,
}

/// Draws the runs at `places` of `runs`, each in processes of its own and from
/// its own zero.
#[must_use]
pub fn trace(lens: &Lens<'_>, runs: &[Run<'_>], places: &[usize]) -> Trace {
    let owners = Owners::new(runs);
    let mut text = Text::default();
    let mut numbers = Numbers::new(lens, runs, places);
    let (mut events, mut notes) = (Vec::new(), Vec::new());
    let room = SLICES_MAX / places.len().max(1);
    let (mut cut, mut lost) = (0, 0);
    for place in places {
        let Some(run) = runs.get(*place) else {
            continue;
        };
        let title = (places.len() > 1).then_some(run.id.as_str());
        let mut slices = Slices::of(lens, run, members::spans(lens, run, *place, &owners), room);
        cut += slices.left_out;
        let lanes = lanes::pack(&slices.all);
        numbers.process_events(&mut slices, &lanes, title, &mut events);
        slices.events(lens, &lanes, &mut text, &mut events);
        lost += arrows::arrows(lens, &slices, &lanes, &mut numbers, &mut events);
        counters::counters(lens, run, &slices, &lanes, &mut events);
    }
    event::sort(&mut events);
    if cut > 0 {
        let what = counted(cut, "span");
        notes.push(format!(
            "{what} left out, the shortest: a file holds {SLICES_MAX}"
        ));
    }
    if lost > 0 {
        let what = counted(lost, "arrow");
        notes.push(format!(
            "{what} left out: the other span is not shown, or ended before its effect began"
        ));
    }
    if text.left_out > 0 {
        let what = counted(text.left_out, "attribute");
        notes.push(format!("{what} left out: a span or the file has too many"));
    }
    Trace { events, notes }
}
