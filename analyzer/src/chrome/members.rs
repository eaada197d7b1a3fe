//! Which spans are a run's: those that its chain is made of, and what stands
//! above and below them and is no other run's.

use std::collections::BTreeSet;

use hashbrown::HashMap;

use crate::chain::Run;
use crate::model::lens::Lens;
use crate::trace::dataset::SpanIndex;

/// The runs that spans belong to.
pub struct Owners {
    /// The run that alone has a span; a process's shared part is its first run's.
    of: HashMap<SpanIndex, usize>,
}

impl Owners {
    /// Looks through all runs.
    #[must_use]
    pub fn new(runs: &[Run<'_>]) -> Self {
        let mut of = HashMap::new();
        for (place, run) in runs.iter().enumerate() {
            for span in own(run) {
                of.entry(span).or_insert(place);
            }
        }
        Self { of }
    }

    fn is_others(&self, span: SpanIndex, place: usize) -> bool {
        self.of.get(&span).is_some_and(|owner| *owner != place)
    }
}

/// The spans that make up a run. The process part belongs to its first run only.
fn own(run: &Run<'_>) -> Vec<SpanIndex> {
    let process = run.first_of_process.then(|| run.process.spans());
    let requests = run.requests.iter();
    let requests =
        requests.flat_map(|request| std::iter::once(&request.span).chain(request.below.spans()));
    let parts = run.channel.spans().iter().chain(run.client.spans());
    let parts = parts.chain(process.into_iter().flatten());
    parts.chain(requests).copied().collect()
}

/// All spans of the run at `place`, in canonical order. What belongs to another
/// run, or names another channel, is not entered.
#[must_use]
pub fn spans(lens: &Lens<'_>, run: &Run<'_>, place: usize, owners: &Owners) -> Vec<SpanIndex> {
    let channel = run.channel_id.and_then(|id| lens.data.names.find(id));
    let foreign = |span: SpanIndex| {
        let other = lens.channel_of(span);
        let names_other = channel.is_some() && other.is_some() && other != channel;
        let shared = !run.first_of_process && run.process.spans().contains(&span);
        owners.is_others(span, place) || names_other || shared
    };
    let mut found: BTreeSet<SpanIndex> = BTreeSet::new();
    let mut open = Vec::new();
    for span in own(run) {
        let above = lens.tree.ancestors(span).take_while(|span| !foreign(*span));
        for span in std::iter::once(span).chain(above) {
            if !found.insert(span) {
                break;
            }
            open.push(span);
        }
    }
    while let Some(span) = open.pop() {
        for child in lens.tree.children(span) {
            if !foreign(*child) && found.insert(*child) {
                open.push(*child);
            }
        }
    }
    found.into_iter().collect()
}
