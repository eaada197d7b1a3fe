//! Bodies of fuzz targets: bytes in, and whatever comes out must come out.
//!
//! Not part of the crate's interface. The same bodies replay the corpus in tests.

use crate::binary;
use crate::packages::read_stream;
use crate::policy;
use crate::present;
use crate::reachable::{Cut, Source, build, entry_roots, labels, walk};
use std::path::Path;

/// Largest input of the targets: every table of an ELF file fits many times.
pub const INPUT_BYTES_MAX: usize = 1 << 20;

/// Reads `data` as a program, looks at what is in it, and walks its call graph by both
/// sources of references.
pub fn object(data: &[u8]) {
    let Ok(image) = binary::read(data) else {
        return;
    };
    let pointers = binary::pointers(&image);
    let presence = present::look(&image, &pointers, None, present::read_symbols(&image));
    for source in [Source::Decoded, Source::Relocations] {
        let Some(graph) = build(&image, &pointers, source) else {
            continue;
        };
        let labels = labels(&graph, &image, &presence);
        let roots = entry_roots(&image, &graph);
        let reached = walk(&graph, &roots, &Cut::default());
        // Some of them: routes of all are the square of a chain of calls.
        for index in (0..graph.functions.list.len()).step_by(7) {
            let _ = labels.words(&graph, &reached.route(index));
        }
    }
}

/// Reads `data` as a policy.
pub fn policy(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = policy::parse(Path::new("policy.toml"), text);
    }
}

/// Reads `data` as an artifact stream.
pub fn artifacts(data: &[u8]) {
    let _ = read_stream(data, "x86_64-unknown-linux-gnu");
}

/// Demangles each line of `data` and takes its paths apart.
pub fn names(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        for line in text.lines() {
            let name = binary::code_name(line);
            let _ = binary::paths_in(&name.display);
            let _ = binary::owning_paths(&name.display);
            let _ = present::owner_of(line, None);
        }
    }
}
