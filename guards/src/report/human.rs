//! The report for people: verdict first, then each finding with its route and what to do.

use crate::check::{PathReport, Report};
use crate::finding::{Finding, Severity};
use crate::layer::Answer;
use std::io::{self, Write};

/// Writes the report.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write_human(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    for path in &report.paths {
        write_path(path, out)?;
    }
    let failed = report
        .paths
        .iter()
        .filter(|path| path.verdict() != crate::check::Verdict::Ok)
        .count();
    writeln!(
        out,
        "guard: {} ({} of {} paths of {} without objection)",
        report.verdict().name(),
        report.paths.len() - failed,
        report.paths.len(),
        report.policy
    )
}

fn write_path(path: &PathReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "path {}: {} at level {} ({})",
        path.name,
        path.verdict().name(),
        path.level.name(),
        path.program
    )?;
    for input in path.inputs.iter().take(2) {
        let digest = input.file.sha256.get(..12).unwrap_or(&input.file.sha256);
        writeln!(
            out,
            "  {} {}: {} bytes, sha256 {digest}…, build-id {}",
            input.role,
            input.file.name,
            input.file.bytes,
            input.file.build_id.as_deref().unwrap_or("none")
        )?;
    }
    for layer in &path.layers {
        let count = |answer| {
            let rules = layer.rules.iter();
            rules
                .filter(|(_, judgement)| judgement.answer == answer)
                .count()
        };
        writeln!(
            out,
            "  {:<9}  {} found, {} absent, {} inconclusive; saw {}",
            layer.layer.name(),
            count(Answer::Found),
            count(Answer::Absent),
            count(Answer::Inconclusive),
            layer.saw.join("; ")
        )?;
    }
    for finding in &path.findings {
        write_finding(finding, out)?;
    }
    writeln!(out)
}

fn write_finding(finding: &Finding, out: &mut dyn Write) -> io::Result<()> {
    let severity = match finding.code.severity() {
        Severity::Violation => "violation",
        Severity::CannotJudge => "cannot judge",
        Severity::Note => "note",
    };
    writeln!(
        out,
        "\n  {severity}[{}] {}",
        finding.code.name(),
        finding.subject
    )?;
    writeln!(out, "    {}", finding.code.description())?;
    if let Some(layer) = finding.layer {
        write!(out, "    layer {}", layer.name())?;
        match &finding.rule {
            Some(rule) => writeln!(out, ", rule {rule}")?,
            None => writeln!(out)?,
        }
    } else if let Some(rule) = &finding.rule {
        writeln!(out, "    rule {rule}")?;
    }
    for line in &finding.evidence {
        writeln!(out, "    evidence: {line}")?;
    }
    write_route("route", &finding.route, out)?;
    for (index, route) in finding.more_routes.iter().enumerate() {
        write_route(&format!("route {}", index + 2), route, out)?;
    }
    writeln!(out, "    hint: {}", finding.hint)
}

fn write_route(title: &str, route: &[String], out: &mut dyn Write) -> io::Result<()> {
    if route.is_empty() {
        return Ok(());
    }
    writeln!(out, "    {title}:")?;
    for (index, hop) in route.iter().enumerate() {
        let arrow = if index == 0 { "   " } else { "-> " };
        writeln!(out, "      {arrow}{hop}")?;
    }
    Ok(())
}
