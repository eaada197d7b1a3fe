//! Draws a report: JSON, aligned text, Markdown. Writes to the given writer and
//! nowhere else.

use std::io::{self, Write};

use comfy_table::{CellAlignment, ContentArrangement, Table, TableStyle, presets};

use super::Report;
use super::layout::{Grid, Section, sections};

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
}

/// Draws `report` on `out`.
///
/// # Errors
/// What the writer fails with.
pub fn render(report: &Report, format: Format, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Json => {
            serde_json::to_writer_pretty(&mut *out, report).map_err(io::Error::from)?;
            writeln!(out)
        }
        Format::Table => table(&sections(report), out),
        Format::Markdown => markdown(&sections(report), out),
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
        writeln!(out, "### {}\n", section.title)?;
        for line in &section.lines {
            writeln!(out, "- {}", line.replace('|', "\\|"))?;
        }
        if let Some(grid) = &section.grid {
            let bars =
                |cells: &Vec<String>| cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            let escaped = Grid {
                head: bars(&grid.head),
                rows: grid.rows.iter().map(bars).collect(),
            };
            writeln!(out, "{}", draw_markdown(&escaped))?;
        }
        if !section.notes.is_empty() {
            writeln!(out)?;
        }
        for note in &section.notes {
            writeln!(out, "- {}", note.replace('|', "\\|"))?;
        }
    }
    Ok(())
}

/// Text columns stand left, numbers right.
fn is_text(column: usize, head: &str) -> bool {
    column == 0 || matches!(head, "of" | "first" | "reason" | "")
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
