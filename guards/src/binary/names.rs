//! Names of code: legacy and v0 mangling, side by side in one binary.
//!
//! The standard library is v0 where a program's own code is legacy, so every
//! symbol is read for itself. A name is reduced to plain paths that do not change
//! with the mangling.

use std::borrow::Cow;

/// A demangled name in the two forms that rules are judged on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CodeName {
    /// For people: demangled, without hashes.
    pub(crate) display: String,
    /// For exact matches: `a::b::c` without generic arguments, `<T>::f` as `T::f`.
    pub(crate) plain: String,
    /// Whether it was a Rust symbol.
    pub(crate) is_rust: bool,
}

/// Demangles `symbol`. Suffixes that compilers add (`.llvm.123`, `$tlv$init`) are kept
/// out of the way.
pub(crate) fn code_name(symbol: &str) -> CodeName {
    if let Some(display) = display_name(symbol) {
        return CodeName {
            plain: plain_path(&display),
            display,
            is_rust: true,
        };
    }
    let symbol = without_suffix(symbol);
    CodeName {
        display: symbol.to_owned(),
        plain: symbol.to_owned(),
        is_rust: false,
    }
}

/// The display form alone; `None` when it is no Rust symbol.
pub(crate) fn display_name(symbol: &str) -> Option<String> {
    let name = rustc_demangle::try_demangle(without_suffix(symbol)).ok()?;
    Some(format!("{name:#}"))
}

fn without_suffix(symbol: &str) -> &str {
    symbol.strip_suffix("$tlv$init").unwrap_or(symbol)
}

/// Removes generic arguments and the brackets of inherent implementations.
pub(crate) fn plain_path(display: &str) -> String {
    // Most names have none of these and stay as they are.
    let is_plain = |byte: u8| !matches!(byte, b'<' | b'>' | b'{' | b'#');
    if display.bytes().all(is_plain) && !display.ends_with(':') && !display.contains("::::") {
        return display.to_owned();
    }
    let unwrapped = unwrap_inherent(display);
    let mut out = String::with_capacity(unwrapped.len());
    let mut depth = 0_usize;
    let mut rest = unwrapped.as_ref();
    // A leading `<A as B>` is part of the path; arguments follow `::<` or a name.
    if rest.starts_with('<') {
        let end = closing(rest);
        out.push_str(&rest[..end]);
        rest = &rest[end..];
    }
    let mut previous = ' ';
    for letter in rest.chars() {
        match letter {
            '<' => depth += 1,
            '>' if previous != '-' => depth = depth.saturating_sub(1),
            _ if depth == 0 => out.push(letter),
            _ => {}
        }
        previous = letter;
    }
    let joined = out
        .replace("::::", "::")
        .replace("{{closure}}", "{closure}");
    let trimmed = joined.trim_end_matches(':');
    strip_indices(trimmed)
}

/// `{closure#3}` and `{closure}` are one path: the number moves with the code.
fn strip_indices(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut inside = false;
    for letter in path.chars() {
        match letter {
            '#' => inside = true,
            '}' => {
                inside = false;
                out.push(letter);
            }
            _ if inside && letter.is_ascii_digit() => {}
            _ => {
                inside = false;
                out.push(letter);
            }
        }
    }
    out
}

/// `<a::T>::f` and `<a::T<U>>::f` become `a::T::f`; `<A as B>::f` stays.
fn unwrap_inherent(name: &str) -> Cow<'_, str> {
    if !name.starts_with('<') {
        return Cow::Borrowed(name);
    }
    let end = closing(name);
    let inner = &name[1..end.saturating_sub(1).max(1)];
    let is_path = inner
        .chars()
        .next()
        .is_some_and(|first| first.is_alphabetic() || first == '_');
    if !is_path || as_position(inner).is_some() {
        return Cow::Borrowed(name);
    }
    Cow::Owned(format!("{inner}{}", &name[end..]))
}

/// Byte behind the `>` that closes the `<` at the start; the end when there is none.
fn closing(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut previous = ' ';
    for (at, letter) in text.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' if previous != '-' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
        previous = letter;
    }
    text.len()
}

/// Where ` as ` stands outside of inner brackets.
fn as_position(inner: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, letter) in inner.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 && inner[at..].starts_with(" as ") => return Some(at),
            _ => {}
        }
    }
    None
}

/// Every path in a demangled name: `<a::T as b::U>::f` holds `a::T`, `b::U` and, as the
/// whole's continuation, nothing more. The root of a path is its first segment.
pub(crate) fn paths_in(display: &str) -> Vec<&str> {
    let bytes = display.as_bytes();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    let mut paths = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let starts = is_word(bytes[at]) && !bytes[at].is_ascii_digit();
        let inside = at > 0 && is_word(bytes[at - 1]);
        if !starts || inside {
            at += 1;
            continue;
        }
        let continues = at >= 2 && &bytes[at - 2..at] == b"::";
        let start = at;
        while at < bytes.len() {
            if is_word(bytes[at]) {
                at += 1;
            } else if bytes[at..].starts_with(b"::")
                && bytes.get(at + 2).is_some_and(|byte| is_word(*byte))
            {
                at += 2;
            } else {
                break;
            }
        }
        if !continues && !is_keyword(&display[start..at]) {
            paths.push(&display[start..at]);
        }
    }
    paths
}

/// The paths whose code a function is: its own, the type and the trait of an
/// implementation, and the type that drop glue is for. Types that stand as arguments
/// only are left out: equal instances are merged, and the name that stays is chance.
pub(crate) fn owning_paths(display: &str) -> Vec<&str> {
    const DROP: &str = "core::ptr::drop_in_place<";
    let first = |text| paths_in(text).into_iter().next();
    if let Some(dropped) = display.strip_prefix(DROP) {
        return first(dropped).into_iter().collect();
    }
    if !display.starts_with('<') {
        return first(display).into_iter().collect();
    }
    let inner = &display[1..closing(display)];
    match as_position(inner) {
        Some(at) => [first(&inner[..at]), first(&inner[at + 4..])]
            .into_iter()
            .flatten()
            .collect(),
        None => first(inner).into_iter().collect(),
    }
}

/// Words of the notation that are no paths, and types that no crate owns.
fn is_keyword(word: &str) -> bool {
    matches!(
        word,
        "as" | "dyn"
            | "mut"
            | "const"
            | "impl"
            | "for"
            | "fn"
            | "extern"
            | "unsafe"
            | "closure"
            | "shim"
            | "vtable"
            | "bool"
            | "char"
            | "str"
            | "u8"
            | "u16"
            | "u32"
            | "u64"
            | "u128"
            | "usize"
            | "i8"
            | "i16"
            | "i32"
            | "i64"
            | "i128"
            | "isize"
            | "f32"
            | "f64"
    )
}

#[cfg(test)]
mod tests {
    use super::{code_name, owning_paths, paths_in};

    /// Symbols from real programs; expectations by `rustfilt` and by hand.
    #[track_caller]
    fn check(symbol: &str, plain: &str, roots: &[&str]) {
        let name = code_name(symbol);
        assert_eq!(name.plain, plain);
        let found: Vec<&str> = paths_in(&name.display)
            .into_iter()
            .map(|path| path.split("::").next().unwrap())
            .collect();
        assert_eq!(found, roots, "{}", name.display);
    }

    #[test]
    fn legacy_names_lose_their_hash() {
        check(
            "_ZN15coldpath_daemon7runtime13start_runtime17h0123456789abcdefE",
            "coldpath_daemon::runtime::start_runtime",
            &["coldpath_daemon"],
        );
    }

    #[test]
    fn trait_implementations_name_both_sides() {
        check(
            "_ZN58_$LT$T$u20$as$u20$crossterm..command..QueueableCommand$GT$5queue17h0123456789abcdefE",
            "<T as crossterm::command::QueueableCommand>::queue",
            &["T", "crossterm"],
        );
        check(
            "_ZN54_$LT$$RF$A$u20$as$u20$core..iter..traits..Iterator$GT$4next17h0123456789abcdefE",
            "<&A as core::iter::traits::Iterator>::next",
            &["A", "core"],
        );
    }

    #[test]
    fn drop_glue_names_what_it_drops() {
        check(
            "_ZN4core3ptr48drop_in_place$LT$ratatui..terminal..Terminal$GT$17h0123456789abcdefE",
            "core::ptr::drop_in_place",
            &["core", "ratatui"],
        );
    }

    #[test]
    fn both_manglings_give_one_path() {
        check("_RNvMNtC1a1bNtB2_1T1f", "a::b::T::f", &["a"]);
        check("_ZN1a1b1T1f17h0123456789abcdefE", "a::b::T::f", &["a"]);
        check("_RNCNvC1a1f0", "a::f::{closure}", &["a"]);
        check(
            "_ZN1a1f28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE",
            "a::f::{closure}",
            &["a"],
        );
    }

    #[test]
    fn type_arguments_own_no_code() {
        for (display, owners) in [
            ("a::b::f", vec!["a::b::f"]),
            ("<a::T<b::U> as c::V<d::W>>::f", vec!["a::T", "c::V"]),
            ("<&mut a::T>::f", vec!["a::T"]),
            ("core::ptr::drop_in_place<a::T<b::U>>", vec!["a::T"]),
            ("core::ptr::drop_in_place<&mut dyn a::T>", vec!["a::T"]),
            ("a::f::<b::U>", vec!["a::f"]),
            ("<", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(owning_paths(display), owners, "{display}");
        }
    }

    #[test]
    fn suffixes_are_no_part_of_a_name() {
        check("_RNvC1a1f$tlv$init", "a::f", &["a"]);
        check("_RNvC1a1f.llvm.123", "a::f", &["a"]);
    }

    #[test]
    fn names_of_other_languages_stay() {
        let name = code_name("__libc_start_main");
        assert!(!name.is_rust);
        assert_eq!(name.plain, "__libc_start_main");
    }
}
