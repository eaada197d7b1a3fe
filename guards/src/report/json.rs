//! The report for programs: `coldpath.guard/1`.
//!
//! The same inputs give the same bytes: keys are sorted, nothing says when or where
//! the guard ran.

use crate::check::{LayerReport, PathReport, Report};
use crate::finding::{Finding, Severity};
use serde_json::{Value, json};
use std::io::{self, Write};

/// Name and version of the format.
pub(crate) const SCHEMA: &str = "coldpath.guard/1";

/// Writes the report and a line end.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write_json(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let value = json!({
        "schema": SCHEMA,
        "version": env!("CARGO_PKG_VERSION"),
        "policy": report.policy,
        "verdict": report.verdict().name(),
        "paths": report.paths.iter().map(path_value).collect::<Vec<_>>(),
    });
    serde_json::to_writer_pretty(&mut *out, &value)?;
    writeln!(out)
}

fn path_value(path: &PathReport) -> Value {
    let inputs: Vec<Value> = path
        .inputs
        .iter()
        .map(|input| {
            json!({
                "role": input.role,
                "name": input.file.name,
                "bytes": input.file.bytes,
                "sha256": input.file.sha256,
                "build_id": input.file.build_id,
            })
        })
        .collect();
    json!({
        "name": path.name,
        "program": path.program,
        "level": path.level.name(),
        "verdict": path.verdict().name(),
        "inputs": inputs,
        "layers": path.layers.iter().map(layer_value).collect::<Vec<_>>(),
        "findings": path.findings.iter().map(finding_value).collect::<Vec<_>>(),
    })
}

fn layer_value(layer: &LayerReport) -> Value {
    let rules: Vec<Value> = layer
        .rules
        .iter()
        .map(|(rule, judgement)| {
            let subjects: Vec<&str> = judgement.subjects.iter().map(|s| s.name.as_str()).collect();
            json!({
                "rule": rule,
                "answer": judgement.answer.name(),
                "subjects": subjects,
                "reason": (!judgement.reason.is_empty()).then_some(&judgement.reason),
            })
        })
        .collect();
    json!({ "layer": layer.layer.name(), "saw": layer.saw, "rules": rules })
}

fn finding_value(finding: &Finding) -> Value {
    json!({
        "code": finding.code.name(),
        "severity": match finding.code.severity() {
            Severity::Violation => "violation",
            Severity::CannotJudge => "cannot-judge",
            Severity::Note => "note",
        },
        "description": finding.code.description(),
        "layer": finding.layer.map(crate::layer::Layer::name),
        "subject": finding.subject,
        "rule": finding.rule,
        "evidence": finding.evidence,
        "route": finding.route,
        "more_routes": finding.more_routes,
        "hint": finding.hint,
    })
}
