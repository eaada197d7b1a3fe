//! Which runs are compared with which: the two arms, their pairs, and everything
//! that forbids a comparison.
//!
//! A pair is one run of each arm, made one after the other. Runs without a
//! partner are listed, never dropped in silence, and what must not be pooled is
//! refused in words.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use super::facts::{Facts, RunFacts};

/// Names of unpaired runs that a sentence spells out.
const NAMED_MAX: usize = 5;

/// How runs find their partners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairBy {
    /// By the pair that the traces name.
    Attribute,
    /// Neighbours in time, when they are of different arms.
    StartTime,
}

impl PairBy {
    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Attribute => "attribute",
            Self::StartTime => "start-time",
        }
    }
}

/// Which arms are compared, and how their runs are paired.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Cohort that is compared with.
    pub control: Option<String>,
    /// Cohort that is compared.
    pub candidate: Option<String>,
    /// `None`: by attribute.
    pub pair_by: Option<PairBy>,
}

/// Why two arms cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// No run was read.
    #[error("no runs to compare\nhint: give the folder that `measure pair` wrote")]
    NoRuns,
    /// One cohort only.
    #[error(
        "all {n} runs are of one arm, `{arm}`: there is nothing to compare with\nhint: give both sets with --control-files and --candidate-files"
    )]
    OneArm {
        /// Its name.
        arm: String,
        /// Its runs.
        n: usize,
    },
    /// More than two cohorts and no choice.
    #[error("the runs are of {n} arms: {arms}\nhint: choose two with --control and --candidate")]
    ManyArms {
        /// How many.
        n: usize,
        /// Their names.
        arms: String,
    },
    /// A chosen arm has no runs.
    #[error("no run is of arm `{arm}`\nhint: the arms are {arms}")]
    UnknownArm {
        /// The name.
        arm: String,
        /// Names that there are.
        arms: String,
    },
    /// Control and candidate are one arm.
    #[error(
        "control and candidate are the same arm, `{arm}`: it would be compared with itself\nhint: `measure aa` makes two arms of one program"
    )]
    SameArm {
        /// Its name.
        arm: String,
    },
    /// One run in both sets.
    #[error(
        "run `{run}` is in both arms: the same files were given twice\nhint: give each arm its own files"
    )]
    SharedRun {
        /// The run.
        run: String,
    },
    /// Runs of several hosts, or of several boots of one.
    #[error(
        "the runs come from {n} hosts or boots and are not pooled: {hosts}\nhint: what differs between hosts hides what differs between arms; compare each by itself"
    )]
    PooledHosts {
        /// How many.
        n: usize,
        /// What they are called.
        hosts: String,
    },
    /// Runs of several versions in one arm.
    #[error(
        "arm `{arm}` mixes versions: {versions}\nhint: an arm is one program; give the runs of one version"
    )]
    MixedVersions {
        /// The arm.
        arm: String,
        /// The versions.
        versions: String,
    },
    /// Runs of several scenarios in one arm.
    #[error("arm `{arm}` mixes scenarios: {scenarios}\nhint: compare each scenario by itself")]
    MixedScenarios {
        /// The arm.
        arm: String,
        /// The scenarios.
        scenarios: String,
    },
    /// No trace names a pair.
    #[error(
        "the runs name no pairs\nhint: if the arms alternated, --pair-by start-time makes pairs of neighbours"
    )]
    NoPairs,
    /// Every run lost its partner.
    #[error("no run of `{control}` has a partner in `{candidate}`: {why}")]
    NoPartners {
        /// The control.
        control: String,
        /// The candidate.
        candidate: String,
        /// The first reasons.
        why: String,
    },
    /// Two sets that two models describe.
    #[error(
        "the sets are read by two models, {control} and {candidate}\nhint: name one with --model"
    )]
    TwoModels {
        /// Of the control.
        control: String,
        /// Of the candidate.
        candidate: String,
    },
}

/// Which run of a pair went first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The control.
    ControlFirst,
    /// The candidate.
    CandidateFirst,
}

/// A pair, by places in [`Facts::runs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Run of the control.
    pub control: usize,
    /// Run of the candidate.
    pub candidate: usize,
    /// Which went first.
    pub order: Order,
}

/// A run without a partner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unpaired {
    /// Its name.
    pub run: String,
    /// Why it has none.
    pub reason: String,
}

/// The arms and their pairs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pairing {
    /// Name of the control.
    pub control: String,
    /// Name of the candidate.
    pub candidate: String,
    /// How partners were found.
    pub by: PairBy,
    /// Pairs, by start of their first run.
    pub pairs: Vec<Pair>,
    /// Runs of either arm without a partner.
    pub unpaired: Vec<Unpaired>,
}

/// Chooses the arms, refuses what must not be compared, and pairs their runs.
///
/// # Errors
/// [`Refusal`].
pub fn pair(facts: &Facts, choice: &Choice) -> Result<Pairing, Refusal> {
    let (control, candidate) = arms(facts, choice)?;
    let of = |arm: &str| -> Vec<usize> {
        let runs = facts.runs.iter().enumerate();
        runs.filter(|(_, run)| run.cohort == arm)
            .map(|(place, _)| place)
            .collect()
    };
    let (controls, candidates) = (of(&control), of(&candidate));
    refuse_shared(facts, &controls, &candidates)?;
    refuse_pooled(facts, [(&control, &controls), (&candidate, &candidates)])?;
    let named = |places: &[usize]| places.iter().any(|place| facts.runs[*place].pair.is_some());
    let by = match choice.pair_by {
        Some(by) => by,
        None if named(&controls) || named(&candidates) => PairBy::Attribute,
        None => return Err(Refusal::NoPairs),
    };
    let (mut pairs, unpaired) = match by {
        PairBy::Attribute => by_attribute(facts, &controls, &candidates),
        PairBy::StartTime => by_start(facts, &controls, &candidates),
    };
    if pairs.is_empty() {
        let reasons = unpaired
            .iter()
            .take(NAMED_MAX)
            .map(|one| format!("{}: {}", one.run, one.reason));
        let why = reasons.collect::<Vec<_>>().join("; ");
        return Err(Refusal::NoPartners {
            control,
            candidate,
            why,
        });
    }
    let start = |pair: &Pair| {
        let (a, b) = (&facts.runs[pair.control], &facts.runs[pair.candidate]);
        (a.start.min(b.start), pair.control)
    };
    pairs.sort_by_key(start);
    Ok(Pairing {
        control,
        candidate,
        by,
        pairs,
        unpaired,
    })
}

fn arms(facts: &Facts, choice: &Choice) -> Result<(String, String), Refusal> {
    let names = facts.cohorts.join(", ");
    if facts.runs.is_empty() {
        return Err(Refusal::NoRuns);
    }
    let known = |arm: &String| {
        let unknown = || Refusal::UnknownArm {
            arm: arm.clone(),
            arms: names.clone(),
        };
        facts
            .cohorts
            .contains(arm)
            .then(|| arm.clone())
            .ok_or_else(unknown)
    };
    let other = |arm: &String| {
        let others: Vec<&String> = facts.cohorts.iter().filter(|one| *one != arm).collect();
        match others.as_slice() {
            [only] => Ok((*only).clone()),
            [] => Err(Refusal::OneArm {
                arm: arm.clone(),
                n: facts.runs.len(),
            }),
            _ => Err(Refusal::ManyArms {
                n: facts.cohorts.len(),
                arms: names.clone(),
            }),
        }
    };
    let (control, candidate) = match (&choice.control, &choice.candidate) {
        (Some(control), Some(candidate)) => (known(control)?, known(candidate)?),
        (Some(control), None) => (known(control)?, other(control)?),
        (None, Some(candidate)) => (other(candidate)?, known(candidate)?),
        (None, None) => {
            let first = facts.cohorts.first().cloned().unwrap_or_default();
            (first.clone(), other(&first)?)
        }
    };
    if control == candidate {
        return Err(Refusal::SameArm { arm: control });
    }
    Ok((control, candidate))
}

/// One run cannot be its own partner: it is told by when it began, to the
/// nanosecond, and by its figures.
fn refuse_shared(facts: &Facts, controls: &[usize], candidates: &[usize]) -> Result<(), Refusal> {
    let key = |place: &usize| {
        let run = &facts.runs[*place];
        let figures = run.figures.iter().map(|one| one.map(f64::to_bits));
        (run.start, figures.collect::<Vec<_>>())
    };
    let known: BTreeSet<_> = controls.iter().map(key).collect();
    let shared = candidates.iter().find(|place| known.contains(&key(place)));
    shared.map_or(Ok(()), |place| {
        let run = facts.runs[*place].id.clone();
        Err(Refusal::SharedRun { run })
    })
}

fn refuse_pooled(facts: &Facts, arms: [(&String, &Vec<usize>); 2]) -> Result<(), Refusal> {
    let join = |names: BTreeSet<&str>| names.into_iter().collect::<Vec<_>>().join("; ");
    if facts.hosts.len() > 1 {
        let hosts = join(facts.hosts.iter().map(String::as_str).collect());
        return Err(Refusal::PooledHosts {
            n: facts.hosts.len(),
            hosts,
        });
    }
    for (arm, places) in arms {
        let runs = || places.iter().map(|place| &facts.runs[*place]);
        // A program that is not the daemon's own may be absent from a failed run.
        let mut by_service: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for version in runs().flat_map(|run| &run.versions) {
            let service = version.rsplit_once(' ').map_or("", |(service, _)| service);
            by_service.entry(service).or_default().insert(version);
        }
        if let Some(versions) = by_service.into_values().find(|versions| versions.len() > 1) {
            let versions = join(versions);
            return Err(Refusal::MixedVersions {
                arm: arm.clone(),
                versions,
            });
        }
        // Two arms may differ in their scenario; that is then what is compared.
        let scenarios: BTreeSet<&str> = runs().filter_map(|run| run.scenario.as_deref()).collect();
        if scenarios.len() > 1 {
            let scenarios = join(scenarios);
            return Err(Refusal::MixedScenarios {
                arm: arm.clone(),
                scenarios,
            });
        }
    }
    Ok(())
}

fn order(facts: &Facts, control: usize, candidate: usize) -> Order {
    if facts.runs[control].start <= facts.runs[candidate].start {
        Order::ControlFirst
    } else {
        Order::CandidateFirst
    }
}

fn by_attribute(
    facts: &Facts,
    controls: &[usize],
    candidates: &[usize],
) -> (Vec<Pair>, Vec<Unpaired>) {
    let mut halves: BTreeMap<i64, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
    let mut unpaired = Vec::new();
    let mut alone = |run: &RunFacts, reason: String| {
        let run = run.id.clone();
        unpaired.push(Unpaired { run, reason });
    };
    for (places, is_control) in [(controls, true), (candidates, false)] {
        for place in places {
            let Some(pair) = facts.runs[*place].pair else {
                alone(&facts.runs[*place], "it names no pair".to_owned());
                continue;
            };
            let halves = halves.entry(pair).or_default();
            let own = if is_control {
                &mut halves.0
            } else {
                &mut halves.1
            };
            own.push(*place);
        }
    }
    let mut pairs = Vec::new();
    for (pair, (control, candidate)) in halves {
        let reason = match (control.as_slice(), candidate.as_slice()) {
            ([control], [candidate]) => {
                let order = order(facts, *control, *candidate);
                pairs.push(Pair {
                    control: *control,
                    candidate: *candidate,
                    order,
                });
                continue;
            }
            ([], _) => format!("pair {pair} has no run of the control"),
            (_, []) => format!("pair {pair} has no run of the candidate"),
            (control, candidate) => format!(
                "pair {pair} has {} runs of the control and {} of the candidate",
                control.len(),
                candidate.len()
            ),
        };
        for place in control.iter().chain(&candidate) {
            alone(&facts.runs[*place], reason.clone());
        }
    }
    (pairs, unpaired)
}

/// Neighbours of different arms are a pair; a run whose successor is of its own
/// arm has lost its partner.
fn by_start(facts: &Facts, controls: &[usize], candidates: &[usize]) -> (Vec<Pair>, Vec<Unpaired>) {
    let mut all: Vec<(usize, bool)> = controls.iter().map(|place| (*place, true)).collect();
    all.extend(candidates.iter().map(|place| (*place, false)));
    all.sort_by_key(|(place, _)| (facts.runs[*place].start, *place));
    let (mut pairs, mut unpaired) = (Vec::new(), Vec::new());
    let mut rest = all.as_slice();
    while let [(first, is_control), after @ ..] = rest {
        let partner = after.first().filter(|(_, other)| other != is_control);
        let Some((second, _)) = partner else {
            let next = after
                .first()
                .map_or("no run follows it", |_| "the next run is of its own arm");
            let run = facts.runs[*first].id.clone();
            unpaired.push(Unpaired {
                run,
                reason: next.to_owned(),
            });
            rest = after;
            continue;
        };
        let (control, candidate) = if *is_control {
            (*first, *second)
        } else {
            (*second, *first)
        };
        let order = if *is_control {
            Order::ControlFirst
        } else {
            Order::CandidateFirst
        };
        pairs.push(Pair {
            control,
            candidate,
            order,
        });
        rest = &after[1..];
    }
    (pairs, unpaired)
}
