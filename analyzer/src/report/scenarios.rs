//! What the experiment did in each run: scenarios side by side, and how what the
//! client saw went with how long it waited before, or with a delay that was
//! injected.
//!
//! Nothing is pooled over cohorts whose runs differ in the delay by themselves.
//! An injected delay was set by the experiment, so a slope on it is an effect: 1 is
//! on the path, 0 is off it. A slope on the client's wait of −1 is waiting for
//! work that was under way.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::chain::metrics::Figure;
use crate::model::chain_rules::Measured;
use crate::model::lens::Lens;
use crate::model::metric_rules::{MetricRule, MetricSource};
use crate::model::window_rules::Unit;
use crate::stats::correlation::correlate;
use crate::stats::quantile::Definition;
use crate::stats::slope::slope;
use crate::trace::span::Value;
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

/// How a metric went with what the experiment set.
#[derive(Clone, Debug, Serialize)]
pub struct ResponseReport {
    /// `delay` for the client's wait before it asked, `injection` for a delay
    /// within the program.
    pub kind: &'static str,
    /// Name of the scenario, or the stage that was held up.
    pub of: String,
    /// Cohort, where the delays of one differ; else empty, and all with this
    /// scenario or injection are in it.
    pub cohort: String,
    /// The metric.
    pub metric: String,
    /// Runs that have it.
    pub n: usize,
    /// How many different delays they have.
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

/// Value of [`ResponseReport::kind`] for the client's wait.
pub const DELAY: &str = "delay";
/// Value of [`ResponseReport::kind`] for an injected delay.
pub const INJECTION: &str = "injection";

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

/// How the client's latency went with its wait, and each metric that ends with
/// the session with each injected delay, as far as these were varied.
#[must_use]
pub(super) fn responses(lens: &Lens<'_>, rows: &[&Row<'_>]) -> Vec<ResponseReport> {
    let Some(measured) = &lens.model.measured else {
        return Vec::new();
    };
    let mut found = delays(lens, measured, rows);
    found.extend(injections(lens, measured, rows));
    found
}

fn scenario<'a>(lens: &Lens<'a>, measured: &Measured, row: &Row<'_>) -> Option<&'a str> {
    lens.text(
        row.run.first(lens, &measured.kind)?,
        measured.scenario.as_ref()?,
    )
}

fn delays(lens: &Lens<'_>, measured: &Measured, rows: &[&Row<'_>]) -> Vec<ResponseReport> {
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
        .map(|((name, cohort), pairs)| response((DELAY, name, cohort), rule, &pairs))
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

fn injections(lens: &Lens<'_>, measured: &Measured, rows: &[&Row<'_>]) -> Vec<ResponseReport> {
    let Some(rule) = &measured.injected else {
        return Vec::new();
    };
    // What was injected in each run, nanoseconds by stage.
    let of = |row: &&Row<'_>| -> BTreeMap<&str, f64> {
        let span = row.run.first(lens, &measured.kind);
        let attributes = span
            .into_iter()
            .flat_map(|span| lens.data.span(span).attributes.iter());
        let stages = attributes.filter_map(|(key, value)| {
            let key = lens.data.names.text(key);
            let stage = key
                .strip_prefix(rule.prefix.as_str())?
                .strip_suffix(rule.suffix.as_str())?;
            Some((stage, Value::number(value)?))
        });
        stages.collect()
    };
    let injected: Vec<BTreeMap<&str, f64>> = rows.iter().map(of).collect();
    let stages: BTreeSet<&str> = injected
        .iter()
        .flat_map(|own| own.keys().copied())
        .collect();
    let mut found = Vec::new();
    for stage in stages {
        for (column, rule) in ending_with_session(lens, measured) {
            let pairs = rows.iter().zip(&injected).filter_map(|(row, injected)| {
                Some((
                    injected.get(stage).copied().unwrap_or(0.0),
                    value(row, column)?,
                ))
            });
            let pairs: Pairs = pairs.collect();
            if !pairs.is_empty() {
                found.push(response((INJECTION, stage, ""), rule, &pairs));
            }
        }
    }
    found
}

/// Metrics that end where the client has its session.
fn ending_with_session<'a>(
    lens: &Lens<'a>,
    measured: &'a Measured,
) -> impl Iterator<Item = (usize, &'a MetricRule)> {
    let ends = move |rule: &&MetricRule| {
        let mut sources = rule.sources.iter();
        rule.unit == Unit::Ms
            && sources.any(|source| match source {
                MetricSource::Between { to: (_, kind), .. } => measured.session.contains(kind),
                _ => false,
            })
    };
    lens.model
        .metrics
        .iter()
        .enumerate()
        .filter(move |(_, rule)| ends(rule))
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

fn response(
    (kind, of, cohort): (&'static str, &str, &str),
    rule: &MetricRule,
    pairs: &Pairs,
) -> ResponseReport {
    let (line, found) = (slope(pairs), correlate(pairs));
    let both = |(low, high): (f64, f64)| [millionth(low), millionth(high)];
    let reason = line
        .err()
        .or(found.err())
        .map(|undefined| undefined.to_string());
    ResponseReport {
        kind,
        of: of.to_owned(),
        cohort: cohort.to_owned(),
        metric: rule.name.clone(),
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
