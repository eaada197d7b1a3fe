//! Puts batches together that were filled apart.
//!
//! Texts and resources are numbered by each batch for itself; here those of one
//! are told in the numbers of the other. What comes out does not depend on which
//! batch was first but for the order of records, which the dataset sorts.

use crate::halves::both;
use crate::trace::dataset::Counts;
use crate::trace::names::{Names, Symbol};
use crate::trace::span::{ResourceIndex, Span};

use super::batch::Batch;

/// Spans after whose taking the emptied part of a batch is given back.
const GIVE_BACK: usize = 65_536;

impl Batch {
    /// Takes over everything that `other` holds.
    pub fn merge(&mut self, mut other: Self) {
        if self.holdings() == 0 && self.problems.is_empty() {
            std::mem::swap(self, &mut other);
            self.counts = sum(self.counts, other.counts);
            return;
        }
        // What finds texts and resources in the other one is not needed any more.
        other.names.close();
        other.forget_places();
        let texts = self.names.take_over(&other.names);
        let mut resources = Vec::with_capacity(other.resources.len());
        for mut resource in other.resources {
            resource.attributes.retell(&texts);
            resources.push(self.resource(resource.attributes));
        }
        let mut left = other.spans;
        let weight = left.len();
        let (first, second) = left.split_at_mut(weight / 2);
        let retell = |spans: &mut [Span]| {
            for span in spans {
                retell(span, &texts, &resources);
            }
        };
        both(weight, || retell(first), || retell(second));
        self.spans.reserve_exact(weight);
        while let Some(span) = left.pop() {
            // What was taken is given back, so that no span is held twice for long.
            if left.len().is_multiple_of(GIVE_BACK) {
                left.shrink_to_fit();
            }
            self.spans.push(span);
        }
        let chrome = other.chrome.into_iter();
        self.chrome.extend(chrome.map(|event| event.retold(&texts)));
        self.profiles.extend(other.profiles);
        self.session_profiles.extend(other.session_profiles);
        self.clients.extend(other.clients);
        self.manifests.extend(other.manifests);
        self.documents += other.documents;
        self.counts = sum(self.counts, other.counts);
        self.problems.merge(other.problems);
    }
}

/// Tells a span in other numbers for its texts and its resource.
fn retell(span: &mut Span, texts: &[Symbol], resources: &[ResourceIndex]) {
    let retold = |symbol: Symbol| texts[symbol.place()];
    span.name = retold(span.name);
    span.message = span.message.map(retold);
    let ResourceIndex(resource) = span.resource;
    span.resource = resources[resource as usize];
    span.attributes.retell(texts);
    for event in span.extra.iter_mut().flat_map(|extra| &mut extra.events) {
        event.name = retold(event.name);
        event.attributes.retell(texts);
    }
}

impl Names {
    /// Interns all texts of `other`; the symbol of each, by its place there.
    fn take_over(&mut self, other: &Self) -> Vec<Symbol> {
        let (texts, bytes) = other.size();
        self.reserve(texts, bytes);
        other.texts().map(|text| self.intern(text)).collect()
    }
}

fn sum(a: Counts, b: Counts) -> Counts {
    Counts {
        spans: a.spans + b.spans,
        logs: a.logs + b.logs,
        metrics: a.metrics + b.metrics,
        profiles: a.profiles + b.profiles,
        not_traces: a.not_traces + b.not_traces,
    }
}
