//! From a session request to its channel, by the model's rules in their order.

use std::collections::BTreeMap;

use crate::model::chain_rules::Join;
use crate::model::lens::Lens;
use crate::trace::dataset::SpanIndex;
use crate::trace::span::{Value, attribute};
use crate::units::{Interval, Nanos};

use crate::model::by_kind::ByKind;

/// Identity of a channel attempt: process key and channel id.
pub type ChannelKey<'a> = (Option<&'a str>, &'a str);

/// Spans of each channel attempt.
pub type Channels<'a> = BTreeMap<ChannelKey<'a>, Vec<SpanIndex>>;

/// The channel that the request with these spans below it used.
#[must_use]
pub fn channel_of<'a>(
    lens: &Lens<'a>,
    process: Option<&'a str>,
    below: &ByKind,
    channels: &Channels<'a>,
) -> Option<ChannelKey<'a>> {
    let mut joins = lens.model.chain.joins.iter();
    joins.find_map(|join| apply(lens, join, process, below, channels))
}

fn apply<'a>(
    lens: &Lens<'a>,
    join: &Join,
    process: Option<&'a str>,
    below: &ByKind,
    channels: &Channels<'a>,
) -> Option<ChannelKey<'a>> {
    let spans =
        |name: &str| -> &[SpanIndex] { lens.kind(name).map_or(&[], |kind| below.get(kind)) };
    let channel_key = &lens.model.keys.channel;
    match join {
        Join::Attribute { of, key } => spans(of)
            .iter()
            .find_map(|span| Some((process, lens.text(*span, key)?))),
        Join::Event { of, event, key } => spans(of)
            .iter()
            .find_map(|span| Some((process, event_text(lens, *span, event, key)?))),
        Join::Link { of } => spans(of).iter().find_map(|span| {
            let links = lens.data.span(*span).links().iter();
            let mut targets = links.filter_map(|link| lens.data.find(link.trace, link.span));
            targets.find_map(|target| Some((process, lens.text(target, channel_key)?)))
        }),
        Join::Descendant { of } => spans(of)
            .iter()
            .find_map(|span| Some((process, lens.text(*span, channel_key)?))),
        Join::Overlap { of, with } => {
            let waiting = lens.data.span(*spans(of).first()?).interval;
            let kind = lens.kind(with)?;
            let overlap = |members: &Vec<SpanIndex>| {
                let channel = members
                    .iter()
                    .filter(|span| lens.kind_of(**span) == Some(kind));
                let shared =
                    channel.filter_map(|span| lens.data.span(*span).interval.within(waiting));
                shared.map(Interval::length).max().unwrap_or(Nanos(0))
            };
            let same = channels.iter().filter(|((owner, _), _)| *owner == process);
            let best = same.map(|(key, members)| (overlap(members), *key)).max()?;
            (best.0 > Nanos(0)).then_some(best.1)
        }
    }
}

fn event_text<'a>(lens: &Lens<'a>, span: SpanIndex, event: &str, key: &str) -> Option<&'a str> {
    let (event, key) = (lens.data.names.find(event)?, lens.data.names.find(key)?);
    let mut events = lens
        .data
        .span(span)
        .events()
        .iter()
        .filter(|found| found.name == event);
    events.find_map(|found| match attribute(&found.attributes, key)? {
        Value::Text(symbol) => Some(lens.data.names.text(symbol)),
        _ => None,
    })
}
