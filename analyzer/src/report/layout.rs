//! The report laid out in sections, before it is drawn as a table or Markdown.

use std::fmt::Write as _;

use crate::breakdown::client;
use crate::units::Nanos;

use super::covariates::Covariate;
use super::findings::parts_of;
use super::numbers::{NONE, amount, coefficient, escape, or_none, percent, signed_time, time};
use super::paths::{PathReport, PathValue};
use super::{
    Amount, CohortReport, Comparison, DrillReport, MetricReport, Report, StageReport, WindowReport,
};

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
    let drills = report.drill_through.iter().map(drill);
    let mut windows = report.windows.iter().map(window);
    all.extend(windows.next());
    all.extend(drills);
    all.extend(windows);
    all.extend(groups(report));
    all.extend(scheduler(report));
    all.extend(correlations(report));
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
            or_none(one.p, |p| format!("{p:.3}")),
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

fn window(window: &WindowReport) -> Section {
    let show = |value: Option<Nanos>| or_none(value, |value| time(value, window.quantum));
    let row = |stage: &StageReport| {
        let mut name = escape(&stage.name);
        if stage.n_present < stage.n && stage.name != window.unattributed.name {
            let _ = write!(name, " ({}/{})", stage.n_present, stage.n);
        }
        vec![
            name,
            show(stage.p50),
            show(stage.p95),
            show(stage.max),
            or_none(stage.share_p50, percent),
            show(stage.p50_attribution),
            or_none(stage.variance_share, percent),
            or_none(stage.p95_excess, |value| signed_time(value, window.quantum)),
        ]
    };
    let mut rows: Vec<_> = window.stages.iter().map(row).collect();
    if !window.stages.is_empty() {
        rows.push(row(&window.unattributed));
    }
    let sum = |value: &dyn Fn(&StageReport) -> Option<Nanos>| {
        let parts: Option<Vec<i64>> = window
            .stages
            .iter()
            .chain([&window.unattributed])
            .map(|stage| value(stage).map(|time| time.0))
            .collect();
        parts.map(|parts| Nanos(parts.iter().sum()))
    };
    rows.push(vec![
        "total".to_owned(),
        show(window.total.p50),
        show(window.total.p95),
        show(window.total.max),
        percent(1.0),
        show(sum(&|stage| stage.p50_attribution)),
        if window.unattributed.variance_share.is_some() {
            percent(1.0)
        } else {
            NONE.to_owned()
        },
        or_none(sum(&|stage| stage.p95_excess), |value| {
            signed_time(value, window.quantum)
        }),
    ]);
    let grid = Grid {
        head: head(&[
            "stage",
            "P50",
            "P95",
            "max",
            "share",
            "P50 runs",
            "variance",
            "slow runs",
        ]),
        rows,
    };
    Section {
        title: if window.runs == window.n {
            format!("{} (n = {})", window.title, window.n)
        } else {
            format!(
                "{} (n = {} in {} runs)",
                window.title, window.n, window.runs
            )
        },
        lines: Vec::new(),
        grid: Some(grid),
        notes: Vec::new(),
    }
}

/// Where the time of each stage went; the client's window repeats the request's.
fn scheduler(report: &Report) -> Option<Section> {
    let mut rows = Vec::new();
    for window in report
        .windows
        .iter()
        .filter(|window| window.name != client::WINDOW)
    {
        let show = |value| time(value, window.quantum);
        for stage in &window.stages {
            let Some(sched) = &stage.sched else { continue };
            let name = format!("{} / {}", escape(&window.name), escape(&stage.name));
            rows.push(match (&sched.from, parts_of(sched)) {
                // Another process's times are not parts of this stage: only their
                // proportions say what is waited for.
                (Some(from), Some(parts)) => {
                    let [cpu, runq, blocked] = parts.map(percent);
                    vec![name, escape(from), cpu, runq, blocked]
                }
                _ => vec![
                    name,
                    "itself".to_owned(),
                    show(sched.cpu),
                    show(sched.runq),
                    show(sched.blocked),
                ],
            });
        }
    }
    (!rows.is_empty()).then(|| Section {
        title: "On a processor, waiting for one, blocked (P50 of the thread that ran it)"
            .to_owned(),
        lines: Vec::new(),
        grid: Some(Grid {
            head: head(&["window / stage", "of", "running", "waiting", "blocked"]),
            rows,
        }),
        notes: Vec::new(),
    })
}

fn drill(drill: &DrillReport) -> Section {
    let show = |value: Option<Nanos>| or_none(value, |value| time(value, drill.quantum));
    let mut rows: Vec<_> = drill
        .phases
        .iter()
        .map(|phase| {
            let place = or_none(phase.placed, |[low, high]| {
                format!(
                    "{} … {}",
                    time(low, drill.quantum),
                    time(high, drill.quantum)
                )
            });
            vec![
                escape(&phase.name),
                show(phase.p50),
                or_none(phase.share, percent),
                place,
            ]
        })
        .collect();
    rows.push(vec![
        "uncovered".to_owned(),
        show(drill.uncovered.p50),
        or_none(drill.uncovered.share, percent),
        NONE.to_owned(),
    ]);
    let placed = drill.phases.iter().any(|phase| phase.placed.is_some());
    let note = "placed: the source has no start times; phases are laid out from the end, and the interval says how far off that can be";
    Section {
        title: format!(
            "What covers {} (from {}, n = {})",
            escape(&drill.stage),
            escape(&drill.explained_by),
            drill.n
        ),
        lines: Vec::new(),
        grid: Some(Grid {
            head: head(&["phase", "P50", "share", "placed"]),
            rows,
        }),
        notes: if placed {
            vec![note.to_owned()]
        } else {
            Vec::new()
        },
    }
}

fn groups(report: &Report) -> Option<Section> {
    let row = |group: &super::GroupReport| {
        let quantum = report
            .windows
            .iter()
            .find(|window| window.name == group.of)
            .map_or(Nanos(1), |window| window.quantum);
        vec![
            group.title.clone(),
            group.of.clone(),
            or_none(group.p50, |value| time(value, quantum)),
            or_none(group.share_p50, percent),
        ]
    };
    let rows: Vec<_> = report.groups.iter().map(row).collect();
    let grid = (!rows.is_empty()).then(|| Grid {
        head: head(&["group", "of", "P50", "share"]),
        rows,
    })?;
    Some(Section {
        title: "Groups".to_owned(),
        lines: Vec::new(),
        grid: Some(grid),
        notes: Vec::new(),
    })
}

fn correlations(report: &Report) -> Option<Section> {
    let window = report.windows.first()?;
    let rows: Vec<_> = window
        .stages
        .iter()
        .chain([&window.unattributed])
        .map(|stage| {
            let found = &stage.correlation;
            let interval = or_none(found.pearson_ci, |[low, high]| {
                format!("{} … {}", coefficient(low), coefficient(high))
            });
            let slope = or_none(found.slope, coefficient);
            let reason = found.reason.clone().unwrap_or_default();
            vec![
                escape(&stage.name),
                or_none(found.pearson, coefficient),
                interval,
                or_none(found.spearman, coefficient),
                slope,
                reason,
            ]
        })
        .collect();
    Some(Section {
        title: format!("Correlation with {}", window.unattributed.correlation.with),
        lines: Vec::new(),
        grid: Some(Grid {
            head: head(&["stage", "Pearson", "95 % interval", "Spearman", "slope", ""]),
            rows,
        }),
        notes: Vec::new(),
    })
}

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
