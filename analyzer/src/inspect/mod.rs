//! Looks at the trace as a whole: orphans, ids and roots ([`traces`]), spans that
//! cannot lie where they are said to ([`nesting`]), and what processes say about
//! their own traces. Yields problems and changes nothing.

mod nesting;
mod traces;

use hashbrown::HashMap;

use crate::model::chain_rules::Closing;
use crate::model::lens::Lens;
use crate::problems::{Code, Problems};
use crate::trace::names::Symbol;
use crate::trace::span::Value;

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
    name: Option<Symbol>,
    foreign: bool,
    closed: bool,
    dropped: i64,
    rejected: i64,
}

impl Process {
    /// Whether there is nothing to say about it.
    fn is_sound(&self) -> bool {
        self.closed && self.dropped <= 0 && self.rejected <= 0 && !self.foreign
    }
}

fn processes(lens: &Lens<'_>, closing: &Closing, problems: &mut Problems) {
    let names = &lens.data.names;
    let find = |key: &str| names.find(key);
    let keys = (
        find(&closing.version),
        find(&lens.model.keys.process),
        find(&closing.r#final),
        find(&closing.dropped),
        find(&closing.rejected),
        find(coldpath_trace_format::attributes::SERVICE_NAME),
    );
    let mut found: HashMap<Symbol, Process> = HashMap::new();
    for resource in &lens.data.resources {
        let value = |key: Option<Symbol>| resource.attributes.get(key?);
        let number = |key| value(key).and_then(Value::integer);
        let (Some(version), Some(Value::Text(id))) = (number(keys.0), value(keys.1)) else {
            continue;
        };
        let process = found.entry(id).or_default();
        process.foreign |= version != closing.supported;
        process.closed |= value(keys.2) == Some(Value::Bool(true));
        process.dropped = process.dropped.max(number(keys.3).unwrap_or(0));
        process.rejected = process.rejected.max(number(keys.4).unwrap_or(0));
        if let Some(Value::Text(name)) = value(keys.5) {
            process.name = Some(name);
        }
    }
    let mut found: Vec<(&str, Process)> = found
        .into_iter()
        .filter(|(_, process)| !process.is_sound())
        .map(|(id, process)| (names.text(id), process))
        .collect();
    found.sort_by_key(|(id, _)| *id);
    for (id, process) in found {
        let name = process.name.map_or("", |name| names.text(name));
        let who = format!("{name} {id}");
        if process.foreign {
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
