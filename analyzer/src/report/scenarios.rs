//! What the experiment did in each run: scenarios side by side, and how what the
//! client saw went with how long it waited before it asked.
//!
//! Nothing is pooled over cohorts whose runs differ in the wait by themselves. A
//! slope of −1 is waiting for work that was under way when the client asked.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::chain::metrics::Figure;
use crate::model::chain_rules::Measured;
use crate::model::lens::Lens;
use crate::stats::correlation::correlate;
use crate::stats::quantile::Definition;
use crate::stats::slope::slope;
use crate::units::Nanos;

use super::build::Row;
use super::summary::MetricReport;
use super::{cohorts, millionth};

/// The runs of one cohort under one scenario.
#[derive(Clone, Debug, Serialize)]
pub struct ScenarioReport {
    /// Cohort; empty where none was said.
    pub cohort: String,
    /// Scenario as the experiment names it; empty where none was said.
    pub scenario: String,
    /// Its runs.
    pub n: usize,
    /// Its metrics.
    pub metrics: Vec<MetricReport>,
}

/// How the client's latency went with its wait.
#[derive(Clone, Debug, Serialize)]
pub struct DelayReport {
    /// Name of the scenario, without the wait.
    pub scenario: String,
    /// Cohort, where the waits of one differ; else empty, and all cohorts with this
    /// scenario are in it.
    pub cohort: String,
    /// The metric.
    pub metric: String,
    /// Runs that have it.
    pub n: usize,
    /// How many different waits they have.
    pub levels: usize,
    /// Pearson's r.
    pub pearson: Option<f64>,
    /// 95 % interval of r.
    pub pearson_ci: Option<[f64; 2]>,
    /// Spearman's ρ.
    pub spearman: Option<f64>,
    /// Slope, milliseconds a millisecond.
    pub slope: Option<f64>,
    /// 95 % interval of the slope.
    pub slope_ci: Option<[f64; 2]>,
    /// Why something is null.
    pub reason: Option<String>,
}

/// Every cohort under every scenario, in the order of cohorts; empty when there is
/// only one of them.
#[must_use]
pub(super) fn scenarios(
    lens: &Lens<'_>,
    rows: &[Row<'_>],
    order: &[String],
    definition: Definition,
) -> Vec<ScenarioReport> {
    let Some(measured) = &lens.model.measured else {
        return Vec::new();
    };
    let mut groups: BTreeMap<(usize, &str, &str), Vec<&Row<'_>>> = BTreeMap::new();
    for row in rows {
        let cohort = row.run.cohort.as_str();
        let place = order
            .iter()
            .position(|name| name == cohort)
            .unwrap_or(order.len());
        let scenario = scenario(lens, measured, row).unwrap_or("");
        groups
            .entry((place, cohort, scenario))
            .or_default()
            .push(row);
    }
    let said = groups.keys().any(|(_, _, scenario)| !scenario.is_empty());
    if groups.len() < 2 || !said {
        return Vec::new();
    }
    let report =
        |((_, cohort, scenario), rows): ((usize, &str, &str), Vec<&Row<'_>>)| ScenarioReport {
            cohort: cohort.to_owned(),
            scenario: scenario.to_owned(),
            n: rows.len(),
            metrics: cohorts::metrics(lens, &rows, definition),
        };
    groups.into_iter().map(report).collect()
}

/// What was set in each run and what came of it, both in nanoseconds.
type Pairs = Vec<(f64, f64)>;

fn scenario<'a>(lens: &Lens<'a>, measured: &Measured, row: &Row<'_>) -> Option<&'a str> {
    lens.text(
        row.run.first(lens, &measured.kind)?,
        measured.scenario.as_ref()?,
    )
}

/// How the client's latency went with its wait, for each scenario of which the
/// wait was varied.
#[must_use]
pub(super) fn delays(lens: &Lens<'_>, rows: &[&Row<'_>]) -> Vec<DelayReport> {
    let Some(measured) = &lens.model.measured else {
        return Vec::new();
    };
    let rules = lens.model.metrics.iter();
    let Some((column, rule)) = rules
        .enumerate()
        .find(|(_, rule)| rule.name == lens.model.client.latency)
    else {
        return Vec::new();
    };
    let mut cohorts: BTreeMap<(&str, &str), Pairs> = BTreeMap::new();
    for row in rows {
        let delay = scenario(lens, measured, row).and_then(|text| delay_of(measured, text));
        if let (Some((name, delay)), Some(value)) = (delay, value(row, column)) {
            let own = cohorts.entry((name, row.run.cohort.as_str())).or_default();
            own.push((delay.0 as f64, value));
        }
    }
    // Cohorts of one delay each are one series, those of several one each.
    let mut series: BTreeMap<(&str, &str), Pairs> = BTreeMap::new();
    for ((name, cohort), pairs) in cohorts {
        let alone = levels(&pairs) > 1;
        series
            .entry((name, if alone { cohort } else { "" }))
            .or_default()
            .extend(pairs);
    }
    let varied = series.into_iter().filter(|(_, pairs)| levels(pairs) > 1);
    varied
        .map(|((name, cohort), pairs)| delay(name, cohort, &rule.name, &pairs))
        .collect()
}

/// Name and wait of a scenario whose value is one.
fn delay_of<'t>(measured: &Measured, text: &'t str) -> Option<(&'t str, Nanos)> {
    let (name, value) = text.split_once('=').unwrap_or((text, "0"));
    measured
        .delays
        .iter()
        .any(|delay| delay == name)
        .then_some(())?;
    let digits = value.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = value.split_at(digits);
    let nanos: i64 = match unit {
        "us" => 1_000,
        "" | "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    Some((name, Nanos(number.parse::<i64>().ok()?.checked_mul(nanos)?)))
}

fn value(row: &Row<'_>, column: usize) -> Option<f64> {
    match row.figures.get(column) {
        Some(Figure::Value(value)) => Some(*value as f64),
        _ => None,
    }
}

fn levels(pairs: &Pairs) -> usize {
    let levels: BTreeSet<u64> = pairs.iter().map(|(set, _)| set.to_bits()).collect();
    levels.len()
}

fn delay(scenario: &str, cohort: &str, metric: &str, pairs: &Pairs) -> DelayReport {
    let (line, found) = (slope(pairs), correlate(pairs));
    let both = |(low, high): (f64, f64)| [millionth(low), millionth(high)];
    let reason = line
        .err()
        .or(found.err())
        .map(|undefined| undefined.to_string());
    DelayReport {
        scenario: scenario.to_owned(),
        cohort: cohort.to_owned(),
        metric: metric.to_owned(),
        n: pairs.len(),
        levels: levels(pairs),
        pearson: found.ok().map(|found| millionth(found.pearson)),
        pearson_ci: found.ok().and_then(|found| found.pearson_ci).map(both),
        spearman: found.ok().map(|found| millionth(found.spearman)),
        slope: line.ok().map(|line| millionth(line.slope)),
        slope_ci: line.ok().map(|line| both((line.low, line.high))),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builtin;
    use crate::model::schema::Model;

    #[test]
    fn a_scenario_says_how_long_the_client_waited() {
        let model = Model::parse("coldpath", builtin::source("coldpath").unwrap()).unwrap();
        let measured = model.measured.unwrap();
        let delay = |text| delay_of(&measured, text).map(|(name, wait)| (name, wait.0));
        assert_eq!(delay("delay=250"), Some(("delay", 250_000_000)));
        assert_eq!(
            delay("early-preheat=1s"),
            Some(("early-preheat", 1_000_000_000))
        );
        assert_eq!(delay("delay"), Some(("delay", 0)));
        assert_eq!(delay("delay=10us"), Some(("delay", 10_000)));
        for other in [
            "cold",
            "concurrent=2",
            "preheated=3s",
            "delay=1m",
            "delay=x",
            "delay=",
        ] {
            assert_eq!(delay(other), None, "{other}");
        }
    }
}
