//! What has been read so far. Owns everything, so that batches may be filled
//! apart from each other.

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::problems::Problems;
use crate::trace::attributes::Attributes;
use crate::trace::dataset::Counts;
use crate::trace::names::{Names, Symbol};
use crate::trace::span::{Resource, ResourceIndex, Span, Value};

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
    /// Hashes and places of the resources, to be found by what they are.
    by_hash: HashTable<(u64, u32)>,
    hasher: DefaultHashBuilder,
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
        let known = |(_, index): &mut (u64, u32)| (*index as usize) < mark.resources;
        if self.resources.len() > mark.resources {
            self.by_hash.retain(known);
            self.resources.truncate(mark.resources);
        }
        self.last_resource = 0;
    }

    /// Gives back what finds a resource; none is added any more.
    pub(super) fn forget_places(&mut self) {
        self.by_hash = HashTable::new();
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
        let hash = new.hash(&self.hasher);
        let resources = &self.resources;
        let same = |(own, index): &(u64, u32)| {
            *own == hash && resources.get(*index as usize) == Some(&new)
        };
        if let Some((_, found)) = self.by_hash.find(hash, same) {
            return *found as usize;
        }
        let index = resources.len();
        let short = u32::try_from(index).unwrap_or(u32::MAX);
        self.by_hash
            .insert_unique(hash, (hash, short), |(own, _)| *own);
        self.resources.push(new);
        index
    }
}
