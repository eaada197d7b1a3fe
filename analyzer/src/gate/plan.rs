//! How many pairs, and how much time, an experiment needs to see an effect: from
//! the noise of a pilot.
//!
//! The pilot's standard error, scaled to one pair, gives the pairs
//! ([`power`](crate::stats::power)); the median time from one of its pairs to the
//! next gives the minutes. A pilot of few pairs knows its own noise badly: with 12
//! pairs the standard deviation is known to about ±40 %.

use serde::Serialize;

use crate::compare::Comparison;
use crate::compare::effect::in_unit;
use crate::compare::margin::Margin;
use crate::report::Amount;
use crate::report::layout::{Grid, Section};
use crate::report::numbers::{amount, escape, or_none};
use crate::stats::power::{Power, pairs_needed, standard_error};
use crate::stats::signed_rank::Tail;
use crate::units::Nanos;

/// Value of `schema`.
pub const SCHEMA: &str = "coldpath.plan/1";

/// A plan.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Pairs of the pilot.
    pub pilot_pairs: usize,
    /// Effect that is to be seen, in milliseconds or bytes.
    pub effect: Option<Amount>,
    /// Time of one pair.
    pub pair_period: Option<Amount>,
    /// One for each metric of the effect's unit.
    pub metrics: Vec<PlannedMetric>,
}

/// What one metric needs.
#[derive(Clone, Debug, Serialize)]
pub struct PlannedMetric {
    /// Name.
    pub name: String,
    /// Spread of one pair's difference that the pilot's interval stands for.
    pub spread: Option<Amount>,
    /// For 80 % power.
    pub power_80: Need,
    /// For 95 % power.
    pub power_95: Need,
    /// Why nothing is said.
    pub reason: Option<String>,
}

/// Pairs and minutes; null where no number of pairs would do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Need {
    /// Pairs.
    pub pairs: Option<usize>,
    /// Minutes.
    pub minutes: Option<f64>,
}

/// Fewest pairs that have a 95 % interval at all.
const PAIRS_MIN: usize = 6;
/// Nanoseconds in a minute.
const MINUTE: f64 = 60e9;

/// Plans for the effect; a metric of another unit is left out.
#[must_use]
pub fn plan(pilot: &Comparison, effect: Margin) -> Plan {
    let minutes = |pairs: Option<usize>| {
        let minutes = pairs? as f64 * pilot.pair_period? / MINUTE;
        Some((minutes * 10.0).ceil() / 10.0)
    };
    let fitting = pilot
        .metrics
        .iter()
        .filter(|metric| metric.effect.unit == effect.unit);
    let planned = fitting.map(|metric| {
        let shift = &metric.effect.shift;
        let n = metric.effect.differences.len();
        let error = shift.as_estimate().and_then(|one| standard_error(&one));
        let need = |power| {
            let pairs = error
                .and_then(|error| pairs_needed(n, error, effect.value, Tail::TwoAndAHalf, power));
            let pairs = pairs.map(|pairs| pairs.max(PAIRS_MIN));
            Need {
                pairs,
                minutes: minutes(pairs),
            }
        };
        PlannedMetric {
            name: metric.name.clone(),
            spread: error.and_then(|error| in_unit(effect.unit, error * (n as f64).sqrt())),
            power_80: need(Power::Eighty),
            power_95: need(Power::NinetyFive),
            reason: error.is_none().then(|| {
                shift
                    .reason
                    .clone()
                    .unwrap_or_else(|| "no noise to plan by".to_owned())
            }),
        }
    });
    Plan {
        schema: SCHEMA,
        pilot_pairs: pilot.pairing.n,
        effect: in_unit(effect.unit, effect.value),
        pair_period: pilot
            .pair_period
            .map(|period| Amount::Time(Nanos::rounded(period))),
        metrics: planned.collect(),
    }
}

/// Lays out a plan.
#[must_use]
pub fn sections(plan: &Plan) -> Vec<Section> {
    let show = |value: Option<Amount>| or_none(value, |one| amount(one, Nanos(1)));
    let count = |need: Need| or_none(need.pairs, |pairs| pairs.to_string());
    let minutes = |need: Need| or_none(need.minutes, |minutes| format!("{minutes:.1}"));
    let row = |metric: &PlannedMetric| {
        vec![
            escape(&metric.name),
            show(metric.spread),
            count(metric.power_80),
            minutes(metric.power_80),
            count(metric.power_95),
            minutes(metric.power_95),
            metric.reason.clone().unwrap_or_default(),
        ]
    };
    let head = [
        "metric",
        "spread of a pair",
        "pairs (80 %)",
        "minutes",
        "pairs (95 %)",
        "minutes (95 %)",
        "",
    ];
    vec![Section {
        title: format!("Pairs to see a shift of {} (pilot: {} pairs)", show(plan.effect), plan.pilot_pairs),
        lines: vec![format!("one pair takes {}", show(plan.pair_period))],
        grid: Some(Grid {
            head: head.iter().map(|cell| (*cell).to_owned()).collect(),
            rows: plan.metrics.iter().map(row).collect(),
        }),
        notes: vec!["two-sided 5 %; a superiority gate with a margin needs this many for an effect that far beyond its margin".to_owned()],
    }]
}
