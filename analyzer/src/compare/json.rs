//! A comparison as JSON, `coldpath.compare/1`: keys are stable and described by
//! `docs/compare-schema.json`. Times are milliseconds, sizes bytes; there is
//! never NaN or infinity.

use serde::Serialize;
use serde::ser::Serializer;

use crate::report::{Amount, Input, Provenance, millionth};

use super::effect::{Effect, Figured, in_unit};
use super::pairing::Order;
use super::{
    Arm, Comparison, MetricChange, PairingReport, Remark, SCHEMA, control, relocation, stages,
};

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    sources: Vec<Source<'a>>,
    host: &'a Option<String>,
    model: &'a str,
    control: &'a Arm,
    candidate: &'a Arm,
    pairing: &'a PairingReport,
    metrics: Vec<Metric<'a>>,
    windows: &'a [stages::WindowChange],
    control_stages: &'a [control::ControlStage],
    unproven: bool,
    relocations: &'a [relocation::Relocation],
    caveats: &'a [Remark],
    findings: &'a [Remark],
}

#[derive(Serialize)]
struct Source<'a> {
    provenance: &'a Provenance,
    input: &'a Input,
}

#[derive(Serialize)]
struct Metric<'a> {
    name: &'a str,
    unit: &'static str,
    within: &'a [String],
    n_pairs: usize,
    missing: &'a [String],
    failed_candidates: usize,
    failed_controls: usize,
    control: Level,
    candidate: Level,
    shift: &'a Figured,
    sign: &'a Figured,
    p50: &'a Figured,
    p95: &'a Figured,
    p: Option<f64>,
    p_holm: Option<f64>,
    zeros: usize,
    order: &'a Figured,
    drift: &'a Figured,
    autocorrelation: Residual,
    pairs: Vec<PairReport>,
}

#[derive(Serialize)]
struct Level {
    p50: Option<Amount>,
    p95: Option<Amount>,
}

#[derive(Serialize)]
struct Residual {
    r: Option<f64>,
    p: Option<f64>,
    reason: Option<String>,
}

#[derive(Serialize)]
struct PairReport {
    control: Option<Amount>,
    candidate: Option<Amount>,
    first: &'static str,
}

impl Serialize for Comparison {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let sources = self.sources.iter();
        let document = Document {
            schema: SCHEMA,
            sources: sources
                .map(|(provenance, input)| Source { provenance, input })
                .collect(),
            host: &self.host,
            model: &self.model,
            control: &self.control,
            candidate: &self.candidate,
            pairing: &self.pairing,
            metrics: self.metrics.iter().map(metric).collect(),
            windows: &self.windows,
            control_stages: &self.control_stages,
            unproven: self.unproven(),
            relocations: &self.relocations,
            caveats: &self.caveats,
            findings: &self.findings,
        };
        document.serialize(serializer)
    }
}

fn metric(change: &MetricChange) -> Metric<'_> {
    let effect = &change.effect;
    let level = |(p50, p95): (Option<f64>, Option<f64>)| {
        let amount = |value: Option<f64>| in_unit(effect.unit, value?);
        Level {
            p50: amount(p50),
            p95: amount(p95),
        }
    };
    Metric {
        name: &change.name,
        unit: effect.unit.name(),
        within: &change.within,
        n_pairs: effect.differences.len(),
        missing: &change.missing,
        failed_candidates: effect.failed_candidates,
        failed_controls: effect.failed_controls,
        control: level(effect.control),
        candidate: level(effect.candidate),
        shift: &effect.shift,
        sign: &effect.sign,
        p50: &effect.p50,
        p95: &effect.p95,
        p: effect.p.map(precise),
        p_holm: change.p_holm.map(precise),
        zeros: effect.zeros,
        order: &effect.order,
        drift: &effect.drift,
        autocorrelation: residual(effect),
        pairs: pairs(effect),
    }
}

/// A p-value keeps its size: to a millionth it could read as zero.
fn precise(p: f64) -> f64 {
    let scale = 10f64.powf(5.0 - p.max(f64::MIN_POSITIVE).log10().floor());
    let rounded = (p * scale).round() / scale;
    if rounded.is_finite() { rounded } else { p }
}

fn residual(effect: &Effect) -> Residual {
    match effect.autocorrelation {
        Ok(found) => Residual {
            r: Some(millionth(found.r)),
            p: Some(precise(found.p)),
            reason: None,
        },
        Err(undefined) => Residual {
            r: None,
            p: None,
            reason: Some(undefined.to_string()),
        },
    }
}

fn pairs(effect: &Effect) -> Vec<PairReport> {
    let both = effect.pairs.iter().zip(&effect.orders);
    let pair = |((control, candidate), order): (&(f64, f64), &Order)| PairReport {
        control: in_unit(effect.unit, *control),
        candidate: in_unit(effect.unit, *candidate),
        first: match order {
            Order::ControlFirst => "control",
            Order::CandidateFirst => "candidate",
        },
    };
    both.map(pair).collect()
}
