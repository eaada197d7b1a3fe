//! From a session request to its channel, by the model's rules in their order.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::model::by_kind::ByKind;
use crate::model::chain_rules::Join;
use crate::model::lens::{Kind, Lens};
use crate::trace::dataset::SpanIndex;
use crate::trace::names::{Names, Symbol};
use crate::trace::span::Value;
use crate::units::{Interval, Nanos, Timestamp};

/// Identity of a channel attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChannelKey {
    /// Process key.
    pub process: Option<Symbol>,
    /// Channel id.
    pub channel: Symbol,
}

impl ChannelKey {
    /// The key in words, which have an order that no order of reading changes.
    #[must_use]
    pub fn texts(self, names: &Names) -> (Option<&str>, &str) {
        (
            self.process.map(|process| names.text(process)),
            names.text(self.channel),
        )
    }
}

/// One channel attempt and its own spans.
#[derive(Debug)]
pub struct Channel {
    /// Its identity.
    pub key: ChannelKey,
    /// Its spans; none where only requests name it.
    pub spans: SmallVec<[SpanIndex; 4]>,
}

/// All channel attempts, to be found by key and by process.
#[derive(Debug, Default)]
pub struct Channels {
    all: Vec<Channel>,
    by_key: HashMap<ChannelKey, usize>,
    by_process: HashMap<Option<Symbol>, Vec<usize>>,
    /// Of each process and kind that a join by time asks for.
    stretches: HashMap<(Option<Symbol>, Kind), Stretches>,
}

/// Stretches of time by start, to be asked for those that share some of another.
#[derive(Debug, Default)]
struct Stretches {
    all: Vec<Stretch>,
    /// Latest end of each [`BLOCK`] of them: one long stretch spoils one block.
    latest: Vec<Timestamp>,
}

/// Stretches that are passed over at once.
const BLOCK: usize = 128;

/// When a channel had a span of one kind.
#[derive(Debug)]
struct Stretch {
    interval: Interval,
    /// Place of the channel.
    channel: usize,
}

impl Channels {
    /// The attempt with this key, new where it was not met before.
    pub fn entry(&mut self, key: ChannelKey) -> &mut Channel {
        let place = *self.by_key.entry(key).or_insert_with(|| {
            let place = self.all.len();
            self.by_process.entry(key.process).or_default().push(place);
            self.all.push(Channel {
                key,
                spans: SmallVec::new(),
            });
            place
        });
        &mut self.all[place]
    }

    /// All attempts, in no order that means anything.
    #[must_use]
    pub fn all(&self) -> &[Channel] {
        &self.all
    }

    /// The attempts of one process, likewise.
    pub fn of_process(&self, process: Option<Symbol>) -> impl Iterator<Item = &Channel> {
        let places = self.by_process.get(&process).into_iter().flatten();
        places.map(|place| &self.all[*place])
    }
}

impl Channels {
    /// Notes when channels had spans of the kinds that the model joins by time.
    pub fn index_stretches(&mut self, lens: &Lens<'_>) {
        let asked = lens.model.chain.joins.iter().filter_map(|join| match join {
            Join::Overlap { with, .. } => lens.kind(with),
            _ => None,
        });
        let asked: BTreeSet<Kind> = asked.collect();
        for (place, channel) in self.all.iter().enumerate() {
            for span in &channel.spans {
                let Some(kind) = lens.kind_of(*span).filter(|kind| asked.contains(kind)) else {
                    continue;
                };
                let stretches = self.stretches.entry((channel.key.process, kind));
                stretches.or_default().all.push(Stretch {
                    interval: lens.data.span(*span).interval,
                    channel: place,
                });
            }
        }
        for Stretches { all, latest } in self.stretches.values_mut() {
            all.sort_unstable_by_key(|stretch| (stretch.interval, stretch.channel));
            let ends = |block: &[Stretch]| block.iter().map(|one| one.interval.end()).max();
            *latest = all.chunks(BLOCK).filter_map(ends).collect();
        }
    }

    /// The channel of a process whose span of a kind shares the most time with
    /// `waiting`; of several the last by its key in words. `None` where none
    /// shares any.
    fn beside(
        &self,
        names: &Names,
        process: Option<Symbol>,
        kind: Kind,
        waiting: Interval,
    ) -> Option<ChannelKey> {
        let Stretches { all, latest } = self.stretches.get(&(process, kind))?;
        let begun = all.partition_point(|stretch| stretch.interval.start() < waiting.end());
        let blocks = all[..begun].chunks(BLOCK).zip(latest);
        let near = blocks.filter(|(_, latest)| **latest > waiting.start());
        let mut best: Option<(Nanos, ChannelKey)> = None;
        for stretch in near.flat_map(|(block, _)| block) {
            let key = self.all[stretch.channel].key;
            let Some(shared) = stretch.interval.within(waiting).map(Interval::length) else {
                continue;
            };
            let better = match best {
                None => shared > Nanos(0),
                Some((most, chosen)) => {
                    shared > most || shared == most && key.texts(names) > chosen.texts(names)
                }
            };
            if better {
                best = Some((shared, key));
            }
        }
        best.map(|(_, key)| key)
    }
}

/// The channel that the request with these spans below it used.
#[must_use]
pub fn channel_of(
    lens: &Lens<'_>,
    process: Option<Symbol>,
    below: &ByKind,
    channels: &Channels,
) -> Option<ChannelKey> {
    let mut joins = lens.model.chain.joins.iter();
    joins.find_map(|join| apply(lens, join, process, below, channels))
}

fn apply(
    lens: &Lens<'_>,
    join: &Join,
    process: Option<Symbol>,
    below: &ByKind,
    channels: &Channels,
) -> Option<ChannelKey> {
    let spans =
        |name: &str| -> &[SpanIndex] { lens.kind(name).map_or(&[], |kind| below.get(kind)) };
    let key = |channel: Symbol| ChannelKey { process, channel };
    match join {
        Join::Attribute { of, key: name } => {
            let mut spans = spans(of).iter();
            spans.find_map(|span| lens.symbol(*span, name)).map(key)
        }
        Join::Event {
            of,
            event,
            key: name,
        } => {
            let mut spans = spans(of).iter();
            spans
                .find_map(|span| event_text(lens, *span, event, name))
                .map(key)
        }
        Join::Link { of } => {
            let targets = spans(of)
                .iter()
                .flat_map(|span| lens.data.span(*span).links())
                .filter_map(|link| lens.data.find(link.trace, link.span));
            targets
                .into_iter()
                .find_map(|target| lens.channel_of(target))
                .map(key)
        }
        Join::Descendant { of } => {
            let mut spans = spans(of).iter();
            spans.find_map(|span| lens.channel_of(*span)).map(key)
        }
        Join::Overlap { of, with } => {
            let waiting = lens.data.span(*spans(of).first()?).interval;
            channels.beside(&lens.data.names, process, lens.kind(with)?, waiting)
        }
    }
}

fn event_text(lens: &Lens<'_>, span: SpanIndex, event: &str, key: &str) -> Option<Symbol> {
    let (event, key) = (lens.data.names.find(event)?, lens.data.names.find(key)?);
    let mut events = lens
        .data
        .span(span)
        .events()
        .iter()
        .filter(|found| found.name == event);
    events.find_map(|found| match found.attributes.get(key)? {
        Value::Text(symbol) => Some(symbol),
        _ => None,
    })
}
