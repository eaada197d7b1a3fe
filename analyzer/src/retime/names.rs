//! Finds the stages that a change names.
//!
//! A name is a stage's (`channel.spawn`), a window's, which then is changed whole
//! (`runtime.start`), `WINDOW:STAGE` where several windows have a stage of the
//! name, or that of the spans that stand for a stage (`agent.phase.settings_load`).

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use super::activities::StageKey;

/// Names that are offered for one that is not known.
const OFFERED_MAX: usize = 5;
/// Letters in which a name that is offered may differ.
const TYPOS_MAX: usize = 3;

/// Why a name is no stage.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnknownStage {
    /// No run has it.
    #[error("no run has a stage `{name}`\nhint: {hint}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// Names that are near, or all.
        hint: String,
    },
    /// Several windows have one of this name.
    #[error("`{name}` is a stage of several windows\nhint: write {hint}")]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// What to write instead.
        hint: String,
    },
}

/// All stages of some runs, each with the names of its spans.
#[derive(Clone, Debug, Default)]
pub struct Names<'a>(BTreeMap<StageKey<'a>, BTreeSet<&'a str>>);

impl<'a> Names<'a> {
    /// Notes a stage and the name of a span that stands for it, where one does.
    pub fn note(&mut self, key: StageKey<'a>, span: Option<&'a str>) {
        self.0.entry(key).or_default().extend(span);
    }

    /// The stages that `name` means.
    ///
    /// # Errors
    /// [`UnknownStage`] where there is none, or it is not clear which.
    pub fn find(&self, name: &str) -> Result<Vec<StageKey<'a>>, UnknownStage> {
        let all = |wanted: &dyn Fn(&StageKey<'a>) -> bool| -> Vec<StageKey<'a>> {
            self.0.keys().filter(|key| wanted(key)).copied().collect()
        };
        let qualified = all(&|key| name.split_once(':') == Some((key.window, key.stage)));
        if !qualified.is_empty() {
            return Ok(qualified);
        }
        let named = all(&|key| key.stage == name);
        let spans = |key: &StageKey<'a>| self.0.get(key);
        let same = |a: &StageKey<'a>| {
            spans(a).is_some_and(|own| !own.is_empty()) && spans(a) == spans(&named[0])
        };
        if named.len() > 1 && !named.iter().all(same) {
            let words = named
                .iter()
                .map(|key| format!("{}:{}", key.window, key.stage));
            return Err(UnknownStage::Ambiguous {
                name: name.to_owned(),
                hint: words.collect::<Vec<_>>().join(" or "),
            });
        }
        if !named.is_empty() {
            return Ok(named);
        }
        let by_span = all(&|key| spans(key).is_some_and(|own| own.contains(name)));
        if by_span.is_empty() {
            return Err(UnknownStage::Unknown {
                name: name.to_owned(),
                hint: self.offer(name),
            });
        }
        Ok(by_span)
    }

    /// Names near one that is not known; all where none is near.
    fn offer(&self, name: &str) -> String {
        let words: BTreeSet<&str> = self.0.keys().map(|key| key.stage).collect();
        let wanted = name.rsplit(':').next().unwrap_or(name);
        let rank = |word: &str| {
            let typos = distance(wanted, word);
            let contains = word.contains(wanted) || wanted.contains(word);
            (contains || typos <= TYPOS_MAX).then_some(typos)
        };
        let mut near: Vec<(usize, &str)> = words
            .iter()
            .filter_map(|word| Some((rank(word)?, *word)))
            .collect();
        near.sort_unstable();
        near.truncate(OFFERED_MAX);
        let quoted = |words: &mut dyn Iterator<Item = &str>| {
            words
                .map(|word| format!("`{word}`"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        if words.is_empty() {
            "these runs have no stages".to_owned()
        } else if near.is_empty() {
            format!("there are {}", quoted(&mut words.iter().copied()))
        } else {
            format!(
                "near it are {}",
                quoted(&mut near.iter().map(|(_, word)| *word))
            )
        }
    }
}

/// Letters to add, leave out or change to make one word of another (Levenshtein);
/// words have at most some dozens of letters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (at, letter) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (place, other) in b.iter().enumerate() {
            let change = diagonal + usize::from(letter != *other);
            diagonal = row[place + 1];
            row[place + 1] = change.min(row[place] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names<'static> {
        let mut names = Names::default();
        for (window, stage, span) in [
            ("request", "channel.wait", Some("channel.wait")),
            ("channel", "channel.spawn", Some("channel.spawn")),
            ("agent.startup", "settings", Some("agent.phase.settings")),
            (
                "agent.startup",
                "instructions",
                Some("agent.phase.instructions"),
            ),
            (
                "agent.session_start",
                "instructions",
                Some("agent.session.instructions"),
            ),
        ] {
            names.note(StageKey { window, stage }, span);
        }
        names
    }

    #[track_caller]
    fn check(name: &str, expected: Result<&[(&str, &str)], &str>) {
        let found = names().find(name);
        let found = found.as_ref().map(|keys| {
            keys.iter()
                .map(|key| (key.window, key.stage))
                .collect::<Vec<_>>()
        });
        let texts = found
            .as_ref()
            .map(Vec::as_slice)
            .map_err(ToString::to_string);
        assert_eq!(texts.as_ref().map_err(String::as_str).copied(), expected);
    }

    #[test]
    fn a_stage_is_found_by_its_name_its_window_or_its_span() {
        check("channel.spawn", Ok(&[("channel", "channel.spawn")]));
        check("agent.phase.settings", Ok(&[("agent.startup", "settings")]));
        check(
            "agent.startup:instructions",
            Ok(&[("agent.startup", "instructions")]),
        );
        check(
            "instructions",
            Err(
                "`instructions` is a stage of several windows\nhint: write agent.session_start:instructions or agent.startup:instructions",
            ),
        );
    }

    #[test]
    fn an_unknown_stage_names_those_near_it() {
        check(
            "chanel.wait",
            Err("no run has a stage `chanel.wait`\nhint: near it are `channel.wait`"),
        );
        check(
            "zzzzzzzz",
            Err(
                "no run has a stage `zzzzzzzz`\nhint: there are `channel.spawn`, `channel.wait`, `instructions`, `settings`",
            ),
        );
    }
}
