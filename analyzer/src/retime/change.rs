//! A change that is asked for: `STAGE=-50%`, `STAGE=-10ms`, `STAGE=+10ms`,
//! `STAGE=0`; and the lengths that a graph has under it.
//!
//! A stage's work is what its own lane does and what its parts do; waiting is no
//! work, and does not change but by what is waited for. A percentage scales each
//! piece of work. An amount less is taken off all pieces, each by its part of the
//! whole, and no further than to nothing. An amount more is put at the start of
//! the stage, as a delay would be. A stage that a run has several times is
//! changed each time.

use std::str::FromStr;

use thiserror::Error;

use crate::units::Nanos;

use super::graph::{Graph, Place};

/// What becomes of a stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// Its work is multiplied by this, 0 or more.
    Times(f64),
    /// Its work is shorter by this, positive.
    Less(Nanos),
    /// It begins with a delay of this, positive.
    More(Nanos),
}

/// A stage by name and what becomes of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// As it was written: a stage, `WINDOW:STAGE`, a window, or the name of a span.
    pub stage: String,
    /// What becomes of it.
    pub amount: Amount,
    /// The amount as it was written.
    pub text: String,
}

/// A text that is no change.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` is no change of a stage\nhint: STAGE=-50%, STAGE=-10ms, STAGE=+10ms or STAGE=0; units are ns, us, ms and s"
)]
pub struct BadChange(pub String);

/// Longest change that is believed: a day.
const LONGEST: Nanos = Nanos(86_400_000_000_000);

impl FromStr for Change {
    type Err = BadChange;

    fn from_str(text: &str) -> Result<Self, BadChange> {
        let bad = || BadChange(text.to_owned());
        let (stage, amount) = text.rsplit_once('=').ok_or_else(bad)?;
        if stage.is_empty() {
            return Err(bad());
        }
        Ok(Self {
            stage: stage.to_owned(),
            amount: amount_of(amount).ok_or_else(bad)?,
            text: amount.replacen('-', "−", 1).replace('%', " %"),
        })
    }
}

fn amount_of(text: &str) -> Option<Amount> {
    if text == "0" {
        return Some(Amount::Times(0.0));
    }
    let (less, rest) = match text.strip_prefix(['-', '−']) {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+')?),
    };
    // `f64` reads signs, exponents and `inf` as well; a figure is digits.
    let figure = |text: &str| {
        let plain = text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
        text.parse::<f64>().ok().filter(|_| plain)
    };
    if let Some(percent) = rest.strip_suffix('%') {
        let part = figure(percent)? / 100.0;
        let times = if less { 1.0 - part } else { 1.0 + part };
        return (0.0..=1e6).contains(&times).then_some(Amount::Times(times));
    }
    let units = [
        ("ns", 1.0),
        ("us", 1e3),
        ("µs", 1e3),
        ("ms", 1e6),
        ("s", 1e9),
    ];
    let (number, unit) = units
        .iter()
        .find_map(|(name, unit)| Some((rest.strip_suffix(name)?, unit)))?;
    let nanos = Nanos::rounded(figure(number)? * unit);
    let nanos = Some(nanos).filter(|nanos| *nanos <= LONGEST)?;
    Some(if less {
        Amount::Less(nanos)
    } else {
        Amount::More(nanos)
    })
}

/// Which activities a stage is, and all that is part of one.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The outermost activity of the stage that each is part of, itself included.
    top: Vec<Option<Place>>,
}

impl Scope {
    /// The scope of the activities for which `is_stage` holds.
    #[must_use]
    pub fn of(graph: &Graph, is_stage: impl Fn(Place) -> bool) -> Self {
        let mut top: Vec<Option<Place>> = Vec::with_capacity(graph.whole.len());
        for (place, whole) in graph.whole.iter().enumerate() {
            let above = whole.and_then(|whole| top.get(whole as usize).copied().flatten());
            let own = super::graph::short(place);
            top.push(above.or_else(|| is_stage(own).then_some(own)));
        }
        Self { top }
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.top.iter().all(Option::is_none)
    }

    /// The outermost activities of the stage.
    pub fn tops(&self) -> impl Iterator<Item = Place> + '_ {
        let places = self.top.iter().enumerate();
        places.filter_map(|(place, top)| top.filter(|top| *top as usize == place))
    }

    /// The outermost activity whose work an edge is, where it is work of the stage.
    fn top_of(&self, work_of: Option<Place>) -> Option<Place> {
        self.top.get(work_of? as usize).copied().flatten()
    }

    /// Places of the edges that are its work; where it has none, of those that its
    /// activities begin with.
    #[must_use]
    pub(super) fn pieces(&self, graph: &Graph) -> Vec<usize> {
        let links = graph.links.iter().enumerate();
        let own = links.filter(|(_, link)| link.length > 0 && self.top_of(link.work_of).is_some());
        let own: Vec<usize> = own.map(|(at, _)| at).collect();
        if !own.is_empty() {
            return own;
        }
        let first = self
            .tops()
            .filter_map(|top| graph.first_link.get(top as usize));
        let first = first.map(|at| *at as usize);
        first.filter(|at| *at < graph.links.len()).collect()
    }

    /// Work of the stage: the length of all its pieces.
    #[must_use]
    pub fn work(&self, graph: &Graph) -> Nanos {
        let links = graph.links.iter().filter(|link| link.length > 0);
        let own = links.filter(|link| self.top_of(link.work_of).is_some());
        Nanos(own.map(|link| link.length).sum())
    }

    /// Changes `lengths`, those of `graph` or what other changes left of them.
    pub fn apply(&self, graph: &Graph, amount: Amount, lengths: &mut [i64]) {
        match amount {
            Amount::Times(factor) => {
                for (link, length) in graph.links.iter().zip(lengths) {
                    if *length > 0 && self.top_of(link.work_of).is_some() {
                        *length = Nanos::rounded(*length as f64 * factor).0;
                    }
                }
            }
            Amount::Less(less) => self
                .tops()
                .for_each(|top| self.take(graph, top, less, lengths)),
            Amount::More(more) => {
                for top in self.tops() {
                    let first = graph.first_link.get(top as usize).copied();
                    if let Some(length) = first.and_then(|at| lengths.get_mut(at as usize)) {
                        *length = length.saturating_add(more.0);
                    }
                }
            }
        }
    }

    /// Takes `less` off the work of one activity of the stage, in integer
    /// nanoseconds that add up.
    fn take(&self, graph: &Graph, top: Place, less: Nanos, lengths: &mut [i64]) {
        let own = |at: usize| self.top_of(graph.links[at].work_of) == Some(top);
        let pieces: Vec<usize> = (0..lengths.len().min(graph.links.len()))
            .filter(|at| own(*at) && lengths[*at] > 0)
            .collect();
        let whole: i128 = pieces.iter().map(|at| i128::from(lengths[*at])).sum();
        let left = (whole - i128::from(less.0)).max(0);
        let (mut passed, mut given) = (0i128, 0i128);
        for at in pieces {
            passed += i128::from(lengths[at]);
            let until = left * passed / whole.max(1);
            lengths[at] = i64::try_from(until - given).unwrap_or(i64::MAX);
            given = until;
        }
    }
}
