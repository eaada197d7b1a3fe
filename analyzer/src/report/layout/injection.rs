//! The section of injected delays.

use super::super::injection::{InjectionReport, OFF_PATH, ON_PATH, PARTLY};
use super::super::numbers::{coefficient, escape, or_none, percent, time};
use super::{Grid, Section, head};
use crate::units::Nanos;

/// Finest step in which a delay is printed.
const MICROSECOND: Nanos = Nanos(1_000);

pub(super) fn injections(injections: &[InjectionReport]) -> Option<Section> {
    let row = |one: &InjectionReport| {
        let delays = one.delays.iter().map(|delay| time(*delay, MICROSECOND));
        let two = |value: f64| format!("{value:.2}");
        let interval = or_none(one.slope.low.zip(one.slope.high), |(low, high)| {
            format!("{low:.2} … {high:.2}")
        });
        let verdict = match one.verdict {
            ON_PATH => "on the path",
            OFF_PATH => "off the path",
            PARTLY => "in part",
            _ => "undecided",
        };
        vec![
            escape(&one.stage),
            delays.collect::<Vec<_>>().join(", "),
            one.n_pairs.to_string(),
            or_none(one.slope.estimate, two),
            interval,
            verdict.to_owned(),
            or_none(one.share_p50, percent),
            or_none(one.pearson, coefficient),
        ]
    };
    let metric = &injections.first()?.metric;
    Some(Section {
        title: format!("Injected delays: how much of them reached {}", escape(metric)),
        lines: Vec::new(),
        grid: Some(Grid {
            head: head(&[
                "stage",
                "delay",
                "pairs",
                "slope",
                "95 % interval",
                "",
                "share P50",
                "Pearson",
            ]),
            rows: injections.iter().map(row).collect(),
        }),
        notes: vec!["slope 0: off the path, 1: on it; share and Pearson are what the runs without a delay would have one believe of the same stage".to_owned()],
    })
}
