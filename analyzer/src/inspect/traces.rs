//! Traces as wholes: ids that were cut, and roots that should be one.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::model::lens::Lens;
use crate::problems::{Code, Problems};
use crate::trace::span::TraceId;

/// Bytes of a trace id that older tracers leave out.
const UPPER_HALF: usize = 8;

/// 64-bit trace ids; where one is the lower half of another, that is suggested
/// and nothing is merged.
pub(super) fn short_ids(lens: &Lens<'_>, problems: &mut Problems) {
    // Spans stand by trace, so that equal ids are neighbours.
    let traces = || lens.data.spans.iter().map(|span| &span.trace);
    let is_short = |trace: &&TraceId| trace.0[..UPPER_HALF] == [0; UPPER_HALF];
    let mut short: Vec<&TraceId> = traces().filter(is_short).collect();
    short.dedup();
    if short.is_empty() {
        return;
    }
    let by_lower_half: BTreeMap<&[u8], &TraceId> = traces()
        .filter(|trace| !is_short(trace))
        .map(|trace| (&trace.0[UPPER_HALF..], trace))
        .collect();
    for trace in short {
        let id = hex(&trace.0[UPPER_HALF..]);
        let reason = match by_lower_half.get(&trace.0[UPPER_HALF..]) {
            Some(whole) => format!(
                "trace {id} has a 64-bit id that is the lower half of {}; they are not merged",
                hex(&whole.0)
            ),
            None => format!("trace {id} has a 64-bit id"),
        };
        problems.add(Code::ShortTraceId, None, reason);
    }
}

/// Traces with several roots, where each root is taken for a run.
pub(super) fn several_roots(lens: &Lens<'_>, problems: &mut Problems) {
    if !lens.model.chain.run_per_request {
        return;
    }
    let mut roots: BTreeMap<TraceId, u64> = BTreeMap::new();
    for span in lens.data.indices() {
        if lens.tree.parent(span).is_none() {
            *roots.entry(lens.data.span(span).trace).or_default() += 1;
        }
    }
    for (trace, count) in roots.iter().filter(|(_, count)| **count > 1) {
        let reason = format!(
            "trace {} has {count} roots; each is a run of its own",
            hex(&trace.0)
        );
        problems.add(Code::SeveralRoots, None, reason);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
