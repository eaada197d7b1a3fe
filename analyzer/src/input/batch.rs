//! What has been read so far. Owns everything, so that batches may be filled
//! apart from each other.

use std::collections::HashMap;

use crate::problems::Problems;
use crate::trace::dataset::Counts;
use crate::trace::names::{Names, Symbol};
use crate::trace::span::{Attributes, Resource, ResourceIndex, Span, Value};

use super::chrome::ChromeEvent;
use super::client::ClientRecord;
use super::manifest::Manifest;
use super::profile::{PhaseProfile, SessionProfile};

/// Records in the order of reading, with the problems met.
#[derive(Debug, Default)]
pub struct Batch {
    /// Texts of everything below.
    pub names: Names,
    /// Spans.
    pub spans: Vec<Span>,
    /// Resources, each kind once.
    pub resources: Vec<Resource>,
    /// Phase profiles.
    pub profiles: Vec<PhaseProfile>,
    /// Session profiles.
    pub session_profiles: Vec<SessionProfile>,
    /// Client records.
    pub clients: Vec<ClientRecord>,
    /// Chrome trace events, until they are assembled.
    pub chrome: Vec<ChromeEvent>,
    /// Manifests of experiments.
    pub manifests: Vec<Manifest>,
    /// Documents of this project that hold no measurement.
    pub documents: usize,
    /// Records by kind.
    pub counts: Counts,
    /// What was wrong.
    pub problems: Problems,
    /// Room for the attributes of the span that is being read.
    pub(super) held: Vec<(Symbol, Value)>,
    /// Resource used last: most lines of a file share it.
    last_resource: usize,
    /// Resources by their hash.
    by_hash: HashMap<u64, Vec<u32>>,
}

/// What a [`Batch`] held at one time.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    spans: usize,
    counted: u64,
    resources: usize,
}

impl Batch {
    /// How many records there are of all kinds.
    #[must_use]
    pub fn holdings(&self) -> u64 {
        let own = self.clients.len() + self.manifests.len() + self.documents + self.chrome.len();
        let counts = self.counts;
        counts.spans + counts.logs + counts.metrics + counts.profiles + own as u64
    }

    /// How much is there, for [`Batch::undo_to`].
    pub(super) fn mark(&self) -> Mark {
        Mark {
            spans: self.spans.len(),
            counted: self.counts.spans,
            resources: self.resources.len(),
        }
    }

    /// Takes back the spans and resources that came after a mark; texts stay,
    /// which nobody names any more.
    pub(super) fn undo_to(&mut self, mark: Mark) {
        self.spans.truncate(mark.spans);
        self.counts.spans = mark.counted;
        for resource in self.resources.drain(mark.resources..) {
            if let Some(same) = self.by_hash.get_mut(&resource.hash()) {
                same.retain(|index| (*index as usize) < mark.resources);
            }
        }
        self.last_resource = 0;
    }

    /// Stands in a span until its resource has been read.
    pub(super) fn no_resource() -> ResourceIndex {
        ResourceIndex(u32::MAX)
    }

    /// The index of a resource with these attributes.
    pub fn resource(&mut self, attributes: Attributes) -> ResourceIndex {
        let new = Resource { attributes };
        if self.resources.get(self.last_resource) != Some(&new) {
            self.last_resource = self.find_or_add(new);
        }
        ResourceIndex(u32::try_from(self.last_resource).unwrap_or(u32::MAX))
    }

    fn find_or_add(&mut self, new: Resource) -> usize {
        let same = self.by_hash.entry(new.hash()).or_default();
        let known = same.iter().map(|index| *index as usize);
        let found = known
            .into_iter()
            .find(|index| self.resources.get(*index) == Some(&new));
        found.unwrap_or_else(|| {
            let index = self.resources.len();
            same.push(u32::try_from(index).unwrap_or(u32::MAX));
            self.resources.push(new);
            index
        })
    }
}
