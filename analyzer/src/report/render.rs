//! Draws a report: JSON, aligned text, Markdown. Writes to the given writer and
//! nowhere else.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter};

use comfy_table::{CellAlignment, ContentArrangement, Table, TableStyle, presets};

use super::layout::{COVERAGE, FINDINGS, Grid, Section, sections};
use super::markdown::{plain, with_code};
use super::numbers::steers;
use super::{Report, SCHEMA};

/// How a report is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Aligned text for a terminal.
    #[default]
    Table,
    /// Markdown for a pull request.
    Markdown,
    /// `coldpath.report/1`.
    Json,
    /// One self-contained page.
    Html,
}

/// Draws `report` on `out`.
///
/// # Errors
/// What the writer fails with.
pub fn render(report: &Report, format: Format, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Json => json(report, out),
        Format::Html => crate::html::page(report, out),
        Format::Table => table(&sections(report), out),
        Format::Markdown => markdown(&sections(report), out),
    }
}

/// Whether these bytes are the start of a report in any format, from which it can
/// be told apart from traces: its first 256 bytes are enough.
#[must_use]
pub fn opens_report(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(start);
    if let Some(object) = text.strip_prefix('{') {
        let schema = format!("\"schema\": \"{SCHEMA}\"");
        return object.trim_start().starts_with(&schema);
    }
    let heading = text.strip_prefix("### ").unwrap_or(&text);
    let title = heading.lines().next();
    title.is_some_and(|title| [FINDINGS, COVERAGE].contains(&title))
}

fn json(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let formatter = Inert(PrettyFormatter::new());
    let mut serializer = serde_json::Serializer::with_formatter(&mut *out, formatter);
    report.serialize(&mut serializer).map_err(io::Error::from)?;
    writeln!(out)
}

/// Writes what could steer a terminal as `\u` escapes, which a JSON reader
/// turns back: the document says the same and is harmless to look at.
struct Inert(PrettyFormatter<'static>);

impl Formatter for Inert {
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_array(out)
    }
    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array(out)
    }
    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(out, first)
    }
    fn end_array_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array_value(out)
    }
    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object(out)
    }
    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object(out)
    }
    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(out, first)
    }
    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object_value(out)
    }
    fn end_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object_value(out)
    }
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        text: &str,
    ) -> io::Result<()> {
        let mut plain = 0;
        for (index, char) in text.char_indices().filter(|(_, char)| steers(*char)) {
            out.write_all(&text.as_bytes()[plain..index])?;
            for unit in char.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            plain = index + char.len_utf8();
        }
        out.write_all(&text.as_bytes()[plain..])
    }
}

fn table(sections: &[Section], out: &mut dyn Write) -> io::Result<()> {
    for (index, section) in sections.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{}", section.title)?;
        for line in &section.lines {
            writeln!(out, "  {line}")?;
        }
        if let Some(grid) = &section.grid {
            for line in draw(grid, presets::NOTHING).lines() {
                writeln!(out, " {}", line.trim_end())?;
            }
        }
        for note in &section.notes {
            writeln!(out, "  {note}")?;
        }
    }
    Ok(())
}

fn markdown(sections: &[Section], out: &mut dyn Write) -> io::Result<()> {
    for (index, section) in sections.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        writeln!(out, "### {}\n", with_code(&section.title))?;
        for line in &section.lines {
            writeln!(out, "- {}", with_code(line))?;
        }
        if let Some(grid) = &section.grid {
            let plain = |cells: &Vec<String>| cells.iter().map(|cell| plain(cell)).collect();
            let escaped = Grid {
                head: plain(&grid.head),
                rows: grid.rows.iter().map(plain).collect(),
            };
            writeln!(out, "{}", draw_markdown(&escaped))?;
        }
        if !section.notes.is_empty() {
            writeln!(out)?;
        }
        for note in &section.notes {
            writeln!(out, "- {}", with_code(note))?;
        }
    }
    Ok(())
}

/// Text columns stand left, numbers right.
fn is_text(column: usize, head: &str) -> bool {
    column == 0 || matches!(head, "of" | "role" | "first" | "reason" | "")
}

fn draw(grid: &Grid, style: TableStyle) -> String {
    let mut table = Table::new();
    table
        .load_style(style)
        .set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(&grid.head);
    table.add_rows(&grid.rows);
    for (index, head) in grid.head.iter().enumerate() {
        if let Some(column) = table.column_mut(index)
            && !is_text(index, head)
        {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string()
}

fn draw_markdown(grid: &Grid) -> String {
    let text = draw(grid, presets::ASCII_MARKDOWN);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    // The preset's rule says nothing about alignment; Markdown puts it there.
    if let Some(rule) = lines.get_mut(1) {
        let cells: Vec<String> = rule
            .trim_matches('|')
            .split('|')
            .map(str::to_owned)
            .collect();
        let aligned = cells
            .iter()
            .zip(&grid.head)
            .enumerate()
            .map(|(index, (cell, head))| {
                let dashes = "-".repeat(cell.chars().count().saturating_sub(1));
                if is_text(index, head) {
                    format!("{dashes}-")
                } else {
                    format!("{dashes}:")
                }
            });
        *rule = format!("|{}|", aligned.collect::<Vec<_>>().join("|"));
    }
    lines.join("\n")
}
