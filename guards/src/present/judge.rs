//! What the binary says about one rule.

use super::{PathClass, Presence};
use crate::layer::{Judgement, Subject};
use crate::packages::{Closure, Workspace, matching_known};
use crate::policy::{Denied, DenyRule, fold_name};
use std::collections::{BTreeMap, BTreeSet};

/// Crates that the standard library links copies of. Their names in a binary say
/// nothing unless the program's closure has them too.
const STD_OWN: [&str; 16] = [
    "addr2line",
    "adler2",
    "alloc",
    "cfg_if",
    "compiler_builtins",
    "core",
    "gimli",
    "hashbrown",
    "libc",
    "memchr",
    "miniz_oxide",
    "object",
    "rustc_demangle",
    "std",
    "std_detect",
    "unwind",
];

/// Examples of symbols that are written for one rule.
const EXAMPLES_MAX: usize = 3;

/// Judges rules against one binary and its closure.
pub(crate) struct Judge<'a> {
    pub(crate) presence: &'a Presence,
    pub(crate) workspace: &'a Workspace,
    pub(crate) closure: &'a Closure,
    /// Whether the closure was confirmed by the artifact stream.
    pub(crate) closure_is_certain: bool,
    /// Paths of code that the rules for symbols name, by the text of the rule.
    pub(crate) named: BTreeMap<&'a str, BTreeSet<String>>,
}

/// How the names of a rule's crates can be read in the binary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Names {
    /// These library names, folded, are the rule's crates.
    Decide(BTreeSet<String>),
    /// Versions inside and outside of the rule share the name.
    Ambiguous(BTreeSet<String>),
}

impl Judge<'_> {
    /// Judges one rule.
    pub(crate) fn judge(&self, rule: &DenyRule) -> Judgement {
        match &rule.what {
            Denied::Crate { .. } => self.judge_crate(rule),
            Denied::Symbol { pattern } => {
                if self.presence.symbols.is_none() {
                    return Judgement::inconclusive(
                        "it is stripped, and symbols have no other trace",
                    );
                }
                let found = self.named.get(pattern.text());
                let evidence = found
                    .into_iter()
                    .flatten()
                    .take(EXAMPLES_MAX)
                    .map(|path| format!("symbol `{path}`"));
                let evidence: Vec<String> = evidence.collect();
                if evidence.is_empty() {
                    Judgement::absent()
                } else {
                    let name = pattern.text().to_owned();
                    Judgement::from_subjects(vec![subject(name, evidence)])
                }
            }
        }
    }

    /// Whether the certain closure says that nothing of the rule is in the program.
    pub(crate) fn closure_excludes(&self, rule: &DenyRule) -> bool {
        self.closure_is_certain
            && matches!(rule.what, Denied::Crate { .. })
            && !matching_known(self.workspace, rule)
                .iter()
                .any(|package| self.is_foreign(&package.id))
    }

    fn is_foreign(&self, id: &String) -> bool {
        self.closure.packages.contains_key(id) && *id != self.closure.program
    }

    /// Library names by which symbols of the rule's crates go.
    pub(crate) fn names(&self, rule: &DenyRule) -> Names {
        let Denied::Crate { pattern, version } = &rule.what else {
            return Names::Decide(BTreeSet::new());
        };
        let own: BTreeSet<String> = self.own_names();
        let in_closure: BTreeSet<String> = matching_known(self.workspace, rule)
            .into_iter()
            .filter(|package| self.is_foreign(&package.id))
            .filter_map(|package| package.lib_name.as_deref().map(fold_name))
            .collect();
        let others: BTreeSet<String> = self
            .workspace
            .known
            .values()
            .filter(|package| self.is_foreign(&package.id))
            .filter(|package| package.answers_to(|name| pattern.matches(name)))
            .filter(|package| {
                !matching_known(self.workspace, rule)
                    .iter()
                    .any(|m| m.id == package.id)
            })
            .filter_map(|package| package.lib_name.as_deref().map(fold_name))
            .collect();
        if in_closure.intersection(&others).next().is_some() {
            return Names::Ambiguous(in_closure);
        }
        let mut names = in_closure;
        // Names that the closure does not know are a surprise worth finding.
        if let (Some(symbols), true) = (&self.presence.symbols, version.is_none()) {
            let roots = symbols.roots.keys().map(|root| fold_name(root));
            names.extend(roots.filter(|root| {
                pattern.matches(root) && !STD_OWN.contains(&root.as_str()) && !own.contains(root)
            }));
        }
        Names::Decide(names)
    }

    fn own_names(&self) -> BTreeSet<String> {
        let own = self.workspace.known.get(&self.closure.program);
        own.into_iter()
            .flat_map(|package| [Some(package.name.clone()), package.lib_name.clone()])
            .flatten()
            .map(|name| fold_name(&name))
            .collect()
    }

    fn judge_crate(&self, rule: &DenyRule) -> Judgement {
        let mut evidence = self.location_evidence(rule);
        let names = self.names(rule);
        if let Names::Decide(names) = &names {
            evidence.extend(self.symbol_evidence(names));
        }
        if !evidence.is_empty() {
            return Judgement::from_subjects(vec![subject(rule.label(), evidence)]);
        }
        if self.closure_excludes(rule) {
            return Judgement::absent();
        }
        let has_symbols = self.presence.symbols.is_some() && matches!(names, Names::Decide(_));
        match (has_symbols, !self.presence.locations.is_empty()) {
            (true, true) => Judgement::absent(),
            (true, false) => Judgement::inconclusive(
                "no symbol names it, but the binary has no panic locations to confirm that",
            ),
            (false, true) => Judgement::inconclusive(
                "no panic location names it, but there are no symbols, and code that cannot panic leaves no location",
            ),
            (false, false) => {
                Judgement::inconclusive("there are neither symbols nor panic locations")
            }
        }
    }

    fn location_evidence(&self, rule: &DenyRule) -> Vec<String> {
        self.presence
            .owners
            .iter()
            .filter(|(owner, _)| !matches!(owner.class, PathClass::Std | PathClass::Other))
            .filter(|(owner, _)| self.owner_is_denied(rule, owner))
            .map(|(_, found)| {
                format!(
                    "{} panic {} such as {}",
                    found.count,
                    if found.count == 1 {
                        "location"
                    } else {
                        "locations"
                    },
                    found.example
                )
            })
            .collect()
    }

    /// Whether code with this owner's paths is the rule's.
    pub(crate) fn owner_is_denied(&self, rule: &DenyRule, owner: &super::Owner) -> bool {
        let Denied::Crate { pattern, version } = &rule.what else {
            return false;
        };
        let is_program = self
            .workspace
            .known
            .get(&self.closure.program)
            .is_some_and(|own| own.name == owner.name);
        // A package may be denied by the name of its library.
        let by_library = || {
            self.workspace
                .known
                .values()
                .filter(|package| package.name == owner.name)
                .any(|package| package.answers_to(|name| pattern.matches(name)))
        };
        !is_program
            && (pattern.matches(&owner.name) || by_library())
            && match (version, &owner.version) {
                (Some(wanted), Some(version)) => wanted.matches(version),
                (Some(_), None) => false,
                (None, _) => true,
            }
    }

    fn symbol_evidence(&self, names: &BTreeSet<String>) -> Vec<String> {
        let Some(symbols) = &self.presence.symbols else {
            return Vec::new();
        };
        symbols
            .roots
            .iter()
            .filter(|(root, _)| names.contains(&fold_name(root)))
            .map(|(root, found)| {
                format!(
                    "{} symbols ({} bytes) name `{root}`, such as `{}`",
                    found.functions, found.bytes, found.example
                )
            })
            .collect()
    }
}

fn subject(name: String, evidence: Vec<String>) -> Subject {
    Subject {
        name,
        evidence,
        route: Vec::new(),
        more_routes: Vec::new(),
    }
}
