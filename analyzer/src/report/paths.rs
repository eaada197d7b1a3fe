//! Which way the requests went: values of an attribute, counted over complete runs.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::lens::Lens;
use crate::model::window_rules::PathRule;

use super::build::Row;

/// Runs that are named for a value; more are only counted.
const NAMED_MAX: usize = 4;

/// One attribute and its values.
#[derive(Clone, Debug, Serialize)]
pub struct PathReport {
    /// Name.
    pub name: String,
    /// Requests or runs in which the span was looked for.
    pub n: usize,
    /// The values met, the most frequent first.
    pub values: Vec<PathValue>,
}

/// One value.
#[derive(Clone, Debug, Serialize)]
pub struct PathValue {
    /// The value; null where there was none.
    pub value: Option<String>,
    /// How many times it was met.
    pub n: usize,
    /// Runs that have it, where they are few.
    pub runs: Vec<String>,
}

/// Counts the values of one rule; `None` where no run has any.
pub(super) fn path(lens: &Lens<'_>, rule: &PathRule, rows: &[&Row<'_>]) -> Option<PathReport> {
    let mut found: BTreeMap<Option<String>, Vec<&str>> = BTreeMap::new();
    for row in rows {
        for view in row.views() {
            let span = view.first(lens, &rule.of);
            let value = span.and_then(|span| lens.attribute(span, &rule.attribute));
            let value = value.map(|value| value.print(&lens.data.names));
            found.entry(value).or_default().push(&row.run.id);
        }
    }
    if found.keys().all(Option::is_none) {
        return None;
    }
    let n = found.values().map(Vec::len).sum();
    let mut values: Vec<PathValue> = found
        .into_iter()
        .map(|(value, mut runs)| {
            let n = runs.len();
            runs.dedup();
            let few = runs.len() <= NAMED_MAX;
            let runs = runs.into_iter().filter(|_| few).map(str::to_owned);
            PathValue {
                value,
                n,
                runs: runs.collect(),
            }
        })
        .collect();
    values.sort_by(|a, b| b.n.cmp(&a.n).then_with(|| a.value.cmp(&b.value)));
    Some(PathReport {
        name: rule.name.clone(),
        n,
        values,
    })
}
