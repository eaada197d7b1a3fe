//! From a session request to its channel, by the model's rules in their order.

use hashbrown::HashMap;

use crate::model::by_kind::ByKind;
use crate::model::chain_rules::Join;
use crate::model::lens::Lens;
use crate::trace::dataset::SpanIndex;
use crate::trace::names::{Names, Symbol};
use crate::trace::span::Value;
use crate::units::{Interval, Nanos};

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
    pub spans: Vec<SpanIndex>,
}

/// All channel attempts, to be found by key and by process.
#[derive(Debug, Default)]
pub struct Channels {
    all: Vec<Channel>,
    by_key: HashMap<ChannelKey, usize>,
    by_process: HashMap<Option<Symbol>, Vec<usize>>,
}

impl Channels {
    /// The attempt with this key, new where it was not met before.
    pub fn entry(&mut self, key: ChannelKey) -> &mut Channel {
        let place = *self.by_key.entry(key).or_insert_with(|| {
            let place = self.all.len();
            self.by_process.entry(key.process).or_default().push(place);
            self.all.push(Channel {
                key,
                spans: Vec::new(),
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
            let kind = lens.kind(with)?;
            let overlap = |channel: &Channel| {
                let members = channel.spans.iter();
                let members = members.filter(|span| lens.kind_of(**span) == Some(kind));
                let shared =
                    members.filter_map(|span| lens.data.span(*span).interval.within(waiting));
                shared.map(Interval::length).max().unwrap_or(Nanos(0))
            };
            let rank = |channel: &Channel| (overlap(channel), channel.key.texts(&lens.data.names));
            let best = channels
                .of_process(process)
                .max_by(|a, b| rank(a).cmp(&rank(b)))?;
            (overlap(best) > Nanos(0)).then_some(best.key)
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
