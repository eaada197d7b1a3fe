//! A comparison laid out in sections, before it is drawn as a table or Markdown.

use crate::report::layout::{Grid, Section};
use crate::report::numbers::{NONE, amount, counted, escape, or_none};
use crate::units::Nanos;

use super::effect::{Figured, in_unit};
use super::stages::{Presence, WindowChange};
use super::words::{figure, range};
use super::{Arm, Comparison, MetricChange, Remark};

/// Lays out the whole comparison.
#[must_use]
pub fn sections(comparison: &Comparison) -> Vec<Section> {
    let mut all = vec![
        remarks("Findings", &comparison.findings),
        remarks("Caveats", &comparison.caveats),
        arms(comparison),
        metrics(comparison),
        tails(comparison),
    ];
    all.extend(comparison.windows.iter().map(window));
    all.push(trust(comparison));
    all.push(controls(comparison));
    all.retain(|section| !section.lines.is_empty() || section.grid.is_some());
    all
}

fn remarks(title: &str, remarks: &[Remark]) -> Section {
    Section {
        title: title.to_owned(),
        lines: remarks.iter().map(|remark| remark.text.clone()).collect(),
        ..Section::default()
    }
}

fn arms(comparison: &Comparison) -> Section {
    let arm = |role: &str, arm: &Arm| {
        let versions: Vec<String> = arm.versions.iter().map(|one| escape(one)).collect();
        format!(
            "{role} {}: {}, {} failed, chains complete {}/{}; {}",
            escape(&arm.name),
            counted(arm.runs, "run"),
            arm.failed,
            arm.complete,
            arm.traced,
            if versions.is_empty() {
                "version unknown".to_owned()
            } else {
                versions.join(", ")
            }
        )
    };
    let pairing = &comparison.pairing;
    Section {
        title: format!(
            "{} against {}",
            escape(&comparison.candidate.name),
            escape(&comparison.control.name)
        ),
        lines: vec![
            arm("control", &comparison.control),
            arm("candidate", &comparison.candidate),
            format!(
                "{} by {}; control first in {}, candidate first in {}",
                counted(pairing.n, "pair"),
                pairing.by,
                pairing.control_first,
                pairing.candidate_first
            ),
        ],
        ..Section::default()
    }
}

fn cells<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.iter().map(|cell| (*cell).to_owned()).collect()
}

/// The interval, or a dash; why there is none is said once, in words.
fn ends(figured: &Figured) -> String {
    or_none(figured.interval, |ends| range(figured, ends))
}

fn p_value(p: Option<f64>) -> String {
    or_none(p, |p| {
        if p < 0.0005 {
            "< 0.001".to_owned()
        } else {
            format!("{p:.3}")
        }
    })
}

fn metrics(comparison: &Comparison) -> Section {
    let row = |metric: &MetricChange| {
        let effect = &metric.effect;
        let level = |value: Option<f64>| {
            or_none(value.and_then(|value| in_unit(effect.unit, value)), |one| {
                amount(one, Nanos(1))
            })
        };
        vec![
            escape(&metric.name),
            effect.differences.len().to_string(),
            level(effect.control.0),
            level(effect.candidate.0),
            figure(&effect.shift),
            ends(&effect.shift),
            ends(&effect.sign),
            p_value(metric.p_holm),
            effect.shift.reason.clone().unwrap_or_default(),
        ]
    };
    Section {
        title: "End to end, candidate − control".to_owned(),
        lines: Vec::new(),
        grid: Some(Grid {
            head: cells(["metric", "pairs", "control P50", "candidate P50", "shift", "95 % interval", "sign interval", "p (Holm)", ""]),
            rows: comparison.metrics.iter().map(row).collect(),
        }),
        notes: vec!["shift: Hodges–Lehmann of the differences within pairs; the sign interval of their median checks it without assuming symmetry".to_owned()],
    }
}

fn tails(comparison: &Comparison) -> Section {
    let row = |metric: &MetricChange| {
        let effect = &metric.effect;
        let level = |value: Option<f64>| {
            or_none(value.and_then(|value| in_unit(effect.unit, value)), |one| {
                amount(one, Nanos(1))
            })
        };
        vec![
            escape(&metric.name),
            figure(&effect.p50),
            ends(&effect.p50),
            level(effect.control.1),
            level(effect.candidate.1),
            figure(&effect.p95),
            ends(&effect.p95),
            effect.p95.reason.clone().unwrap_or_default(),
        ]
    };
    Section {
        title: "Change of P50 and P95".to_owned(),
        lines: Vec::new(),
        grid: Some(Grid {
            head: cells(["metric", "ΔP50", "95 % interval", "control P95", "candidate P95", "ΔP95", "95 % interval of ΔP95", "reason"]),
            rows: comparison.metrics.iter().map(row).collect(),
        }),
        notes: vec!["quantiles of type 7; intervals from order statistics of both arms, which do not use the pairs".to_owned()],
    }
}

fn window(window: &WindowChange) -> Section {
    let mut rows: Vec<Vec<String>> = window
        .stages
        .iter()
        .map(|stage| {
            let state = match stage.presence {
                Presence::Both => String::new(),
                Presence::Added => "added; its median".to_owned(),
                Presence::Removed => "removed; its median".to_owned(),
            };
            vec![
                escape(&stage.name),
                stage.n_control.to_string(),
                stage.n_candidate.to_string(),
                figure(&stage.shift),
                ends(&stage.shift),
                p_value(stage.p_holm),
                if state.is_empty() {
                    stage.shift.reason.clone().unwrap_or_default()
                } else {
                    state
                },
            ]
        })
        .collect();
    let n = window.n_pairs.to_string();
    let reason = window.total.reason.clone().unwrap_or_default();
    rows.push(vec![
        "total".to_owned(),
        n.clone(),
        n,
        figure(&window.total),
        ends(&window.total),
        NONE.to_owned(),
        reason,
    ]);
    Section {
        title: format!(
            "{}, candidate − control ({})",
            escape(&window.title),
            counted(window.n_pairs, "pair")
        ),
        lines: Vec::new(),
        grid: Some(Grid {
            head: cells([
                "stage",
                "in control",
                "in candidate",
                "shift",
                "95 % interval",
                "p (Holm)",
                "",
            ]),
            rows,
        }),
        notes: Vec::new(),
    }
}

fn trust(comparison: &Comparison) -> Section {
    let row = |metric: &MetricChange| {
        let effect = &metric.effect;
        let found = effect.autocorrelation;
        vec![
            escape(&metric.name),
            figure(&effect.order),
            ends(&effect.order),
            figure(&effect.drift),
            ends(&effect.drift),
            found.map_or_else(|_| NONE.to_owned(), |one| format!("{:.2}", one.r)),
            found.map_or_else(|_| NONE.to_owned(), |one| p_value(Some(one.p))),
            effect.zeros.to_string(),
        ]
    };
    Section {
        title: "Order, drift and what they leave".to_owned(),
        lines: Vec::new(),
        grid: Some(Grid {
            head: cells(["metric", "order", "95 % interval", "drift", "95 % interval of drift", "autocorrelation", "p", "equal pairs"]),
            rows: comparison.metrics.iter().map(row).collect(),
        }),
        notes: vec!["order: half of the difference between pairs of the two orders; drift: from the first pair to the last".to_owned()],
    }
}

fn controls(comparison: &Comparison) -> Section {
    let rows: Vec<Vec<String>> = comparison
        .control_stages
        .iter()
        .map(|stage| {
            vec![
                escape(&stage.name),
                or_none(stage.margin, |one| amount(one, Nanos(1))),
                figure(&stage.shift),
                or_none(stage.shift.bounds, |ends| range(&stage.shift, ends)),
                if stage.equivalent {
                    "stayed".to_owned()
                } else {
                    "UNPROVEN".to_owned()
                },
            ]
        })
        .collect();
    Section {
        title: "Control stages".to_owned(),
        lines: Vec::new(),
        grid: (!rows.is_empty()).then(|| Grid {
            head: cells(["stage", "margin", "shift", "90 % interval", "role"]),
            rows,
        }),
        notes: Vec::new(),
    }
}
