//! Patterns of names: packages with `-` and `_` taken as one, code by its path.

/// A package or library name as it is compared: `-` becomes `_`, letters lower case.
pub(crate) fn fold_name(name: &str) -> String {
    name.chars()
        .map(|letter| match letter {
            '-' => '_',
            other => other.to_ascii_lowercase(),
        })
        .collect()
}

/// A name with `*` for any run of characters, folded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamePattern {
    text: String,
    folded: String,
}

impl NamePattern {
    /// Reads a pattern; `None` when it holds what no package name can.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '*');
        let names_something = text.chars().any(|c| c != '*');
        (names_something && text.chars().all(valid)).then(|| Self {
            text: text.to_owned(),
            folded: fold_name(text),
        })
    }

    /// As written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether `name`, folded, is one of the pattern's.
    pub(crate) fn matches(&self, name: &str) -> bool {
        glob(self.folded.as_bytes(), fold_name(name).as_bytes())
    }
}

/// A path of code, exact or with `*` at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SymbolPattern {
    text: String,
    prefix: String,
    exact: bool,
}

impl SymbolPattern {
    /// Reads `crate::module::*`, `crate::f` or `crate::prefix*`; `None` when `*`
    /// stands elsewhere or there is no path.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let prefix = text.strip_suffix('*').unwrap_or(text);
        let plain = !prefix.is_empty() && !prefix.contains('*') && !prefix.contains(' ');
        (plain && prefix.contains("::")).then(|| Self {
            text: text.to_owned(),
            prefix: prefix.to_owned(),
            exact: prefix.len() == text.len(),
        })
    }

    /// As written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether `path` (`a::b::c`, no generic arguments) is one of the pattern's.
    pub(crate) fn matches(&self, path: &str) -> bool {
        if self.exact {
            path == self.prefix
        } else {
            path.starts_with(&self.prefix)
        }
    }
}

/// Matches `*` as any run; linear space, at most pattern × text steps.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            retry = Some((p, t));
            p += 1;
        } else if pattern.get(p) == Some(&text[t]) {
            p += 1;
            t += 1;
        } else if let Some((star, from)) = retry {
            p = star + 1;
            t = from + 1;
            retry = Some((star, from + 1));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::{NamePattern, SymbolPattern};

    #[track_caller]
    fn check_name(pattern: &str, yes: &[&str], no: &[&str]) {
        let pattern = NamePattern::parse(pattern).unwrap();
        for name in yes {
            assert!(pattern.matches(name), "{name}");
        }
        for name in no {
            assert!(!pattern.matches(name), "{name}");
        }
    }

    #[test]
    fn families_and_dashes_match() {
        check_name(
            "ratatui*",
            &["ratatui", "ratatui-core", "ratatui_widgets", "Ratatui"],
            &["tui-ratatui", "ratatu"],
        );
        check_name("tiny-bip39", &["tiny_bip39", "tiny-bip39"], &["bip39"]);
        check_name("*a*b", &["ab", "xaxxb", "aab"], &["ba", "abx"]);
    }

    #[test]
    fn a_pattern_names_something() {
        for wrong in ["", "*", "**", "a b", "a::b", "a/b"] {
            assert!(NamePattern::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn symbols_match_whole_paths_or_prefixes() {
        let below = SymbolPattern::parse("d::store::*").unwrap();
        assert!(below.matches("d::store::Store::open"));
        assert!(!below.matches("d::storage::open"));
        let exact = SymbolPattern::parse("d::store::open").unwrap();
        assert!(!exact.matches("d::store::open_all"));
        for wrong in ["*", "d", "d::*::open", "d::a b"] {
            assert!(SymbolPattern::parse(wrong).is_none(), "{wrong}");
        }
    }
}
