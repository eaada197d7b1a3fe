//! The report as one page that stands alone: no request leaves it, nothing in it
//! runs, and everything is there without a script.
//!
//! The page shows the figures of the JSON report and computes none: each carries
//! its exact value and its JSON pointer (`<data value data-j>`). Markup is made
//! by maud, so text is escaped by construction, and the page's own policy forbids
//! scripts and requests should anything slip through.

mod about;
mod cohorts;
mod metrics;
mod plots;
mod runs;
mod samples;
mod sched;
mod text;
mod waterfall;
mod windows;

use std::io::{self, Write};

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::report::Report;
use crate::report::numbers::counted;

use text::{Text, sentence};

const STYLE: &str = include_str!("style.css");
/// Nothing is fetched and nothing runs; the icon and the style are inside.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// Draws `report` as a page. Runs and pictures stand in it only where the report
/// was asked for them ([`Items::Drawn`](crate::report::build::Items::Drawn)).
///
/// # Errors
/// What the writer fails with.
pub fn page(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let sections = sections(report);
    let links = sections.iter().map(|(id, title, _)| (*id, *title));
    let links: Vec<(&str, &str)> = links.collect();
    let head = html! {
        (DOCTYPE)
        (PreEscaped("<html lang=\"en\">"))
        head {
            meta charset="utf-8";
            meta http-equiv="Content-Security-Policy" content=(POLICY);
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="generator" content=(concat!("analyze ", env!("CARGO_PKG_VERSION")));
            title { "Cold starts of " (Text(&report.model)) ", " (counted(report.runs.total, "run")) }
            link rel="icon" href="data:,";
            style { (PreEscaped(STYLE)) }
        }
        (PreEscaped("<body>"))
        (about::header(report, &links))
        (PreEscaped("<main>"))
    };
    out.write_all(head.into_string().as_bytes())?;
    for (id, title, body) in sections {
        let section = html! {
            section id=(id) aria-labelledby=(format!("{id}-h")) {
                h2 id=(format!("{id}-h")) { (title) }
                (body)
            }
        };
        out.write_all(section.into_string().as_bytes())?;
    }
    let end = html! {
        (PreEscaped("</main>"))
        footer {
            "Every number carries its exact value and its place in the JSON report (" code { "analyze --format json" }
            ") as attributes. The page fetches nothing and runs nothing."
        }
        (PreEscaped("</body></html>\n"))
    };
    out.write_all(end.into_string().as_bytes())
}

/// Sections that have something to say: id, title, body.
fn sections(report: &Report) -> Vec<(&'static str, &'static str, Markup)> {
    let several = !report.cohorts.is_empty();
    let breakdown = if several {
        cohorts::breakdowns(report)
    } else {
        windows::breakdowns(report)
    };
    let all = [
        ("findings", "Findings", findings(report)),
        ("metrics", "End to end", metrics::section(report)),
        ("waterfall", "One cold start", waterfall::section(report)),
        ("breakdown", "Where the time goes", breakdown),
        (
            "processor",
            "On a processor, waiting for one, blocked",
            sched::section(report),
        ),
        (
            "covariates",
            "What else goes along with the latency",
            about::covariates(report),
        ),
        ("coverage", "Coverage", about::coverage(report)),
        ("runs", "Runs", runs::section(report)),
        ("problems", "Problems", about::problems(report)),
        ("provenance", "Provenance", about::provenance(report)),
    ];
    let said = all.into_iter();
    said.filter(|(_, _, body)| !body.0.is_empty()).collect()
}

fn findings(report: &Report) -> Markup {
    html! {
        @if report.findings.is_empty() { p.soft { "nothing stands out" } }
        @else {
            ul.findings {
                @for finding in &report.findings {
                    li { (sentence(&finding.text)) " " small { (finding.code) } }
                }
            }
        }
    }
}
