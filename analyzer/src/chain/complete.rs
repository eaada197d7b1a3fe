//! Whether a run's chain is whole, and if not, what is missing.
//!
//! Required are the process part (shared, once), the channel part, and for each
//! request that made a session its own stages; the agent's spans only where the
//! agent is one that writes them. A required span in error counts as missing.

use crate::model::lens::{Lens, equals};
use crate::trace::dataset::SpanIndex;
use crate::trace::span::Status;

use super::{ChainState, Outcome, Request, Run};
use crate::model::by_kind::ByKind;

/// Sets the chain's state, and the failure of a run whose session failed.
pub fn judge(lens: &Lens<'_>, run: &mut Run<'_>) {
    if run.failure.is_none() {
        run.failure = failed_request(lens, run)
            .or_else(|| super::clients::failure(lens, run))
            .or_else(|| failed_channel(lens, run));
    }
    let traced = !(run.process.is_empty() && run.channel.is_empty() && run.requests.is_empty());
    if !traced {
        run.chain = ChainState::NotTraced;
        return;
    }
    let mut missing = Vec::new();
    let chain = &lens.model.chain;
    let mut roots = run.requests.iter().map(|request| request.span);
    if chain.run_per_request && roots.any(|span| lens.tree.is_orphan(span)) {
        missing.push(format!("the parent of its {}", chain.request));
    }
    let mut require = |kinds: &[String], spans: &ByKind, whose: &str| {
        for kind in kinds {
            if let Some(what) = lack(lens, kind, spans) {
                missing.push(format!("{what}{whose}"));
            }
        }
    };
    if asks_for_session(lens, run) {
        require(&chain.process, &run.process, "");
        require(&chain.channel, &run.channel, "");
        let own_agent = !foreign_agent(lens, run);
        if own_agent {
            require(&chain.channel_agent, &run.channel, "");
        }
        for (index, request) in run.requests.iter().enumerate() {
            if request.outcome == Outcome::Created {
                let whose = if index == 0 {
                    String::new()
                } else {
                    format!(" of request {}", index + 1)
                };
                require(&chain.created, &request.below, &whose);
                if own_agent {
                    require(&chain.created_agent, &request.below, &whose);
                }
            }
        }
        if run.requests.is_empty() && expects_request(lens, run) {
            missing.push(chain.request.clone());
        }
    } else {
        require(&chain.process_without_session, &run.process, "");
    }
    run.chain = if missing.is_empty() {
        ChainState::Complete
    } else {
        ChainState::Incomplete(missing.into())
    };
}

/// A cold start that the client stopped at ready or at health asks for no
/// session; without a client's word every traced channel is one that matters.
fn asks_for_session(lens: &Lens<'_>, run: &Run<'_>) -> bool {
    run.client.is_empty() || expects_request(lens, run) || !run.requests.is_empty()
}

/// Whether the client says that it asked for a session.
fn expects_request(lens: &Lens<'_>, run: &Run<'_>) -> bool {
    let spans = lens
        .model
        .measured
        .iter()
        .flat_map(|measured| &measured.session);
    let loose = run.channel_id.is_none() && run.client.is_empty();
    loose
        || run.record.is_some()
        || spans
            .into_iter()
            .any(|kind| run.first(lens, kind).is_some())
}

fn foreign_agent(lens: &Lens<'_>, run: &Run<'_>) -> bool {
    let Some(rule) = &lens.model.chain.foreign_agent else {
        return false;
    };
    let spans = run.all(lens, &rule.kind).iter();
    let values = spans.filter_map(|span| lens.attribute(*span, &rule.key));
    values
        .into_iter()
        .any(|value| equals(lens.data, value, &rule.equals))
}

/// What is wrong with a required kind; `None` when a good span of it is there.
fn lack(lens: &Lens<'_>, kind: &str, spans: &ByKind) -> Option<String> {
    let found = lens.kind(kind).map_or(&[][..], |kind| spans.get(kind));
    let in_error = |span: &&SpanIndex| lens.data.span(**span).status == Status::Error;
    match found.iter().find(in_error) {
        None if found.is_empty() => Some(kind.to_owned()),
        None => None,
        Some(_) if found.iter().any(|span| !in_error(&span)) => None,
        Some(span) => Some(format!("{kind} (in error{})", message(lens, *span))),
    }
}

fn message(lens: &Lens<'_>, span: SpanIndex) -> String {
    let text = lens
        .data
        .span(span)
        .message
        .map(|symbol| lens.data.names.text(symbol));
    text.map_or_else(String::new, |text| format!(": {text}"))
}

/// A run fails when a request for a session failed and none before it succeeded.
fn failed_request(lens: &Lens<'_>, run: &Run<'_>) -> Option<String> {
    let first: &Request = run.requests.first()?;
    (first.outcome == Outcome::Failed)
        .then(|| format!("the session request failed{}", message(lens, first.span)))
}

/// A channel attempt that ended in error is a cold start that failed, whether or
/// not a request waited for it. One that the client ended on purpose, by
/// stopping before it asked for a session, is not.
fn failed_channel(lens: &Lens<'_>, run: &Run<'_>) -> Option<String> {
    let kinds = lens.model.chain.channel.iter();
    let spans = kinds.flat_map(|kind| run.all(lens, kind));
    let mut broken = spans.filter(|span| lens.data.span(**span).status == Status::Error);
    let first = broken.next().filter(|_| asks_for_session(lens, run))?;
    let name = lens.rule(*first).map_or("channel", |rule| &rule.kind);
    Some(format!("{name} failed{}", message(lens, *first)))
}
