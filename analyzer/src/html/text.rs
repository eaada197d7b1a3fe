//! Text and numbers on the page. Text out of a trace is data: what could steer a
//! reader is made visible, what is endless is cut, and markup stays text. Every
//! number carries its exact value and the place in the JSON report that has it.

use std::fmt::Write as _;

use maud::{Escaper, Markup, Render, html};

use crate::report::Amount;
use crate::report::numbers::{NONE, amount, escape, signed_amount, signed_time, time};
use crate::units::Nanos;

/// Characters of a text that are shown; names are shorter unless they are an accident.
pub(super) const TEXT_MAX: usize = 240;
/// Characters of a sentence that are shown: a finding names a few texts.
pub(super) const SENTENCE_MAX: usize = 1200;

/// Text from anywhere.
pub(super) struct Text<'a>(pub(super) &'a str);

impl Render for Text<'_> {
    fn render_to(&self, out: &mut String) {
        // Writing to a String cannot fail.
        let _ = Escaper::new(out).write_str(&shown(self.0, TEXT_MAX));
    }
}

/// The name of a cohort, which may have none.
pub(super) struct Cohort<'a>(pub(super) &'a str);

impl Render for Cohort<'_> {
    fn render_to(&self, out: &mut String) {
        if self.0.is_empty() {
            out.push_str("<span class=\"soft\">(no cohort)</span>");
        } else {
            Text(self.0).render_to(out);
        }
    }
}

/// `text` as it is shown: at most `max` characters and nothing that steers.
pub(super) fn shown(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => escape(text),
        Some((end, _)) => format!("{} … ({} bytes in all)", escape(&text[..end]), text.len()),
    }
}

/// A sentence in which what stands between backticks is code.
pub(super) fn sentence(text: &str) -> Markup {
    let text = shown(text, SENTENCE_MAX);
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// A number: what is shown, its exact value, and its JSON pointer.
pub(super) fn number(at: &str, value: f64, shown: &str) -> Markup {
    html! { data value=(value) data-j=(at) { (shown) } }
}

/// A dash where there is nothing.
pub(super) fn nothing() -> Markup {
    html! { span.no { (NONE) } }
}

/// A time, or a dash.
pub(super) fn time_at(at: &str, value: Option<Nanos>, quantum: Nanos) -> Markup {
    match value {
        Some(value) => number(at, value.as_ms(), &time(value, quantum)),
        None => nothing(),
    }
}

/// A signed time, or a dash.
pub(super) fn signed_at(at: &str, value: Option<Nanos>, quantum: Nanos) -> Markup {
    match value {
        Some(value) => number(at, value.as_ms(), &signed_time(value, quantum)),
        None => nothing(),
    }
}

/// A number that is printed by `print`, or a dash.
pub(super) fn value_at(at: &str, value: Option<f64>, print: impl Fn(f64) -> String) -> Markup {
    match value {
        Some(value) => number(at, value, &print(value)),
        None => nothing(),
    }
}

/// An amount, or a dash.
pub(super) fn amount_at(at: &str, value: Option<Amount>, quantum: Nanos) -> Markup {
    match value {
        Some(value) => number(at, plain(value), &amount(value, quantum)),
        None => nothing(),
    }
}

/// A signed amount, or a dash.
pub(super) fn signed_amount_at(at: &str, value: Option<Amount>, quantum: Nanos) -> Markup {
    match value {
        Some(value) => number(at, plain(value), &signed_amount(value, quantum)),
        None => nothing(),
    }
}

/// A count.
pub(super) fn count_at(at: &str, value: usize) -> Markup {
    html! { data value=(value) data-j=(at) { (value) } }
}

/// An amount as JSON has it.
pub(super) fn plain(value: Amount) -> f64 {
    match value {
        Amount::Time(nanos) => nanos.as_ms(),
        Amount::Bytes(bytes) => bytes as f64,
        Amount::Ratio(millionths) => millionths as f64 / 1e6,
    }
}

/// A part of a whole as a CSS percentage; what is no number is no length.
pub(super) fn css(part: f64, whole: f64) -> String {
    let percent = if whole > 0.0 {
        part / whole * 100.0
    } else {
        0.0
    };
    format!("{:.2}%", percent.clamp(0.0, 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_quotes_and_direction_marks_stay_text() {
        let hostile = "<script>alert(\"1\")</script>\u{202e}\u{1b}[2J&";
        let page = html! { a title=(Text(hostile)) { (Text(hostile)) } }.into_string();
        let safe = "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;\\u{202e}\\u{1b}[2J&amp;";
        assert_eq!(page, format!("<a title=\"{safe}\">{safe}</a>"));
    }

    #[test]
    fn endless_text_is_cut_and_says_so() {
        let text = "é".repeat(1 << 20);
        let cut = shown(&text, 3);
        assert_eq!(cut, "ééé … (2097152 bytes in all)");
    }

    #[test]
    fn code_stands_between_backticks_and_stays_text() {
        let page = sentence("`a<b` is 5 %").into_string();
        assert_eq!(page, "<code>a&lt;b</code> is 5 %");
    }
}
