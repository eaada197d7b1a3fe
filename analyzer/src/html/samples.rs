//! The samples behind a window's summary, taken from the report's runs, and
//! which of them are drawn. Takes and selects; computes nothing that is printed.

use crate::breakdown::client;
use crate::report::{Amount, Report, RunReport, RunWindowReport, WindowReport};

/// Points of one stage that are drawn; more only lie on each other.
pub(super) const POINTS_MAX: usize = 250;
/// The same where several cohorts are drawn.
pub(super) const POINTS_OF_COHORT_MAX: usize = 100;

/// One stage over the windows of a name, in the order of the runs.
pub(super) struct Sample {
    /// Its time, milliseconds.
    pub(super) time: f64,
    /// What the client waited, milliseconds.
    pub(super) latency: Option<f64>,
}

/// Windows of a name of the complete runs of a cohort, each with its run.
pub(super) fn windows<'r>(
    report: &'r Report,
    cohort: Option<&'r str>,
    name: &'r str,
) -> Vec<(&'r RunReport, &'r RunWindowReport)> {
    let runs = counted(report, cohort);
    let all = runs.flat_map(|run| run.windows.iter().map(move |window| (run, window)));
    all.filter(|(_, window)| window.name == name).collect()
}

/// Complete runs that did not fail, of a cohort.
fn counted<'r>(report: &'r Report, cohort: Option<&'r str>) -> impl Iterator<Item = &'r RunReport> {
    let items = report.runs.items.iter();
    items.filter(move |run| {
        run.complete == Some(true)
            && run.failure.is_none()
            && cohort.is_none_or(|cohort| run.cohort == cohort)
    })
}

/// The times of one stage; a run without it has 0, as in the report.
pub(super) fn stage(
    report: &Report,
    windows: &[(&RunReport, &RunWindowReport)],
    name: Option<&str>,
    latency: &str,
) -> Vec<Sample> {
    let column = report.metrics.iter().position(|one| one.name == latency);
    let sample = |(run, window): &(&RunReport, &RunWindowReport)| {
        let time = match name {
            None => window.unattributed_ns,
            Some(name) => {
                let stages = window.stages.0.iter();
                let mine = stages.filter(|(stage, _)| stage == name);
                mine.map(|(_, time)| time).sum()
            }
        };
        Sample {
            time: time as f64 / 1e6,
            latency: latency_of(run, window.request, column),
        }
    };
    windows.iter().map(sample).collect()
}

/// What the client waited for one cold request, in milliseconds.
fn latency_of(run: &RunReport, request: usize, column: Option<usize>) -> Option<f64> {
    if run.windows.iter().any(|window| window.request > 1) {
        let mut all = run.windows.iter();
        let own = all.find(|one| one.name == client::WINDOW && one.request == request)?;
        return Some(own.total_ns as f64 / 1e6);
    }
    match run.metrics.0.get(column?)?.1? {
        Amount::Time(nanos) => Some(nanos.as_ms()),
        _ => None,
    }
}

/// Values of one metric of time, in milliseconds, of the runs of a cohort that
/// have it, ascending; and how many runs failed before they had it.
pub(super) fn metric(report: &Report, cohort: Option<&str>, name: &str) -> (Vec<f64>, usize) {
    let Some(column) = report.metrics.iter().position(|one| one.name == name) else {
        return (Vec::new(), 0);
    };
    let runs = report.runs.items.iter();
    let mine = runs.filter(|run| cohort.is_none_or(|cohort| run.cohort == cohort));
    let (mut values, mut failed) = (Vec::new(), 0);
    for run in mine {
        match run.metrics.0.get(column).and_then(|(_, value)| *value) {
            Some(Amount::Time(nanos)) => values.push(nanos.as_ms()),
            _ => failed += usize::from(run.failure.is_some()),
        }
    }
    values.sort_by(f64::total_cmp);
    (values, failed)
}

/// Places of at most `max` of `n` things at even distances, first and last
/// among them.
pub(super) fn evenly(n: usize, max: usize) -> Vec<usize> {
    if n <= max || max < 2 {
        return (0..n).collect();
    }
    (0..max).map(|step| step * (n - 1) / (max - 1)).collect()
}

/// What a plot's caption says where points were left out.
pub(super) fn thinned(drawn: usize, n: usize) -> Option<String> {
    (drawn < n).then(|| format!("{drawn} of {n} points drawn"))
}

/// Whether the samples of a stage are known: the last of a window may be the
/// sum of many, which no run has by itself.
pub(super) fn is_summed(window: &WindowReport, place: usize) -> bool {
    window.others > 0 && place + 1 == window.stages.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_both_ends_and_even_distances() {
        assert_eq!(evenly(3, 5), [0, 1, 2]);
        assert_eq!(evenly(9, 5), [0, 2, 4, 6, 8]);
        assert_eq!(evenly(1000, 3), [0, 499, 999]);
    }
}
