//! A judgement laid out in sections, and as JSON (`coldpath.gate/1`).

use serde::Serialize;

use crate::compare::Comparison;
use crate::report::layout::{Grid, Section};
use crate::report::numbers::{NONE, amount, escape, or_none, percent};
use crate::units::Nanos;

use super::SCHEMA;
use super::judge::{GateReport, Judgement};
use super::placebo::Placebo;
use super::policy::{Gate, Policy};
use super::rule::{Kind, Verdict};

/// A judgement with all that it was made of.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'a> {
    /// The policy.
    pub policy: &'a Policy,
    /// What was compared.
    pub comparison: &'a Comparison,
    /// The placebo that was given.
    pub placebo: Option<&'a Placebo>,
    /// The verdicts.
    pub judgement: &'a Judgement,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    verdict: Verdict,
    policy: EffectivePolicy<'a>,
    placebo: Option<&'a Placebo>,
    placebo_mismatch: &'a Option<String>,
    gates: &'a [GateReport],
    comparison: &'a Comparison,
}

#[derive(Serialize)]
struct EffectivePolicy<'a> {
    schema: u32,
    pairs: Option<usize>,
    control_stages: Vec<EffectiveControl<'a>>,
    gates: Vec<EffectiveGate<'a>>,
}

#[derive(Serialize)]
struct EffectiveControl<'a> {
    name: &'a str,
    margin: String,
}

#[derive(Serialize)]
struct EffectiveGate<'a> {
    name: &'a str,
    metric: &'a str,
    statistic: Option<&'static str>,
    kind: Kind,
    margin: Option<String>,
}

impl Serialize for Judged<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let controls = self.policy.control_stages.iter();
        let gates = self.policy.gates.iter();
        let document = Document {
            schema: SCHEMA,
            verdict: self.judgement.verdict,
            policy: EffectivePolicy {
                schema: super::policy::SCHEMA,
                pairs: self.policy.pairs,
                control_stages: controls
                    .map(|one| EffectiveControl {
                        name: &one.name,
                        margin: one.margin.to_string(),
                    })
                    .collect(),
                gates: gates.map(effective).collect(),
            },
            placebo: self.placebo,
            placebo_mismatch: &self.judgement.placebo_mismatch,
            gates: &self.judgement.gates,
            comparison: self.comparison,
        };
        document.serialize(serializer)
    }
}

fn effective(gate: &Gate) -> EffectiveGate<'_> {
    EffectiveGate {
        name: &gate.name,
        metric: &gate.metric,
        statistic: gate.limit.map(|(statistic, _)| statistic.name()),
        kind: gate.kind,
        margin: gate.limit.map(|(_, margin)| margin.to_string()),
    }
}

/// Lays out a judgement: verdicts, why, what it would take, the policy.
#[must_use]
pub fn sections(judged: &Judged<'_>) -> Vec<Section> {
    let mut all = vec![
        verdicts(judged),
        reasons(judged),
        power(judged),
        old(judged),
        policy(judged),
    ];
    all.retain(|section| !section.lines.is_empty() || section.grid.is_some());
    all
}

fn grid<const N: usize>(head: [&str; N], rows: Vec<Vec<String>>) -> Option<Grid> {
    let head = head.iter().map(|cell| (*cell).to_owned()).collect();
    (!rows.is_empty()).then_some(Grid { head, rows })
}

fn verdicts(judged: &Judged<'_>) -> Section {
    let count = |verdict: Verdict| {
        judged
            .judgement
            .gates
            .iter()
            .filter(|gate| gate.verdict == verdict)
            .count()
    };
    let lines = judged
        .judgement
        .gates
        .iter()
        .map(|gate| format!("{}  {}", gate.verdict.word(), escape(&gate.name)));
    Section {
        title: format!(
            "{}: {} pass, {} inconclusive, {} fail",
            judged.judgement.verdict.word(),
            count(Verdict::Pass),
            count(Verdict::Inconclusive),
            count(Verdict::Fail)
        ),
        lines: lines.collect(),
        ..Section::default()
    }
}

fn reasons(judged: &Judged<'_>) -> Section {
    let of = |gate: &GateReport| {
        let name = escape(&gate.name);
        let reasons = gate.reasons.iter();
        reasons
            .map(move |reason| format!("{name}: {}", reason.text))
            .collect::<Vec<_>>()
    };
    let mut lines: Vec<String> = judged.judgement.gates.iter().flat_map(of).collect();
    if judged.policy.pairs.is_none() {
        lines.push("the policy declares no number of pairs: looking again after more of them raises the rate of false PASS (`pairs = N` forbids it)".to_owned());
    }
    lines.extend(judged.judgement.placebo_mismatch.clone());
    let relocations = judged
        .comparison
        .findings
        .iter()
        .filter(|one| one.code == "relocation");
    lines.extend(relocations.map(|one| one.text.clone()));
    Section {
        title: "Why".to_owned(),
        lines,
        ..Section::default()
    }
}

fn power(judged: &Judged<'_>) -> Section {
    let of = |gate: &GateReport| {
        let pairs = |pairs: Option<usize>| or_none(pairs, |pairs| pairs.to_string());
        let open = gate.verdict == Verdict::Inconclusive;
        vec![
            escape(&gate.name),
            gate.n.to_string(),
            or_none(gate.minimum_detectable, |one| amount(one, Nanos(1))),
            or_none(gate.placebo_effect, |one| amount(one, Nanos(1))),
            if open {
                pairs(gate.pairs_needed.power_80)
            } else {
                NONE.to_owned()
            },
            if open {
                pairs(gate.pairs_needed.power_95)
            } else {
                NONE.to_owned()
            },
        ]
    };
    let rows = judged
        .judgement
        .gates
        .iter()
        .filter(|gate| gate.figure.is_some())
        .map(of);
    Section {
        title: "What these pairs can see".to_owned(),
        lines: Vec::new(),
        grid: grid(
            [
                "gate",
                "pairs",
                "minimum detectable",
                "placebo effect",
                "pairs needed (80 %)",
                "(95 %)",
            ],
            rows.collect(),
        ),
        notes: vec!["pairs needed: all in all, if the effect is as large as it looks".to_owned()],
    }
}

fn old(judged: &Judged<'_>) -> Section {
    let of = |gate: &GateReport| {
        let old = gate.old_style.as_ref()?;
        Some(vec![
            escape(&gate.name),
            format!("Δ{}", old.statistic.to_uppercase()),
            or_none(old.change, |one| {
                crate::report::numbers::signed_amount(one, Nanos(1))
            }),
            old.verdict.word().to_owned(),
            or_none(old.false_pass, percent),
            or_none(old.false_fail, percent),
            gate.verdict.word().to_owned(),
        ])
    };
    Section {
        title: "What a gate on point figures would say, and how often that is wrong".to_owned(),
        lines: Vec::new(),
        grid: grid(["gate", "figure", "change", "old verdict", "false pass", "false fail", "ours"], judged.judgement.gates.iter().filter_map(of).collect()),
        notes: vec!["rates by swapping labels within pairs; false pass: identical arms (superiority) or a change of exactly the margin (non-inferiority); false fail: identical arms".to_owned()],
    }
}

fn policy(judged: &Judged<'_>) -> Section {
    let policy = judged.policy;
    let rows = policy.gates.iter().map(|gate| {
        let limit = gate.limit;
        vec![
            escape(&gate.name),
            escape(&gate.metric),
            or_none(limit, |(statistic, _)| statistic.name().to_owned()),
            gate.kind.name().to_owned(),
            or_none(limit, |(_, margin)| margin.to_string()),
        ]
    });
    let mut lines = vec![match policy.pairs {
        Some(pairs) => format!("pairs declared: {pairs}"),
        None => "pairs declared: none".to_owned(),
    }];
    lines.extend(
        policy
            .control_stages
            .iter()
            .map(|one| format!("control stage {} within ±{}", escape(&one.name), one.margin)),
    );
    Section {
        title: "Effective policy".to_owned(),
        lines,
        grid: grid(
            ["gate", "metric", "statistic", "kind", "margin"],
            rows.collect(),
        ),
        notes: Vec::new(),
    }
}
