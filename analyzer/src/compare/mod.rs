//! Two arms of an experiment compared in pairs: what moved, by how much, how sure
//! that is, and what may not be said.
//!
//! [`facts`] takes plain data from runs, [`pairing`] finds partners or refuses in
//! words, [`effect`] and [`stages`] compute, [`control`] and [`relocation`] judge
//! whether the figures may be believed and where time went, [`words`] says it,
//! and [`layout`] and [`html`] draw it. Nothing here reads a file or decides a gate.

pub mod control;
pub mod effect;
pub mod facts;
pub mod html;
pub mod json;
pub mod layout;
pub mod margin;
pub mod pairing;
pub mod relocation;
pub mod stages;
pub mod words;

use std::collections::BTreeSet;

use serde::Serialize;

use crate::model::window_rules::Unit;
use crate::report::{Input, Provenance};
use crate::stats::within::holm;

use control::{ControlRule, ControlStage};
use effect::{Effect, PairValues, effect};
use facts::{Facts, RunFacts};
use pairing::{Choice, Order, Pair, Pairing, Refusal};
use relocation::Relocation;
use stages::WindowChange;

/// Value of `schema`.
pub const SCHEMA: &str = "coldpath.compare/1";
/// Level at which autocorrelation of what order and drift leave counts as found:
/// lower than usual, because it is looked for in every metric.
pub const AUTOCORRELATION_LEVEL: f64 = 0.01;

/// A comparison.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Where it came from, once for each set of files.
    pub sources: Vec<(Provenance, Input)>,
    /// Hosts and boots of the runs: one, or none that is known.
    pub host: Option<String>,
    /// Name of the model.
    pub model: String,
    /// The arm that is compared with.
    pub control: Arm,
    /// The arm that is compared.
    pub candidate: Arm,
    /// The pairs.
    pub pairing: PairingReport,
    /// Changes of end-to-end figures, in the model's order.
    pub metrics: Vec<MetricChange>,
    /// Changes of windows and their stages.
    pub windows: Vec<WindowChange>,
    /// Stages that the change cannot touch.
    pub control_stages: Vec<ControlStage>,
    /// Parts that moved while the whole did not.
    pub relocations: Vec<Relocation>,
    /// What limits all of it.
    pub caveats: Vec<Remark>,
    /// What it says, in words.
    pub findings: Vec<Remark>,
    /// Time from the start of one pair to the next, nanoseconds, the median.
    pub pair_period: Option<f64>,
}

/// A sentence with a stable code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// Code.
    pub code: &'static str,
    /// Sentence.
    pub text: String,
}

/// One arm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Arm {
    /// Name.
    pub name: String,
    /// Its runs, warm-ups excluded.
    pub runs: usize,
    /// Those that failed.
    pub failed: usize,
    /// Their names and why.
    #[serde(skip)]
    pub failures: Vec<(String, String)>,
    /// Runs that a client watched to their end.
    #[serde(skip)]
    pub watched: usize,
    /// Traced runs with a whole chain.
    pub complete: usize,
    /// Traced runs.
    pub traced: usize,
    /// Traced runs with an incomplete chain.
    pub incomplete: Vec<String>,
    /// Versions of the programs.
    pub versions: BTreeSet<String>,
    /// Scenario, where the traces name one.
    pub scenario: Option<String>,
}

/// The pairs of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PairingReport {
    /// How partners were found.
    pub by: &'static str,
    /// Pairs.
    pub n: usize,
    /// Pairs whose control went first.
    pub control_first: usize,
    /// Pairs whose candidate went first.
    pub candidate_first: usize,
    /// Runs without a partner.
    pub unpaired: Vec<UnpairedReport>,
}

/// A run without a partner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnpairedReport {
    /// Its name.
    pub run: String,
    /// Why.
    pub reason: String,
}

/// The change of one end-to-end figure.
#[derive(Clone, Debug)]
pub struct MetricChange {
    /// Name.
    pub name: String,
    /// Metrics of which it is a part.
    pub within: Vec<String>,
    /// What changed.
    pub effect: Effect,
    /// p-value among all metrics (Holm).
    pub p_holm: Option<f64>,
    /// Runs that should have the figure and have none.
    pub missing: Vec<String>,
}

impl MetricChange {
    /// Whether pairs say something about the next ones.
    #[must_use]
    pub fn autocorrelated(&self) -> bool {
        let found = self.effect.autocorrelation;
        found.is_ok_and(|found| found.p < AUTOCORRELATION_LEVEL)
    }
}

impl Comparison {
    /// The change of this metric.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<&MetricChange> {
        self.metrics.iter().find(|metric| metric.name == name)
    }

    /// Whether a stage that the change cannot touch moved, or may have.
    #[must_use]
    pub fn unproven(&self) -> bool {
        self.control_stages.iter().any(|stage| !stage.equivalent)
    }

    /// Whether every pair ran in the same order, so that a difference between the
    /// arms and one between the slots are the same thing.
    #[must_use]
    pub fn one_order(&self) -> bool {
        self.pairing.control_first == 0 || self.pairing.candidate_first == 0
    }
}

/// Compares two arms of `facts`.
///
/// # Errors
/// [`Refusal`] where the arms must not be compared.
pub fn compare(
    facts: &Facts,
    choice: &Choice,
    rules: &[ControlRule],
) -> Result<Comparison, Refusal> {
    let pairing = pairing::pair(facts, choice)?;
    let metrics = metrics(facts, &pairing.pairs);
    let windows = stages::windows(facts, &pairing.pairs);
    let control_stages = control::judge(rules, &metrics, &windows);
    let mut comparison = Comparison {
        sources: facts.sources.clone(),
        host: facts.hosts.first().cloned(),
        model: facts.model.clone(),
        control: arm(facts, &pairing.control),
        candidate: arm(facts, &pairing.candidate),
        pair_period: pair_period(facts, &pairing.pairs),
        pairing: pairing_report(pairing),
        relocations: relocation::find(&metrics, &windows),
        metrics,
        windows,
        control_stages,
        caveats: Vec::new(),
        findings: Vec::new(),
    };
    comparison.caveats = words::caveats(&comparison);
    comparison.findings = words::findings(&comparison);
    Ok(comparison)
}

fn metrics(facts: &Facts, pairs: &[Pair]) -> Vec<MetricChange> {
    let mut changes = Vec::new();
    for (column, metric) in facts.metrics.iter().enumerate() {
        let value = |place: usize| facts.runs[place].figures[column];
        let values: Vec<PairValues> = pairs
            .iter()
            .map(|pair| PairValues {
                control: value(pair.control),
                candidate: value(pair.candidate),
                order: pair.order,
            })
            .collect();
        let effect = effect(metric.unit, &values);
        if effect.pairs.is_empty() {
            continue;
        }
        let lacks = |place: &usize| value(*place).is_none();
        let runs = effect
            .missing
            .iter()
            .flat_map(|pair| [pairs[*pair].control, pairs[*pair].candidate]);
        changes.push(MetricChange {
            name: metric.name.clone(),
            within: metric.within.clone(),
            p_holm: None,
            missing: runs
                .filter(lacks)
                .map(|place| facts.runs[place].id.clone())
                .collect(),
            effect,
        });
    }
    let family: Vec<f64> = changes
        .iter()
        .filter_map(|change| change.effect.p)
        .collect();
    let mut adjusted = holm(&family).into_iter();
    for change in &mut changes {
        if change.effect.p.is_some() {
            change.p_holm = adjusted.next();
        }
    }
    changes
}

fn arm(facts: &Facts, name: &str) -> Arm {
    let runs: Vec<&RunFacts> = facts.runs.iter().filter(|run| run.cohort == name).collect();
    let failures = runs
        .iter()
        .filter_map(|run| Some((run.id.clone(), run.failure.clone()?)));
    let failures: Vec<(String, String)> = failures.collect();
    let count = |state: bool| {
        runs.iter()
            .filter(|run| run.complete == Some(state))
            .count()
    };
    let incomplete = runs.iter().filter(|run| run.complete == Some(false));
    Arm {
        name: name.to_owned(),
        runs: runs.len(),
        failed: failures.len(),
        failures,
        complete: count(true),
        watched: runs.iter().filter(|run| run.watched).count(),
        traced: count(true) + count(false),
        incomplete: incomplete.map(|run| run.id.clone()).collect(),
        versions: runs.iter().flat_map(|run| run.versions.clone()).collect(),
        scenario: runs.iter().find_map(|run| run.scenario.clone()),
    }
}

fn pairing_report(pairing: Pairing) -> PairingReport {
    let first = |order: Order| {
        pairing
            .pairs
            .iter()
            .filter(|pair| pair.order == order)
            .count()
    };
    PairingReport {
        by: pairing.by.name(),
        n: pairing.pairs.len(),
        control_first: first(Order::ControlFirst),
        candidate_first: first(Order::CandidateFirst),
        unpaired: pairing
            .unpaired
            .into_iter()
            .map(|one| UnpairedReport {
                run: one.run,
                reason: one.reason,
            })
            .collect(),
    }
}

/// What one more pair takes.
fn pair_period(facts: &Facts, pairs: &[Pair]) -> Option<f64> {
    let start = |pair: &Pair| {
        facts.runs[pair.control]
            .start
            .min(facts.runs[pair.candidate].start)
    };
    let steps = pairs.windows(2);
    let steps: Vec<f64> = steps
        .map(|two| crate::units::difference(start(&two[1]), start(&two[0])).0 as f64)
        .collect();
    crate::stats::quantile::median(&steps)
}

/// Whether a metric is a time.
#[must_use]
pub(crate) fn is_time(metric: &MetricChange) -> bool {
    metric.effect.unit == Unit::Ms
}
