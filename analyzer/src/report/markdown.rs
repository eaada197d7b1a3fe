//! Text that Markdown shows as it is: no link, no tag, no emphasis begins in it,
//! no cell of a table ends early. Syntax: `CommonMark` 0.31, and tables of GFM.

/// Text without any markup, for a cell of a table.
pub(super) fn plain(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut safe = String::with_capacity(text.len());
    for (place, char) in chars.iter().enumerate() {
        let within_word = |place: Option<usize>| {
            place
                .and_then(|place| chars.get(place))
                .is_some_and(|char| char.is_alphanumeric())
        };
        let marks = match char {
            // Within a word it emphasises nothing, and names of stages are full of it.
            '_' => !(within_word(place.checked_sub(1)) && within_word(Some(place + 1))),
            '\\' | '`' | '*' | '[' | ']' | '<' | '|' | '~' | '&' => true,
            _ => false,
        };
        if marks {
            safe.push('\\');
        }
        safe.push(*char);
    }
    safe
}

/// Text in which single backticks stand around names: these stay, and what is
/// between them is shown as it is; the rest is as [`plain`].
///
/// A name may hold backticks itself. What opens and closes code is found as a
/// reader of Markdown finds it: a run of backticks closes one of the same length.
pub(super) fn with_code(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('`') {
        safe.push_str(&plain(&rest[..start]));
        rest = &rest[start..];
        let ticks = run(rest);
        let inside = &rest[ticks..];
        let end = (ticks == 1).then(|| closing(inside)).flatten();
        if let Some(end) = end {
            safe.push_str(&rest[..end + 2]);
            rest = &rest[end + 2..];
        } else {
            safe.push_str(&"\\`".repeat(ticks));
            rest = inside;
        }
    }
    safe.push_str(&plain(rest));
    safe
}

/// How many backticks a text begins with.
fn run(text: &str) -> usize {
    text.bytes().take_while(|byte| *byte == b'`').count()
}

/// Where the next backtick is that stands alone.
fn closing(text: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = text[at..].find('`') {
        let ticks = run(&text[at + found..]);
        if ticks == 1 {
            return Some(at + found);
        }
        at += found + ticks;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_has_no_markup() {
        assert_eq!(plain("gemini_import 50.9 %"), "gemini_import 50.9 %");
        assert_eq!(plain("_a_ *b* `c`"), "\\_a\\_ \\*b\\* \\`c\\`");
        assert_eq!(plain("[x](http://y) <b>"), "\\[x\\](http://y) \\<b>");
        assert_eq!(plain("a|b\\|c &lt;"), "a\\|b\\\\\\|c \\&lt;");
    }

    #[test]
    fn names_in_backticks_stay_code_and_the_rest_is_plain() {
        assert_eq!(with_code("`a_b` is *x*"), "`a_b` is \\*x\\*");
        assert_eq!(with_code("`<script>` [y](z)"), "`<script>` \\[y\\](z)");
        assert_eq!(with_code("no code"), "no code");
    }

    #[test]
    fn backticks_within_names_open_nothing_that_is_not_closed() {
        // The name is a``b: one run of two between two of one.
        assert_eq!(with_code("`a``b` c*"), "`a``b` c\\*");
        // The name is a`[x](y): the code ends early, and the rest is plain.
        assert_eq!(with_code("`a`[x](y)` z"), "`a`\\[x\\](y)\\` z");
        assert_eq!(with_code("`` `"), "\\`\\` \\`");
    }
}
