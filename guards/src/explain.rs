//! `guard explain`: where a crate or a function stands on each layer of each path.
//!
//! Asks the layers the same question as `guard check` does for a rule, once with the
//! policy's lazy edges and once without, and decides nothing.

use crate::app::{AppError, chosen_paths, need_evidence};
use crate::check::{CheckOptions, PathReport, check_path, inspect};
use crate::cli::ExplainArgs;
use crate::exit;
use crate::finding::Code;
use crate::layer::{Answer, Judgement, Layer};
use crate::packages::Routes;
use crate::policy::{
    Date, Denied, DenyRule, Lazy, NamePattern, StartPath, SymbolPattern, Unmatched,
};
use crate::reachable::Source;
use std::io::Write;

/// Explains a crate, a path of code, or the name of a finding.
///
/// # Errors
/// When it is none of these, or there is no build to look at.
pub(crate) fn run(args: &ExplainArgs, out: &mut dyn Write) -> Result<u8, AppError> {
    if let Some(code) = Code::ALL.iter().find(|code| code.name() == args.what) {
        writeln!(out, "{}: {}", code.name(), code.description())?;
        return Ok(exit::OK);
    }
    let rule = rule_for(&args.what)?;
    for path in chosen_paths(&args.common)? {
        let evidence = need_evidence(&args.common, &path)?;
        let seen = inspect(&evidence, &path.program).map_err(|source| AppError::Inspect {
            path: path.name.clone(),
            source,
        })?;
        let asked = |lazy: bool| -> PathReport {
            let question = question(&path, &rule, lazy);
            check_path(&question, &evidence, &seen, OPTIONS)
        };
        let cut = asked(true);
        writeln!(
            out,
            "{} on path {} ({})",
            rule.label(),
            path.name,
            cut.program
        )?;
        write_unknown_name(&cut, out)?;
        for layer in &cut.layers {
            for (_, judgement) in &layer.rules {
                write_judgement(layer.layer.name(), judgement, out)?;
            }
        }
        let has_calls = path
            .lazy
            .iter()
            .any(|edge| matches!(edge.what, Lazy::Call { .. }));
        if has_calls && answer(&cut) == Some(Answer::Absent) {
            let whole = asked(false);
            if let Some((_, judgement)) = reachable_rule(&whole)
                && judgement.answer == Answer::Found
            {
                write_judgement("without the lazy edges", judgement, out)?;
            }
        }
        writeln!(out)?;
    }
    Ok(exit::OK)
}

/// No edge expires for a question.
const OPTIONS: CheckOptions = CheckOptions {
    today: Date::FIRST,
    routes: Routes::Shortest,
    source: Source::Decoded,
};

fn rule_for(what: &str) -> Result<DenyRule, AppError> {
    let denied = if what.contains("::") {
        SymbolPattern::parse(what).map(|pattern| Denied::Symbol { pattern })
    } else {
        NamePattern::parse(what).map(|pattern| Denied::Crate {
            pattern,
            version: None,
        })
    };
    let what = denied.ok_or_else(|| AppError::Usage {
        message: format!(
            "`{what}` is no package name, no path like `crate::module::*`, and no finding"
        ),
    })?;
    Ok(DenyRule {
        what,
        reason: None,
        unmatched: Unmatched::Fails,
    })
}

/// A name that nothing has is absent everywhere, and probably mistyped.
fn write_unknown_name(report: &PathReport, out: &mut dyn Write) -> std::io::Result<()> {
    let unknown = report
        .findings
        .iter()
        .filter(|finding| finding.code == Code::RuleUnmatched);
    for line in unknown.flat_map(|finding| &finding.evidence) {
        writeln!(out, "  note: {line}")?;
    }
    Ok(())
}

/// The path with one rule, at the innermost level, with or without its lazy edges.
fn question(path: &StartPath, rule: &DenyRule, lazy: bool) -> StartPath {
    let mut question = path.clone();
    question.deny = vec![rule.clone()];
    question.level = Layer::Reachable;
    if !lazy {
        question.lazy.clear();
    }
    question
}

fn reachable_rule(report: &PathReport) -> Option<&(String, Judgement)> {
    report
        .layers
        .iter()
        .find(|layer| layer.layer == Layer::Reachable)
        .and_then(|layer| layer.rules.first())
}

fn answer(report: &PathReport) -> Option<Answer> {
    reachable_rule(report).map(|(_, judgement)| judgement.answer)
}

fn write_judgement(title: &str, judgement: &Judgement, out: &mut dyn Write) -> std::io::Result<()> {
    write!(out, "  {title}: {}", judgement.answer.name())?;
    if !judgement.reason.is_empty() {
        write!(out, " ({})", judgement.reason)?;
    }
    writeln!(out)?;
    for subject in &judgement.subjects {
        writeln!(out, "    {}", subject.name)?;
        for line in &subject.evidence {
            writeln!(out, "      {line}")?;
        }
        for (index, hop) in subject.route.iter().enumerate() {
            let arrow = if index == 0 { "   " } else { "-> " };
            writeln!(out, "      {arrow}{hop}")?;
        }
    }
    Ok(())
}
