//! From the policy as written to the policy as meant; every refusal is a sentence.

use super::file::{DenyEntry, LazyEntry, PathEntry, PolicyFile, UnmatchedEntry};
use super::{
    Date, DefaultFeatures, Denied, DenyRule, Lazy, LazyEdge, NamePattern, Policy, PolicyError,
    Program, StartPath, SymbolPattern, Unmatched,
};
use crate::layer::Layer;
use semver::VersionReq;
use std::collections::BTreeSet;
use std::path::Path;

/// The only schema that there is.
const SCHEMA: u32 = 1;

/// Reads `text` as the policy of `file`, which only names it in errors.
///
/// # Errors
/// When it is not TOML of this schema or contradicts itself.
pub(crate) fn parse(file: &Path, text: &str) -> Result<Policy, PolicyError> {
    let syntax = |message: String| PolicyError::Syntax {
        file: file.to_owned(),
        message,
    };
    let read: PolicyFile =
        toml::from_str(text).map_err(|error| syntax(error.to_string().trim_end().to_owned()))?;
    if read.schema != SCHEMA {
        return Err(syntax(format!(
            "schema {} is not known\nhint: this guard reads schema {SCHEMA}",
            read.schema
        )));
    }
    if read.path.is_empty() {
        return Err(syntax("has no [[path]], so it guards nothing".to_owned()));
    }
    let mut names = BTreeSet::new();
    let mut paths = Vec::new();
    for entry in read.path {
        let name = entry.name.clone();
        let path = if names.insert(name.clone()) {
            start_path(entry)
        } else {
            Err("two paths have this name".to_owned())
        };
        paths.push(path.map_err(|message| PolicyError::Invalid {
            file: file.to_owned(),
            path: name,
            message,
        })?);
    }
    Ok(Policy { paths })
}

fn start_path(entry: PathEntry) -> Result<StartPath, String> {
    if entry.name.is_empty() || entry.package.is_empty() {
        return Err("`name` and `package` must not be empty".to_owned());
    }
    let programs = [Some(&entry.package), entry.bin.as_ref()];
    if let Some(name) = programs.into_iter().flatten().find(|n| !names_program(n)) {
        return Err(format!("`{name}` is not a name of a package or program"));
    }
    if entry.roots.iter().any(String::is_empty) {
        return Err("a root is empty; leave `roots` out to start at the entry".to_owned());
    }
    if entry.deny.is_empty() {
        return Err("`deny` is empty, so the path guards nothing".to_owned());
    }
    let deny = entry
        .deny
        .iter()
        .map(|rule| deny_rule(rule, entry.level))
        .collect::<Result<Vec<_>, _>>()?;
    let lazy = entry
        .lazy
        .iter()
        .map(lazy_edge)
        .collect::<Result<Vec<_>, _>>()?;
    refuse_repeats("rule", deny.iter().map(DenyRule::label))?;
    refuse_repeats("lazy edge", lazy.iter().map(LazyEdge::label))?;
    if entry.default_features == Some(false) && !entry.together_with.is_empty() {
        return Err(
            "`default-features = false` and `together-with` exclude each other: cargo would turn them off for all"
                .to_owned(),
        );
    }
    if entry.level != Layer::Reachable {
        if !entry.roots.is_empty() {
            return Err("`roots` needs level = \"reachable\"".to_owned());
        }
        if let Some(call) = lazy.iter().find(|e| matches!(e.what, Lazy::Call { .. })) {
            return Err(format!(
                "lazy edge `{}` needs level = \"reachable\"",
                call.label()
            ));
        }
    }
    Ok(StartPath {
        program: Program {
            bin: entry.bin.unwrap_or_else(|| entry.package.clone()),
            package: entry.package,
            features: sorted(entry.features),
            default_features: match entry.default_features {
                Some(false) => DefaultFeatures::Off,
                _ => DefaultFeatures::On,
            },
            target: entry.target,
            profile: entry.profile.unwrap_or_else(|| "release".to_owned()),
            rustflags: entry.rustflags,
            together_with: sorted(entry.together_with),
        },
        name: entry.name,
        roots: entry.roots,
        level: entry.level,
        deny,
        lazy,
    })
}

/// Whether `name` can be a file's name below the folder of builds.
fn names_program(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0'])
}

fn refuse_repeats(what: &str, labels: impl Iterator<Item = String>) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for label in labels {
        if let Some(label) = seen.replace(label) {
            return Err(format!("{what} `{label}` is written twice"));
        }
    }
    Ok(())
}

fn sorted(mut list: Vec<String>) -> Vec<String> {
    list.sort();
    list.dedup();
    list
}

fn deny_rule(entry: &DenyEntry, level: Layer) -> Result<DenyRule, String> {
    let what = match (&entry.krate, &entry.symbol) {
        (Some(text), None) => Denied::Crate {
            pattern: NamePattern::parse(text)
                .ok_or_else(|| format!("`{text}` is not a package name or a pattern of names"))?,
            version: entry
                .version
                .as_deref()
                .map(|text| {
                    VersionReq::parse(text)
                        .map_err(|error| format!("version `{text}` of a rule: {error}"))
                })
                .transpose()?,
        },
        (None, Some(text)) => {
            if level < Layer::Present {
                return Err(format!(
                    "symbol `{text}` is judged in the binary only\nhint: set level = \"present\" or \"reachable\""
                ));
            }
            if entry.version.is_some() {
                return Err(format!("symbol `{text}` cannot have a version"));
            }
            Denied::Symbol {
                pattern: SymbolPattern::parse(text).ok_or_else(|| {
                    format!("`{text}` is not a path like `crate::module::*` or `crate::function`")
                })?,
            }
        }
        _ => return Err("a rule of `deny` has exactly one of `crate` and `symbol`".to_owned()),
    };
    Ok(DenyRule {
        what,
        reason: entry.reason.clone(),
        unmatched: match entry.unmatched {
            Some(UnmatchedEntry::Allow) => Unmatched::Allowed,
            Some(UnmatchedEntry::Fail) | None => Unmatched::Fails,
        },
    })
}

fn lazy_edge(entry: &LazyEntry) -> Result<LazyEdge, String> {
    if entry.reason.trim().is_empty() {
        return Err("a lazy edge needs a `reason`".to_owned());
    }
    let ends = [&entry.from, &entry.to, &entry.dlopen, &entry.exec];
    if ends.into_iter().flatten().any(String::is_empty) {
        return Err("an end of a lazy edge is empty".to_owned());
    }
    let what = match (&entry.from, &entry.to, &entry.dlopen, &entry.exec) {
        (Some(from), Some(to), None, None) => Lazy::Call {
            from: from.clone(),
            to: to.clone(),
        },
        (None, None, Some(library), None) => Lazy::Dlopen {
            library: library.clone(),
        },
        (None, None, None, Some(program)) => Lazy::Exec {
            program: program.clone(),
        },
        _ => {
            return Err(
                "a lazy edge has `from` and `to`, or `dlopen`, or `exec`, and nothing else"
                    .to_owned(),
            );
        }
    };
    let expires = entry
        .expires
        .as_deref()
        .map(|text| {
            Date::parse(text)
                .ok_or_else(|| format!("`expires = \"{text}\"` is not a day like 2027-01-31"))
        })
        .transpose()?;
    Ok(LazyEdge {
        what,
        reason: entry.reason.clone(),
        expires,
    })
}

#[cfg(test)]
mod tests {
    use super::parse;
    use std::path::Path;

    const HEAD: &str = "schema = 1\n[[path]]\nname = 'p'\npackage = 'app'\n";

    #[track_caller]
    fn check_refused(text: &str, part: &str) {
        let error = parse(Path::new("p.toml"), text).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        assert!(error.starts_with("policy p.toml: "), "{error}");
    }

    #[test]
    fn a_small_policy_has_the_defaults_of_cargo() {
        let text = format!("{HEAD}level = 'packages'\ndeny = [{{ crate = 'ratatui*' }}]\n");
        let policy = parse(Path::new("p.toml"), &text).unwrap();
        let program = &policy.paths[0].program;
        assert_eq!(
            (program.bin.as_str(), program.profile.as_str()),
            ("app", "release")
        );
        assert_eq!(policy.paths[0].deny[0].label(), "crate ratatui*");
    }

    #[test]
    fn unknown_keys_are_refused_with_their_line() {
        check_refused(
            &format!("{HEAD}level = 'packages'\nlazzy = 1\ndeny = []"),
            "lazzy",
        );
        check_refused("schema = 2", "schema 2 is not known");
        check_refused("schema = 1", "guards nothing");
        check_refused("schema = ", "line 1");
    }

    #[test]
    fn contradictions_are_refused() {
        for (rest, part) in [
            (
                "level = 'present'\ndefault-features = false\ntogether-with = ['b']\ndeny = [{ crate = 'a' }]",
                "exclude each other",
            ),
            ("level = 'packages'\ndeny = []", "`deny` is empty"),
            (
                "level = 'packages'\ndeny = [{ symbol = 'a::b' }]",
                "in the binary only",
            ),
            (
                "level = 'present'\ndeny = [{ crate = 'a', symbol = 'a::b' }]",
                "exactly one",
            ),
            (
                "level = 'present'\nroots = ['a::b']\ndeny = [{ crate = 'a' }]",
                "`roots` needs",
            ),
            (
                "level = 'present'\ndeny = [{ crate = 'a', version = 'one' }]",
                "version `one`",
            ),
            (
                "level = 'reachable'\ndeny = [{ crate = 'a' }]\nlazy = [{ from = 'a', reason = 'r' }]",
                "`from` and `to`",
            ),
            (
                "level = 'packages'\nbin = '../a'\ndeny = [{ crate = 'a' }]",
                "`../a` is not a name",
            ),
            (
                "level = 'reachable'\nroots = ['']\ndeny = [{ crate = 'a' }]",
                "a root is empty",
            ),
            (
                "level = 'packages'\ndeny = [{ crate = 'a' }, { crate = 'a', reason = 'r' }]",
                "rule `crate a` is written twice",
            ),
            (
                "level = 'reachable'\ndeny = [{ crate = 'a' }]\nlazy = [{ exec = 'b', reason = 'r' }, { exec = 'b', reason = 's' }]",
                "lazy edge `exec b` is written twice",
            ),
            (
                "level = 'reachable'\ndeny = [{ crate = 'a' }]\nlazy = [{ dlopen = '', reason = 'r' }]",
                "an end of a lazy edge is empty",
            ),
            (
                "level = 'reachable'\ndeny = [{ crate = 'a' }]\nlazy = [{ exec = 'a', reason = 'r', expires = '2027-02-30' }]",
                "is not a day",
            ),
        ] {
            check_refused(&format!("{HEAD}{rest}"), part);
        }
    }
}
