//! The report laid out in sections, before it is drawn as a table or Markdown.

mod windows;

use std::fmt::Write as _;

use crate::units::Nanos;

use super::covariates::Covariate;
use super::numbers::{NONE, amount, coefficient, escape, or_none};
use super::paths::{PathReport, PathValue};
use super::{Amount, CohortReport, Comparison, MetricReport, Report};

/// Rows of equally many cells; the first cell names the row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grid {
    /// Head of each column.
    pub head: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
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
    let mut all = vec![findings(report), coverage(report)];
    // Pooled over cohorts these would say nothing; each has its own below.
    if report.cohorts.is_empty() {
        all.push(metrics("End to end", &report.metrics));
    }
    all.extend(report.cohorts.iter().map(cohort));
    all.extend(comparisons(&report.comparisons));
    let drills = report.drill_through.iter().map(windows::drill);
    let mut breakdowns = report.windows.iter().map(windows::window);
    all.extend(breakdowns.next());
    all.extend(drills);
    all.extend(breakdowns);
    all.extend(windows::groups(report));
    all.extend(windows::scheduler(report));
    all.extend(windows::correlations(report));
    all.extend(covariates(report));
    all.extend(problems(report));
    all.retain(|section| !section.lines.is_empty() || section.grid.is_some());
    all
}

fn head(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| (*cell).to_owned()).collect()
}

fn findings(report: &Report) -> Section {
    let lines = report
        .findings
        .iter()
        .map(|finding| escape(&finding.text))
        .collect();
    Section {
        title: "Findings".to_owned(),
        lines,
        ..Section::default()
    }
}

fn coverage(report: &Report) -> Section {
    let runs = &report.runs;
    let records = &report.input.records;
    let mut first = format!(
        "model {}; chains complete {}/{}",
        report.model, runs.complete, runs.traced
    );
    let counts = [
        (runs.failed, "failed"),
        (runs.not_traced, "not traced"),
        (runs.warmup, "warm-up left out"),
    ];
    for (count, what) in counts.iter().filter(|(count, _)| *count > 0) {
        // Writing to a String cannot fail.
        let _ = write!(first, "; {count} {what}");
    }
    let mut second = format!(
        "{} files; {} spans, {} logs, {} metrics, {} profiles parsed",
        report.input.files, records.spans, records.logs, records.metrics, records.profiles
    );
    if runs.profile_joins.of > 0 {
        let joins = runs.profile_joins;
        let _ = write!(second, "; profile joins {}/{}", joins.joined, joins.of);
    }
    if report.input.not_traces > 0 {
        let _ = write!(second, "; {} files hold no trace", report.input.not_traces);
    }
    let mut lines = vec![first, second];
    lines.extend(report.paths.iter().map(path));
    lines.extend(runs.incomplete.iter().map(|one| {
        format!(
            "{} lacks {}",
            escape(&one.run),
            escape(&one.missing.join(", "))
        )
    }));
    Section {
        title: "Coverage".to_owned(),
        lines,
        ..Section::default()
    }
}

/// Which way the requests went, in one line.
fn path(path: &PathReport) -> String {
    let value = |value: &PathValue| {
        let mut text = format!(
            "{} {}/{}",
            value
                .value
                .as_deref()
                .map_or_else(|| NONE.to_owned(), escape),
            value.n,
            path.n
        );
        // Where a minority went another way, which it was is worth knowing.
        if value.n * 2 < path.n && !value.runs.is_empty() {
            let _ = write!(text, " ({})", escape(&value.runs.join(", ")));
        }
        text
    };
    let values: Vec<String> = path.values.iter().map(value).collect();
    format!("{}: {}", escape(&path.name), values.join(", "))
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
    Some(Section {
        title: format!("What else goes along with {with} (within cohorts)"),
        lines: Vec::new(),
        grid: Some(Grid {
            head: head(&["name", "role", "n", "Pearson", "Spearman", "p (Holm)", ""]),
            rows,
        }),
        notes: vec![note.to_owned()],
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

fn metrics(title: &str, metrics: &[MetricReport]) -> Section {
    let rows: Vec<_> = metrics
        .iter()
        .filter(|metric| metric.n > 0)
        .map(metric_row)
        .collect();
    let absent: Vec<_> = metrics
        .iter()
        .filter(|metric| metric.n == 0)
        .map(|metric| metric.name.as_str())
        .collect();
    let mut notes = Vec::new();
    if !absent.is_empty() {
        notes.push(format!("not in these runs: {}", absent.join(", ")));
    }
    let grid = (!rows.is_empty()).then(|| Grid {
        head: head(&["metric", "n", "P50", "95 % interval", "P95", "max", "mean"]),
        rows,
    });
    Section {
        title: title.to_owned(),
        lines: Vec::new(),
        grid,
        notes,
    }
}

fn metric_row(metric: &MetricReport) -> Vec<String> {
    let print = |value: Amount| amount(value, Nanos(1));
    let bounded = |value: Option<Amount>| match (value, metric.above) {
        (Some(value), _) => print(value),
        (None, Some(bound)) => format!("> {}", print(bound)),
        (None, None) => NONE.to_owned(),
    };
    let interval = or_none(metric.p50_ci, |[low, high]| {
        format!("{} … {}", or_none(low, print), or_none(high, print))
    });
    vec![
        escape(&metric.name),
        metric.n.to_string(),
        bounded(metric.p50),
        interval,
        bounded(metric.p95),
        bounded(metric.max),
        or_none(metric.mean, print),
    ]
}

/// Where the time of each stage went; the client's window repeats the request's.
fn cohort(cohort: &CohortReport) -> Section {
    metrics(
        &format!("Cohort {} (n = {})", escape(&cohort.name), cohort.n),
        &cohort.metrics,
    )
}

fn comparisons(comparisons: &[Comparison]) -> Option<Section> {
    let print = |value: Amount| amount(value, Nanos(1));
    let row = |one: &Comparison| {
        let shift = or_none(one.shift.estimate, print);
        let shift_ci = or_none(one.shift.low.zip(one.shift.high), |(low, high)| {
            format!("{} … {}", print(low), print(high))
        });
        let three = |value: f64| format!("{value:.3}");
        let ratio_ci = or_none(one.ratio.low.zip(one.ratio.high), |(low, high)| {
            format!("{low:.3} … {high:.3}")
        });
        vec![
            format!(
                "{}: {} − {}",
                escape(&one.metric),
                escape(&one.candidate),
                escape(&one.control)
            ),
            one.n_pairs.to_string(),
            shift,
            shift_ci,
            or_none(one.ratio.estimate, three),
            ratio_ci,
        ]
    };
    let rows: Vec<_> = comparisons.iter().map(row).collect();
    let grid = (!rows.is_empty()).then(|| Grid {
        head: head(&[
            "comparison",
            "pairs",
            "shift",
            "95 % interval",
            "ratio",
            "95 % interval",
        ]),
        rows,
    })?;
    Some(Section {
        title: "Paired comparisons (Hodges–Lehmann)".to_owned(),
        lines: Vec::new(),
        grid: Some(grid),
        notes: Vec::new(),
    })
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
