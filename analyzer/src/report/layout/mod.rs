//! The report laid out in sections, before it is drawn as a table or Markdown.
//!
//! With several cohorts every breakdown stands once with a column for each: what
//! pools them is in JSON only.

mod beside;
mod coverage;
mod dependency;
mod injection;
mod metrics;
mod scenarios;
mod windows;

use super::covariates::Covariate;
use super::numbers::{NONE, coefficient, cohort_name, escape, or_none};
use super::{Report, WindowReport};

/// Title of the first section, where there are findings.
pub const FINDINGS: &str = "Findings";
/// Title of the section that every report has: the first, where nothing was found.
pub const COVERAGE: &str = "Coverage";

/// Rows of equally many cells; the first cell names the row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grid {
    /// Head of each column.
    pub head: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
}

impl Grid {
    /// Leaves out the columns behind the first in which no row has anything.
    fn without_empty_columns(mut self) -> Self {
        let empty = |column: usize| {
            let mut cells = self.rows.iter().filter_map(|row| row.get(column));
            column > 0 && cells.all(|cell| cell.is_empty() || cell == NONE)
        };
        let kept: Vec<bool> = (0..self.head.len()).map(|column| !empty(column)).collect();
        let keep = |cells: &mut Vec<String>| {
            let mut kept = kept.iter();
            cells.retain(|_| kept.next().copied().unwrap_or(true));
        };
        keep(&mut self.head);
        self.rows.iter_mut().for_each(keep);
        self
    }
}

/// One section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// Its title.
    pub title: String,
    /// Sentences before the grid.
    pub lines: Vec<String>,
    /// The grid, where there is one.
    pub grid: Option<Grid>,
    /// Sentences behind the grid that say how to read it.
    pub notes: Vec<String>,
}

/// Lays out the whole report.
#[must_use]
pub fn sections(report: &Report) -> Vec<Section> {
    let mut all = vec![findings(report), coverage::coverage(report)];
    if report.cohorts.is_empty() {
        all.push(metrics::metrics("End to end", &report.metrics));
        all.extend(one_cohort(report));
    } else {
        all.extend(report.cohorts.iter().map(metrics::cohort));
        all.extend(metrics::comparisons(&report.comparisons));
        all.extend(several_cohorts(report));
    }
    all.extend(injection::injections(&report.injections));
    all.extend(scenarios::beside(&report.scenarios));
    all.extend(scenarios::delays(&report.delays));
    all.extend(report.dependency.iter().flat_map(dependency::sections));
    all.extend(covariates(report));
    all.extend(problems(report));
    all.retain(|section| !section.lines.is_empty() || section.grid.is_some());
    for section in &mut all {
        section.grid = section.grid.take().map(Grid::without_empty_columns);
    }
    all
}

fn one_cohort(report: &Report) -> Vec<Section> {
    let mut breakdowns = report.windows.iter().map(windows::window);
    let mut all: Vec<Section> = breakdowns.next().into_iter().collect();
    all.extend(report.drill_through.iter().map(windows::drill));
    all.extend(breakdowns);
    all.extend(windows::groups(&report.groups));
    all.extend(windows::scheduler(None, &report.windows));
    all.extend(report.windows.first().and_then(of_all));
    all
}

fn of_all(window: &WindowReport) -> Option<Section> {
    windows::correlations(None, window)
}

fn several_cohorts(report: &Report) -> Vec<Section> {
    let mut breakdowns = report
        .windows
        .iter()
        .map(|window| beside::window(report, window));
    let mut all: Vec<Section> = breakdowns.next().into_iter().collect();
    // Said once, it need not be said below every window.
    let breakdowns = breakdowns.map(|section| Section {
        notes: Vec::new(),
        ..section
    });
    let drills = report.drill_through.iter();
    all.extend(drills.map(|drill| beside::drill(report, drill)));
    all.extend(breakdowns);
    all.extend(beside::groups(report));
    for cohort in &report.cohorts {
        all.extend(windows::scheduler(Some(&cohort.name), &cohort.windows));
    }
    for cohort in &report.cohorts {
        let window = cohort.windows.first();
        all.extend(window.and_then(|window| windows::correlations(Some(&cohort.name), window)));
    }
    all
}

fn head(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| (*cell).to_owned()).collect()
}

/// A title that names the cohort it is about, where there are several.
fn titled(title: &str, cohort: Option<&str>) -> String {
    match cohort {
        None => title.to_owned(),
        Some(cohort) => format!("{title}: {}", cohort_name(cohort)),
    }
}

fn findings(report: &Report) -> Section {
    let lines = report
        .findings
        .iter()
        .map(|finding| escape(&finding.text))
        .collect();
    Section {
        title: FINDINGS.to_owned(),
        lines,
        ..Section::default()
    }
}

fn covariates(report: &Report) -> Option<Section> {
    let row = |one: &Covariate| {
        vec![
            escape(&one.name),
            one.role.to_owned(),
            one.n.to_string(),
            or_none(one.pearson, coefficient),
            or_none(one.spearman, coefficient),
            or_none(one.p, p_value),
            one.reason.clone().unwrap_or_default(),
        ]
    };
    let rows: Vec<_> = report.covariates.iter().map(row).collect();
    let with = report.covariates.first().map(|one| &one.with)?;
    let note =
        "mediator: the run itself brings it about; it says how a run was slow and explains nothing";
    let mediators = report.covariates.iter().any(super::covariates::is_mediator);
    Some(Section {
        title: format!("What else goes along with {with} (within cohorts)"),
        lines: Vec::new(),
        grid: Some(Grid {
            head: head(&["name", "role", "n", "Pearson", "Spearman", "p (Holm)", ""]),
            rows,
        }),
        notes: mediators.then(|| note.to_owned()).into_iter().collect(),
    })
}

/// A p-value to three decimals; one that rounds to 0 is not 0.
fn p_value(p: f64) -> String {
    if p < 0.0005 {
        "< 0.001".to_owned()
    } else {
        format!("{p:.3}")
    }
}

fn problems(report: &Report) -> Option<Section> {
    let row = |problem: &super::ProblemReport| {
        let place = problem.first.as_ref();
        let place = place.map_or_else(String::new, |place| {
            format!(
                "{}:{} (byte {})",
                escape(&place.file),
                place.line,
                place.byte
            )
        });
        vec![
            problem.code.to_owned(),
            problem.count.to_string(),
            place,
            escape(&problem.message),
        ]
    };
    let rows: Vec<_> = report.input.problems.iter().map(row).collect();
    let grid = (!rows.is_empty()).then(|| Grid {
        head: head(&["problem", "count", "first", "reason"]),
        rows,
    })?;
    Some(Section {
        title: "Problems".to_owned(),
        lines: Vec::new(),
        grid: Some(grid),
        notes: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_without_anything_are_left_out_and_the_first_never() {
        let grid = Grid {
            head: head(&["stage", "P50", "placed", ""]),
            rows: vec![head(&["", "1 ms", NONE, ""]), head(&["", NONE, NONE, ""])],
        };
        let expected = Grid {
            head: head(&["stage", "P50"]),
            rows: vec![head(&["", "1 ms"]), head(&["", NONE])],
        };
        assert_eq!(grid.without_empty_columns(), expected);
    }
}
