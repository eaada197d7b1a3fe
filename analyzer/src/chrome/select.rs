//! Which runs are drawn: by number, or the complete run nearest to a quantile of
//! the latency. Never a run without spans.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::breakdown::windows::windows;
use crate::chain::metrics::{Figure, figure};
use crate::chain::{ChainState, Run};
use crate::exit;
use crate::model::lens::Lens;
use crate::problems::Problems;
use crate::report::numbers::{counted, time};
use crate::stats::quantile::{Definition, quantile, sorted};
use crate::units::Nanos;

/// Runs of one file: more groups of processes than this are a list that nobody
/// scrolls through, and each has several.
pub const RUNS_MAX: usize = 32;

/// One choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// By its number in the report, from 1.
    Number(usize),
    /// Nearest to the median.
    P50,
    /// Nearest to the 95th percentile.
    P95,
    /// The slowest.
    Max,
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "p50" => Ok(Self::P50),
            "p95" => Ok(Self::P95),
            "max" => Ok(Self::Max),
            number => match number.parse() {
                Ok(number) if number > 0 => Ok(Self::Number(number)),
                _ => Err("a run is a number from 1, `p50`, `p95` or `max`".to_owned()),
            },
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::P50 => f.write_str("p50"),
            Self::P95 => f.write_str("p95"),
            Self::Max => f.write_str("max"),
        }
    }
}

/// Which runs are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// All that have spans.
    All,
    /// These, in this order.
    These(Vec<Choice>),
}

/// Why there is nothing to draw.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SelectError {
    /// No run of this number.
    #[error("there is no run {number}\nhint: the input has {runs}")]
    NoSuchRun {
        /// What was asked for.
        number: usize,
        /// How many there are, in words.
        runs: String,
    },
    /// The run has no spans.
    #[error("run {number} has no spans: neither its program nor its client wrote a trace")]
    NoSpans {
        /// What was asked for.
        number: usize,
    },
    /// Quantiles are of complete runs.
    #[error(
        "no run is complete, so none is nearest to {choice}\nhint: name one by its number, as in `--run 1`"
    )]
    NoneComplete {
        /// What was asked for.
        choice: Choice,
    },
    /// Nothing to draw.
    #[error("no run has any spans")]
    Nothing,
}

impl SelectError {
    /// The exit code: a number that does not exist is wrong usage.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self {
            Self::NoSuchRun { .. } => exit::USAGE,
            Self::NoSpans { .. } | Self::NoneComplete { .. } | Self::Nothing => exit::CANNOT_JUDGE,
        }
    }
}

/// Runs to draw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selected {
    /// Places among the runs, each once.
    pub places: Vec<usize>,
    /// Which they are and what was left out, in words.
    pub notes: Vec<String>,
}

/// Chooses among `runs`, which are numbered without the warm-ups.
///
/// # Errors
/// [`SelectError`].
pub fn select(lens: &Lens<'_>, runs: &[Run<'_>], wanted: &Wanted) -> Result<Selected, SelectError> {
    let numbered: Vec<usize> = (0..runs.len()).filter(|at| !runs[*at].warmup).collect();
    let mut found = Selected::default();
    match wanted {
        Wanted::All => {
            let any = |at: &usize| has_spans(&runs[*at]);
            found.places = numbered.into_iter().filter(any).collect();
        }
        Wanted::These(choices) => {
            let latencies = latencies(lens, runs, &numbered);
            for choice in choices {
                let (place, note) = choose(runs, &numbered, &latencies, *choice)?;
                found.notes.push(note);
                if !found.places.contains(&place) {
                    found.places.push(place);
                }
            }
        }
    }
    if found.places.is_empty() {
        return Err(SelectError::Nothing);
    }
    let all = found.places.len();
    if all > RUNS_MAX {
        let left = counted(all - RUNS_MAX, "run");
        found.places.truncate(RUNS_MAX);
        found.notes.push(format!(
            "{left} of {all} left out, the last: a file holds {RUNS_MAX}; name others with --run"
        ));
    }
    Ok(found)
}

/// A run of which only a client's record is known has none.
fn has_spans(run: &Run<'_>) -> bool {
    run.chain != ChainState::NotTraced || !run.client.is_empty()
}

/// One run with its note.
fn choose(
    runs: &[Run<'_>],
    numbered: &[usize],
    latencies: &[(usize, Nanos)],
    choice: Choice,
) -> Result<(usize, String), SelectError> {
    let p = match choice {
        Choice::Number(number) => {
            let place = numbered.get(number - 1).copied();
            let place = place.ok_or_else(|| SelectError::NoSuchRun {
                number,
                runs: counted(numbered.len(), "run"),
            })?;
            if !has_spans(&runs[place]) {
                return Err(SelectError::NoSpans { number });
            }
            return Ok((place, format!("run {number} is {}", runs[place].id)));
        }
        Choice::P50 => 0.5,
        Choice::P95 => 0.95,
        Choice::Max => 1.0,
    };
    let values: Vec<f64> = latencies.iter().map(|(_, value)| value.0 as f64).collect();
    let wanted = quantile(&sorted(&values), p, Definition::Type7);
    let wanted = wanted.ok_or(SelectError::NoneComplete { choice })?;
    let distance = |value: Nanos| (value.0 as f64 - wanted).abs();
    // Of equally near ones the first.
    let nearest = latencies
        .iter()
        .min_by(|a, b| distance(a.1).total_cmp(&distance(b.1)));
    let (place, value) = *nearest.ok_or(SelectError::NoneComplete { choice })?;
    let number = numbered.partition_point(|at| *at < place) + 1;
    let note = format!(
        "{choice} is nearest to run {number}, {}: {} of {}, over {}",
        runs[place].id,
        time(value, Nanos(1)),
        time(Nanos::rounded(wanted), Nanos(1)),
        counted(latencies.len(), "complete run")
    );
    Ok((place, note))
}

/// Latency of each complete run: what the client saw, else its main window.
fn latencies(lens: &Lens<'_>, runs: &[Run<'_>], numbered: &[usize]) -> Vec<(usize, Nanos)> {
    let metrics = lens.model.metrics.iter();
    let rule = metrics
        .clone()
        .find(|rule| rule.name == lens.model.client.latency);
    let complete = numbered.iter().filter(|at| runs[**at].counts());
    let latency = |place: &usize| {
        let run = &runs[*place];
        let seen = rule.and_then(|rule| match figure(lens, run, rule) {
            Figure::Value(value) => Some(Nanos(value)),
            _ => None,
        });
        let main = lens.model.windows.first().map(|rule| rule.name.as_str());
        let window = || {
            let found = windows(lens, run, &mut Problems::default());
            let main = found.iter().find(|window| Some(window.name) == main);
            main.map(|window| window.interval.length())
        };
        Some((*place, seen.or_else(window)?))
    };
    complete.filter_map(latency).collect()
}
