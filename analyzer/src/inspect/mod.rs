//! Looks at the trace as a whole: orphans, ids and roots ([`traces`]), spans that
//! cannot lie where they are said to ([`nesting`]), and what processes say about
//! their own traces. Yields problems and changes nothing.

mod nesting;
mod traces;

use std::collections::{BTreeMap, BTreeSet};

use crate::model::chain_rules::Closing;
use crate::model::lens::Lens;
use crate::problems::{Code, Problems};
use crate::trace::span::{Resource, Value, attribute};

/// Problems of the data as the model sees it.
#[must_use]
pub fn inspect(lens: &Lens<'_>) -> Problems {
    let mut problems = Problems::default();
    orphans(lens, &mut problems);
    traces::short_ids(lens, &mut problems);
    traces::several_roots(lens, &mut problems);
    nesting::nesting(lens, &mut problems);
    if let Some(closing) = &lens.model.closing {
        processes(lens, closing, &mut problems);
    }
    problems
}

/// A request may have its parent in somebody else's trace; other spans have
/// lost theirs.
fn orphans(lens: &Lens<'_>, problems: &mut Problems) {
    for span in lens.tree.orphans() {
        if lens.rule(*span).is_some_and(|rule| rule.remote_parent) {
            continue;
        }
        let name = lens.data.names.text(lens.data.span(*span).name);
        problems.add(
            Code::OrphanSpan,
            None,
            format!("the parent of span `{name}` is in none of the files"),
        );
    }
}

/// What is known of one process from all of its resources.
#[derive(Default)]
struct Process {
    name: String,
    versions: BTreeSet<i64>,
    closed: bool,
    dropped: i64,
    rejected: i64,
}

fn processes(lens: &Lens<'_>, closing: &Closing, problems: &mut Problems) {
    let mut found: BTreeMap<&str, Process> = BTreeMap::new();
    for resource in &lens.data.resources {
        let text = |key: &str| value(lens, resource, key).and_then(|value| lens.data.text(value));
        let number = |key: &str| value(lens, resource, key).and_then(Value::integer);
        let (Some(version), Some(id)) = (number(&closing.version), text(&lens.model.keys.process))
        else {
            continue;
        };
        let process = found.entry(id).or_default();
        process.versions.insert(version);
        process.closed |= value(lens, resource, &closing.r#final) == Some(Value::Bool(true));
        process.dropped = process.dropped.max(number(&closing.dropped).unwrap_or(0));
        process.rejected = process.rejected.max(number(&closing.rejected).unwrap_or(0));
        if let Some(name) = text(coldpath_trace_format::attributes::SERVICE_NAME) {
            name.clone_into(&mut process.name);
        }
    }
    for (id, process) in found {
        let who = format!("{} {id}", process.name);
        if process
            .versions
            .iter()
            .any(|version| *version != closing.supported)
        {
            let reason = format!(
                "{who} wrote another version of the trace contract than {}",
                closing.supported
            );
            problems.add(Code::ForeignVersion, None, reason);
        }
        if !process.closed {
            problems.add(
                Code::TraceNotClosed,
                None,
                format!("the trace of {who} has no final line: it was killed or is still running"),
            );
        }
        if process.dropped > 0 {
            problems.add(
                Code::DroppedSpans,
                None,
                match process.dropped {
                    1 => format!("{who} dropped 1 span"),
                    dropped => format!("{who} dropped {dropped} spans"),
                },
            );
        }
        if process.rejected > 0 {
            problems.add(
                Code::ContextRejected,
                None,
                format!("{who} was handed trace context or a spawn stamp that it refused"),
            );
        }
    }
}

fn value(lens: &Lens<'_>, resource: &Resource, key: &str) -> Option<Value> {
    attribute(&resource.attributes, lens.data.names.find(key)?)
}
