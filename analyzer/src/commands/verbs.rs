//! The verbs themselves.

use std::ffi::OsString;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use clap::Parser;
use serde::Serialize;

use crate::app::{Refusal, done, usage};
use crate::compare::control::ControlRule;
use crate::compare::pairing::Choice;
use crate::compare::{self, Comparison};
use crate::exit;
use crate::gate::layout::{self, Judged};
use crate::gate::placebo::{Placebo, PlaceboError};
use crate::gate::policy::Policy;
use crate::gate::{Verdict, judge, plan};
use crate::output;
use crate::report::layout::Section;
use crate::report::render::{Format, draw_sections, json};

use super::args::{Arms, CompareArgs, GateArgs, Out, PlaceboArgs, PlanArgs};
use super::read::{Call, read, unfit};

/// Names of the verbs.
pub(crate) const NAMES: [&str; 4] = ["compare", "gate", "placebo", "plan"];

/// Runs the verb that `words[1]` names.
pub(crate) fn run(
    words: &[OsString],
    stdin: &mut dyn Read,
    stdout: &mut dyn Write,
) -> Result<u8, Refusal> {
    let verb = words.get(1).and_then(|word| word.to_str()).unwrap_or("");
    let command = words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let own = words.get(1..).unwrap_or_default();
    let call = Call {
        command,
        stdin,
        output: None,
        beside: Vec::new(),
    };
    macro_rules! parsed {
        ($args:ty, $verb:expr) => {
            match <$args>::try_parse_from(own) {
                Ok(args) => $verb(&args, call, stdout),
                Err(error) => usage(&error, stdout),
            }
        };
    }
    match verb {
        "compare" => parsed!(CompareArgs, compare_verb),
        "gate" => parsed!(GateArgs, gate_verb),
        "placebo" => parsed!(PlaceboArgs, placebo_verb),
        _ => parsed!(PlanArgs, plan_verb),
    }
}

fn compare_verb(
    args: &CompareArgs,
    mut call: Call<'_>,
    stdout: &mut dyn Write,
) -> Result<u8, Refusal> {
    call.output.clone_from(&args.out.output);
    let compared = compared(&args.arms, &args.control_stage, &mut call)?;
    write(
        &args.out,
        &compared,
        || compare::layout::sections(&compared),
        ("Comparison", Some(&compared)),
        stdout,
    )?;
    Ok(exit::OK)
}

fn gate_verb(args: &GateArgs, mut call: Call<'_>, stdout: &mut dyn Write) -> Result<u8, Refusal> {
    let policy = Policy::read(&args.policy)?;
    let placebo = args.placebo.as_deref().or(policy.placebo.as_deref());
    call.output.clone_from(&args.out.output);
    call.beside = [Some(args.policy.as_path()), placebo]
        .into_iter()
        .flatten()
        .map(Path::to_owned)
        .collect();
    let placebo = placebo.map(Placebo::read).transpose()?;
    let comparison = compared(&args.arms, &policy.control_stages, &mut call)?;
    let judgement = judge(&policy, &comparison, placebo.as_ref())?;
    let judged = Judged {
        policy: &policy,
        comparison: &comparison,
        placebo: placebo.as_ref(),
        judgement: &judgement,
    };
    write(
        &args.out,
        &judged,
        || layout::sections(&judged),
        ("Gate", Some(&comparison)),
        stdout,
    )?;
    Ok(match judgement.verdict {
        Verdict::Pass => exit::OK,
        Verdict::Fail => exit::GATE_FAILED,
        Verdict::Inconclusive => exit::CANNOT_JUDGE,
    })
}

fn placebo_verb(
    args: &PlaceboArgs,
    mut call: Call<'_>,
    stdout: &mut dyn Write,
) -> Result<u8, Refusal> {
    call.output.clone_from(&args.output);
    let comparison = compared(&args.arms, &[], &mut call)?;
    let placebo = Placebo::of(&comparison).map_err(|error| Refusal {
        code: match error {
            PlaceboError::Different { .. } => exit::CANNOT_JUDGE,
            _ => exit::USAGE,
        },
        text: error.to_string(),
    })?;
    let out = Out {
        format: crate::cli::FormatArg::Json,
        output: args.output.clone(),
    };
    write(&out, &placebo, Vec::new, ("", None), stdout)?;
    Ok(exit::OK)
}

fn plan_verb(args: &PlanArgs, mut call: Call<'_>, stdout: &mut dyn Write) -> Result<u8, Refusal> {
    call.output.clone_from(&args.out.output);
    if args.effect.value <= 0.0 {
        return Err(Refusal {
            code: exit::USAGE,
            text: "--effect: no number of pairs sees an effect of 0\nhint: give the least effect that matters, such as 1ms".to_owned(),
        });
    }
    let pilot = compared(&args.arms, &[], &mut call)?;
    let plan = plan::plan(&pilot, args.effect);
    write(
        &args.out,
        &plan,
        || plan::sections(&plan),
        ("Plan", None),
        stdout,
    )?;
    Ok(exit::OK)
}

fn compared(
    arms: &Arms,
    rules: &[ControlRule],
    call: &mut Call<'_>,
) -> Result<Comparison, Refusal> {
    let facts = read(arms, call)?;
    let choice = Choice {
        control: arms.control.clone(),
        candidate: arms.candidate.clone(),
        pair_by: arms.pair_by.map(Into::into),
    };
    compare::compare(&facts, &choice, rules).map_err(|error| unfit(&error))
}

fn write(
    out: &Out,
    document: &impl Serialize,
    sections: impl Fn() -> Vec<Section>,
    page: (&str, Option<&Comparison>),
    stdout: &mut dyn Write,
) -> Result<(), Refusal> {
    let draw = |to: &mut dyn Write| -> io::Result<()> {
        match out.format.into() {
            Format::Json => json(document, to),
            Format::Html => compare::html::page(page.0, &sections(), page.1, to),
            format => draw_sections(&sections(), format, to),
        }
    };
    match &out.output {
        None => {
            let mut to = BufWriter::new(stdout);
            let written = draw(&mut to).and_then(|()| to.flush());
            done(written, "standard output")?;
        }
        Some(path) => {
            done(output::write(path, draw), &path.display().to_string())?;
        }
    }
    Ok(())
}
